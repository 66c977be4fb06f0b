//! What the command line ends with when a change has no answer: scripts tell by it whether it may still come to be.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use harness::programs;

/// What `os-upgrade hosts approve h01` ends with, and says, where the API is at `address`.
async fn approved(address: SocketAddr) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
    command.args(["hosts", "approve", "h01", "--url", &format!("http://{address}")]).kill_on_drop(true);
    let output = command.output().await.unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn changes_without_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ((code, said), ()) = tokio::join!(approved(address), async {
        drop(listener.accept().await.unwrap());
    });
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("may still come to be"), "{said}");
    drop(listener);
    let (code, said) = approved(address).await;
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
}
