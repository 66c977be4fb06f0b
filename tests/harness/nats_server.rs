//! A nats-server of one test: on a free port, in its own directory, stopped with the test. Fails without the binary.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use async_nats::jetstream;
use nix::sys::signal::Signal;
use os_upgrade_platform::child::Child;
use os_upgrade_platform::nats_server;
use tempfile::TempDir;

use crate::disk;
use crate::files::copy_all;
use crate::wait::{self, eventually};

/// The subdirectory of the streams.
const STREAMS: &str = "jetstream";

/// A server, which can be stopped and started again on the same port and directory.
#[derive(Debug)]
pub struct NatsServer {
    directory: TempDir,
    port: u16,
    options: String,
    /// More settings of `JetStream`.
    jetstream: String,
    /// What runs instead of the nats-server of this machine.
    program: Option<PathBuf>,
    child: Option<Child>,
}

impl NatsServer {
    /// Starts a server without streams.
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a server with more lines in its configuration.
    pub async fn start_with(options: &str) -> Self {
        let mut server = Self::stopped(options);
        server.start_again().await;
        server
    }

    /// A server with more lines in its configuration, which does not run yet.
    pub fn stopped(options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (options, jetstream) = (options.to_owned(), String::new());
        Self { directory, port: 0, options, jetstream, program: None, child: None }
    }

    /// Runs the server by a program of its own.
    #[must_use]
    pub fn with_program(self, program: PathBuf) -> Self {
        Self { program: Some(program), ..self }
    }

    /// Puts the server's streams into a JetStream domain.
    #[must_use]
    pub fn in_domain(self, domain: &'static str) -> Self {
        Self { jetstream: format!(", domain: {domain}"), ..self }
    }

    /// Limits what the server stores.
    #[must_use]
    pub fn storing_at_most(self, bytes: u64) -> Self {
        Self { jetstream: format!(", max_file_store: {bytes}"), ..self }
    }

    /// Starts a server with the streams that the orchestrator creates.
    pub async fn with_streams() -> Self {
        let server = Self::start().await;
        create_streams(&jetstream::new(server.client().await)).await;
        server
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The server's address, once it has run.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// A new client.
    pub async fn client(&self) -> async_nats::Client {
        async_nats::connect(self.url()).await.unwrap()
    }

    /// Kills the server, and starts it again on its port and directory with other lines in its configuration.
    pub async fn restart_with(&mut self, options: &str) {
        self.kill();
        options.clone_into(&mut self.options);
        self.start_again().await;
    }

    /// Kills the server, and starts it again with a further line in its configuration.
    pub async fn restart_adding(&mut self, line: &str) {
        let options = format!("{}\n{line}", self.options);
        self.restart_with(&options).await;
    }

    /// Kills the server, and waits until its process has ended.
    pub fn kill(&mut self) {
        self.child = None;
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().pid()
    }

    /// Sends the server a signal.
    pub fn signal(&self, signal: Signal) {
        wait::signal(self.child.as_ref().unwrap(), signal);
    }

    /// The directory of its configuration, log and streams.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Copies the streams' files, to be restored later. The server must not run.
    pub fn save(&self) -> Saved {
        assert!(self.child.is_none(), "files of a running server cannot be copied");
        let copy = tempfile::tempdir().unwrap();
        copy_all(&self.directory.path().join(STREAMS), &copy.path().join(STREAMS));
        Saved(copy)
    }

    /// Restores the streams' files, as after a power cut without syncs. The server must not run.
    pub fn restore_streams(&self, saved: &Saved) {
        self.delete_streams();
        copy_all(&saved.0.path().join(STREAMS), &self.directory.path().join(STREAMS));
    }

    /// Copies one stream's files. The server must not run.
    pub fn save_stream(&self, name: &str) -> Saved {
        assert!(self.child.is_none(), "files of a running server cannot be copied");
        let copy = tempfile::tempdir().unwrap();
        copy_all(&self.stream_directory(name), &copy.path().join(STREAMS));
        Saved(copy)
    }

    /// Restores one stream's files. The server must not run.
    pub fn restore_stream(&self, name: &str, saved: &Saved) {
        assert!(self.child.is_none(), "a running server would overwrite them");
        let directory = self.stream_directory(name);
        std::fs::remove_dir_all(&directory).unwrap();
        copy_all(&saved.0.path().join(STREAMS), &directory);
    }

    fn stream_directory(&self, name: &str) -> PathBuf {
        self.directory.path().join(STREAMS).join("$G/streams").join(name)
    }

    /// Deletes the streams' files. The server must not run.
    pub fn delete_streams(&self) {
        assert!(self.child.is_none(), "a running server would overwrite them");
        std::fs::remove_dir_all(self.directory.path().join(STREAMS)).unwrap();
    }

    /// Starts a killed server, and waits until it is ready.
    pub async fn start_again(&mut self) {
        let directory = self.directory.path();
        let config = directory.join("nats.conf");
        // The first start chooses a free port.
        let port = (self.port != 0).then_some(self.port);
        let text = format!(
            "{}jetstream {{ store_dir: {}, sync_interval: always{} }}\n{}\n",
            nats_server::configuration(directory, port),
            nats_server::quoted(directory),
            self.jetstream,
            self.options,
        );
        std::fs::write(&config, text).unwrap();
        let program = match &self.program {
            Some(program) => program.clone(),
            None => nats_server::find().await.unwrap().path,
        };
        let mut command = disk::command(&program);
        command.arg("-c").arg(&config);
        let child = Child::start(command).unwrap();
        let pid = child.pid();
        self.child = Some(child);
        self.port = eventually("the port of nats-server", async || {
            let ended = self.child.as_ref().and_then(Child::status);
            let log = || std::fs::read_to_string(nats_server::log_file(directory)).unwrap_or_default();
            assert!(ended.is_none(), "nats-server has ended: {}", log());
            nats_server::port(directory, pid)
        })
        .await;
        eventually("nats-server to listen", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.ok()
        })
        .await;
    }
}

/// A copy of all streams' files.
#[derive(Debug)]
pub struct Saved(TempDir);

/// Creates the missing streams, as the orchestrator does.
pub async fn create_streams(jetstream: &jetstream::Context) {
    for config in os_upgrade_jetstream::worker_streams() {
        jetstream.get_or_create_stream(config).await.unwrap();
    }
}
