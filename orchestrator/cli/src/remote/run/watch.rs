//! Watching a run: on a terminal a bar for each host under way, else a line for each change.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, Utc};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use os_upgrade_api_types::body::{HostOfRun, Progress, Stamp, Why};
use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::events::FOLLOW;
use os_upgrade_api_types::routes::runs::{self as routes, HostOfRunInFull, Run, RunInFull};
use os_upgrade_api_types::routes::state::{self, CurrentUpgrade, HostState, State};
use os_upgrade_api_types::word::{WhyKind, Word};
use os_upgrade_console::progress::{belongs_to_run, counted, is_at_work, percent_done, progress_text};
use os_upgrade_console::rows::runs;
use os_upgrade_console::span;
use os_upgrade_kernel::{HostStatus, RunResult};
use os_upgrade_protocol::text::one_line;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::super::events::news::News;
use crate::Failure;
use crate::output::Output;
use crate::rest::Client;

/// How often bars are drawn, and what is not there yet is asked for again.
const PERIOD: Duration = Duration::from_secs(1);
/// How often the state is read if nothing happens, in case that another instance answers, which is behind.
const READ_EVERY: Duration = Duration::from_secs(15);
/// How long the API may be away, such as when an instance is replaced by another, before watching ends.
const ABSENCE_MAX: Duration = Duration::from_mins(1);
/// The longest reason or progress in a line, in characters.
const TEXT_CHARS_MAX: usize = 200;
/// The most bars on a screen; further hosts under way are not drawn.
const BARS_MAX: usize = 10;
/// What is read of the state.
const FIELDS: &str = "current-upgrade-info,hosts/hostname,hosts/progress";

/// The run timed out.
const TIMED_OUT: u8 = 3;
/// The run completed, and not every host in it was upgraded.
const NOT_EVERY_HOST: u8 = 7;
/// The run was cancelled.
const CANCELLED: u8 = 4;
/// Watching was interrupted by Ctrl-C, as in shells.
const INTERRUPTED: u8 = 130;

/// Shows what happens in the run `id` until it ends, or somebody interrupts it.
///
/// # Errors
/// It did not complete, it was interrupted, or the API was away for too long.
pub(super) async fn watch(client: &Client, id: &str, output: Output) -> Result<(), Failure> {
    // Without a handler the signal ends this process, as it does everywhere else.
    let Ok(mut interrupts) = signal(SignalKind::interrupt()) else {
        return watch_until_end(client, id, output).await;
    };
    tokio::select! {
        ended = watch_until_end(client, id, output) => ended,
        Some(()) = interrupts.recv() => {
            output.aside(&interrupted(id));
            Err(Failure::Status(INTERRUPTED))
        }
    }
}

/// What somebody should know who stops watching.
fn interrupted(id: &str) -> String {
    format!(
        "\nthe run goes on: `os-upgrade run watch {id}` shows it again, `os-upgrade run cancel` starts no further host"
    )
}

async fn watch_until_end(client: &Client, id: &str, output: Output) -> Result<(), Failure> {
    let mut screen = Screen::new(output);
    let mut changes = Changes::default();
    let mut news = News::open(client, FOLLOW.call().with("run", id)).await;
    let mut was_active = false;
    let (run, result, hosts) = loop {
        let state: State<'_> =
            patiently(client, &screen, || state::READ.call().with("fields", FIELDS)).await?;
        if let Some(current) = state.current_upgrade_info.filter(|current| current.id == id) {
            was_active = true;
            let progress = by_host(state.hosts.unwrap_or_default());
            // In this order, so that no bar is drawn again that is out of date.
            screen.draw(&current, &progress, Utc::now());
            screen.say(&changes.lines(current.hosts.iter().map(InRun::from)));
            let mut wait = pin!(news.wait(client, READ_EVERY));
            loop {
                tokio::select! {
                    () = &mut wait => break,
                    () = sleep(PERIOD) => screen.draw(&current, &progress, Utc::now()),
                }
            }
        } else {
            let RunInFull { run, hosts, .. } =
                patiently(client, &screen, || routes::READ.named([id]).with("events-limit", "1")).await?;
            // The history may be behind the state.
            if let Some(result) = run.result.clone() {
                break (run, result, hosts);
            }
            sleep(PERIOD).await;
        }
    };
    screen.clear();
    if let Some(ended) = run.end_time.filter(|_| !was_active) {
        output.aside(&format!("run {id} has been over since {}", output.canvas().zone.stamp(ended)));
    }
    if output.is_for_people() {
        screen.say(&changes.lines(hosts.iter().map(InRun::from)));
        // The result, unlike what led to it, is printed with --quiet too.
        output.result(&summary(&run, &result));
    } else {
        // The whole run, as `run show` prints it.
        let whole = patiently(client, &screen, || routes::READ.named([id])).await?;
        output.show::<RunInFull<'_>>(&whole)?;
    }
    conclude(&result, hosts.iter().map(InRun::from).any(is_left_behind), id)
}

/// Reads from the API, which may be away for a while.
async fn patiently<T: DeserializeOwned>(
    client: &Client,
    screen: &Screen,
    call: impl Fn() -> Call,
) -> Result<T, Failure> {
    const LOST: &str = "the run is no longer watched, and goes on";
    let (begun, mut is_said) = (Instant::now(), false);
    loop {
        match client.read(call()).await {
            Ok(read) => return Ok(read),
            Err(error) if !crate::rest::may_pass(&error) => return Err(error.context(LOST).into()),
            // How it ends is not known: exit code 1 would say that it has failed.
            Err(error) if begun.elapsed() > ABSENCE_MAX => return Err(Failure::Unknown(error.context(LOST))),
            Err(error) => {
                if !std::mem::replace(&mut is_said, true) {
                    screen.say(&[format!("{error:#}; trying again")]);
                }
                sleep(PERIOD).await;
            }
        }
    }
}

/// The progress of each host.
fn by_host(seen: Vec<HostState<'static>>) -> Reports {
    let reporting = seen.into_iter().filter_map(|host| Some((host.hostname.into_owned(), host.progress?)));
    reporting.collect()
}

/// What the end of a run means for the one who watched it.
fn conclude(result: &Word<RunResult>, are_left_behind: bool, id: &str) -> Result<(), Failure> {
    match result.known() {
        Some(RunResult::Completed) if are_left_behind => Err(Failure::Status(NOT_EVERY_HOST)),
        Some(RunResult::Completed) => Ok(()),
        Some(RunResult::TimedOut) => Err(Failure::Status(TIMED_OUT)),
        Some(RunResult::Cancelled) => Err(Failure::Status(CANCELLED)),
        Some(RunResult::Failed) | None => Err(anyhow::anyhow!(
            "run {id} ended {result}: `os-upgrade run show {id}` says why, and `os-upgrade run logs {id}` what was printed"
        )
        .into()),
    }
}

/// Whether a host of a run that is over was not upgraded. One that no operator wants in runs is none of them: whoever reaches the bus
/// can announce one.
fn is_left_behind(InRun { name: _, status, why }: InRun<'_>) -> bool {
    let is_wanted = |why: &Why| !matches!(why.kind(), Some(WhyKind::AwaitsApproval | WhyKind::HostWithdrawn));
    status.known() != Some(HostStatus::Upgraded) && why.is_none_or(is_wanted)
}

fn summary(run: &Run<'_>, result: &Word<RunResult>) -> String {
    let after = runs::duration(run).map(|took| format!(" after {took}")).unwrap_or_default();
    one_line(&format!("{result}{after}: {}", counted(runs::counts(run))), TEXT_CHARS_MAX)
}

/// Which hosts have changed since the last look.
#[derive(Debug, Default)]
struct Changes {
    shown: BTreeMap<String, String>,
}

impl Changes {
    /// A line for each host whose status or reason has changed.
    fn lines<'a>(&mut self, hosts: impl IntoIterator<Item = InRun<'a>>) -> Vec<String> {
        let mut lines = Vec::new();
        for host in hosts {
            let words = words(host);
            // A skew may change by the second.
            let is_of_clock = host.why.and_then(Why::kind).is_some_and(WhyKind::is_of_clock);
            let news = if is_of_clock { format!("{} (clock)", host.status) } else { words.clone() };
            if self.shown.get(host.name) != Some(&news) {
                lines.push(format!("{}: {words}", one_line(host.name, TEXT_CHARS_MAX)));
                self.shown.insert(host.name.to_owned(), news);
            }
        }
        lines
    }
}

/// Status of a host, and why it is not progressing.
fn words(InRun { name: _, status, why }: InRun<'_>) -> String {
    match why {
        Some(why) => one_line(&format!("{status} ({})", why.text), TEXT_CHARS_MAX),
        None => one_line(status.as_str(), TEXT_CHARS_MAX),
    }
}

/// A host in a run, as the state and the history have it.
#[derive(Debug, Clone, Copy)]
struct InRun<'a> {
    name: &'a str,
    status: &'a Word<HostStatus>,
    why: Option<&'a Why>,
}

impl<'a> From<&'a HostOfRun<'_>> for InRun<'a> {
    fn from(host: &'a HostOfRun<'_>) -> Self {
        Self { name: &host.hostname, status: &host.status, why: host.why.as_ref() }
    }
}

impl<'a> From<&'a HostOfRunInFull<'_>> for InRun<'a> {
    fn from(host: &'a HostOfRunInFull<'_>) -> Self {
        Self { name: &host.hostname, status: &host.status, why: host.why.as_ref() }
    }
}

/// Where the run is shown.
struct Screen {
    output: Output,
    /// Absent without a terminal.
    bars: Option<Bars>,
}

/// What workers report, by host.
type Reports = BTreeMap<String, Progress<'static>>;

/// A bar for the run, and one for each host under way.
struct Bars {
    all: MultiProgress,
    run: ProgressBar,
    hosts: BTreeMap<String, ProgressBar>,
}

impl Screen {
    fn new(output: Output) -> Self {
        let is_drawn = std::io::stderr().is_terminal() && output.is_for_people();
        Self { output, bars: is_drawn.then(Bars::new) }
    }

    /// Prints lines about changes, above the bars if there are any.
    fn say(&self, lines: &[String]) {
        for line in lines {
            match &self.bars {
                Some(bars) => bars.all.suspend(|| self.output.note(line)),
                None => self.output.note(line),
            }
        }
    }

    fn draw(&mut self, current: &CurrentUpgrade<'_>, progress: &Reports, now: DateTime<Utc>) {
        if let Some(bars) = &mut self.bars {
            bars.draw(current, progress, now);
        }
    }

    fn clear(&mut self) {
        if let Some(bars) = self.bars.take() {
            bars.run.finish_and_clear();
            bars.hosts.into_values().for_each(|bar| bar.finish_and_clear());
        }
    }
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let run = all.add(ProgressBar::new(0).with_style(style("[{bar:30}] {msg}")));
        Self { all, run, hosts: BTreeMap::new() }
    }

    fn draw(&mut self, current: &CurrentUpgrade<'_>, progress: &Reports, now: DateTime<Utc>) {
        let reported =
            |host: &HostOfRun<'_>| progress.get(&*host.hostname).and_then(|progress| progress.percent);
        let hosts = || current.hosts.iter().filter(|host| belongs_to_run(host.status.as_str()));
        let done = hosts().map(|host| percent_done(&host.status, reported(host)));
        self.run.set_length(hosts().count() as u64 * 100);
        self.run.set_position(done.sum());
        let ended = hosts().filter(|host| host.status.is(HostStatus::is_final)).count();
        let of_hosts = format!("{ended}/{} hosts, {}", hosts().count(), left(current.not_after, now));
        self.run.set_message(of_hosts);
        let at_work = || current.hosts.iter().filter(|host| host.status.is(is_at_work));
        self.hosts.retain(|name, bar| {
            let stays = at_work().any(|host| host.hostname == *name);
            if !stays {
                bar.finish_and_clear();
                self.all.remove(bar);
            }
            stays
        });
        for host in at_work() {
            if !self.hosts.contains_key(&*host.hostname) && self.hosts.len() < BARS_MAX {
                let bar = ProgressBar::new(100).with_style(style("  {prefix:20!} [{bar:20}] {wide_msg}"));
                let bar = self.all.add(bar.with_prefix(one_line(&host.hostname, TEXT_CHARS_MAX)));
                self.hosts.insert(host.hostname.to_string(), bar);
            }
            if let Some(bar) = self.hosts.get(&*host.hostname) {
                let progress = progress.get(&*host.hostname);
                bar.set_position(position(&host.status, reported(host)));
                bar.set_message(message(host, progress));
            }
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("##-")
}

/// How much time is left until `not_after`.
fn left(not_after: Stamp, now: DateTime<Utc>) -> String {
    format!("{} left", span(now, not_after.0))
}

/// How far the bar of a host is filled: how much its worker reports of `prepare`, or what is done of its part in the run.
fn position(status: &Word<HostStatus>, reported: Option<u8>) -> u64 {
    if *status == Word::Known(HostStatus::Preparing) {
        reported.map_or(0, u64::from)
    } else {
        percent_done(status, reported)
    }
}

/// Status and progress of a host.
fn message(host: &HostOfRun<'_>, progress: Option<&Progress<'_>>) -> String {
    match progress {
        Some(progress) => one_line(&format!("{} {}", host.status, progress_text(progress)), TEXT_CHARS_MAX),
        None => words(host.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(name: &str, status: &str, why: Option<&str>) -> HostOfRun<'static> {
        let why = why.map(|text| json!({ "kind": "a kind", "text": text }));
        let host = json!({ "hostname": name, "status": status, "why": why });
        serde_json::from_value(host).unwrap()
    }

    fn lines(changes: &mut Changes, hosts: &[HostOfRun<'_>]) -> Vec<String> {
        changes.lines(hosts.iter().map(InRun::from))
    }

    #[test]
    fn only_changes_are_said() {
        let mut changes = Changes::default();
        let first = [host("h01", "upgrading", None), host("h\u{1b}2", "waiting", Some("h01 has\nthe slot"))];
        assert_eq!(lines(&mut changes, &first), ["h01: upgrading", "h\u{fffd}2: waiting (h01 has the slot)"]);
        assert_eq!(lines(&mut changes, &first), [""; 0]);
        assert_eq!(lines(&mut changes, &[host("h01", "upgraded", None)]), ["h01: upgraded"]);
        let skewed = |seconds: u32| {
            let why =
                json!({ "kind": "clock-skew", "seconds": seconds, "text": format!("{seconds} s ahead") });
            let host = json!({ "hostname": "h03", "status": "prepared", "why": why });
            [serde_json::from_value::<HostOfRun<'_>>(host).unwrap()]
        };
        assert_eq!(lines(&mut changes, &[host("h03", "prepared", None)]), ["h03: prepared"]);
        assert_eq!(lines(&mut changes, &skewed(31)), ["h03: prepared (31 s ahead)"]);
        assert_eq!(lines(&mut changes, &skewed(32)), [""; 0]);
    }

    #[test]
    fn what_nodes_wait_for_is_said() {
        let waits = "its node is being drained: pod shop/db-0 is terminating";
        let hosts = [host("h01", "draining", Some(waits)), host("h02", "upgrading", None)];
        let upgrading = json!([{ "hostname": "h02", "progress": { "percent": 40, "text": "unpacking" } }]);
        let progress = by_host(serde_json::from_value(upgrading).unwrap());
        let said = |host: &HostOfRun<'_>| message(host, progress.get(&*host.hostname));
        assert_eq!(
            (said(&hosts[0]), said(&hosts[1])),
            (
                "draining (its node is being drained: pod shop/db-0 is terminating)".to_owned(),
                "upgrading 40 % unpacking".to_owned()
            )
        );
        assert_eq!(lines(&mut Changes::default(), &hosts[..1]), [format!("h01: {}", said(&hosts[0]))]);
    }

    #[test]
    fn results_have_exit_codes() {
        let status = |result: &str| match conclude(&Word::read(result), false, "r") {
            Ok(()) => Some(0),
            Err(Failure::Status(status)) => Some(status),
            Err(_) => None,
        };
        assert_eq!(status("completed"), Some(0));
        assert_eq!(status("timed-out"), Some(3));
        assert_eq!(status("cancelled"), Some(4));
        let left_behind = conclude(&Word::read("completed"), true, "r");
        assert!(matches!(left_behind, Err(Failure::Status(7))), "{left_behind:?}");
        // These exit with 1, and say why.
        assert_eq!((status("failed"), status("unknown"), status("new")), (None, None, None));
    }

    #[test]
    fn hosts_that_nobody_wants_in_runs_are_not_left_behind() {
        let is_left = |status: &str, kind: &str| {
            let host =
                json!({ "hostname": "h1", "status": status, "why": { "kind": kind, "text": "a text" } });
            let host: HostOfRun<'_> = serde_json::from_value(host).unwrap();
            is_left_behind((&host).into())
        };
        assert!(!is_left("skipped", "awaits-approval") && !is_left("skipped", "host-withdrawn"));
        assert!(is_left("skipped", "unreachable") && is_left("cancelled", "given-up"));
        assert!(is_left_behind((&host("h1", "of a newer version", None)).into()));
        assert!(!is_left_behind((&host("h1", "upgraded", None)).into()));
    }

    #[test]
    fn progress_is_said_with_the_status() {
        let progress = Progress { percent: Some(40), text: "unpacking\u{1b}[2J".into() };
        let upgrading = host("h01", "upgrading", None);
        assert_eq!(message(&upgrading, Some(&progress)), "upgrading 40 % unpacking\u{fffd}[2J");
        assert_eq!(message(&upgrading, None), "upgrading");
        // A reboot comes after the upgrade, though nothing is reported of it.
        let positions =
            ["preparing", "upgrading", "rebooting"].map(|status| position(&Word::read(status), Some(40)));
        assert_eq!(positions, [40, 40, 99]);
        let now = "2026-11-21T01:00:00Z".parse().unwrap();
        assert_eq!(left(Stamp("2026-11-21T05:00:30Z".parse().unwrap()), now), "4h30s left");
    }
}
