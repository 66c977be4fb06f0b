//! The running API, examined by schemathesis against its own description: everything it makes up, right and wrong, is
//! answered with what the description has, whoever asks. `API_EXAMPLES` says how many requests it makes up for each
//! property of each endpoint, from `OS_UPGRADE_TEST_SEED` or the clock.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use harness::host::Host;
use harness::random;
use harness::site::Site;
use os_upgrade_auth::{self as auth, Proof, Rights, Role, Secret, SecretHash, Token};
use tempfile::TempDir;
use tokio::process::Command;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schemathesis.toml");
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/bin/schemathesis");

/// How many requests are made up in `make test`.
const EXAMPLES: &str = "5";

const ALL_PHASES: &str = "examples,coverage,fuzzing,stateful";

/// The seed in `make test`, so that it makes up the same requests every time.
const SEED: u64 = 1;

/// How many requests `make test-api` wants for each property of each endpoint.
fn asked() -> Option<String> {
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

/// What is examined: a site that has something to tell, three hosts and a run of them, and asks for tokens.
struct Examined {
    site: Site,
    _hosts: Vec<Host>,
    secrets: [(Role, String); 3],
    /// Where schemathesis leaves what it finds.
    directory: TempDir,
}

impl Examined {
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

    /// Has everything asked by somebody of this role; `make test` leaves out phases other than `phases`.
    async fn by(&self, role: Role, phases: &str) {
        let (_, secret) = self.secrets.iter().find(|(of, _)| *of == role).unwrap();
        let authorization = format!("Authorization: Bearer {secret}");
        let asked = asked();
        let (examples, phases) =
            asked.as_deref().map_or((EXAMPLES, phases), |examples| (examples, ALL_PHASES));
        let arguments = ["--max-examples", examples, "--phases", phases, "--header", &authorization];
        self.run(role.as_str(), &arguments).await;
    }

    /// Has everything asked by somebody who shows nothing.
    async fn by_nobody(&self) {
        let phases = if asked().is_some() { "examples,coverage" } else { "examples" };
        self.run("nobody", &["--max-examples", "1", "--phases", phases]).await;
    }

    /// It is still there, and ends in order.
    async fn end(mut self) {
        assert_eq!(self.site.orchestrator.readiness().await.as_deref(), Some(""));
        assert_eq!(self.site.orchestrator.terminate().await.code(), Some(0));
    }

    async fn run(&self, who: &str, arguments: &[&str]) {
        let began = Instant::now();
        let seed = if asked().is_some() { random::seed() } else { SEED };
        let seed = seed.to_string();
        let program = if Path::new(FETCHED).exists() { FETCHED } else { "schemathesis" };
        let output = Command::new(program)
            .args(["--config-file", CONFIG, "run", "--seed", &seed, "--checks", "all", "--no-color"])
            .args(arguments)
            .arg(format!("http://{}/openapi.json", self.site.orchestrator.address()))
            .current_dir(&self.directory)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap_or_else(|error| panic!("cannot run {program} ({error}); `make tools` fetches it"));
        let said = String::from_utf8_lossy(&output.stdout);
        let failed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "as {who}, OS_UPGRADE_TEST_SEED={seed}: {said}\n{failed}");
        let summary = said.split_once("API Operations:").map_or(&*said, |(_, summary)| summary);
        #[expect(clippy::print_stdout, reason = "how much was examined")]
        {
            println!("as {who}, in {:.1} s\n{summary}", began.elapsed().as_secs_f32());
        }
    }
}

#[tokio::test]
async fn admin_answers_match_description() {
    let examined = Examined::start().await;
    examined.by(Role::Admin, "examples,coverage").await;
    examined.end().await;
}

/// What is wrong in its form is refused to them as it is to an admin, so that is left to `make test-api`.
#[tokio::test]
async fn other_roles_answers_match_description() {
    let examined = Examined::start().await;
    for role in [Role::Viewer, Role::Operator] {
        examined.by(role, "examples").await;
    }
    // Nobody who shows nothing gets anything, and is told so in the same dialects.
    examined.by_nobody().await;
    examined.end().await;
}
