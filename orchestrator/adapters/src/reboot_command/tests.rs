//! Commands as real processes: scripts of the shell that write down how they were called.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use os_upgrade_protocol::HostName;
use tempfile::TempDir;

use super::*;

/// A limit that no test reaches unless something hangs.
const PATIENCE: Duration = Duration::from_mins(1);
const NODE: &str = "node-1";

/// A command that runs a line of shell, in which `$0` is a directory of the test.
struct Script {
    folder: TempDir,
    line: &'static str,
    attempts: Attempts,
}

impl Script {
    fn new(line: &'static str) -> Self {
        let attempts = Attempts { timeout: PATIENCE, retries: 0, interval: Duration::ZERO };
        Self { folder: TempDir::new().unwrap(), line, attempts }
    }

    fn with_timeout(mut self, timeout: Duration) -> Self {
        self.attempts.timeout = timeout;
        self
    }

    fn with_retries(mut self, retries: u32) -> Self {
        self.attempts.retries = retries;
        self
    }

    fn command(&self) -> CommandLine {
        let folder = self.folder.path().to_str().unwrap();
        let line = format!("echo \"$@\" >> $0/calls; {}", self.line);
        CommandLine::new(["sh", "-c", &line, folder, "first"].map(str::to_owned)).unwrap()
    }

    fn commands(&self) -> RebootCommands {
        let command = self.command();
        RebootCommands {
            reboot: command.clone(),
            boot_check: Some(command),
            attempts: self.attempts,
            within: PATIENCE,
        }
    }

    async fn reboot(&self) -> Result<(), Failure> {
        self.commands().reboot(NODE, || true).await
    }

    async fn check(&self) -> Result<(), NotYet> {
        self.commands().check_boot(NODE, since()).await
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The arguments of each call so far.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The id of a process that the script has written down, once it has.
    async fn pid(&self) -> u32 {
        let begin = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(self.file("pid"))
                && let Some(pid) = text.strip_suffix('\n')
            {
                return pid.parse().unwrap();
            }
            assert!(begin.elapsed() < PATIENCE, "the script has not begun");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Waits for the end of a process. Without an init process, as in many containers, an ended orphan stays a zombie.
async fn await_end(pid: u32) {
    let begin = Instant::now();
    while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begin.elapsed() < PATIENCE, "process {pid} goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn since() -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_700_000_000_900).unwrap()
}

fn exit(exit: i32, tail: &str) -> Failure {
    Failure::Exit { exit, tail: tail.to_owned() }
}

#[test]
fn command_without_a_program_is_none() {
    assert_eq!(CommandLine::new([]), None);
}

#[tokio::test]
async fn node_is_the_last_argument() {
    let script = Script::new("exit 0");
    assert_eq!(script.reboot().await, Ok(()));
    assert_eq!(script.calls(), ["first node-1"]);
}

#[tokio::test]
async fn name_is_never_an_option() {
    let script = Script::new("exit 0");
    let outcome = script.commands().reboot("-rf", || true).await;
    assert_eq!(outcome, Err(Failure::Option { node: "-rf".to_owned() }));
    assert_eq!(outcome.unwrap_err().effect(), Effect::Impossible);
    assert_eq!(script.calls(), [""; 0]);
}

#[tokio::test]
async fn program_that_is_being_written_is_tried_again() {
    let script = Script::new("");
    let path = script.file("reboot");
    fs::copy("/bin/true", &path).unwrap();
    let writing = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let reboot = CommandLine::new([path.to_str().unwrap().to_owned()]).unwrap();
    let commands = RebootCommands { reboot, ..script.commands() };
    let (outcome, ()) = tokio::join!(commands.reboot(NODE, || true), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(writing);
    });
    assert_eq!(outcome, Ok(()));
}

#[tokio::test]
async fn failures_are_repeated_and_told() {
    let mut script = Script::new("echo out; echo err >&2; exit 7").with_retries(2);
    script.attempts.interval = Duration::from_millis(200);
    let begin = Instant::now();
    assert_eq!(script.reboot().await, Err(exit(7, "err")));
    assert!(begin.elapsed() >= Duration::from_millis(400));
    assert_eq!(script.calls().len(), 3);

    // There is no pause after the last attempt.
    let mut script = Script::new("echo out; exit 1");
    script.attempts.interval = 10 * PATIENCE;
    assert_eq!(script.reboot().await, Err(exit(1, "out")));

    let script = Script::new("[ -e $0/again ] && exit 0; touch $0/again; exit 1").with_retries(5);
    assert_eq!(script.reboot().await, Ok(()));
    assert_eq!(script.calls().len(), 2);
}

#[tokio::test]
async fn failure_is_not_repeated_after_the_lease() {
    let script = Script::new("exit 1").with_retries(5);
    let leads = || script.calls().len() < 2;
    assert_eq!(script.commands().reboot(NODE, leads).await, Err(Failure::NotLeading));
    assert_eq!(script.calls().len(), 2);
}

#[tokio::test]
async fn missing_program_is_a_failure() {
    let attempts = Script::new("").attempts;
    let reboot = CommandLine::new(["/nowhere/at-all".to_owned()]).unwrap();
    let outcome =
        RebootCommands { reboot, boot_check: None, attempts, within: PATIENCE }.reboot(NODE, || true).await;
    let Err(Failure::Exit { exit: 127, tail }) = outcome else { panic!("{outcome:?}") };
    assert!(tail.contains("/nowhere/at-all"), "{tail}");
}

#[tokio::test]
async fn time_limit_kills_the_whole_group() {
    let script = Script::new("echo working; sleep 600 & echo $! > $0/pid; wait").with_retries(3);
    let limit = Duration::from_secs(3);
    let script = script.with_timeout(limit);
    let reboot = script.reboot().await;
    let expected = Failure::TimedOut { limit, tail: "working".to_owned() };
    assert_eq!(expected.effect(), Effect::Unknown);
    assert_eq!(reboot, Err(expected));
    await_end(script.pid().await).await;
    // It may have been carried out, so it is not repeated.
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test]
async fn signal_leaves_the_outcome_open() {
    let script = Script::new("kill -KILL $$").with_retries(3);
    let expected = Failure::Signal { signal: 9, tail: String::new() };
    assert_eq!(expected.effect(), Effect::Unknown);
    assert_eq!(script.reboot().await, Err(expected));
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test]
async fn command_ends_with_its_future() {
    let script = Script::new("sleep 600 & echo $! > $0/pid; wait");
    let pid = tokio::select! {
        outcome = script.reboot() => panic!("{outcome:?}"),
        pid = script.pid() => pid,
    };
    await_end(pid).await;
}

#[tokio::test]
async fn what_is_left_behind_ends_with_the_command() {
    let script = Script::new("sleep 600 & echo $! > $0/pid");
    assert_eq!(script.reboot().await, Ok(()));
    await_end(script.pid().await).await;
}

#[tokio::test]
async fn who_leaves_the_group_is_not_waited_for() {
    let script = Script::new(
        "setsid sh -c 'echo $$ > $0/pid; exec sleep 600' $0 & until [ -s $0/pid ]; do sleep 0.01; done",
    );
    assert_eq!(script.reboot().await, Ok(()));
    let pid = script.pid().await;
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    await_end(pid).await;
}

#[tokio::test]
async fn outcomes_are_those_of_the_job() {
    let failed = || CommandOutcome::Failed {
        detail: "the command ended with exit status 4".to_owned(),
        output: "no".to_owned(),
    };
    let unknown = || CommandOutcome::Unknown {
        detail: "the command was ended by signal 9".to_owned(),
        output: String::new(),
    };
    let reboot = CommandOrder::Reboot { attempt: 1 };
    let check = CommandOrder::CheckBoot { since: since() };
    for (order, line, expected) in [
        (&reboot, "exit 0", CommandOutcome::Succeeded),
        (&reboot, "echo no; exit 4", failed()),
        (&reboot, "kill -KILL $$", unknown()),
        (&check, "echo true", CommandOutcome::Booted),
        (&check, "echo false", CommandOutcome::NotBooted),
        (&check, "exit 1", CommandOutcome::NotBooted),
    ] {
        let script = Script::new(line);
        let host = HostName::new("h01").unwrap();
        let job = CommandJob { order: order.clone(), host, node: NODE.to_owned(), index: 3 };
        let report = script.commands().carry_out(job.clone(), || true).await;
        assert_eq!(report, JobDone::RebootCommand(job.clone(), expected).into(), "{line}");
        // Without a lease nothing is rebooted.
        if job.order == reboot {
            let report = script.commands().carry_out(job.clone(), || false).await;
            assert_eq!(report, JobDone::NotBegun(Job::RebootCommand(job)).into());
            assert_eq!(script.calls().len(), 1, "{line}");
        }
    }
}

/// A boot check that gets the time of the job, rounded up, would take an earlier boot for this one, or this one for an earlier.
#[tokio::test]
async fn checked_reboot_begins_in_a_later_second() {
    let script = Script::new("date +%s > $0/begun");
    let job = CommandJob {
        order: CommandOrder::Reboot { attempt: 1 },
        host: HostName::new("h01").unwrap(),
        node: NODE.to_owned(),
        index: 3,
    };
    let due = Utc::now().timestamp();
    script.commands().carry_out(job, || true).await;
    let begun: i64 = fs::read_to_string(script.file("begun")).unwrap().trim().parse().unwrap();
    assert!(begun > due, "{begun} {due}");
}

#[tokio::test]
async fn much_output_is_cut() {
    let line = "yes begin | head -c 10000000; yes begin | head -c 10000000 >&2; echo the end >&2; exit 1";
    let outcome = Script::new(line).reboot().await;
    let Err(Failure::Exit { exit: 1, tail }) = outcome else { panic!("{outcome:?}") };
    assert!(tail.ends_with("the end") && tail.len() <= 2048, "{tail}");
}

#[tokio::test]
async fn boot_check_is_told_node_and_time() {
    let script = Script::new("echo true");
    assert_eq!(script.check().await, Ok(()));
    assert_eq!(script.calls(), ["first node-1 1700000000"]);
}

#[tokio::test]
async fn only_true_means_booted() {
    for (line, expected) in [
        ("printf ' true \\n\\n'", None),
        ("printf true", None),
        ("echo false", Some("false")),
        ("echo TRUE", Some("TRUE")),
        ("echo true true", Some("true true")),
        ("echo true >&2", Some("")),
        ("exit 0", Some("")),
    ] {
        let not_yet = |said: &str| Err(NotYet::Said { said: said.to_owned() });
        let expected = expected.map_or(Ok(()), not_yet);
        let script = Script::new(line).with_retries(3);
        assert_eq!(script.check().await, expected, "{line}");
        assert_eq!(script.calls().len(), 1, "an answer is not asked for again: {line}");
    }
    // Nor does the end of a longer output.
    let script = Script::new("yes | head -c 5000; printf '%3000s' true");
    assert!(matches!(script.check().await, Err(NotYet::Said { said }) if said == "true"));
}

#[tokio::test]
async fn failing_boot_check_is_no_boot() {
    let script = Script::new("echo true; exit 1").with_retries(2);
    assert_eq!(script.check().await, Err(exit(1, "true").into()));
    assert_eq!(script.calls().len(), 3);

    let limit = Duration::from_secs(2);
    let script = Script::new("echo true; exec sleep 600").with_retries(1).with_timeout(limit);
    let expected = Failure::TimedOut { limit, tail: "true".to_owned() };
    assert_eq!(script.check().await, Err(expected.into()));
    assert_eq!(script.calls().len(), 2);

    let script = Script::new("[ -e $0/again ] && exec echo true; touch $0/again; exit 1").with_retries(1);
    assert_eq!(script.check().await, Ok(()));
}
