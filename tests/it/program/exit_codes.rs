//! What the command line ends with when a change has no answer: scripts tell by it whether it may still come to be.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use harness::programs;

/// What `os-upgrade` with `arguments` ends with, and says, where the API is at `address`.
async fn asked(arguments: &[&str], address: SocketAddr) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
    command.args(arguments).args(["--url", &format!("http://{address}")]).kill_on_drop(true);
    let output = command.output().await.unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const CHANGE: [&str; 3] = ["hosts", "approve", "h01"];

#[tokio::test]
async fn unanswered_changes_have_own_code() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for change in [&CHANGE[..], &["lock", "unlock", "--id", "h01"]] {
        let ((code, said), ()) = tokio::join!(asked(change, address), async {
            drop(listener.accept().await.unwrap());
        });
        assert_eq!(code, Some(6), "{change:?}: {said}");
    }
    let listed = async { drop(listener.accept().await.unwrap()) };
    let ((code, said), ()) = tokio::join!(asked(&["hosts", "list"], address), listed);
    assert_eq!(code, Some(1), "{said}");
    drop(listener);
    // The last one reads first who waits.
    for change in [&CHANGE[..], &["hosts", "approve", "--all"]] {
        let (code, said) = asked(change, address).await;
        assert_eq!(code, Some(5), "{change:?}: {said}");
    }
}
