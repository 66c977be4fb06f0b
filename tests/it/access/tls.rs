//! TLS with the whole program: FleetLock clients identified by certificates, and a certificate that is renewed while the
//! program runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::authority::Authority;
use harness::nats_server::NatsServer;
use harness::orchestrator::{CommandResult, Orchestrator};
use harness::rest::Rest;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::json;

const LOCK: &str = "/v1/pre-reboot";
const UNLOCK: &str = "/fleetlock/v1/steady-state";

/// An instance with TLS, tokens, and groups `default` and `other`.
struct Secured {
    // First field: dropped before what it uses.
    orchestrator: Orchestrator,
    _nats: NatsServer,
    clients: Authority,
    /// The authority of the server's certificate.
    ca: PathBuf,
    /// A client with an admin's token.
    admin: Rest,
}

impl Secured {
    async fn start() -> Self {
        let nats = NatsServer::start().await;
        let tls = "[api.tls]\ncert = \"api.pem\"\nkey = \"api.key\"\nclient-ca = \"clients.pem\"\n\
                   [fleet-lock.groups]\ndefault = 1\nother = 1";
        let mut orchestrator = Orchestrator::new(&nats.url(), tls);
        let [servers, clients] = ["servers", "clients"].map(Authority::new);
        let directory = orchestrator.directory();
        let ca = servers.write(directory, "servers");
        clients.write(directory, "clients");
        servers.certify_into(&orchestrator.address().ip().to_string(), directory, "api");
        orchestrator.set_environment("OS_UPGRADE_API__TOKENS", "tokens.toml");
        orchestrator.set_environment("RUST_LOG", "info");
        let admin = create(&orchestrator, &["--role", "admin", "--name", "root"]).await;
        create(&orchestrator, &["--group", "default", "--name", "node-7", "--certificate", "node-7.example"])
            .await;
        orchestrator.rest = Rest::over_tls(orchestrator.address(), &ca, None);
        orchestrator.start_ready().await;
        let admin = orchestrator.rest.with_token(&admin);
        Self { orchestrator, _nats: nats, clients, ca, admin }
    }

    fn directory(&self) -> &Path {
        self.orchestrator.directory()
    }

    /// A client with a certificate of `authority` for `name`.
    fn client_named(&self, authority: &Authority, name: &str) -> Rest {
        let identity = authority.certify_into(name, self.directory(), name);
        Rest::over_tls(self.orchestrator.address(), &self.ca, Some(&identity))
    }

    /// The holders of slots of the group `default`.
    async fn holders(&self) -> Vec<String> {
        let (status, state) = self.admin.get("/v1/state/fleet-lock").await;
        assert_eq!(status, 200, "{state}");
        let groups = state["groups"].as_array().unwrap();
        let group = groups.iter().find(|group| group["group"] == "default").unwrap();
        let holders = group["holders"].as_array().unwrap();
        holders.iter().map(|holder| holder["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Runs a command with a slot, trusting the authority in the file `ca`, as the owner of the certificate `identity`.
    async fn lock_run(&self, ca: &str, identity: &str) -> CommandResult {
        let url = format!("https://{}/fleetlock/", self.orchestrator.address());
        let [certificate, key] = ["pem", "key"].map(|extension| format!("{identity}.{extension}"));
        let tls = ["--ca", ca, "--cert", &certificate, "--key", &key];
        let run = [&["lock", "run", "--url", &url, "--id", "node-7"], &tls[..], &["--", "echo", "done"]];
        self.orchestrator.run(&run.concat(), "").await
    }
}

/// Creates a token. Returns its secret, if it has one.
async fn create(orchestrator: &Orchestrator, arguments: &[&str]) -> String {
    let arguments = [&["token", "create", "--file", "tokens.toml"], arguments].concat();
    let (code, secret, stderr) = orchestrator.run(&arguments, "").await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    secret
}

#[tokio::test]
async fn certificate_authorizes_slots_of_its_group() {
    let secured = Secured::start().await;
    let node = secured.client_named(&secured.clients, "node-7.example");
    assert_eq!(node.try_fleet_lock(LOCK, "default", "node-7").await, Some(200));
    assert_eq!(secured.holders().await, ["node-7"]);
    assert_eq!(node.try_fleet_lock(LOCK, "default", "node-8").await, Some(409), "there is one slot");
    assert_eq!(
        node.try_fleet_lock(LOCK, "other", "node-7").await,
        Some(403),
        "it has no right to this group"
    );
    let (status, answer) = node.get("/v1/state/os-upgrade").await;
    assert_eq!(status, 401, "it has no operator role: {answer}");

    // Other clients, which must not release it.
    let anonymous = &secured.orchestrator.rest;
    assert_eq!(anonymous.try_fleet_lock(UNLOCK, "default", "node-7").await, Some(401));
    let unknown = secured.client_named(&secured.clients, "node-9.example");
    assert_eq!(unknown.try_fleet_lock(UNLOCK, "default", "node-7").await, Some(401));
    let forged = secured.client_named(&Authority::new("clients"), "node-7.example");
    assert_eq!(forged.try_fleet_lock(UNLOCK, "default", "node-7").await, None, "the connection is refused");
    assert_eq!(secured.holders().await, ["node-7"]);
    let plain = Rest::new(secured.orchestrator.address());
    assert_eq!(plain.try_fleet_lock(UNLOCK, "default", "node-7").await, Some(400), "plain HTTP is refused");
    assert_eq!(node.try_fleet_lock(UNLOCK, "default", "node-7").await, Some(200));
    assert_eq!(secured.holders().await, [""; 0]);

    // The FleetLock client of the program itself.
    let done = (Some(0), "done".to_owned(), String::new());
    secured.clients.certify_into("node-7.example", secured.directory(), "node");
    assert_eq!(secured.lock_run("servers.pem", "node").await, done);
}

#[tokio::test]
async fn refused_certificate_is_explained() {
    let secured = Secured::start().await;
    Authority::new("others").write(secured.directory(), "others");
    let url = format!("https://{}/", secured.orchestrator.address());
    let refused = secured.orchestrator.run(&["status", "--url", &url, "--ca", "others.pem"], "").await;
    let why = "its certificate is from an authority that is not trusted: give the certificate of that authority with --ca";
    assert_eq!(refused, (Some(1), String::new(), format!("error: cannot reach {url}: {why}")));
}

#[tokio::test]
async fn renewed_certificate_is_served_without_restart() {
    let secured = Secured::start().await;
    let (directory, address) = (secured.directory(), secured.orchestrator.address());
    secured.clients.certify_into("node-7.example", directory, "node");
    let pid = secured.orchestrator.pid();

    // An unusable certificate changes nothing.
    let good = fs::read(directory.join("api.key")).unwrap();
    fs::write(directory.join("api.key"), "no key").unwrap();
    eventually("the error to be logged", async || {
        secured.orchestrator.log().contains("the changed files of [api.tls] cannot be used").then_some(())
    })
    .await;
    let again = Rest::over_tls(address, &secured.ca, None);
    assert_eq!(again.get("/healthz").await, (200, json!({ "healthy": true })));
    fs::write(directory.join("api.key"), good).unwrap();

    let renewed = Authority::new("renewed servers");
    let ca = renewed.write(directory, "renewed");
    renewed.certify_into(&address.ip().to_string(), directory, "api");
    let healthy = async |ca| Rest::over_tls(address, ca, None).try_call(Method::GET, "/healthz", "").await;
    eventually("the new certificate to be served", async || healthy(&ca).await).await;
    assert_eq!(healthy(&secured.ca).await, None, "the old one is no longer served");
    let done = (Some(0), "done".to_owned(), String::new());
    assert_eq!(secured.lock_run("renewed.pem", "node").await, done);
    assert_eq!(secured.orchestrator.pid(), pid);
}

/// The command of the documentation that makes a certificate.
fn documented_command() -> String {
    let text = include_str!("../../../docs/security.md");
    let command = text.lines().skip_while(|line| !line.starts_with("openssl req")).take(2);
    command.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn self_signed_certificates_work_or_say_why_not() {
    let nats = NatsServer::start().await;
    let tls = "[api.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"";
    let documented = documented_command().replace("DNS:upgrade.example", "IP:127.0.0.1");
    assert!(documented.contains("IP:127.0.0.1") && documented.contains("CA:FALSE"), "{documented}");
    let plain = documented.split(" -addext").next().unwrap().to_owned();
    let unnamed = format!("{plain} -addext basicConstraints=critical,CA:FALSE");
    for (command, expected) in [
        (documented, None),
        (plain, Some("its certificate is one of an authority (CA:TRUE), which is for signing others only")),
        (unnamed, Some("its certificate is for no name: make one with a subjectAltName")),
    ] {
        let mut orchestrator = Orchestrator::new(&nats.url(), tls);
        let command = command.replace("127.0.0.1", &orchestrator.address().ip().to_string());
        let made = Command::new("sh").args(["-c", &command]).current_dir(orchestrator.directory()).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{command}: {made:?}");
        let ca = orchestrator.directory().join("cert.pem");
        orchestrator.start();
        let url = format!("https://{}", orchestrator.address());
        let said = eventually("the API to listen", async || {
            let arguments = ["status", "--url", &url, "--ca", ca.to_str()?];
            let (_, _, stderr) = orchestrator.run(&arguments, "").await;
            (!stderr.contains("Connection refused")).then_some(stderr)
        })
        .await;
        match expected {
            None => assert!(!said.contains("cannot reach"), "{command}: {said}"),
            Some(expected) => assert!(said.contains(expected), "{command}: {said}"),
        }
    }
}
