//! What the status says: parts of a screen, made from the API's answers.

use std::collections::BTreeMap;
use std::iter;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::HostStatus;
use os_upgrade_kernel::reason::shell_word;
use os_upgrade_shell::text::{one_line, sanitized};
use serde::Deserialize;
use serde_json::Value;

use crate::Failure;
use crate::output::{Canvas, View, Zone};
use crate::remote::release;
use crate::remote::run::view::{self, MissedRun, Page, Run, counted, short, span, took};

/// The width of the bar, in characters.
const BAR_CHARS: u64 = 30;
/// The most hosts at work, and groups of waiting hosts that are shown.
const LINES_MAX: usize = 8;
/// The kind of the warning that no application is configured.
const NO_APPLICATIONS: &str = "no-applications";
/// The most names in a line.
const NAMES_MAX: usize = 3;
/// The longest matter for a person, in characters, without the commands that help.
const NEED_CHARS_MAX: usize = 300;
/// The most lines with such matters, unless the first one needs more.
const NEED_LINES_MAX: usize = 10;
/// The longest line, in characters, if the terminal has no width.
const LINE_CHARS_MAX: usize = 200;

/// What the API answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Report {
    state: State,
    runs: Option<Page<Run>>,
    missed_runs: Option<Page<MissedRun>>,
    slots: Slots,
    cluster: Cluster,
    windows: Option<Windows>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct State {
    status: String,
    next_upgrade_at: Option<String>,
    next_upgrade_reason: Option<String>,
    window_used_by: Option<UsedBy>,
    pending_hosts: u64,
    config_warnings: Vec<Warning>,
    current_upgrade_info: Option<Current>,
    last_upgrade_info: Option<Run>,
    hosts: Vec<Host>,
}

/// What the window that is open now has had.
#[derive(Debug, Deserialize)]
struct UsedBy {
    kind: String,
    run: Option<String>,
}

/// What an operator should know of the configuration.
#[derive(Debug, Deserialize)]
struct Warning {
    kind: String,
    message: String,
}

/// The active run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Current {
    id: String,
    not_after: String,
    counts: BTreeMap<String, u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Host {
    hostname: String,
    /// Absent if it is not in the active run.
    status: Option<String>,
    why: String,
    blockers: Vec<Blocker>,
    progress: Option<Progress>,
}

#[derive(Debug, Deserialize)]
struct Blocker {
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Progress {
    percent: Option<u8>,
    text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Slots {
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    group: String,
    #[serde(default)]
    holders: Vec<Holder>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Holder {
    id: String,
    run: Option<String>,
    reason: String,
    stuck: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cluster {
    leader: Option<String>,
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Windows {
    windows: Vec<Window>,
}

#[derive(Debug, Deserialize)]
struct Window {
    start: String,
    end: String,
}

impl View for Report {
    fn text(&self, canvas: &Canvas) -> String {
        canvas.zone.times_in(&self.screen(canvas, Utc::now()))
    }

    fn names(&self) -> Option<Vec<String>> {
        None
    }
}

impl Report {
    /// Reads the answers.
    pub(super) fn read(answers: &Value) -> Result<Self, Failure> {
        Self::deserialize(answers)
            .map_err(|error| anyhow::Error::from(error).context("unexpected response").into())
    }

    /// The whole screen.
    pub(super) fn screen(&self, canvas: &Canvas, now: DateTime<Utc>) -> String {
        let zone = canvas.zone;
        let parts = [
            Some(self.run(zone, now)),
            block("AT WORK", &self.at_work()),
            block("WAITING", &self.waiting()),
            block("FAILED IN THE LAST RUN", &self.failed()),
            Some(self.next_and_last(zone, now)),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let chars_max = canvas.columns.unwrap_or(LINE_CHARS_MAX);
        let lines = text.lines().map(|line| cut(line, chars_max));
        let needs = block("NEEDS A PERSON", &shown(&self.needs(), chars_max));
        let needs = needs.map(|needs| format!("\n{needs}"));
        lines.chain(needs).collect::<Vec<_>>().join("\n")
    }

    /// One line that changes when something important does.
    pub(super) fn summary(&self) -> String {
        let needs = self.needs().len();
        let needs = if needs == 0 { String::new() } else { format!("; {needs} matters need a person") };
        let what = match &self.state.current_upgrade_info {
            Some(current) => format!("run {}: {}", short(&current.id), counted(&current.counts)),
            None => self.last(Zone::Utc),
        };
        one_line(&format!("{}; {what}{needs}", self.state.status), LINE_CHARS_MAX)
    }

    /// The active run, and how far it is.
    fn run(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let Some(current) = &self.state.current_upgrade_info else {
            return format!("no run is active; the site is {}", sanitized(&self.state.status));
        };
        let newest = self.runs.iter().flat_map(|page| &page.items).find(|run| run.id == current.id);
        let by = newest.map(|run| format!(", {}, started by {}", run.phase, run.by())).unwrap_or_default();
        let end = current.not_after.parse().ok();
        let left = end.map(|end| format!("{} left, ", span(now, end))).unwrap_or_default();
        let total: u64 = current.counts.values().sum();
        let ended: u64 = current
            .counts
            .iter()
            .filter(|(word, _)| is(word, HostStatus::is_final))
            .map(|(_, count)| count)
            .sum();
        let filled = (self.percents(ended) * BAR_CHARS).checked_div(total * 100).unwrap_or(0);
        let bar = |character: &str, count: u64| character.repeat(usize::try_from(count).unwrap_or(0));
        format!(
            "run {}{}; {left}until {}\n[{}{}] {ended} of {total}: {}",
            sanitized(short(&current.id)),
            sanitized(&by),
            zone.time(&current.not_after),
            bar("#", filled),
            bar("-", BAR_CHARS - filled),
            sanitized(&counted(&current.counts)),
        )
    }

    /// How much of the active run is done, in percent of a host, where this many hosts have `ended`.
    fn percents(&self, ended: u64) -> u64 {
        let under_way = self.state.hosts.iter().filter(|host| host.is_at_work());
        let done = |host: &Host| {
            let reported = host.progress.as_ref().and_then(|progress| progress.percent);
            view::percent_done(host.status.as_deref().unwrap_or_default(), reported)
        };
        ended * 100 + under_way.map(done).sum::<u64>()
    }

    /// Who works on what, and how far it is.
    fn at_work(&self) -> Vec<String> {
        let at_work = self.state.hosts.iter().filter(|host| host.is_at_work());
        let line = |host: &Host| {
            let status = host.status.as_deref().unwrap_or_default();
            let progress = host.progress.as_ref().map(|Progress { percent, text }| {
                percent.map_or_else(|| format!("  {text}"), |percent| format!("  {percent} % {text}"))
            });
            one_line(&format!("{}: {status}{}", host.hostname, progress.unwrap_or_default()), LINE_CHARS_MAX)
        };
        bounded(at_work.map(line).collect())
    }

    /// Who waits and why.
    fn waiting(&self) -> Vec<String> {
        let waiting = self.state.hosts.iter().filter(|host| host.is_waiting());
        together(waiting.map(|host| (host.why.clone(), host.hostname.as_str())))
    }

    /// Which hosts failed in the last run and why, while no run is active. That one of them holds a slot is among what needs a
    /// person.
    fn failed(&self) -> Vec<String> {
        let last = self.state.last_upgrade_info.iter().filter(|_| self.state.current_upgrade_info.is_none());
        let holders = || self.slots.groups.iter().flat_map(|group| &group.holders);
        let has_failed = |host: &&view::Host| {
            is(&host.status, |status| matches!(status, HostStatus::Failed | HostStatus::TimedOut))
                && !holders().any(|holder| holder.id == host.hostname)
        };
        let why = |host: &view::Host| match &host.reason {
            Some(reason) => format!("{} ({reason})", host.status),
            None => host.status.clone(),
        };
        let failed = last.flat_map(|run| &run.hosts).filter(has_failed);
        together(failed.map(|host| (why(host), host.hostname.as_str())))
    }

    /// Whether a run would have no host, because no application is configured.
    fn upgrades_nothing(&self) -> bool {
        self.state.config_warnings.iter().any(|warning| warning.kind == NO_APPLICATIONS)
    }

    /// The next automatic run, or why there is none.
    fn next(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let next = match (&self.state.next_upgrade_at, &self.state.next_upgrade_reason) {
            _ if self.upgrades_nothing() => {
                "a run would upgrade nothing: no application is configured".to_owned()
            }
            (Some(at), None) => {
                let time = at.parse().ok();
                if let Some(current) = &self.state.current_upgrade_info
                    && time.is_some_and(|at: DateTime<Utc>| at <= now)
                {
                    return format!(
                        "next:   a run starts as soon as run {} has ended",
                        sanitized(short(&current.id))
                    );
                }
                let until = time.map(|at| format!(", in {}", span(now, at)));
                format!("a run starts at {}{}", zone.time(at), until.unwrap_or_default())
            }
            (at, Some(reason)) => {
                let at = at.as_ref().map(|at| format!("; then a run starts at {}", zone.time(at)));
                let reason = sanitized(&reason.replace('-', " "));
                format!("no run starts automatically: {reason}{}", at.unwrap_or_default())
            }
            (None, None) => "no run starts automatically".to_owned(),
        };
        let window = self.windows.iter().flat_map(|answer| &answer.windows).next();
        let window = window
            .map(|window| format!("\nwindow: {} to {}", zone.time(&window.start), zone.time(&window.end)));
        let used = self.state.window_used_by.as_ref();
        let used = used.map(|used| format!("\nopen:   a window that is used: {}", used.by()));
        format!("next:   {next}{}{}", window.unwrap_or_default(), used.unwrap_or_default())
    }

    /// When a run starts, how the last one ended, and whether one was missed after that.
    fn next_and_last(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let lines = [Some(self.next(zone, now)), Some(self.last(zone)), self.missed(zone)];
        lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// The last run that was missed, if none has started since.
    fn missed(&self, zone: Zone) -> Option<String> {
        let missed = self.missed_runs.as_ref()?.items.first()?;
        let opened: DateTime<Utc> = missed.window_start.parse().ok()?;
        let newest = self.runs.iter().flat_map(|page| &page.items).next();
        let started = newest.and_then(|run| run.start_time.parse::<DateTime<Utc>>().ok());
        let is_newer = started.is_none_or(|started| started < opened);
        let line = || format!("missed: the run of {}: {}", zone.time(&missed.window_start), missed.why());
        is_newer.then(|| sanitized(&line()))
    }

    /// How the last run ended.
    fn last(&self, zone: Zone) -> String {
        let Some(run) = &self.state.last_upgrade_info else {
            return "last:   there has been no run".to_owned();
        };
        let result = run.result.as_deref().unwrap_or("unknown");
        let ended = run.end_time.as_deref().map(|end| format!(" at {}", zone.time(end)));
        let took = run.end_time.as_deref().and_then(|end| took(&run.start_time, end));
        let took = took.map(|took| format!(" after {took}")).unwrap_or_default();
        let (id, counts) = (short(&run.id), counted(&run.counts));
        sanitized(&format!("last:   run {id} {result}{took}{}: {counts}", ended.unwrap_or_default()))
    }

    /// What does not go on without a person.
    fn needs(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        match self.state.pending_hosts {
            0 => {}
            1 => needs.push("1 host waits for approval: os-upgrade hosts list --pending".to_owned().into()),
            count => {
                needs
                    .push(format!("{count} hosts wait for approval: os-upgrade hosts list --pending").into());
            }
        }
        let active = self.state.current_upgrade_info.as_ref().map(|current| current.id.as_str());
        for group in &self.slots.groups {
            for holder in &group.holders {
                let left_by = holder.run.as_deref().filter(|run| Some(*run) != active);
                if holder.stuck || left_by.is_some() {
                    let Holder { id, reason, .. } = holder;
                    let what = format!("{id} holds a slot of group {}: {reason}", group.group);
                    let of_run = left_by.into_iter().flat_map(|run| {
                        let more = format!("os-upgrade run show {} {}", short(run), shell_word(id));
                        [("why", more), ("retry all hosts", "os-upgrade run start".to_owned())]
                    });
                    let release = ("release", release::command(&group.group, id));
                    needs.push(Need { what, commands: of_run.chain([release]).collect() });
                }
            }
        }
        if self.cluster.leader.is_none() {
            needs.push("no instance leads: os-upgrade cluster status".to_owned().into());
        }
        needs.extend(self.cluster.warnings.iter().cloned().map(Need::from));
        needs.extend(self.state.config_warnings.iter().map(|warning| warning.message.clone().into()));
        needs
    }
}

impl UsedBy {
    fn by(&self) -> String {
        let run = self.run.as_deref().map(|run| sanitized(short(run)));
        match (self.kind.as_str(), run) {
            ("run", Some(run)) => format!("run {run} has started in it"),
            ("cancel", Some(run)) => format!("run {run} was cancelled in it"),
            _ => "it has had a run or a cancel, or the site was restored in it".to_owned(),
        }
    }
}

impl Host {
    fn is_at_work(&self) -> bool {
        self.status.as_deref().is_some_and(|status| {
            is(status, |status| status == HostStatus::Preparing || status.is_under_way())
        })
    }

    /// Whether it waits for something that an operator may want to know, or is not there. That no run is active, and who waits for
    /// approval, is shown for the whole site; a heartbeat is awaited briefly.
    fn is_waiting(&self) -> bool {
        let is_known = self.blockers.first().is_some_and(|blocker| {
            let kind = blocker.kind.as_str();
            matches!(kind, "no-run" | "awaits-approval" | "slot-held" | "heartbeat-awaited")
        });
        let has_ended = self.status.as_deref().is_some_and(|status| is(status, HostStatus::is_final));
        !self.is_at_work() && !is_known && !has_ended && !self.why.is_empty()
    }
}

/// Whether `word` is a status for which `test` holds. A word of a newer version is none.
fn is(word: &str, test: impl Fn(HostStatus) -> bool) -> bool {
    HostStatus::ALL.into_iter().find(|status| status.as_str() == word).is_some_and(test)
}

fn block(head: &str, lines: &[String]) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{head}\n  {}", lines.join("\n  ")))
}

/// Hosts, those with the same reason together, the most frequent reason first.
fn together<'a>(hosts: impl Iterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (why, host) in hosts {
        groups.entry(why).or_default().push(host);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    let line =
        |(why, hosts): (String, Vec<&str>)| one_line(&format!("{}: {why}", named(&hosts)), LINE_CHARS_MAX);
    bounded(groups.into_iter().map(line).collect())
}

/// The first lines; the last one says how many more there are.
fn bounded(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX + 1;
        lines.truncate(LINES_MAX - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The first of `names`, and how many more there are.
fn named(names: &[&str]) -> String {
    let first = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The first needs that fit into a block, one at least; the last line says how many more there are.
fn shown(needs: &[Need], columns: usize) -> Vec<String> {
    let (mut shown, mut lines) = (Vec::new(), 0);
    for (at, need) in needs.iter().enumerate() {
        let text = need.text(columns.saturating_sub("  ".len()));
        lines += text.lines().count();
        if lines > NEED_LINES_MAX && at > 0 {
            shown.push(format!("and {} more", needs.len() - at));
            break;
        }
        shown.push(text);
    }
    shown
}

/// What does not go on without a person.
struct Need {
    what: String,
    /// What a command does, and the command, which is to be copied: it is neither wrapped nor cut.
    commands: Vec<(&'static str, String)>,
}

impl From<String> for Need {
    fn from(what: String) -> Self {
        Self { what, commands: Vec::new() }
    }
}

impl Need {
    /// In lines, all but the first of which are indented.
    fn text(&self, columns: usize) -> String {
        let options = textwrap::Options::new(columns).subsequent_indent("    ");
        let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
        let what = textwrap::fill(&one_line(&self.what, NEED_CHARS_MAX), options);
        let commands =
            self.commands.iter().map(|(does, command)| format!("\n    {does}: {}", sanitized(command)));
        iter::once(what).chain(commands).collect()
    }
}

fn cut(line: &str, chars_max: usize) -> String {
    console::truncate_str(line, chars_max, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canvas(columns: Option<usize>) -> Canvas {
        Canvas { is_wide: false, columns, zone: Zone::Utc }
    }

    fn now() -> DateTime<Utc> {
        "2026-11-21T01:48:00Z".parse().unwrap()
    }

    fn active() -> Value {
        let waiting = |name: &str| {
            json!({
                "hostname": name, "status": "waiting", "why": "waiting for its turn: h03 is under way",
                "blockers": [{ "kind": "host-under-way" }],
            })
        };
        json!({
            "state": {
                "status": "upgrading", "pending-hosts": 2, "next-upgrade-at": "2026-11-22T01:00:00Z",
                "current-upgrade-info": {
                    "id": "019aa3f0-0000-7000-8000-000000000001", "not-after": "2026-11-21T05:00:00Z",
                    "counts": { "upgraded": 2, "failed": 1, "upgrading": 1, "waiting": 5 },
                },
                "hosts": [
                    { "hostname": "h01", "status": "upgraded", "why": "it is upgraded", "blockers": [] },
                    { "hostname": "h03", "status": "upgrading", "why": "its worker has not answered upgrade yet",
                      "blockers": [{ "kind": "reply-awaited" }], "progress": { "percent": 40, "text": "unpacking\u{1b}[2J" } },
                    waiting("h04"), waiting("h05"), waiting("h06"), waiting("h07"), waiting("h08"),
                    { "hostname": "new", "why": "waits for approval: os-upgrade hosts approve new",
                      "blockers": [{ "kind": "awaits-approval" }] },
                ],
            },
            "runs": { "items": [{ "id": "019aa3f0-0000-7000-8000-000000000001", "trigger": "operator", "actor": "token ci", "phase": "upgrading" }] },
            "slots": { "groups": [{ "group": "default", "holders": [
                { "id": "h02", "run": "019aa000-0000-7000-8000-000000000001", "reason": "it failed: no space left", "stuck": true },
                { "id": "h03", "run": "019aa3f0-0000-7000-8000-000000000001", "reason": "upgrading" },
            ] }] },
            "cluster": { "leader": "a1", "warnings": ["the instances differ"] },
            "windows": { "windows": [{ "start": "2026-11-22T01:00:00Z", "end": "2026-11-22T05:00:00Z" }] },
        })
    }

    #[test]
    fn an_active_run_on_one_screen() {
        let expected = "\
run 019aa3f0-0000, upgrading, started by token ci; 3h12m left, until 2026-11-21T05:00:00Z
[###########-------------------] 3 of 9: 1 failed, 2 upgraded, 1 upgrading, 5 waiting

AT WORK
  h03: upgrading 40 % unpacking\u{fffd}[2J

WAITING
  h04, h05, h06 and 2 more: waiting for its turn: h03 is under way

next:   a run starts at 2026-11-22T01:00:00Z, in 23h12m
window: 2026-11-22T01:00:00Z to 2026-11-22T05:00:00Z
last:   there has been no run

NEEDS A PERSON
  2 hosts wait for approval: os-upgrade hosts list --pending
  h02 holds a slot of group default: it failed: no space left
    why: os-upgrade run show 019aa000-0000 h02
    retry all hosts: os-upgrade run start
    release: os-upgrade lock release --group=default --id=h02 --reason=TEXT
  the instances differ";
        let report = Report::read(&active()).unwrap();
        assert_eq!(report.screen(&canvas(None), now()), expected);
        // Commands are whole in a narrow terminal too.
        let narrow = "
  h02 holds a slot of group default: it failed: no
    space left
    why: os-upgrade run show 019aa000-0000 h02
    retry all hosts: os-upgrade run start
    release: os-upgrade lock release --group=default --id=h02 --reason=TEXT
  the instances differ";
        let screen = report.screen(&canvas(Some(50)), now());
        assert!(screen.ends_with(narrow), "{screen}");
        let summary = "upgrading; run 019aa3f0-0000: 1 failed, 2 upgraded, 1 upgrading, 5 waiting; 3 matters need a person";
        assert_eq!(report.summary(), summary);
    }

    #[test]
    fn run_without_an_application_upgrades_nothing() {
        let mut answers = active();
        answers["state"]["config-warnings"] = json!([{ "kind": "no-applications", "message": "x" }]);
        let screen = Report::read(&answers).unwrap().screen(&canvas(None), now());
        let expected = "\nnext:   a run would upgrade nothing: no application is configured\nwindow: ";
        assert!(screen.contains(expected), "{screen}");
    }

    /// A window that opens during a run waits for its end.
    #[test]
    fn run_that_is_due_waits_for_the_active_one() {
        let mut answers = active();
        answers["state"]["next-upgrade-at"] = json!("2026-11-21T01:48:00Z");
        let screen = Report::read(&answers).unwrap().screen(&canvas(None), now());
        assert!(screen.contains("next:   a run starts as soon as run 019aa3f0-0000 has ended"), "{screen}");
    }

    #[test]
    fn an_idle_site_on_one_screen() {
        let answers = json!({
            "state": {
                "status": "idle", "next-upgrade-reason": "no-window",
                "window-used-by": { "kind": "cancel", "run": "019aa3f0-0000-7000-8000-000000000001" },
                "config-warnings": [{ "kind": "not-announced", "message": "no host announces typo" }],
                "last-upgrade-info": {
                    "id": "019aa3f0-0000-7000-8000-000000000001", "start-time": "2026-11-21T01:00:00Z",
                    "end-time": "2026-11-21T01:24:07Z", "result": "completed", "counts": { "upgraded": 2 },
                },
                "hosts": [{ "hostname": "h01", "why": "no run is active", "blockers": [{ "kind": "no-run" }] }],
            },
            "runs": { "items": [] }, "slots": { "groups": [] }, "cluster": { "leader": "a1" }, "windows": null,
        });
        let expected = "\
no run is active; the site is idle

next:   no run starts automatically: no window
open:   a window that is used: run 019aa3f0-0000 was cancelled in it
last:   run 019aa3f0-0000 completed after 24m7s at 2026-11-21T01:24:07Z: 2 upgraded

NEEDS A PERSON
  no host announces typo";
        assert_eq!(Report::read(&answers).unwrap().screen(&canvas(None), now()), expected);
    }

    /// Even if its slot was released since; while it holds one, that needs a person.
    #[test]
    fn host_that_failed_in_the_last_run_is_shown() {
        let host =
            |name: &str, status: &str| json!({ "hostname": name, "status": status, "reason": "no space" });
        let mut answers = json!({
            "state": {
                "status": "idle",
                "last-upgrade-info": {
                    "id": "019aa3f0-0000-7000-8000-000000000001", "start-time": "2026-11-21T01:00:00Z", "result": "failed",
                    "hosts": [host("h01", "failed"), host("h02", "failed"), host("h03", "upgraded"), host("h04", "timed-out")],
                },
            },
            "slots": { "groups": [{ "group": "default", "holders": [{ "id": "h04" }] }] },
        });
        let screen = Report::read(&answers).unwrap().screen(&canvas(None), now());
        assert!(
            screen.contains("\n\nFAILED IN THE LAST RUN\n  h01, h02: failed (no space)\n\nnext: "),
            "{screen}"
        );
        answers["state"]["current-upgrade-info"] = active()["state"]["current-upgrade-info"].clone();
        let screen = Report::read(&answers).unwrap().screen(&canvas(None), now());
        assert!(!screen.contains("FAILED"), "{screen}");
    }

    /// Once a run has started since, it is history.
    #[test]
    fn missed_run_is_shown_until_the_next_run() {
        let shown = |started: Option<&str>, is_active: bool| {
            let mut answers =
                if is_active { active() } else { json!({ "state": { "status": "idle", "hosts": [] } }) };
            answers["missed-runs"] = json!({ "items": [{
                "window-start": "2026-11-21T01:00:00Z", "reason": "no orchestrator\u{1b} led", "unrecorded": 2,
            }] });
            let runs = started.map(|at| json!({ "id": "r1", "start-time": at }));
            answers["runs"] = json!({ "items": runs.as_slice() });
            let screen = Report::read(&answers).unwrap().screen(&canvas(Some(80)), now());
            screen.lines().find(|line| line.starts_with("missed:")).map(ToOwned::to_owned)
        };
        let expected =
            "missed: the run of 2026-11-21T01:00:00Z: no orchestrator\u{fffd} led (and 2 more befor…";
        for (started, is_active, is_shown) in [
            (None, false, true),
            (Some("2026-11-21T00:59:59.5Z"), false, true),
            (Some("2026-11-21T00:59:59.5Z"), true, true),
            (Some("2026-11-21T01:00:00.5Z"), true, false),
            (Some("2026-11-21T06:00:00Z"), false, false),
        ] {
            let expected = is_shown.then_some(expected);
            assert_eq!(shown(started, is_active).as_deref(), expected, "{started:?} {is_active}");
        }
    }

    #[test]
    fn one_screen_is_enough_for_any_site() {
        let mut answers = active();
        let long = "n".repeat(255);
        let host = |at: usize| json!({ "hostname": format!("{long}{at}"), "status": "upgrading", "why": "x", "blockers": [] });
        let waiting = |at: usize| json!({ "hostname": format!("w{at}"), "status": "waiting", "why": format!("{long}{at}"), "blockers": [] });
        answers["state"]["hosts"] = (0..500).map(host).chain((0..500).map(waiting)).collect();
        answers["cluster"]["warnings"] = (0..500).map(|at| json!(format!("{long}{at}"))).collect();
        let screen = Report::read(&answers).unwrap().screen(&canvas(Some(80)), now());
        assert!(screen.lines().count() <= 40, "{screen}");
        assert!(screen.lines().all(|line| console::measure_text_width(line) <= 80), "{screen}");
        assert!(screen.contains("and 493 more"), "{screen}");
        assert!(screen.ends_with("\n  and 499 more"), "{screen}");
        let alone = "x ".repeat(500);
        answers["cluster"]["warnings"] = json!([alone]);
        answers["slots"] = json!({});
        answers["state"]["pending-hosts"] = json!(0);
        let screen = Report::read(&answers).unwrap().screen(&canvas(Some(20)), now());
        assert!(screen.lines().filter(|line| line.contains("x x")).count() > NEED_LINES_MAX, "{screen}");
    }
}
