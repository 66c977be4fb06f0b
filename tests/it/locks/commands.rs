//! `os-upgrade lock run` and what operators do about slots, with the real program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use harness::lock_server::{LockServer, Say};
use harness::orchestrator::own_address;
use harness::programs;
use harness::site::Site;
use harness::wait::eventually;
use harness::wrong_lock_server::{Mistake, WrongLockServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;

/// A process of the program, and where its command writes.
struct Running {
    child: Child,
}

/// What a process ended with: its exit status, standard output, standard error.
type Ended = (Option<i32>, String, String);

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
        // Not in the foreground of a terminal, where a SIGINT would be taken for one that the command has had too.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap() }
    }

    fn pid(&self) -> i32 {
        self.child.id().unwrap().try_into().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Also its command gets it.
    fn signal_group(&self, signal: Signal) {
        kill(Pid::from_raw(-self.pid()), signal).unwrap();
    }

    async fn ended(self) -> Ended {
        let output = self.child.wait_with_output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

/// A place for a test's commands.
struct Place {
    directory: TempDir,
}

impl Place {
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

/// What is said in the end by one that got no slot.
const TOO_LATE: &str = "os-upgrade: no slot of group default was granted in time";
/// A script that says when it begins and ends, and ends when there is a file `go`.
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
async fn two_of_a_group_never_overlap() {
    let site = Site::start().await;
    let url = format!("http://{}/fleetlock", site.orchestrator.address());
    let place = Place::new();
    let first = place.run(&url, "a", &[], GATED);
    place.await_log("begin a").await;
    let second = place.run(&url, "b", &[], GATED);
    eventually("the second to be refused", async || {
        (ids(&slots(&site).await["waiters"]) == ["b"]).then_some(())
    })
    .await;
    place.touch("go");
    assert_eq!(first.ended().await, (Some(0), String::new(), String::new()));
    let (code, _, said) = second.ended().await;
    assert_eq!(code, Some(0), "{said}");
    // Once, and not each time it asks.
    let waiting = format!("os-upgrade: waiting for a slot of group default at {url}: ");
    let since = said.strip_prefix(&format!("{waiting}the only slot is held by a since "));
    assert!(
        since.is_some_and(|rest| rest.ends_with("(failed_lock_semaphore_full)") && !rest.contains('\n')),
        "{said}"
    );
    assert_eq!(place.log(), ["begin a", "end a", "begin b", "end b"]);
    let state = slots(&site).await;
    assert_eq!((ids(&state["holders"]), ids(&state["waiters"])), (vec![], vec![]));
}

#[tokio::test]
async fn it_ends_as_its_command_does() {
    let server = WrongLockServer::start(1, Mistake::Nothing).await;
    let place = Place::new();
    for (script, code, printed) in [
        ("echo $OS_UPGRADE_LOCK_GROUP/$OS_UPGRADE_LOCK_ID", 0, "default/n 7"),
        ("exit 7", 7, ""),
        ("kill -9 $$", 137, ""),
    ] {
        let ended = place.run(&server.url(), "n 7", &[], script).ended().await;
        assert_eq!(ended, (Some(code), printed.to_owned(), String::new()));
        assert_eq!(server.holders(), [""; 0]);
    }
    place.touch("file");
    for (program, code) in [("./missing", 127), ("./file", 126)] {
        let arguments = ["run", "--url", &server.url(), "--id", "a", "--", program];
        let (found, _, said) = Running::start(&arguments, place.directory.path()).ended().await;
        assert_eq!(found, Some(code));
        assert!(said.starts_with(&format!("os-upgrade: cannot run {program}: ")), "{said}");
        assert_eq!(server.holders(), [""; 0]);
    }
    let arguments = ["run", "--url", "https://h", "--ca", "none.pem", "--id", "a", "--", "true"];
    let (code, _, said) = Running::start(&arguments, place.directory.path()).ended().await;
    let unreadable = "error: cannot set up the client: cannot read none.pem, the file of --ca: ";
    assert!(code == Some(1) && said.starts_with(unreadable), "{said}");
    let arguments = ["--url", "http://h", "--ca", "none.pem"];
    for subcommand in [&["run", "--id", "a"][..], &["unlock", "--id", "a"], &["conformance"]] {
        let command: &[&str] = if subcommand[0] == "run" { &["--", "true"] } else { &[] };
        let arguments = [subcommand, &arguments, command].concat();
        let (code, _, said) = Running::start(&arguments, place.directory.path()).ended().await;
        assert_eq!((code, said.as_str()), (Some(2), "error: --ca needs a --url that begins with https://"));
    }
    for wrong in [
        &["conformance", "--url", "http://h", "--slots", "18446744073709551615"][..],
        &["conformance", "--url", "http://h", "--slots-max", "0"],
        &["run", "--id", "a", "--retry", "500000000years", "--", "true"],
    ] {
        assert_eq!(Running::start(wrong, place.directory.path()).ended().await.0, Some(2), "{wrong:?}");
    }
    for wrong in [&["run", "--id", "a"][..], &["run", "--", "true"], &["run", "--id", "", "--", "true"]] {
        assert_eq!(Running::start(wrong, place.directory.path()).ended().await.0, Some(2), "{wrong:?}");
    }
}

#[tokio::test]
async fn signals_are_handed_on_and_the_slot_is_given_back() {
    let server = WrongLockServer::start(1, Mistake::Nothing).await;
    let place = Place::new();
    for (signal, name, code) in [
        (Signal::SIGTERM, "TERM", 3),
        (Signal::SIGINT, "INT", 4),
        (Signal::SIGHUP, "HUP", 5),
        (Signal::SIGQUIT, "QUIT", 6),
    ] {
        let script = format!(
            "trap 'echo {name} >>log; exit {code}' {name}; echo ready {name} >>log; while :; do sleep 0.02; done"
        );
        let running = place.run(&server.url(), "a", &[], &script);
        place.await_log(&format!("ready {name}")).await;
        assert_eq!(server.holders(), ["a"]);
        running.signal(signal);
        assert_eq!(running.ended().await, (Some(code), String::new(), String::new()));
        assert!(place.log().contains(&name.to_owned()));
        assert_eq!(server.holders(), [""; 0]);
    }
    // A command that does not care is ended by it.
    let running = place.run(&server.url(), "a", &[], "echo deaf >>log; exec sleep 600");
    place.await_log("deaf").await;
    running.signal(Signal::SIGTERM);
    assert_eq!(running.ended().await.0, Some(143));
    assert_eq!(server.holders(), [""; 0]);
}

/// Our own server is told that nobody waits any more, so that hosts of runs do not.
#[tokio::test]
async fn who_gives_up_waits_no_more() {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = 0").await;
    let url = format!("http://{}", site.orchestrator.address());
    let place = Place::new();
    let (code, _, said) = place.run(&url, "a", &["--wait", "0s"], "echo ran >>log").ended().await;
    assert_eq!(code, Some(75), "{said}");
    assert!(said.ends_with(TOO_LATE), "{said}");
    assert_eq!(ids(&slots(&site).await["waiters"]), [""; 0]);
    let journal = site.journal().await;
    assert!(journal.iter().any(|fact| fact["type"] == "lock-awaited" && fact["id"] == "a"), "{journal:?}");
}

#[tokio::test]
async fn without_a_slot_the_command_is_not_run() {
    let server = WrongLockServer::start(1, Mistake::Nothing).await;
    let place = Place::new();
    server.occupy("other");
    let script = "echo ran >>log";
    let (code, _, said) = place.run(&server.url(), "a", &["--wait", "300ms"], script).ended().await;
    let waiting = format!("os-upgrade: waiting for a slot of group default at {}: ", server.url());
    assert_eq!((code, said), (Some(75), format!("{waiting}in words: full (full)\n{TOO_LATE}")));
    // A signal ends the wait.
    let waiting = place.run(&server.url(), "a", &["--wait", "forever"], script);
    eventually("it to ask", async || (server.refused() > 10).then_some(())).await;
    waiting.signal(Signal::SIGTERM);
    assert_eq!(waiting.ended().await.0, Some(143));
    assert_eq!(server.holders(), ["other"]);

    let nobody = format!("http://{}", own_address());
    let (code, _, said) = place.run(&nobody, "a", &["--wait", "200ms"], script).ended().await;
    assert_eq!(code, Some(69));
    let unreachable = format!(
        "os-upgrade: waiting for a slot of group default at {nobody}/: the server cannot be reached: "
    );
    let said: Vec<&str> = said.lines().collect();
    assert!(said[0].starts_with(&unreachable) && said[1..] == [TOO_LATE], "{said:?}");
    // 202 is no slot, and what it may mean to the server is given back.
    let accepts = WrongLockServer::start(1, Mistake::Accepts).await;
    let running = place.run(&accepts.url(), "a", &["--wait", "0s"], script);
    eventually("it to give back", async || (accepts.unlocked() >= 6).then_some(())).await;
    running.signal(Signal::SIGTERM);
    assert_eq!(running.ended().await.0, Some(75));
    assert_eq!((accepts.holders(), place.log()), (vec![], vec![]));
}

#[tokio::test]
async fn the_slot_is_given_back_when_the_server_is_there_again() {
    let mut server = LockServer::start(Say::OneSlot).await;
    let place = Place::new();
    let running = place.run(&server.url(), "a", &[], GATED);
    place.await_log("begin a").await;
    server.stop().await;
    place.touch("go");
    place.await_log("end a").await;
    assert_eq!(server.holder().as_deref(), Some("a"));
    server.start_again().await;
    assert_eq!(running.ended().await, (Some(0), String::new(), String::new()));
    assert_eq!(server.holder(), None);
    assert_eq!(server.calls(), ["lock default/a", "unlock default/a"]);
}

/// When the slot cannot be given back, it ends trying at a signal, and says what gives it back.
#[tokio::test]
async fn what_gives_the_slot_back_by_hand() {
    const MANY: usize = 1_000_000;
    let server = LockServer::start(Say::OneSlot).await;
    let place = Place::new();
    server.fail_unlocks(MANY);
    let running = place.run(&server.url(), "it's", &[], "exit 3");
    // More attempts than there can be in the time in which a signal may be the one that has ended the command.
    eventually("it to try", async || (MANY - server.unlocks_to_fail() >= 6).then_some(())).await;
    running.signal(Signal::SIGTERM);
    let (code, _, said) = running.ended().await;
    let expected = "os-upgrade: it's may still hold a slot of group default: \
                    the server does not speak FleetLock: status 500: no body";
    let (why, by_hand) = said.split_once("\nos-upgrade: give it back with: ").unwrap();
    assert_eq!((code, why), (Some(3), expected));
    let words = shlex::split(by_hand).unwrap();
    assert_eq!(words[..3], ["os-upgrade", "lock", "unlock"]);
    let words: Vec<_> = words[2..].iter().map(String::as_str).collect();
    let by_hand = async || Running::start(&words, place.directory.path()).ended().await;
    let (code, _, said) = by_hand().await;
    assert_eq!(code, Some(6), "{said}");
    assert_eq!(server.holder().as_deref(), Some("it's"));
    server.fail_unlocks(0);
    assert_eq!(by_hand().await, (Some(0), "given back: it's, group default".to_owned(), String::new()));
    assert_eq!(server.holder(), None);
}

/// Ctrl-C and `systemctl stop` signal the command too: what has ended it must not end giving back.
#[tokio::test]
async fn a_signal_for_both_does_not_keep_the_slot() {
    let server = LockServer::start(Say::OneSlot).await;
    let place = Place::new();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        // It comes when the slot is being given back already.
        let asked = server.asked();
        fs::write(place.path("log"), "").unwrap();
        let running = place.run(&server.url(), "a", &[], GATED);
        place.await_log("begin a").await;
        server.say(Say::Nothing);
        place.touch("go");
        eventually("it to give back", async || (server.asked() == asked + 2).then_some(())).await;
        for _ in 0..20 {
            running.signal(signal);
            tokio::task::yield_now().await;
        }
        server.say(Say::OneSlot);
        assert_eq!(running.ended().await, (Some(0), String::new(), String::new()), "{signal}");
        assert_eq!(server.holder(), None);
        fs::remove_file(place.path("go")).unwrap();
    }
    // Together, in whatever order it is noticed; a command that ends by itself at that moment too.
    for round in 0..30 {
        fs::write(place.path("log"), "").unwrap();
        let script = "echo begin a >>log; exec sleep 600";
        let running = place.run(&server.url(), "a", &[], script);
        place.await_log("begin a").await;
        running.signal_group(Signal::SIGTERM);
        assert_eq!(running.ended().await, (Some(143), String::new(), String::new()), "{round}");
        assert_eq!(server.holder(), None, "{round}");
        let script = "kill -TERM $PPID; exit 0";
        let (_, _, said) = place.run(&server.url(), "a", &[], script).ended().await;
        assert_eq!((said.as_str(), server.holder()), ("", None), "{round}");
    }
}

#[tokio::test]
async fn a_hangup_that_is_ignored_stays_so() {
    let server = WrongLockServer::start(1, Mistake::Nothing).await;
    let place = Place::new();
    let program = programs::path(programs::ORCHESTRATOR);
    let nohup = format!(
        "trap '' HUP; exec {} lock run --url {} --id a -- sh -c '{GATED}'",
        program.display(),
        server.url()
    );
    let running = Running::start_program(Path::new("sh"), &["-c", &nohup], place.directory.path(), &[]);
    place.await_log("begin a").await;
    for _ in 0..20 {
        running.signal_group(Signal::SIGHUP);
    }
    place.touch("go");
    assert_eq!(running.ended().await, (Some(0), String::new(), String::new()));
    assert_eq!(place.log(), ["begin a", "end a"]);
    assert_eq!(server.holders(), [""; 0]);
}

/// A slot that may come yet is given back, also when it comes after that.
#[tokio::test]
async fn a_slot_that_is_granted_late_is_given_back() {
    let place = Place::new();
    let server = WrongLockServer::start(1, Mistake::GrantsLate).await;
    let running = place.run(&server.url(), "a", &["--wait", "0s"], "echo ran >>log");
    eventually("the slot to be granted", async || (server.holders() == ["a"]).then_some(())).await;
    let waiting = format!("os-upgrade: waiting for a slot of group default at {}: ", server.url());
    let failed = format!("{waiting}in words: unavailable (unavailable)\n{TOO_LATE}");
    assert_eq!(running.ended().await, (Some(75), String::new(), failed));
    assert_eq!(server.holders(), [""; 0]);
    // A signal while it is asked for.
    let server = WrongLockServer::start(1, Mistake::Slow).await;
    for round in 0..3 {
        let running = place.run(&server.url(), "a", &[], "echo ran >>log");
        eventually("it to ask", async || (server.working() == 1).then_some(())).await;
        running.signal(Signal::SIGTERM);
        assert_eq!(running.ended().await, (Some(143), String::new(), String::new()), "{round}");
        eventually("the server to be done", async || (server.working() == 0).then_some(())).await;
        assert_eq!(server.holders(), [""; 0], "{round}");
    }
    assert_eq!(place.log(), [""; 0]);
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_is_and_gets_the_password() {
    let server = LockServer::start(Say::OneSlot).await;
    let place = Place::new();
    let url = server.url().replacen("http://", "http://user:pa%2Dss@", 1);
    server.trip(Duration::from_secs(4));
    let running = place.run(&url, "a", &[], GATED);
    place.await_log("begin a").await;
    assert!(!server.is_tripped());
    assert_eq!((server.limited(), server.holder().as_deref()), (1, Some("a")));
    assert_eq!(server.authorization().as_deref(), Some("Basic dXNlcjpwYS1zcw=="));
    server.trip(Duration::from_secs(2));
    place.touch("go");
    let (code, _, said) = running.ended().await;
    let shown = server.url().replacen("http://", "http://***@", 1);
    let waiting = format!("os-upgrade: waiting for a slot of group default at {shown}: ");
    let answer = "the server does not speak FleetLock: status 429: not a FleetLock error: later";
    assert_eq!((code, said), (Some(0), format!("{waiting}{answer}")));
    assert_eq!((server.limited(), server.holder()), (2, None));
}

/// What stands on a command line can be read by everybody on the machine.
#[tokio::test]
async fn credentials_come_from_a_file_or_a_variable() {
    const CREDENTIALS: &str = "us%er:pa:ss /ü";
    let server = LockServer::start(Say::OneSlot).await;
    server.demand(CREDENTIALS);
    let place = Place::new();
    fs::write(place.path("credentials"), format!("{CREDENTIALS}\n")).unwrap();
    let (url, directory) = (server.url(), place.directory.path());
    let in_file = ["--credentials-file", "credentials"];
    let variable = [("OS_UPGRADE_LOCK_CREDENTIALS", CREDENTIALS)];
    let run = ["run", "--url", &url, "--id", "a", "--wait", "0s"];
    let unlock = ["unlock", "--url", &url, "--id", "a"];
    let command = ["--", "true"];
    let granted = server.calls().len();
    for arguments in [[&run[..], &in_file, &command].concat(), [&unlock[..], &in_file].concat()] {
        let (code, _, said) = Running::start(&arguments, directory).ended().await;
        assert_eq!((code, said.as_str()), (Some(0), ""), "{arguments:?}");
    }
    for arguments in [[&run[..], &command].concat(), unlock.to_vec()] {
        let (code, _, said) = Running::start_with(&arguments, directory, &variable).ended().await;
        assert_eq!((code, said.as_str()), (Some(0), ""), "{arguments:?}");
        // And it is they that make the difference.
        let (code, _, _) = Running::start(&arguments, directory).ended().await;
        assert_ne!(code, Some(0), "{arguments:?}");
    }
    assert!(server.calls().len() > granted);
    // Nothing of them is shown, and two of them are one too many.
    fs::write(place.path("wrong"), "secret").unwrap();
    let wrong = [&unlock[..], &["--credentials-file", "wrong"]].concat();
    let expected = "error: user:password is expected, on one line";
    assert_eq!(
        Running::start(&wrong, directory).ended().await,
        (Some(1), String::new(), expected.to_owned())
    );
    let twice = url.replacen("http://", "http://u:p@", 1);
    let twice = ["unlock", "--url", &twice, "--id", "a", "--credentials-file", "credentials"];
    let expected = "error: --credentials-file: --url already has user and password";
    assert_eq!(
        Running::start(&twice, directory).ended().await,
        (Some(2), String::new(), expected.to_owned())
    );
}

#[tokio::test]
async fn what_operators_do_about_slots() {
    let site = Site::start().await;
    let url = format!("http://{}", site.orchestrator.address());
    let place = Place::new();
    let lock = async |arguments: &[&str]| {
        Running::start(&[arguments, &["--url", &url]].concat(), place.directory.path()).ended().await
    };
    let about = ["--group", "default", "--id", "rack 7/ä", "--reason", "a new disk"];
    let held = lock(&[&["hold"], &about[..]].concat()).await;
    assert_eq!(held, (Some(0), "held: rack 7/ä, group default".to_owned(), String::new()));
    assert_eq!(ids(&slots(&site).await["holders"]), ["rack 7/ä"]);
    let (code, _, said) = lock(&["hold", "--id", "b", "--reason", "x"]).await;
    assert!(code == Some(1) && said.starts_with("error: the only slot is held by rack 7/ä since "), "{said}");

    let (code, printed, said) = lock(&["list"]).await;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(printed.starts_with("slots: embedded, reclaimed: never\n\nGROUP "), "{printed}");
    assert!(printed.contains("\ndefault  rack 7/ä  ") && printed.contains("a new disk"), "{printed}");
    let (code, printed, _) = lock(&["list", "--group", "default", "--output", "json"]).await;
    let state: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, ids(&state["groups"][0]["holders"])), (Some(0), vec!["rack 7/ä"]));
    let nowhere = (Some(1), String::new(), "error: there is no group x".to_owned());
    assert_eq!(lock(&["list", "--group", "x"]).await, nowhere);

    let (code, _, said) = lock(&["forget", "--id", "rack 7/ä"]).await;
    assert!(code == Some(1) && said.contains("reclaim"), "{said}");
    let released = lock(&[&["release"], &about[..]].concat()).await;
    assert_eq!(released, (Some(0), "released: rack 7/ä, group default".to_owned(), String::new()));
    assert_eq!(slots(&site).await["holders"], json!([]));
    let (code, _, said) = lock(&[&["release"], &about[..]].concat()).await;
    assert_eq!(
        (code, said.as_str()),
        (Some(1), "error: rack 7/ä neither holds a slot of group default nor waits for one")
    );

    // Nothing that somebody calls himself turns round what stands beside it.
    assert_eq!(lock(&["hold", "--id", "a\u{202e}b", "--reason", "x\u{2066}y"]).await.0, Some(0));
    let (code, _, said) = lock(&["hold", "--id", "b", "--reason", "x"]).await;
    assert!(code == Some(1) && said.starts_with("error: the only slot is held by a\u{fffd}b "), "{said}");
    for command in ["list", "history"] {
        let (code, printed, said) = lock(&[command]).await;
        assert_eq!((code, said.as_str()), (Some(0), ""));
        assert!(printed.contains("a\u{fffd}b") && printed.contains("x\u{fffd}y"), "{printed}");
        assert!(!printed.contains(['\u{202e}', '\u{2066}']), "{printed}");
    }
}
