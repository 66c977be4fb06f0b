//! Lists of a server that says more than it should.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::client::Access;
use super::*;

/// As long as anything may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// Answers each request with `page`, and counts them.
async fn answer(mut stream: TcpStream, page: Arc<String>, requests: Arc<AtomicUsize>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        request.extend_from_slice(&buffer[..read]);
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        request.clear();
        requests.fetch_add(1, Ordering::Relaxed);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
        // A client that has had enough ends the connection.
        if stream.write_all(head.as_bytes()).await.is_err()
            || stream.write_all(page.as_bytes()).await.is_err()
        {
            return;
        }
    }
}

/// A client of a server whose lists have such pages, and how often it was asked.
async fn client(page: String) -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (page, requests) = (Arc::new(page), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&page), Arc::clone(&counted)));
        }
    });
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config");
    let config = json!({
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "users": [{ "name": "u", "user": {} }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "current-context": "x",
    });
    std::fs::write(&file, config.to_string()).unwrap();
    let client = Client::new(&Access::Kubeconfig { file, context: None }).await.unwrap();
    (client.with_timeout(PATIENCE), requests)
}

async fn refused(page: String) -> (String, usize) {
    let (client, requests) = client(page).await;
    let error = client.pods_of("n").await.unwrap_err();
    assert!(matches!(error, Error::ListTooLarge { right: LIST_PODS, .. }), "{error:?}");
    (error.to_string(), requests.load(Ordering::Relaxed))
}

/// Each page is smaller than the limit, and their sum is not.
#[tokio::test]
async fn pages_of_a_list_share_its_limit() {
    let expected = "the list of the pods of the node n has more than 64 MiB or 20000 objects";
    let much = "x".repeat(24 << 20);
    let page = format!(r#"{{"metadata":{{"continue":"t"}},"items":[],"much":"{much}"}}"#);
    assert_eq!(refused(page).await, (expected.to_owned(), 3));
    // Small objects would take much more memory than bytes.
    let page = format!(r#"{{"metadata":{{}},"items":[{}{{}}]}}"#, "{},".repeat(OBJECTS_MAX));
    assert_eq!(refused(page).await, (expected.to_owned(), 1));
}
