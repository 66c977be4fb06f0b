//! Exit codes of changes without an answer: scripts use them to decide whether the change may still take effect.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use harness::programs;

/// Runs `os-upgrade` against the API at `address`. Returns its exit code and standard error.
async fn run(arguments: &[&str], address: SocketAddr) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
    command.args(arguments).args(["--url", &format!("http://{address}")]).kill_on_drop(true);
    let output = command.output().await.unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const CHANGE: [&str; 4] = ["hosts", "approve", "h01", "--new"];

#[tokio::test]
async fn unanswered_changes_have_own_code() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for change in [&CHANGE[..], &["lock", "unlock", "--id", "h01"]] {
        let ((code, stderr), ()) = tokio::join!(run(change, address), async {
            drop(listener.accept().await.unwrap());
        });
        assert_eq!(code, Some(6), "{change:?}: {stderr}");
    }
    let listed = async { drop(listener.accept().await.unwrap()) };
    let ((code, stderr), ()) = tokio::join!(run(&["hosts", "list"], address), listed);
    assert_eq!(code, Some(1), "{stderr}");
    drop(listener);
    // The last one reads the waiting hosts first.
    for change in [&CHANGE[..], &["hosts", "approve", "--all", "--yes"]] {
        let (code, stderr) = run(change, address).await;
        assert_eq!(code, Some(5), "{change:?}: {stderr}");
    }
}
