//! Tokens with the real program: created and revoked while it runs, and FleetLock clients with a password.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use harness::orchestrator::Orchestrator;
use harness::programs;
use harness::wait::eventually;
use serde_json::Value;
use tokio::process::Command;

/// How long a stream may say nothing.
const PATIENCE: Duration = Duration::from_mins(1);

/// The result of a command: its exit code, standard output, standard error.
type CommandResult = (Option<i32>, String, String);

/// An instance with a token file.
struct Guarded {
    orchestrator: Orchestrator,
}

impl Guarded {
    async fn start() -> Self {
        let mut orchestrator = Orchestrator::managed();
        let file = orchestrator.directory().join("tokens.toml");
        orchestrator.set_environment("OS_UPGRADE_API__TOKENS", file.to_str().unwrap());
        orchestrator.start_ready().await;
        Self { orchestrator }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.orchestrator.directory().join(name)
    }

    fn url(&self) -> String {
        format!("http://{}", self.orchestrator.address())
    }

    async fn command(&self, arguments: &[&str], token: &str) -> CommandResult {
        let mut command = Command::new(programs::path(programs::ORCHESTRATOR));
        command.args(arguments).current_dir(self.orchestrator.directory()).env("OS_UPGRADE_TOKEN", token);
        let output = command.kill_on_drop(true).stdin(Stdio::null()).output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Creates a token. Returns its secret.
    async fn create(&self, arguments: &[&str]) -> String {
        let arguments = [&["token", "create", "--file", "tokens.toml"], arguments].concat();
        let (code, secret, stderr) = self.command(&arguments, "").await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(secret.starts_with("osup_") && !secret.contains(char::is_whitespace), "{secret}");
        secret
    }

    /// Waits until `cluster status` with `token` ends with this exit code.
    async fn status_ends(&self, token: &str, expected: i32) -> CommandResult {
        eventually("the token file to be read", async || {
            let ended = self.command(&["cluster", "status", "--url", &self.url()], token).await;
            (ended.0 == Some(expected)).then_some(ended)
        })
        .await
    }
}

#[tokio::test]
async fn tokens_change_without_restart() {
    let guarded = Guarded::start().await;
    let url = guarded.url();
    let (code, _, stderr) = guarded.command(&["cluster", "status", "--url", &url], "").await;
    let missing = "error: this needs a token: send it as Authorization: Bearer <token>; give it with --token-file or \
                   in OS_UPGRADE_TOKEN";
    assert_eq!((code, stderr.as_str()), (Some(1), missing));

    let viewer = guarded.create(&["--role", "viewer", "--name", "eve"]).await;
    let operator = guarded.create(&["--role", "operator", "--name", "ops", "--expires", "90d"]).await;
    guarded.status_ends(&operator, 0).await;
    fs::write(guarded.path("viewer"), format!("{viewer}\n")).unwrap();
    let by_file = ["cluster", "status", "--url", &url, "--token-file", "viewer"];
    assert_eq!(
        guarded.command(&by_file, "osup_wrong").await.0,
        Some(0),
        "the file takes precedence over the variable"
    );

    let hold = ["lock", "hold", "--url", &url, "--id", "rack-7", "--reason", "a new disk"];
    let (code, _, stderr) = guarded.command(&hold, &viewer).await;
    assert_eq!((code, stderr.as_str()), (Some(5), "error: this needs the role operator"));
    assert_eq!(guarded.command(&hold, &operator).await.0, Some(0));
    let history = ["lock", "history", "--url", &url, "--output", "json"];
    let actor = eventually("the history to have it", async || {
        let (_, history, _) = guarded.command(&history, &viewer).await;
        let history: Value = serde_json::from_str(&history).unwrap();
        history["items"][0]["actor"].as_str().map(str::to_owned)
    });
    assert_eq!(actor.await, "token ops");

    let list = ["token", "list", "--file", "tokens.toml", "--output", "json"];
    let (code, listed, _) = guarded.command(&list, "").await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<&str> =
        listed["tokens"].as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap()).collect();
    assert_eq!((code, names), (Some(0), vec!["eve", "ops"]));
    assert!(listed["tokens"][1]["expires"].is_string() && listed["tokens"][0].get("sha256").is_none());

    let again = ["token", "create", "--file", "tokens.toml", "--role", "admin", "--name", "ops"];
    let (code, printed, stderr) = guarded.command(&again, "").await;
    let taken = "error: there is a token ops already: revoke it first, or give another name";
    assert_eq!((code, printed.as_str(), stderr.as_str()), (Some(5), "", taken));
    let revoke = ["token", "revoke", "--file", "tokens.toml", "ops"];
    assert_eq!(guarded.command(&revoke, "").await.0, Some(0));
    let (_, _, stderr) = guarded.status_ends(&operator, 1).await;
    assert!(stderr.starts_with("error: the token is not valid"), "{stderr}");
    let (code, _, stderr) = guarded.command(&revoke, "").await;
    assert_eq!((code, stderr.as_str()), (Some(5), "error: there is no token ops in tokens.toml"));

    fs::remove_file(guarded.path("tokens.toml")).unwrap();
    guarded.status_ends(&viewer, 1).await;
}

/// Reads a stream of events until it has `text`, or ends; returns whether it has ended.
async fn has_ended(stream: &mut reqwest::Response, text: &str) -> bool {
    loop {
        let piece =
            tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("it neither ends nor goes on");
        match piece.unwrap() {
            Some(piece) if !String::from_utf8_lossy(&piece).contains(text) => {}
            piece => return piece.is_none(),
        }
    }
}

#[tokio::test]
async fn streams_of_events_end_with_their_tokens() {
    let guarded = Guarded::start().await;
    let root = guarded.create(&["--role", "admin", "--name", "root"]).await;
    let kept = guarded.create(&["--role", "viewer", "--name", "ann"]).await;
    let revoked = guarded.create(&["--role", "viewer", "--name", "eve"]).await;
    let expired = guarded.create(&["--role", "viewer", "--name", "tim", "--expires", "20s"]).await;
    guarded.status_ends(&expired, 0).await;
    let client = reqwest::Client::new();
    let events = format!("{}/v1/state/os-upgrade/events", guarded.url());
    let follow = async |token: &str| {
        eventually("a stream of events", async || {
            let answer = client.get(&events).bearer_auth(token).send().await.unwrap();
            (answer.status() == 200).then_some(answer)
        })
        .await
    };
    let (mut of_kept, mut of_revoked) = (follow(&kept).await, follow(&revoked).await);
    let mut of_expired = follow(&expired).await;
    let revoke = ["token", "revoke", "--file", "tokens.toml", "eve"];
    assert_eq!(guarded.command(&revoke, "").await.0, Some(0));
    assert!(has_ended(&mut of_revoked, "config-changed").await);
    assert!(has_ended(&mut of_expired, "config-changed").await);
    let config = guarded.path("config.json");
    fs::write(&config, r#"{"worker-applications": [{"name": "a"}]}"#).unwrap();
    let apply = ["config", "apply", "--url", &guarded.url(), "--yes", "-f", config.to_str().unwrap()];
    let (code, _, stderr) = guarded.command(&apply, &root).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!has_ended(&mut of_kept, "config-changed").await);
}

#[tokio::test]
async fn fleet_lock_passwords_are_per_group() {
    let guarded = Guarded::start().await;
    let address = guarded.orchestrator.address();
    let secret = guarded.create(&["--group", "default", "--name", "zincati"]).await;
    let admin = guarded.create(&["--role", "admin", "--name", "root"]).await;
    guarded.status_ends(&admin, 0).await;

    let with_password = format!("http://zincati:{secret}@{address}/fleetlock/");
    let run = ["lock", "run", "--url", &with_password, "--id", "a", "--", "echo", "done"];
    assert_eq!(guarded.command(&run, "").await, (Some(0), "done".to_owned(), String::new()));
    // A client with access to one group does not learn of the others.
    let as_admin = format!("http://root:{admin}@{address}/fleetlock/");
    for (url, more) in [(&with_password, &[][..]), (&as_admin, &["--strict"])] {
        let conformance = [&["lock", "conformance", "--url", url], more].concat();
        let (code, rows, stderr) = guarded.command(&conformance, "").await;
        assert_eq!(code, Some(0), "{rows}\n{stderr}");
    }

    // The password can be kept out of the command line, which everybody on the machine can read.
    let url = format!("http://{address}/fleetlock/");
    fs::write(guarded.path("credentials"), format!("root:{admin}\n")).unwrap();
    for (more, expected) in [(&["--credentials-file", "credentials"][..], Some(0)), (&[], Some(1))] {
        let conformance = [&["lock", "conformance", "--url", &url], more].concat();
        let (code, rows, stderr) = guarded.command(&conformance, "").await;
        assert_eq!(code, expected, "{rows}\n{stderr}");
    }

    for (url, group, expected) in [
        (format!("http://{address}/"), "default", "unauthorized"),
        (format!("http://zincati:osup_wrong@{address}/"), "default", "unauthorized"),
        (with_password.clone(), "other", "forbidden"),
    ] {
        let unlock = ["lock", "unlock", "--url", &url, "--group", group, "--id", "a"];
        let (code, _, stderr) = guarded.command(&unlock, "").await;
        assert_eq!(code, Some(5));
        assert!(stderr.contains(expected) && !stderr.contains("osup_"), "{stderr}");
    }
}
