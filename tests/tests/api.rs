//! The running API, examined by schemathesis against its own description: everything it makes up, right and wrong, is
//! answered with what the description has. `API_EXAMPLES` says how many requests it makes up for each property of each
//! endpoint.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in what its tests share")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use os_upgrade_orchestrator::auth::{self, Proof, Rights, Role, Salted, Secret, Token};
use os_upgrade_tests::site::Site;
use tempfile::TempDir;
use tokio::process::Command;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schemathesis.toml");
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/bin/schemathesis");

/// How many requests are made up in `make test`.
const EXAMPLES: &str = "5";

/// So that it is the same every time.
const SEED: &str = "1";

/// A file with the token of an admin, and its secret.
fn token_file() -> (TempDir, String) {
    let directory = TempDir::new().unwrap();
    let secret = Secret::random().unwrap();
    let proof = Proof::Secret(Salted::of(&secret).unwrap());
    let now = chrono::Utc::now();
    let lifetime = Some(Duration::from_hours(1));
    let token = Token::new("examiner".parse().unwrap(), Rights::Role(Role::Admin), proof, now, lifetime);
    auth::write(&directory.path().join("tokens.toml"), &[token]).unwrap();
    (directory, secret.reveal().to_owned())
}

/// A site that has something to tell: three hosts, and a run of them. From now on it asks for tokens.
async fn site(tokens: &Path) -> (Site, Vec<os_upgrade_tests::host::Host>) {
    let mut site = Site::start().await;
    let hosts = site.hosts(3).await;
    let run = site.rest().started().await;
    site.rest().ended(&run).await;
    site.orchestrator.terminate().await;
    site.orchestrator.set_environment("OS_UPGRADE_API__TOKENS", tokens.to_str().unwrap());
    site.orchestrator.start_ready().await;
    (site, hosts)
}

/// Runs schemathesis over the API of `site` in `directory`, where it leaves what it finds.
async fn examine(who: &str, site: &Site, directory: &Path, arguments: &[&str]) {
    let program = if Path::new(FETCHED).exists() { FETCHED } else { "schemathesis" };
    let output = Command::new(program)
        .args(["--config-file", CONFIG, "run", "--seed", SEED, "--checks", "all", "--no-color"])
        .args(arguments)
        .arg(format!("http://{}/openapi.json", site.orchestrator.address()))
        .current_dir(directory)
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap_or_else(|error| panic!("cannot run {program} ({error}); `make tools` fetches it"));
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{failed}");
    let summary = said.split_once("API Operations:").map_or(&*said, |(_, summary)| summary);
    #[expect(clippy::print_stdout, reason = "how much was examined")]
    {
        println!("as {who}\n{summary}");
    }
}

#[tokio::test]
async fn whatever_is_asked_the_answer_is_as_described() {
    let (directory, secret) = token_file();
    let (mut site, _hosts) = site(&directory.path().join("tokens.toml")).await;
    let examples = std::env::var("API_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let authorization = format!("Authorization: Bearer {secret}");
    examine("admin", &site, directory.path(), &["--max-examples", &examples, "--header", &authorization])
        .await;
    // Nobody who shows nothing gets anything, and is told so in the same dialects.
    examine("nobody", &site, directory.path(), &["--max-examples", "1", "--phases", "examples,coverage"])
        .await;
    assert_eq!(site.orchestrator.readiness().await.as_deref(), Some(""), "it is still there");
    assert_eq!(site.orchestrator.terminate().await.code(), Some(0));
}
