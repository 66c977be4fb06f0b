//! What `os-upgrade-worker` logs when it cannot connect to NATS: where, why, and what to do, without repetition.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use os_upgrade_credentials::CredentialsFile;
use tempfile::TempDir;

/// Time limit for each step of a test.
const PATIENCE: Duration = Duration::from_mins(1);

fn eventually<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "timed out waiting for: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A host with the options and files of its worker.
struct Host {
    directory: TempDir,
    url: String,
    application: String,
    options: Vec<String>,
}

impl Host {
    fn new(url: &str) -> Self {
        let [url, application] = [url, "test"].map(str::to_owned);
        Self { directory: tempfile::tempdir().unwrap(), url, application, options: Vec::new() }
    }

    fn with(mut self, option: &str, file: &Path) -> Self {
        self.options.extend([option.to_owned(), file.display().to_string()]);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self) -> Command {
        fs::write(self.path("boot-id"), "boot-1").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_os-upgrade-worker"));
        command
            .args(["exec", "--host", "h01", "--application", &self.application, "--dir"])
            .arg(self.directory.path())
            .arg("--state-dir")
            .arg(self.path("state"))
            .arg("--boot-id-file")
            .arg(self.path("boot-id"))
            .args(&self.options)
            .env("OS_UPGRADE_NATS_URL", &self.url)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn start(&self) -> Process {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        Process(self.command().stderr(log).spawn().unwrap())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn await_log(&self, text: &str) {
        let find = || self.log().contains(text).then_some(());
        eventually(&format!("{text:?} in the log:\n{}", self.log()), find);
    }

    /// The exit status and standard error of a worker that cannot start.
    fn refusal(&self) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = self.command().stderr(Stdio::piped()).output().unwrap();
        (status.code(), String::from_utf8(stderr).unwrap())
    }
}

/// A nats-server on a free port, which it keeps when it is restarted.
struct Server {
    directory: TempDir,
    options: String,
    port: u16,
    process: Option<Process>,
}

impl Server {
    async fn start(options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut this = Self { directory, options: options.to_owned(), port: 0, process: None };
        this.start_on(None).await;
        this
    }

    async fn start_again(&mut self) {
        self.start_on(Some(self.port)).await;
    }

    async fn start_on(&mut self, port: Option<u16>) {
        let directory = self.directory.path();
        let file = directory.join("nats.conf");
        let text =
            format!("{}{}\n", os_upgrade_platform::nats_server::configuration(directory, port), self.options);
        fs::write(&file, text).unwrap();
        let mut command = Command::new(os_upgrade_platform::nats_server::find().await.unwrap().path);
        command.arg("-c").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(command.spawn().unwrap());
        let listening = || {
            let port = os_upgrade_platform::nats_server::port(directory, process.0.id())?;
            TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(port)
        };
        self.port = eventually("the server", listening);
        self.process = Some(process);
    }

    fn log(&self) -> String {
        fs::read_to_string(os_upgrade_platform::nats_server::log_file(self.directory.path()))
            .unwrap_or_default()
    }
}

/// The files of a self-signed certificate for `name` and its key.
fn certificate(directory: &Path, name: &str) -> [PathBuf; 2] {
    let generated = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let files = [("pem", generated.cert.pem()), ("key", generated.signing_key.serialize_pem())];
    files.map(|(extension, text)| {
        let path = directory.join(format!("{name}.{extension}"));
        fs::write(&path, text).unwrap();
        path
    })
}

/// A credentials file for `user`; a server without accounts accepts any.
fn credentials(path: &Path, user: &str) {
    let seed = nkeys::KeyPair::new_user().seed().unwrap();
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"name":"{user}"}}"#));
    fs::write(path, CredentialsFile::text(&format!("e30.{claims}.x"), &seed)).unwrap();
}

#[test]
fn unreachable_servers_are_reported() {
    let host = Host::new("nats://me:secret@127.0.0.1:1,nats://nats.invalid:4222");
    let _worker = host.start();
    host.await_log("nats://127.0.0.1:1: IO error: Connection refused");
    host.await_log("nats://nats.invalid:4222: DNS error: ");
    assert!(!host.log().contains("secret"), "{}", host.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_errors_come_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate(directory.path(), "other.example");
    let tls = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}");
    let server = Server::start(&tls).await;
    let url = format!("tls://localhost:{}", server.port);

    let unknown = Host::new(&url);
    let _worker = unknown.start();
    let said = "its certificate is from an authority that is not trusted";
    unknown.await_log(&format!("cannot connect to {url}: IO error: {said}"));
    unknown.await_log("give the certificate of the server's authority with --tls-ca");

    let misnamed = Host::new(&url).with("--tls-ca", &certificate);
    let _worker = misnamed.start();
    misnamed.await_log(
        "its certificate is for other names (other.example): connect to a name that the certificate is for",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_refusals_are_logged_once() {
    let server = Server::start("authorization { user: me, password: right }").await;
    let host = Host::new(&format!("nats://me:wrong@127.0.0.1:{}", server.port));
    let _worker = host.start();
    let refused = || server.log().matches("authentication error").count();
    eventually("attempts", || (refused() >= 8).then_some(()));
    let log = host.log();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    let expected = format!("cannot connect to nats://127.0.0.1:{}: authorization violation: ", server.port);
    assert!(lines[0].contains(&expected) && lines[0].contains("$(cat data/nats/url)"), "{log}");
    assert!(!log.contains("wrong"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_small_messages_are_named() {
    let server = Server::start("max_payload: 64KB").await;
    let host = Host::new(&format!("nats://127.0.0.1:{}", server.port));
    let _worker = host.start();
    host.await_log("NATS takes messages of 65536 bytes at most, and 1048576 are needed: raise max_payload");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_credentials_file_is_logged_once() {
    let mut server = Server::start("").await;
    let host = Host::new(&format!("nats://127.0.0.1:{}", server.port));
    let file = host.path("h01.creds");
    credentials(&file, "h01");
    let host = host.with("--credentials", &file);
    let worker = host.start();
    host.await_log("connected to NATS");
    drop(server.process.take());
    fs::remove_file(&file).unwrap();
    server.start_again().await;
    let missing =
        format!("cannot use the NATS credentials in {}: it cannot be read: No such file", file.display());
    host.await_log(&missing);
    credentials(&file, "h01");
    eventually("a new connection", || (host.log().matches("connected to NATS").count() == 2).then_some(()));
    assert_eq!(host.log().matches("it cannot be read").count(), 1, "{}", host.log());

    // The file now contains another user name, which may be right: the worker warns and continues, also after a restart.
    drop(server.process.take());
    credentials(&file, "web-1");
    server.start_again().await;
    let warning = "the user name in the NATS credentials is web-1: if they are not those of h01, replace them with those \
                   that `os-upgrade nats-config host h01` creates";
    host.await_log(warning);
    drop(worker);
    let before = host.log().matches(warning).count();
    let _worker = host.start();
    eventually("the warning again", || (host.log().matches(warning).count() > before).then_some(()));
}

#[test]
fn unusable_configuration_is_refused_immediately() {
    let (code, stderr) = Host::new("").refusal();
    assert_eq!(code, Some(2));
    assert!(stderr.contains("nats://HOST:4222, here or in OS_UPGRADE_NATS_URL"), "{stderr}");

    let host = Host::new("tls://127.0.0.1:1");
    let file = host.path("ca.pem");
    fs::write(&file, "no certificate\n").unwrap();
    let (code, stderr) = host.with("--tls-ca", &file).refusal();
    assert_eq!(code, Some(2));
    assert!(stderr.contains(&format!("no usable certificate in {}", file.display())), "{stderr}");

    for user in ["orchestrator", "system"] {
        let host = Host::new("nats://127.0.0.1:1");
        let file = host.path("user.creds");
        credentials(&file, user);
        let (code, stderr) = host.with("--credentials", &file).refusal();
        assert_eq!(code, Some(2));
        assert!(stderr.contains(&format!("those of {user}, not of h01")), "{stderr}");
        assert!(stderr.contains("os-upgrade nats-config host h01"), "{stderr}");
    }
}

#[test]
fn invalid_name_is_reported_once() {
    let mut host = Host::new("nats://127.0.0.1:1");
    host.application.clear();
    let expected =
        "os-upgrade-worker: the name of the application cannot be used: a name must not be empty\n";
    assert_eq!(host.refusal(), (Some(2), expected.to_owned()));
}

#[test]
fn empty_variables_count_as_unset() {
    let host = Host::new("nats://127.0.0.1:1");
    let mut command = host.command();
    for name in ["CA", "CERTIFICATE", "KEY", "CREDENTIALS"] {
        command.env(format!("OS_UPGRADE_NATS_{name}"), "");
    }
    let log = fs::File::create(host.path("log")).unwrap();
    let _worker = Process(command.stderr(log).spawn().unwrap());
    host.await_log("cannot connect to nats://127.0.0.1:1");
}

/// A worker with such a name could neither keep its state nor have a consumer.
#[test]
fn too_long_names_of_hosts_are_wrong_usage() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["h".repeat(224), "ä".repeat(38), "h".repeat(256)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_os-upgrade-worker"));
        command.args(["exec", "--nats", "h", "--application", "test", "--host", &name]);
        let output = command.arg("--dir").arg(directory.path()).current_dir(&directory).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.starts_with("os-upgrade-worker: the name of the host cannot be used: "), "{stderr}");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "nothing was made");
    }
}

#[test]
fn boolean_variables_accept_several_words() {
    let exit_code = |value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_os-upgrade-worker"));
        command.args(["debian", "--nats", "h", "--application", "test", "--root", "/nonexistent"]);
        let variables = ["REFUSE_HELD", "ALLOW_ESSENTIAL_REMOVALS", "IGNORE_INHIBITORS"];
        command.envs(variables.map(|name| (format!("OS_UPGRADE_{name}"), value)));
        command.output().unwrap().status.code()
    };
    // The missing root is an error only after the command line has been parsed.
    for value in ["1", "0", "yes", "no", "true", "false", ""] {
        assert_eq!(exit_code(value), Some(1), "{value}");
    }
    assert_eq!(exit_code("maybe"), Some(2));
}
