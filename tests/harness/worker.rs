//! A worker process with scripts, and the orchestrator's side of its messages.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use async_nats::jetstream::consumer::Info;
use async_nats::jetstream::{self, message::StreamMessage};
use async_nats::{HeaderMap, HeaderValue};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::{HostName, Reply, Versions, header, subject};
use tempfile::TempDir;

use crate::host::APPLICATION;
use crate::nats_server::NatsServer;
use crate::programs;
use crate::wait::eventually;

/// The initial content of the boot-id file.
pub const FIRST_BOOT: &str = "boot-1";

/// A host with a worker process, which can be killed and started again.
#[derive(Debug)]
pub struct WorkerHost {
    /// Its host name.
    pub host: HostName,
    directory: TempDir,
    url: String,
    client: async_nats::Client,
    jetstream: jetstream::Context,
    /// The worker's subcommand with its own options.
    kind: Vec<String>,
    options: Vec<String>,
    environment: Vec<(String, String)>,
    /// Variables that the worker does not inherit.
    unset: Vec<String>,
    /// The root directory and program of the worker, if it runs in another root.
    within: Option<(PathBuf, PathBuf)>,
    child: Option<Child>,
}

impl WorkerHost {
    /// A host without scripts, whose worker does not run yet.
    pub async fn new(server: &NatsServer, host: &str) -> Self {
        let client = server.client().await;
        let directory = tempfile::tempdir().unwrap();
        let scripts = directory.path().join("scripts");
        let this = Self {
            host: HostName::new(host).unwrap(),
            directory,
            kind: ["exec", "--dir", scripts.to_str().unwrap()].map(str::to_owned).to_vec(),
            url: server.url(),
            jetstream: jetstream::new(client.clone()),
            client,
            options: Vec::new(),
            environment: Vec::new(),
            unset: Vec::new(),
            within: None,
            child: None,
        };
        std::fs::create_dir(this.scripts()).unwrap();
        this.boot(FIRST_BOOT);
        this
    }

    /// Starts the worker without a variable of this process.
    #[must_use]
    pub fn without_environment(mut self, name: &str) -> Self {
        self.unset.push(name.to_owned());
        self
    }

    /// Uses another kind of worker than that with scripts: its subcommand with its own options.
    #[must_use]
    pub fn with_kind(mut self, kind: &[&str]) -> Self {
        self.kind = kind.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Runs the worker as `program` in another root, in which the host's directory has the same path.
    #[must_use]
    pub fn within(mut self, root: &Path, program: &Path) -> Self {
        self.within = Some((root.to_owned(), program.to_owned()));
        self
    }

    /// Sets a variable in the worker's environment.
    #[must_use]
    pub fn with_environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds options to the worker's command line.
    #[must_use]
    pub fn with_options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// Sets the URL to which the worker connects, if other than the test's.
    #[must_use]
    pub fn with_url(mut self, url: String) -> Self {
        self.url = url;
        self
    }

    /// A file in the host's directory, which the scripts reach as `../NAME`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of the scripts.
    pub fn scripts(&self) -> PathBuf {
        self.path("scripts")
    }

    /// Writes a shell script.
    pub fn script(&self, name: &str, body: &str) {
        let path = self.scripts().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Gives the host another boot id.
    pub fn boot(&self, id: &str) {
        // Replaced atomically, because a worker may be reading it.
        let new = self.path("boot-id.new");
        std::fs::write(&new, id).unwrap();
        std::fs::rename(new, self.path("boot-id")).unwrap();
    }

    /// The lines of a file that scripts write; none while it does not exist.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Creates an empty file, for which a script waits.
    pub fn touch(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    /// Waits for a file.
    pub async fn await_file(&self, name: &str) {
        let path = self.path(name);
        eventually(name, async || path.exists().then_some(())).await;
    }

    fn command(&self) -> Command {
        let mut command = if let Some((root, program)) = &self.within {
            let mut command = Command::new("chroot");
            command.arg(root).arg(program);
            command
        } else {
            Command::new(worker_binary())
        };
        for name in &self.unset {
            command.env_remove(name);
        }
        command
            .args(&self.kind)
            .args(["--nats", &self.url, "--application", APPLICATION])
            .args(["--host", self.host.as_str()])
            .arg("--state-dir")
            .arg(self.path("state"))
            .arg("--boot-id-file")
            .arg(self.path("boot-id"))
            .args(&self.options)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("RUST_LOG", "debug,async_nats=info")
            // The tests' environment may have it; scripts must see only what the worker sets.
            .env_remove(nats_server::ENV)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Starts the worker. Its log goes to the file `log`, which is printed when the test fails.
    pub fn start(&mut self) {
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        self.child = Some(self.command().stderr(log).spawn().unwrap());
    }

    /// Runs a worker until it ends by itself.
    pub fn run_to_end(&self) -> Output {
        self.command().stderr(Stdio::piped()).output().unwrap()
    }

    /// Kills the worker with SIGKILL, but not its scripts.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stops the worker with SIGTERM, and waits until it has ended.
    pub async fn terminate(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        let id = Pid::from_raw(child.id().try_into().unwrap());
        kill(id, Signal::SIGTERM).unwrap();
        eventually("the worker to end", async || child.try_wait().unwrap()).await
    }

    /// Sends a command as the orchestrator does, and returns its stream sequence.
    pub async fn send(&self, run: &str, payload: &str) -> u64 {
        let mut headers = HeaderMap::new();
        headers.insert(header::PRODUCER_NAME, header::CONTROLLER);
        headers.insert(header::RUN, HeaderValue::from(run));
        let subject = subject::command(&self.host);
        let payload = payload.to_owned().into();
        let ack = self.jetstream.publish_with_headers(subject, headers, payload);
        ack.await.unwrap().await.unwrap().sequence
    }

    /// Sends a command without any header.
    pub async fn send_plain(&self, payload: &str) -> u64 {
        let subject = subject::command(&self.host);
        let ack = self.jetstream.publish(subject, payload.to_owned().into());
        ack.await.unwrap().await.unwrap().sequence
    }

    /// A `prepare` for this host.
    pub fn prepare(&self, not_after: &str) -> String {
        serde_json::json!({"action": "prepare", "hosts": [self.host], "not-after": not_after}).to_string()
    }

    /// An `upgrade` for this host.
    pub fn upgrade(&self) -> String {
        serde_json::json!({"action": "upgrade", "host": self.host}).to_string()
    }

    /// A `reboot` for this host.
    pub fn reboot(&self) -> String {
        serde_json::json!({"action": "reboot", "host": self.host}).to_string()
    }

    /// Prepares the host, and waits for the `done`.
    pub async fn prepared(&self, run: &str) {
        let sequence = self.send(run, &self.prepare("")).await;
        assert_eq!(self.result_of(sequence).await, "done");
    }

    /// All replies of this host so far.
    pub async fn replies(&self) -> Vec<StreamMessage> {
        self.messages(subject::CONTROL_STREAM, &subject::reply(&self.host)).await
    }

    /// The number of replies to this command.
    pub async fn replies_to(&self, sequence: u64) -> usize {
        let replies = self.replies().await;
        replies.iter().filter(|reply| in_reply_to(reply) == Some(sequence)).count()
    }

    /// The result of this command; `None` before its reply.
    pub async fn answered(&self, sequence: u64) -> Option<String> {
        let replies = self.replies().await;
        let reply = replies.into_iter().find(|reply| in_reply_to(reply) == Some(sequence))?;
        Some(Reply::parse(&reply.payload).unwrap().result.as_str().to_owned())
    }

    /// Waits for a reply to this command, and returns its result.
    pub async fn result_of(&self, sequence: u64) -> String {
        let reply = eventually("a reply", async || {
            let replies = self.replies().await;
            replies.into_iter().find(|reply| in_reply_to(reply) == Some(sequence))
        })
        .await;
        let producer = reply.headers.get(header::PRODUCER_NAME).unwrap().as_str();
        assert_eq!(producer, format!("{APPLICATION}/{}", self.host));
        Reply::parse(&reply.payload).unwrap().result.as_str().to_owned()
    }

    /// Waits until every command up to this one is acknowledged.
    pub async fn await_acked(&self, sequence: u64) {
        eventually("an acknowledgement", async || {
            let info = self.consumer().await?;
            let acked = info.ack_floor.stream_sequence >= sequence && info.num_ack_pending == 0;
            acked.then_some(())
        })
        .await;
    }

    /// The state of the host's consumer, if it exists.
    pub async fn consumer(&self) -> Option<Info> {
        let stream = self.jetstream.get_stream(subject::CONTROL_STREAM).await.ok()?;
        stream.consumer_info(subject::consumer(&self.host)).await.ok()
    }

    /// The versions that the host has published, oldest first.
    pub async fn versions(&self) -> Vec<Versions> {
        let subject = subject::versions(&self.host);
        let messages = self.messages(subject::VERSIONS_STREAM, &subject).await;
        messages.iter().map(|message| Versions::parse(&message.payload).unwrap()).collect()
    }

    /// All messages on a subject, oldest first.
    pub async fn messages(&self, stream: &str, subject: &str) -> Vec<StreamMessage> {
        let mut messages = Vec::new();
        let Ok(stream) = self.jetstream.get_stream(stream).await else {
            return messages;
        };
        let mut next = 1;
        while let Ok(message) =
            stream.raw_message_builder().sequence(next).next_by_subject(subject).send().await
        {
            next = message.sequence + 1;
            messages.push(message);
        }
        messages
    }

    /// The test's own NATS client.
    pub const fn client(&self) -> &async_nats::Client {
        &self.client
    }

    /// The test's own JetStream client.
    pub const fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    /// The worker's log.
    pub fn log(&self) -> String {
        let mut text = String::new();
        if let Ok(mut log) = std::fs::File::open(self.path("log")) {
            log.read_to_string(&mut text).unwrap();
        }
        text
    }

    /// Waits until the worker has logged this.
    pub async fn await_log(&self, text: &str) {
        eventually(text, async || self.log().contains(text).then_some(())).await;
    }
}

impl Drop for WorkerHost {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "the test has failed; this says why")]
            {
                eprintln!("--- log of the worker of {}\n{}", self.host, self.log());
            }
        }
        self.kill();
    }
}

/// The sequence of the command that a reply names.
pub fn in_reply_to(reply: &StreamMessage) -> Option<u64> {
    reply.headers.get(header::IN_REPLY_TO)?.as_str().parse().ok()
}

/// The variable with the path of another `os-upgrade-worker` to test.
const PROGRAM: &str = "OS_UPGRADE_WORKER_PROGRAM";

/// The `os-upgrade-worker` program under test.
pub fn worker_binary() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| programs::path(programs::WORKER), PathBuf::from)
}

/// The example `name` of the worker SDK.
pub fn worker_example(name: &str) -> PathBuf {
    programs::path(&format!("examples/{name}"))
}
