//! What the status says: parts of a screen, made from the API's answers.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::HostStatus;
use os_upgrade_shell::text::{one_line, sanitized};
use serde::Deserialize;
use serde_json::Value;

use crate::Failure;
use crate::output::{Canvas, View, Zone};
use crate::remote::run::view::{Run, RunPage, counted, short, span, took};

/// The width of the bar, in characters.
const BAR_CHARS: u64 = 30;
/// The most hosts at work, groups of waiting hosts, and matters for a person that are shown.
const LINES_MAX: usize = 8;
/// The most names in a line.
const NAMES_MAX: usize = 3;
/// The longest line, in characters, if the terminal has no width.
const LINE_CHARS_MAX: usize = 200;

/// What the API answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    state: State,
    runs: Option<RunPage>,
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
    pending_hosts: u64,
    current_upgrade_info: Option<Current>,
    last_upgrade_info: Option<Run>,
    hosts: Vec<Host>,
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
        self.screen(canvas, Utc::now())
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
            Some([self.next(zone, now), self.last(zone)].join("\n")),
            block("NEEDS A PERSON", &self.needs()),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let chars_max = canvas.columns.unwrap_or(LINE_CHARS_MAX);
        text.lines().map(|line| cut(line, chars_max)).collect::<Vec<_>>().join("\n")
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
        let filled = (ended * BAR_CHARS).checked_div(total).unwrap_or(0);
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

    /// Who waits and why, those with the same reason together, the most frequent reason first.
    fn waiting(&self) -> Vec<String> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for host in self.state.hosts.iter().filter(|host| host.is_waiting()) {
            groups.entry(&host.why).or_default().push(&host.hostname);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
        let line =
            |(why, hosts): (&str, Vec<&str>)| one_line(&format!("{}: {why}", named(&hosts)), LINE_CHARS_MAX);
        bounded(groups.into_iter().map(line).collect())
    }

    /// The next automatic run, or why there is none.
    fn next(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let next = match (&self.state.next_upgrade_at, &self.state.next_upgrade_reason) {
            (Some(at), None) => {
                let until = at.parse().ok().map(|at| format!(", in {}", span(now, at)));
                format!("a run starts at {}{}", zone.time(at), until.unwrap_or_default())
            }
            (at, Some(reason)) => {
                let at = at.as_ref().map(|at| format!("; then a run starts at {}", zone.time(at)));
                format!("no run starts automatically: {}{}", sanitized(reason), at.unwrap_or_default())
            }
            (None, None) => "no run starts automatically".to_owned(),
        };
        let window = self.windows.iter().flat_map(|answer| &answer.windows).next();
        let window = window
            .map(|window| format!("\nwindow: {} to {}", zone.time(&window.start), zone.time(&window.end)));
        format!("next:   {next}{}", window.unwrap_or_default())
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
    fn needs(&self) -> Vec<String> {
        let mut needs = Vec::new();
        match self.state.pending_hosts {
            0 => {}
            1 => needs.push("1 host waits for approval: os-upgrade hosts list --pending".to_owned()),
            count => needs.push(format!("{count} hosts wait for approval: os-upgrade hosts list --pending")),
        }
        let active = self.state.current_upgrade_info.as_ref().map(|current| current.id.as_str());
        for group in &self.slots.groups {
            for holder in &group.holders {
                let is_left = holder.run.is_some() && holder.run.as_deref() != active;
                if holder.stuck || is_left {
                    let Holder { id, reason, .. } = holder;
                    needs.push(format!("{id} holds a slot of group {}: {reason}", group.group));
                }
            }
        }
        if self.cluster.leader.is_none() {
            needs.push("no instance leads: os-upgrade cluster status".to_owned());
        }
        needs.extend(self.cluster.warnings.iter().cloned());
        bounded(needs.iter().map(|need| one_line(need, LINE_CHARS_MAX)).collect())
    }
}

impl Host {
    fn is_at_work(&self) -> bool {
        self.status.as_deref().is_some_and(|status| {
            is(status, |status| status == HostStatus::Preparing || status.is_under_way())
        })
    }

    /// Whether it waits for something that an operator may want to know. What no run, and approval, have to do with it is
    /// shown for the whole site.
    fn is_waiting(&self) -> bool {
        let is_known = self.blockers.first().is_some_and(|blocker| {
            matches!(blocker.kind.as_str(), "no-run" | "awaits-approval" | "slot-held")
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
[##########--------------------] 3 of 9: 1 failed, 2 upgraded, 1 upgrading, 5 waiting

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
  the instances differ";
        let report = Report::read(&active()).unwrap();
        assert_eq!(report.screen(&canvas(None), now()), expected);
        let summary = "upgrading; run 019aa3f0-0000: 1 failed, 2 upgraded, 1 upgrading, 5 waiting; 3 matters need a person";
        assert_eq!(report.summary(), summary);
    }

    #[test]
    fn an_idle_site_on_one_screen() {
        let answers = json!({
            "state": {
                "status": "idle", "next-upgrade-reason": "no-window",
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

next:   no run starts automatically: no-window
last:   run 019aa3f0-0000 completed after 24m7s at 2026-11-21T01:24:07Z: 2 upgraded";
        assert_eq!(Report::read(&answers).unwrap().screen(&canvas(None), now()), expected);
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
    }
}
