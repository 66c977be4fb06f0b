//! A nats-server for tests.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use os_upgrade_platform::nats_server::{NotFound, configuration, find, log_file, port, quoted};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How long a server may take to start.
const START_WAIT: Duration = Duration::from_secs(30);
/// How often to check whether it has started.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Why there is no server for a test.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No suitable nats-server is installed.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// It cannot be started.
    #[error("cannot start a nats-server for the test")]
    Start(#[from] std::io::Error),
    /// It has exited, or has not reported its port in time.
    #[error("the nats-server for the test did not start: {0}")]
    NotReady(String),
}

/// A separate nats-server on a free port of 127.0.0.1, with JetStream in a temporary directory. When this is dropped, the
/// server is killed and the directory deleted.
#[derive(Debug)]
pub struct NatsServer {
    url: String,
    _process: Child,
    _directory: TempDir,
}

impl NatsServer {
    /// Starts the nats-server that `OS_UPGRADE_NATS_SERVER` names, or else the first one on `PATH` that is new enough.
    ///
    /// # Errors
    /// No suitable nats-server is installed, or it does not start.
    pub async fn start() -> Result<Self, ServerError> {
        let program = find().await?.path;
        let directory = tempfile::tempdir()?;
        let config = directory.path().join("nats.conf");
        let store = format!("jetstream {{ store_dir: {} }}\n", quoted(directory.path()));
        std::fs::write(&config, configuration(directory.path(), None) + &store)?;
        let mut process = Command::new(program)
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let pid = process.id().unwrap_or_default();
        let started = tokio::time::timeout(START_WAIT, async {
            loop {
                if let Some(url) = listening(directory.path(), pid).await {
                    return Ok(url);
                }
                if let Some(status) = process.try_wait()? {
                    let log = std::fs::read_to_string(log_file(directory.path())).unwrap_or_default();
                    return Err(ServerError::NotReady(format!("{status}: {log}")));
                }
                tokio::time::sleep(POLL_EVERY).await;
            }
        });
        let url = started.await.map_err(|_| ServerError::NotReady("no answer in time".to_owned()))??;
        Ok(Self { url, _process: process, _directory: directory })
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The server's URL, once it has reported its port and accepts connections.
async fn listening(directory: &Path, pid: u32) -> Option<String> {
    let port = port(directory, pid)?;
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    Some(format!("nats://127.0.0.1:{port}"))
}
