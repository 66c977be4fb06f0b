//! A nats-server to test with.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use os_upgrade_nats_server::{NotFound, find};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How long a server may take to start.
const START_WAIT: Duration = Duration::from_secs(30);
/// How often to look whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why there is no server to test with.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// None is installed.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// It cannot be started.
    #[error("cannot start a nats-server to test with")]
    Start(#[from] std::io::Error),
    /// It has ended, or does not say where it listens.
    #[error("the nats-server to test with did not start: {0}")]
    NotReady(String),
}

/// A nats-server of the test's own: on a free port of 127.0.0.1, with JetStream in a directory that goes with it. It is
/// killed when this is dropped.
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
    /// There is none, or it does not start.
    pub async fn start() -> Result<Self, ServerError> {
        let program = find().await?.path;
        let directory = tempfile::tempdir()?;
        let config = directory.path().join("nats.conf");
        let text = format!(
            "listen: \"127.0.0.1:-1\"\nports_file_dir: \"{0}\"\nlog_file: \"{0}/log\"\n\
             jetstream {{ store_dir: \"{0}\" }}\n",
            directory.path().display()
        );
        std::fs::write(&config, text)?;
        let mut process = Command::new(program)
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let ports = format!("nats-server_{}.ports", process.id().unwrap_or_default());
        let ports = directory.path().join(ports);
        let started = tokio::time::timeout(START_WAIT, async {
            loop {
                if let Some(url) = listening(&ports).await {
                    return Ok(url);
                }
                if let Some(status) = process.try_wait()? {
                    let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
                    return Err(ServerError::NotReady(format!("{status}: {log}")));
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        let url = started.await.map_err(|_| ServerError::NotReady("no answer in time".to_owned()))??;
        Ok(Self { url, _process: process, _directory: directory })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The server's URL, once it says one and can be connected to.
async fn listening(ports: &Path) -> Option<String> {
    let text = std::fs::read_to_string(ports).ok()?;
    let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
    let url = ports["nats"][0].as_str()?;
    let address = url.strip_prefix("nats://")?;
    tokio::net::TcpStream::connect(address).await.ok()?;
    Some(url.to_owned())
}
