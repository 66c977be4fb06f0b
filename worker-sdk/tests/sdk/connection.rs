//! What `os-upgrade-worker` says when it cannot connect to NATS: where, why, what to do, and not over and over.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use os_upgrade_credentials::CredentialsFile;
use tempfile::TempDir;

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_mins(1);

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "in vain waited for: {what}");
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

/// A host with what its worker is given.
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
        let look = || self.log().contains(text).then_some(());
        eventually(&format!("{text:?} in the log:\n{}", self.log()), look);
    }

    /// The exit status and the last line of a worker that ends by itself.
    fn refusal(&self) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = self.command().stderr(Stdio::piped()).output().unwrap();
        (status.code(), String::from_utf8(stderr).unwrap())
    }
}

/// A nats-server on a port of its own choice, which it keeps when it is started again.
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

/// A certificate for `name`, which is its own authority, and its key, as files.
fn certificate(directory: &Path, name: &str) -> [PathBuf; 2] {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let files = [("pem", made.cert.pem()), ("key", made.signing_key.serialize_pem())];
    files.map(|(extension, text)| {
        let path = directory.join(format!("{name}.{extension}"));
        fs::write(&path, text).unwrap();
        path
    })
}

/// A credentials file for `user`, which a server without accounts takes for any.
fn credentials(path: &Path, user: &str) {
    let seed = nkeys::KeyPair::new_user().seed().unwrap();
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"name":"{user}"}}"#));
    fs::write(path, CredentialsFile::text(&format!("e30.{claims}.x"), &seed)).unwrap();
}

#[test]
fn nobody_who_listens_and_a_name_that_is_none_are_told() {
    let host = Host::new("nats://me:secret@127.0.0.1:1,nats://nats.invalid:4222");
    let _worker = host.start();
    host.await_log("nats://127.0.0.1:1: IO error: Connection refused");
    host.await_log("nats://nats.invalid:4222: DNS error: ");
    assert!(!host.log().contains("secret"), "{}", host.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_certificate_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate(directory.path(), "other.example");
    let tls = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}");
    let server = Server::start(&tls).await;
    let url = format!("tls://localhost:{}", server.port);

    let unknown = Host::new(&url);
    let _worker = unknown.start();
    unknown.await_log(&format!("cannot connect to {url}: IO error: invalid peer certificate: UnknownIssuer"));
    unknown.await_log("give the certificate of the server's authority with --tls-ca");

    let misnamed = Host::new(&url).with("--tls-ca", &certificate);
    let _worker = misnamed.start();
    misnamed.await_log("invalid peer certificate: certificate not valid for name \"localhost\"");
    misnamed.await_log("connect to a name that the server's certificate is for");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_told_once_however_often_it_is_tried() {
    let server = Server::start("authorization { user: me, password: right }").await;
    let host = Host::new(&format!("nats://me:wrong@127.0.0.1:{}", server.port));
    let _worker = host.start();
    let refused = || server.log().matches("authentication error").count();
    eventually("tries", || (refused() >= 8).then_some(()));
    let log = host.log();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    let expected = format!("cannot connect to nats://127.0.0.1:{}: authorization violation: ", server.port);
    assert!(lines[0].contains(&expected) && lines[0].contains("$(cat data/nats/url)"), "{log}");
    assert!(!log.contains("wrong"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credentials_file_that_is_gone_is_named_once() {
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
    let gone =
        format!("cannot use the NATS credentials in {}: it cannot be read: No such file", file.display());
    host.await_log(&gone);
    credentials(&file, "h01");
    eventually("a new connection", || (host.log().matches("connected to NATS").count() == 2).then_some(()));
    assert_eq!(host.log().matches("it cannot be read").count(), 1, "{}", host.log());

    // By now another name stands there, which may be right: it says so and goes on, also when it is started anew.
    drop(server.process.take());
    credentials(&file, "web-1");
    server.start_again().await;
    let warning = "made out to web-1: if they are not those of h01, put those there that `os-upgrade nats-config host \
                   h01` makes";
    host.await_log(warning);
    drop(worker);
    let before = host.log().matches(warning).count();
    let _worker = host.start();
    eventually("the warning again", || (host.log().matches(warning).count() > before).then_some(()));
}

#[test]
fn what_can_never_connect_is_refused_at_once() {
    let (code, said) = Host::new("").refusal();
    assert_eq!(code, Some(2));
    assert!(said.contains("nats://HOST:4222, here or in OS_UPGRADE_NATS_URL"), "{said}");

    let host = Host::new("tls://127.0.0.1:1");
    let file = host.path("ca.pem");
    fs::write(&file, "no certificate\n").unwrap();
    let (code, said) = host.with("--tls-ca", &file).refusal();
    assert_eq!(code, Some(2));
    assert!(said.contains(&format!("no certificate that can be used in {}", file.display())), "{said}");

    for user in ["orchestrator", "system"] {
        let host = Host::new("nats://127.0.0.1:1");
        let file = host.path("user.creds");
        credentials(&file, user);
        let (code, said) = host.with("--credentials", &file).refusal();
        assert_eq!(code, Some(2));
        assert!(said.contains(&format!("those of {user}, not of h01")), "{said}");
        assert!(said.contains("os-upgrade nats-config host h01"), "{said}");
    }
}

#[test]
fn a_name_that_is_none_is_told_once_and_which_it_is() {
    let mut host = Host::new("nats://127.0.0.1:1");
    host.application.clear();
    let expected =
        "os-upgrade-worker: the name of the application cannot be used: a name must not be empty\n";
    assert_eq!(host.refusal(), (Some(2), expected.to_owned()));
}

#[test]
fn variables_that_are_empty_are_not_set() {
    let host = Host::new("nats://127.0.0.1:1");
    let mut command = host.command();
    for name in ["CA", "CERTIFICATE", "KEY", "CREDENTIALS"] {
        command.env(format!("OS_UPGRADE_NATS_{name}"), "");
    }
    let log = fs::File::create(host.path("log")).unwrap();
    let _worker = Process(command.stderr(log).spawn().unwrap());
    host.await_log("cannot connect to nats://127.0.0.1:1");
}

#[test]
fn variables_for_what_is_on_or_off_may_say_so_in_several_ways() {
    let ended = |value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_os-upgrade-worker"));
        command.args(["debian", "--nats", "h", "--application", "test", "--root", "/nonexistent"]);
        let variables = ["REFUSE_HELD", "ALLOW_ESSENTIAL_REMOVALS", "IGNORE_INHIBITORS"];
        command.envs(variables.map(|name| (format!("OS_UPGRADE_{name}"), value)));
        command.output().unwrap().status.code()
    };
    // The root is missed only when the command line is right.
    for value in ["1", "0", "yes", "no", "true", "false", ""] {
        assert_eq!(ended(value), Some(1), "{value}");
    }
    assert_eq!(ended("maybe"), Some(2));
}
