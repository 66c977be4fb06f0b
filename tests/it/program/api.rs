//! Schemathesis tests the running API against its own description: every generated request, valid or not and in any role,
//! gets an answer that the description has. `API_EXAMPLES` sets the number of requests for each property of each
//! endpoint, generated from `OS_UPGRADE_TEST_SEED` or the clock.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use harness::hook_server::{Given, HookServer, Script};
use harness::host::Host;
use harness::random;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_auth::{self as auth, Proof, Rights, Role, Secret, SecretHash, Token};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schemathesis.toml");
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/bin/schemathesis");

/// Number of requests for each property of each endpoint in `make test`.
const EXAMPLES: &str = "5";

const ALL_PHASES: &str = "examples,coverage,fuzzing,stateful";

/// The seed in `make test`, so that it generates the same requests every time.
const SEED: u64 = 1;

/// The same number in `make test-api`; absent in `make test`.
fn requested_examples() -> Option<String> {
    std::env::var("API_EXAMPLES").ok()
}

/// A file with a token of each role, and their secrets.
fn token_file() -> (TempDir, [(Role, String); 3]) {
    let directory = TempDir::new().unwrap();
    let now = chrono::Utc::now();
    let lifetime = Some(Duration::from_hours(1));
    let made = Role::ALL.map(|role| {
        let secret = Secret::random().unwrap();
        let proof = Proof::Secret(SecretHash::of(&secret).unwrap());
        let name = role.as_str().parse().unwrap();
        let token = Token::new(name, Rights::Role(role), proof, now, lifetime);
        (token, (role, secret.reveal().to_owned()))
    });
    let tokens: Vec<Token> = made.iter().map(|(token, _)| token.clone()).collect();
    auth::write(&directory.path().join("tokens.toml"), &tokens).unwrap();
    (directory, made.map(|(_, secret)| secret))
}

/// The site under test, which has three hosts and a completed run, and demands tokens.
struct TestedSite {
    site: Site,
    _hosts: Vec<Host>,
    secrets: [(Role, String); 3],
    /// The directory for schemathesis' findings.
    directory: TempDir,
}

impl TestedSite {
    async fn start() -> Self {
        let (directory, secrets) = token_file();
        let mut site = Site::start().await;
        let hosts = site.hosts(3).await;
        let run = site.rest().start_run().await;
        site.rest().await_end(&run).await;
        site.orchestrator.terminate().await;
        let tokens = directory.path().join("tokens.toml");
        site.orchestrator.set_environment("OS_UPGRADE_API__TOKENS", tokens.to_str().unwrap());
        site.orchestrator.start_ready().await;
        Self { site, _hosts: hosts, secrets, directory }
    }

    /// Tests all endpoints in this role; `make test` runs only `phases`.
    async fn test_as(&self, role: Role, phases: &str) {
        let (_, secret) = self.secrets.iter().find(|(of, _)| *of == role).unwrap();
        let authorization = format!("Authorization: Bearer {secret}");
        let requested = requested_examples();
        let (examples, phases) =
            requested.as_deref().map_or((EXAMPLES, phases), |examples| (examples, ALL_PHASES));
        let arguments = ["--max-examples", examples, "--phases", phases, "--header", &authorization];
        test(&self.site, &self.directory, role.as_str(), &arguments).await;
    }

    /// Tests all endpoints without a token.
    async fn test_without_token(&self) {
        let phases = if requested_examples().is_some() { "examples,coverage" } else { "examples" };
        let arguments = ["--max-examples", "1", "--phases", phases];
        test(&self.site, &self.directory, "nobody", &arguments).await;
    }

    /// Checks that the instance is still ready, and stops it gracefully.
    async fn end(mut self) {
        assert_eq!(self.site.orchestrator.readiness().await.as_deref(), Some(""));
        assert_eq!(self.site.orchestrator.terminate().await.code(), Some(0));
    }
}

/// Runs schemathesis against the site, with `directory` for its findings.
async fn test(site: &Site, directory: &TempDir, who: &str, arguments: &[&str]) {
    let began = Instant::now();
    let seed = if requested_examples().is_some() { random::seed() } else { SEED };
    let seed = seed.to_string();
    let program = if Path::new(FETCHED).exists() { FETCHED } else { "schemathesis" };
    let output = Command::new(program)
        .args(["--config-file", CONFIG, "run", "--seed", &seed, "--checks", "all", "--no-color"])
        .args(arguments)
        .arg(format!("http://{}/openapi.json", site.orchestrator.address()))
        .current_dir(directory)
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap_or_else(|error| panic!("cannot run {program} ({error}); `make tools` fetches it"));
    let report = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as {who}, OS_UPGRADE_TEST_SEED={seed}: {report}\n{failed}");
    let summary = report.split_once("API Operations:").map_or(&*report, |(_, summary)| summary);
    #[expect(clippy::print_stdout, reason = "how much was tested")]
    {
        println!("as {who}, in {:.1} s\n{summary}", began.elapsed().as_secs_f32());
    }
}

#[tokio::test]
async fn admin_answers_match_description() {
    let site = TestedSite::start().await;
    site.test_as(Role::Admin, "examples,coverage").await;
    site.end().await;
}

/// Malformed requests are refused in every role alike, so these roles are tested fully only in `make test-api`.
#[tokio::test]
async fn other_roles_answers_match_description() {
    let site = TestedSite::start().await;
    for role in [Role::Viewer, Role::Operator] {
        site.test_as(role, "examples").await;
    }
    // Without a token everything is refused, with errors in the same dialects.
    site.test_without_token().await;
    site.end().await;
}

/// A provider has no role: it calls back with a token that it was sent.
#[tokio::test]
async fn call_back_answers_match_description() {
    let site = Site::start().await;
    let server = HookServer::start().await;
    server.usually(Script::of(Given::text("first")));
    let mut hosts = vec![site.host("h01").with_configuration_scripts()];
    site.run(&mut hosts).await;
    // As the example of the description names them.
    let provider = json!({ "name": "app", "kind": "hooks", "url": server.url() });
    let patch = json!({ "config-providers": [provider] }).to_string();
    let (status, answer) = site.rest().call(Method::PATCH, "/v1/config/os-upgrade", &patch).await;
    assert_eq!(status, 204, "{answer}");
    let token = eventually("a token", async || server.tokens().into_iter().next()).await;
    let authorization = format!("Authorization: Bearer {token}");
    let requested = requested_examples();
    let (examples, phases) =
        requested.as_deref().map_or((EXAMPLES, "examples,coverage"), |examples| (examples, ALL_PHASES));
    let arguments = [
        "--include-operation-id",
        "call-back",
        "--max-examples",
        examples,
        "--phases",
        phases,
        "--header",
        &authorization,
    ];
    test(&site, &TempDir::new().unwrap(), "a provider", &arguments).await;
    let facts = site.journal().await;
    assert!(facts.iter().any(|fact| fact["type"] == "callback-received"), "the token counted");
    assert_eq!(site.orchestrator.readiness().await.as_deref(), Some(""));
}
