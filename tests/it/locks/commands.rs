//! `os-upgrade lock run` and the operators' commands for slots, with the real program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use harness::faulty_lock_server::{Defect, FaultyLockServer};
use harness::lock_server::{LockServer, Mode};
use harness::orchestrator::own_address;
use harness::programs;
use harness::site::Site;
use harness::wait::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;

/// A running `os-upgrade lock` command.
struct Running {
    child: Child,
}

/// The result of a process: its exit code, standard output, standard error.
type CommandResult = (Option<i32>, String, String);

impl Running {
    fn start(arguments: &[&str], directory: &Path) -> Self {
        let program = programs::path(programs::ORCHESTRATOR);
        Self::start_program(&program, &[&["lock"], arguments].concat(), directory, &[])
    }

    fn start_with(arguments: &[&str], directory: &Path, variables: &[(&str, &str)]) -> Self {
        let program = programs::path(programs::ORCHESTRATOR);
        Self::start_program(&program, &[&["lock"], arguments].concat(), directory, variables)
    }

    fn start_program(
        program: &Path,
        arguments: &[&str],
        directory: &Path,
        variables: &[(&str, &str)],
    ) -> Self {
        let mut command = programs::with_default_signals(program);
        command.args(arguments).envs(variables.iter().copied()).current_dir(directory).kill_on_drop(true);
        // Not in the foreground of a terminal, where it would assume that the command got a SIGINT too.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap() }
    }

    fn pid(&self) -> i32 {
        self.child.id().unwrap().try_into().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Signals its command, too.
    fn signal_group(&self, signal: Signal) {
        kill(Pid::from_raw(-self.pid()), signal).unwrap();
    }

    async fn result(self) -> CommandResult {
        let output = self.child.wait_with_output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

/// The working directory of a test's commands.
struct Sandbox {
    directory: TempDir,
}

impl Sandbox {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts `lock run` of a shell script.
    fn run(&self, url: &str, id: &str, more: &[&str], script: &str) -> Running {
        let fixed = ["run", "--url", url, "--id", id, "--retry", "100ms"];
        Running::start(&[&fixed[..], more, &["--", "sh", "-c", script]].concat(), self.directory.path())
    }

    fn log(&self) -> Vec<String> {
        fs::read_to_string(self.path("log")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    async fn await_log(&self, line: &str) {
        eventually(&format!("{line} in the log"), async || {
            self.log().iter().any(|found| found == line).then_some(())
        })
        .await;
    }

    fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }
}

/// The last line of a command that got no slot.
const TOO_LATE: &str = "os-upgrade: no slot of group default was granted in time";
/// A script that logs when it begins and ends, and ends when there is a file `go`.
const GATED: &str = "echo begin $OS_UPGRADE_LOCK_ID >>log; while ! [ -e go ]; do sleep 0.02; done; \
                     echo end $OS_UPGRADE_LOCK_ID >>log";

async fn slots(site: &Site) -> Value {
    let (status, state) = site.rest().get("/v1/state/fleet-lock").await;
    assert_eq!(status, 200);
    state["groups"][0].clone()
}

fn ids(entries: &Value) -> Vec<&str> {
    entries.as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn commands_of_a_group_never_overlap() {
    let site = Site::start().await;
    let url = format!("http://{}/fleetlock", site.orchestrator.address());
    let sandbox = Sandbox::new();
    let first = sandbox.run(&url, "a", &[], GATED);
    sandbox.await_log("begin a").await;
    let second = sandbox.run(&url, "b", &[], GATED);
    eventually("the second to be refused", async || {
        (ids(&slots(&site).await["waiters"]) == ["b"]).then_some(())
    })
    .await;
    sandbox.touch("go");
    assert_eq!(first.result().await, (Some(0), String::new(), String::new()));
    let (code, _, stderr) = second.result().await;
    assert_eq!(code, Some(0), "{stderr}");
    // Reported once, not at each attempt.
    let waiting = format!("os-upgrade: waiting for a slot of group default at {url}: ");
    let since = stderr.strip_prefix(&format!("{waiting}the only slot is held by a since "));
    assert!(
        since.is_some_and(|rest| rest.ends_with("(failed_lock_semaphore_full)") && !rest.contains('\n')),
        "{stderr}"
    );
    assert_eq!(sandbox.log(), ["begin a", "end a", "begin b", "end b"]);
    let state = slots(&site).await;
    assert_eq!((ids(&state["holders"]), ids(&state["waiters"])), (vec![], vec![]));
}

#[tokio::test]
async fn exit_status_is_the_commands() {
    let server = FaultyLockServer::start(1, Defect::None).await;
    let sandbox = Sandbox::new();
    for (script, code, printed) in [
        ("echo $OS_UPGRADE_LOCK_GROUP/$OS_UPGRADE_LOCK_ID", 0, "default/n 7"),
        ("exit 7", 7, ""),
        ("kill -9 $$", 137, ""),
    ] {
        let ended = sandbox.run(&server.url(), "n 7", &[], script).result().await;
        assert_eq!(ended, (Some(code), printed.to_owned(), String::new()));
        assert_eq!(server.holders(), [""; 0]);
    }
    sandbox.touch("file");
    for (program, code) in [("./missing", 127), ("./file", 126)] {
        let arguments = ["run", "--url", &server.url(), "--id", "a", "--", program];
        let (found, _, stderr) = Running::start(&arguments, sandbox.directory.path()).result().await;
        assert_eq!(found, Some(code));
        assert!(stderr.starts_with(&format!("os-upgrade: cannot run {program}: ")), "{stderr}");
        assert_eq!(server.holders(), [""; 0]);
    }
    let arguments = ["run", "--url", "https://h", "--ca", "none.pem", "--id", "a", "--", "true"];
    let (code, _, stderr) = Running::start(&arguments, sandbox.directory.path()).result().await;
    let unreadable = "error: cannot set up the client: cannot read none.pem, the file of --ca: ";
    assert!(code == Some(2) && stderr.starts_with(unreadable), "{stderr}");
    let arguments = ["--url", "http://h", "--ca", "none.pem"];
    for subcommand in [&["run", "--id", "a"][..], &["unlock", "--id", "a"], &["conformance"]] {
        let command: &[&str] = if subcommand[0] == "run" { &["--", "true"] } else { &[] };
        let arguments = [subcommand, &arguments, command].concat();
        let (code, _, stderr) = Running::start(&arguments, sandbox.directory.path()).result().await;
        assert_eq!((code, stderr.as_str()), (Some(2), "error: --ca needs a --url that begins with https://"));
    }
    for wrong in [
        &["conformance", "--url", "http://h", "--slots", "18446744073709551615"][..],
        &["conformance", "--url", "http://h", "--slots-max", "0"],
        &["run", "--id", "a", "--retry", "500000000years", "--", "true"],
    ] {
        assert_eq!(Running::start(wrong, sandbox.directory.path()).result().await.0, Some(2), "{wrong:?}");
    }
    for wrong in [&["run", "--id", "a"][..], &["run", "--", "true"], &["run", "--id", "", "--", "true"]] {
        assert_eq!(Running::start(wrong, sandbox.directory.path()).result().await.0, Some(2), "{wrong:?}");
    }
}

#[tokio::test]
async fn signals_are_forwarded_and_slot_released() {
    let server = FaultyLockServer::start(1, Defect::None).await;
    let sandbox = Sandbox::new();
    for (signal, name, code) in [
        (Signal::SIGTERM, "TERM", 3),
        (Signal::SIGINT, "INT", 4),
        (Signal::SIGHUP, "HUP", 5),
        (Signal::SIGQUIT, "QUIT", 6),
    ] {
        let script = format!(
            "trap 'echo {name} >>log; exit {code}' {name}; echo ready {name} >>log; while :; do sleep 0.02; done"
        );
        let running = sandbox.run(&server.url(), "a", &[], &script);
        sandbox.await_log(&format!("ready {name}")).await;
        assert_eq!(server.holders(), ["a"]);
        running.signal(signal);
        assert_eq!(running.result().await, (Some(code), String::new(), String::new()));
        assert!(sandbox.log().contains(&name.to_owned()));
        assert_eq!(server.holders(), [""; 0]);
    }
    // A command without a handler is ended by the signal.
    let running = sandbox.run(&server.url(), "a", &[], "echo deaf >>log; exec sleep 600");
    sandbox.await_log("deaf").await;
    running.signal(Signal::SIGTERM);
    assert_eq!(running.result().await.0, Some(143));
    assert_eq!(server.holders(), [""; 0]);
}

/// A command that gives up tells our server, so that hosts do not wait behind it.
#[tokio::test]
async fn interrupted_waiter_leaves_queue() {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = 0").await;
    let url = format!("http://{}", site.orchestrator.address());
    let sandbox = Sandbox::new();
    let (code, _, stderr) = sandbox.run(&url, "a", &["--wait", "0s"], "echo ran >>log").result().await;
    assert_eq!(code, Some(75), "{stderr}");
    assert!(stderr.ends_with(TOO_LATE), "{stderr}");
    assert_eq!(ids(&slots(&site).await["waiters"]), [""; 0]);
    let journal = site.journal().await;
    assert!(journal.iter().any(|fact| fact["type"] == "lock-awaited" && fact["id"] == "a"), "{journal:?}");
}

#[tokio::test]
async fn command_needs_slot() {
    let server = FaultyLockServer::start(1, Defect::None).await;
    let sandbox = Sandbox::new();
    server.occupy("other");
    let script = "echo ran >>log";
    let (code, _, stderr) = sandbox.run(&server.url(), "a", &["--wait", "300ms"], script).result().await;
    let waiting = format!("os-upgrade: waiting for a slot of group default at {}: ", server.url());
    assert_eq!((code, stderr), (Some(75), format!("{waiting}in words: full (full)\n{TOO_LATE}")));
    // A signal ends the wait.
    let waiting = sandbox.run(&server.url(), "a", &["--wait", "forever"], script);
    eventually("a request", async || (server.refused() > 10).then_some(())).await;
    waiting.signal(Signal::SIGTERM);
    assert_eq!(waiting.result().await.0, Some(143));
    assert_eq!(server.holders(), ["other"]);

    let unreachable_url = format!("http://{}", own_address());
    let (code, _, stderr) = sandbox.run(&unreachable_url, "a", &["--wait", "200ms"], script).result().await;
    assert_eq!(code, Some(69));
    let unreachable = format!(
        "os-upgrade: waiting for a slot of group default at {unreachable_url}/: the server cannot be reached: "
    );
    let stderr: Vec<&str> = stderr.lines().collect();
    assert!(stderr[0].starts_with(&unreachable) && stderr[1..] == [TOO_LATE], "{stderr:?}");
    // 202 grants no slot, but a slot that the server may have given is released.
    let accepts = FaultyLockServer::start(1, Defect::Accepts).await;
    let running = sandbox.run(&accepts.url(), "a", &["--wait", "0s"], script);
    eventually("it to unlock", async || (accepts.unlocked() >= 6).then_some(())).await;
    running.signal(Signal::SIGTERM);
    assert_eq!(running.result().await.0, Some(75));
    assert_eq!((accepts.holders(), sandbox.log()), (vec![], vec![]));
}

#[tokio::test]
async fn slot_is_released_when_server_returns() {
    let mut server = LockServer::start(Mode::OneSlot).await;
    let sandbox = Sandbox::new();
    let running = sandbox.run(&server.url(), "a", &[], GATED);
    sandbox.await_log("begin a").await;
    server.stop().await;
    sandbox.touch("go");
    sandbox.await_log("end a").await;
    assert_eq!(server.holder().as_deref(), Some("a"));
    server.start_again().await;
    assert_eq!(running.result().await, (Some(0), String::new(), String::new()));
    assert_eq!(server.holder(), None);
    assert_eq!(server.calls(), ["lock default/a", "unlock default/a"]);
}

/// When the slot cannot be released, a signal ends the attempts, and the command prints how to release it.
#[tokio::test]
async fn manual_unlock_releases_slot() {
    const MANY: usize = 1_000_000;
    let server = LockServer::start(Mode::OneSlot).await;
    let sandbox = Sandbox::new();
    server.fail_unlocks(MANY);
    let running = sandbox.run(&server.url(), "it's", &[], "exit 3");
    // Enough attempts that the signal cannot be taken for the one that ended the command.
    eventually("several attempts", async || (MANY - server.failing_unlocks() >= 6).then_some(())).await;
    running.signal(Signal::SIGTERM);
    let (code, _, stderr) = running.result().await;
    let expected = "os-upgrade: it's may still hold a slot of group default: \
                    the server does not speak FleetLock: status 500: no body";
    let (why, manual_unlock) = stderr.split_once("\nos-upgrade: give it back with: ").unwrap();
    assert_eq!((code, why), (Some(3), expected));
    let words = shlex::split(manual_unlock).unwrap();
    assert_eq!(words[..3], ["os-upgrade", "lock", "unlock"]);
    let words: Vec<_> = words[2..].iter().map(String::as_str).collect();
    let manual_unlock = async || Running::start(&words, sandbox.directory.path()).result().await;
    let (code, _, stderr) = manual_unlock().await;
    assert_eq!(code, Some(6), "{stderr}");
    assert_eq!(server.holder().as_deref(), Some("it's"));
    server.fail_unlocks(0);
    assert_eq!(manual_unlock().await, (Some(0), "given back: it's, group default".to_owned(), String::new()));
    assert_eq!(server.holder(), None);
}

/// Ctrl-C and `systemctl stop` signal the command too: the signal that ended it must not end the unlocking.
#[tokio::test]
async fn group_signal_releases_slot() {
    let server = LockServer::start(Mode::OneSlot).await;
    let sandbox = Sandbox::new();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        // The signal arrives while the slot is being released.
        let before = server.request_count();
        fs::write(sandbox.path("log"), "").unwrap();
        let running = sandbox.run(&server.url(), "a", &[], GATED);
        sandbox.await_log("begin a").await;
        server.set_mode(Mode::Nothing);
        sandbox.touch("go");
        eventually("it to unlock", async || (server.request_count() == before + 2).then_some(())).await;
        for _ in 0..20 {
            running.signal(signal);
            tokio::task::yield_now().await;
        }
        server.set_mode(Mode::OneSlot);
        assert_eq!(running.result().await, (Some(0), String::new(), String::new()), "{signal}");
        assert_eq!(server.holder(), None);
        fs::remove_file(sandbox.path("go")).unwrap();
    }
    // The signal for both, in whatever order they notice it; also when the command ends by itself at that moment.
    for round in 0..30 {
        fs::write(sandbox.path("log"), "").unwrap();
        let script = "echo begin a >>log; exec sleep 600";
        let running = sandbox.run(&server.url(), "a", &[], script);
        sandbox.await_log("begin a").await;
        running.signal_group(Signal::SIGTERM);
        assert_eq!(running.result().await, (Some(143), String::new(), String::new()), "{round}");
        assert_eq!(server.holder(), None, "{round}");
        let script = "kill -TERM $PPID; exit 0";
        let (_, _, stderr) = sandbox.run(&server.url(), "a", &[], script).result().await;
        assert_eq!((stderr.as_str(), server.holder()), ("", None), "{round}");
    }
}

#[tokio::test]
async fn ignored_hangup_stays_ignored() {
    let server = FaultyLockServer::start(1, Defect::None).await;
    let sandbox = Sandbox::new();
    let program = programs::path(programs::ORCHESTRATOR);
    let nohup = format!(
        "trap '' HUP; exec {} lock run --url {} --id a -- sh -c '{GATED}'",
        program.display(),
        server.url()
    );
    let running = Running::start_program(Path::new("sh"), &["-c", &nohup], sandbox.directory.path(), &[]);
    sandbox.await_log("begin a").await;
    for _ in 0..20 {
        running.signal_group(Signal::SIGHUP);
    }
    sandbox.touch("go");
    assert_eq!(running.result().await, (Some(0), String::new(), String::new()));
    assert_eq!(sandbox.log(), ["begin a", "end a"]);
    assert_eq!(server.holders(), [""; 0]);
}

/// A slot that may still be granted is released, also when it is granted later.
#[tokio::test]
async fn late_grant_is_released() {
    let sandbox = Sandbox::new();
    let server = FaultyLockServer::start(1, Defect::GrantsLate).await;
    let running = sandbox.run(&server.url(), "a", &["--wait", "0s"], "echo ran >>log");
    eventually("the slot to be granted", async || (server.holders() == ["a"]).then_some(())).await;
    let waiting = format!("os-upgrade: waiting for a slot of group default at {}: ", server.url());
    let failed = format!("{waiting}in words: unavailable (unavailable)\n{TOO_LATE}");
    assert_eq!(running.result().await, (Some(75), String::new(), failed));
    assert_eq!(server.holders(), [""; 0]);
    // A signal while the request is pending.
    let server = FaultyLockServer::start(1, Defect::Slow).await;
    for round in 0..3 {
        let running = sandbox.run(&server.url(), "a", &[], "echo ran >>log");
        eventually("a request", async || (server.working() == 1).then_some(())).await;
        running.signal(Signal::SIGTERM);
        assert_eq!(running.result().await, (Some(143), String::new(), String::new()), "{round}");
        eventually("the server to be done", async || (server.working() == 0).then_some(())).await;
        assert_eq!(server.holders(), [""; 0], "{round}");
    }
    assert_eq!(sandbox.log(), [""; 0]);
}

#[tokio::test]
async fn retry_after_and_password_are_respected() {
    let server = LockServer::start(Mode::OneSlot).await;
    let sandbox = Sandbox::new();
    let url = server.url().replacen("http://", "http://user:pa%2Dss@", 1);
    server.trip(Duration::from_secs(4));
    let running = sandbox.run(&url, "a", &[], GATED);
    sandbox.await_log("begin a").await;
    assert!(!server.is_tripped());
    assert_eq!((server.limited_count(), server.holder().as_deref()), (1, Some("a")));
    assert_eq!(server.authorization().as_deref(), Some("Basic dXNlcjpwYS1zcw=="));
    server.trip(Duration::from_secs(2));
    sandbox.touch("go");
    let (code, _, stderr) = running.result().await;
    let shown = server.url().replacen("http://", "http://***@", 1);
    let waiting = format!("os-upgrade: waiting for a slot of group default at {shown}: ");
    let answer = "the server does not speak FleetLock: status 429: not a FleetLock error: later";
    assert_eq!((code, stderr), (Some(0), format!("{waiting}{answer}")));
    assert_eq!((server.limited_count(), server.holder()), (2, None));
}

/// Everybody on the machine can read a command line.
#[tokio::test]
async fn credentials_come_from_a_file_or_a_variable() {
    const CREDENTIALS: &str = "us%er:pa:ss /ü";
    let server = LockServer::start(Mode::OneSlot).await;
    server.require_credentials(CREDENTIALS);
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("credentials"), format!("{CREDENTIALS}\n")).unwrap();
    let (url, directory) = (server.url(), sandbox.directory.path());
    let in_file = ["--credentials-file", "credentials"];
    let variable = [("OS_UPGRADE_LOCK_CREDENTIALS", CREDENTIALS)];
    let run = ["run", "--url", &url, "--id", "a", "--wait", "0s"];
    let unlock = ["unlock", "--url", &url, "--id", "a"];
    let command = ["--", "true"];
    let granted = server.calls().len();
    for arguments in [[&run[..], &in_file, &command].concat(), [&unlock[..], &in_file].concat()] {
        let (code, _, stderr) = Running::start(&arguments, directory).result().await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
    for arguments in [[&run[..], &command].concat(), unlock.to_vec()] {
        let (code, _, stderr) = Running::start_with(&arguments, directory, &variable).result().await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        // Without the credentials it fails.
        let (code, _, _) = Running::start(&arguments, directory).result().await;
        assert_ne!(code, Some(0), "{arguments:?}");
    }
    assert!(server.calls().len() > granted);
    // Errors do not show them, and giving them twice is refused.
    fs::write(sandbox.path("wrong"), "secret").unwrap();
    let wrong = [&unlock[..], &["--credentials-file", "wrong"]].concat();
    let expected = "error: user:password is expected, on one line";
    assert_eq!(
        Running::start(&wrong, directory).result().await,
        (Some(2), String::new(), expected.to_owned())
    );
    let twice = url.replacen("http://", "http://u:p@", 1);
    let twice = ["unlock", "--url", &twice, "--id", "a", "--credentials-file", "credentials"];
    let expected = "error: --credentials-file: --url already has user and password";
    assert_eq!(
        Running::start(&twice, directory).result().await,
        (Some(2), String::new(), expected.to_owned())
    );
}

#[tokio::test]
async fn operators_list_and_release_slots() {
    let site = Site::start().await;
    let url = format!("http://{}", site.orchestrator.address());
    let sandbox = Sandbox::new();
    let lock = async |arguments: &[&str]| {
        Running::start(&[arguments, &["--url", &url]].concat(), sandbox.directory.path()).result().await
    };
    let about = ["--group", "default", "--id", "rack 7/ä", "--reason", "a new disk"];
    let held = lock(&[&["hold"], &about[..]].concat()).await;
    assert_eq!(held, (Some(0), "held: rack 7/ä".to_owned(), String::new()));
    assert_eq!(ids(&slots(&site).await["holders"]), ["rack 7/ä"]);
    let (code, _, stderr) = lock(&["hold", "--id", "b", "--reason", "x"]).await;
    assert!(
        code == Some(5) && stderr.starts_with("error: the only slot is held by rack 7/ä since "),
        "{stderr}"
    );

    let (code, printed, stderr) = lock(&["list"]).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(printed.starts_with("provider: embedded, reclaim: never\n\nGROUP "), "{printed}");
    assert!(printed.contains("\ndefault  rack 7/ä  ") && printed.contains("a new disk"), "{printed}");
    let (code, printed, _) = lock(&["list", "--group", "default", "--output", "json"]).await;
    let state: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, ids(&state["groups"][0]["holders"])), (Some(0), vec!["rack 7/ä"]));
    let nowhere = (Some(0), String::new(), "there is no such group".to_owned());
    assert_eq!(lock(&["list", "--group", "x"]).await, nowhere);

    let (code, _, stderr) = lock(&["forget", "--id", "rack 7/ä"]).await;
    assert!(code == Some(5) && stderr.contains("reclaim"), "{stderr}");
    let released = lock(&[&["release"], &about[..]].concat()).await;
    assert_eq!(released, (Some(0), "released: rack 7/ä".to_owned(), String::new()));
    assert_eq!(slots(&site).await["holders"], json!([]));
    let (code, _, stderr) = lock(&[&["release"], &about[..]].concat()).await;
    assert_eq!(
        (code, stderr.as_str()),
        (Some(5), "error: rack 7/ä neither holds a slot of group default nor waits for one")
    );

    // Control characters in ids and reasons do not reverse the text beside them.
    assert_eq!(lock(&["hold", "--id", "a\u{202e}b", "--reason", "x\u{2066}y"]).await.0, Some(0));
    let (code, _, stderr) = lock(&["hold", "--id", "b", "--reason", "x"]).await;
    assert!(code == Some(5) && stderr.starts_with("error: the only slot is held by a\u{fffd}b "), "{stderr}");
    for command in ["list", "history"] {
        let (code, printed, stderr) = lock(&[command]).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(printed.contains("a\u{fffd}b") && printed.contains("x\u{fffd}y"), "{printed}");
        assert!(!printed.contains(['\u{202e}', '\u{2066}']), "{printed}");
    }
}
