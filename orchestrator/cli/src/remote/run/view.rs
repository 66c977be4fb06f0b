//! Runs as people see them: a list, and one run with its hosts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{Counts, HostOfRun};
use os_upgrade_api_types::routes::runs::{HostOfRunInFull, MissedRun, Run, RunInFull, StopCause};
use os_upgrade_api_types::word::Word;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::HostStatus;
use os_upgrade_protocol::text::sanitized;
use serde::{Deserialize, Deserializer};

use crate::output::{Canvas, Column, Row, View, table};

/// How much of an id a narrow table shows: the time in it, in milliseconds, which tells runs apart.
const ID_CHARS: usize = 13;

/// Whether an operator has cancelled the run.
pub(super) const fn is_cancel(stopping: Option<&StopCause>) -> bool {
    matches!(stopping, Some(StopCause::Cancelled { .. }))
}

/// What goes on in an active run that stops, in a word or two; no cause is one of a newer version.
fn stopping_phase(stopping: Option<&StopCause>) -> &'static str {
    if is_cancel(stopping) { "being cancelled" } else { "stopping" }
}

/// What goes on in an active run that stops, such as `being cancelled by eve: wrong kernel`.
pub(crate) fn progress(stopping: Option<&StopCause>) -> String {
    match stopping {
        Some(StopCause::Cancelled { actor, reason }) => {
            format!("being cancelled by {}", with_reason(actor, reason.as_deref()))
        }
        Some(StopCause::Failed { host }) => format!("stopping after the failure of {host}"),
        Some(StopCause::Restored { actor }) => format!("stopping, because {actor} restored the site"),
        None => stopping_phase(stopping).to_owned(),
    }
}

fn with_reason(actor: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| actor.to_owned(), |reason| format!("{actor}: {reason}"))
}

/// Who cancelled the run, and why.
fn cancelled(run: &Run<'_>) -> Option<String> {
    let Some(StopCause::Cancelled { actor, reason }) = run.stopping.as_ref()?.read() else { return None };
    Some(format!("cancelled: by {}", sanitized(&with_reason(actor, reason.as_deref()))))
}

impl Row for MissedRun {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("WINDOW", |run, zone| zone.stamp(run.window_start)),
        Column::wide("UNTIL", |run, zone| zone.stamp(run.window_end)),
        Column::wide("LATEST START", |run, zone| zone.stamp(run.latest_start)),
        Column::wide("RECORDED", |run, zone| zone.stamp(run.recorded_at)),
        Column::text("REASON", |run, _| why_missed(run)),
    ];
    const NONE: &'static str = "no run was missed";

    fn name(&self) -> Option<String> {
        None
    }
}

/// A line in the list of runs.
#[derive(Debug)]
pub(super) enum Listed {
    /// A run that started.
    Run(Box<Run<'static>>),
    /// One that was due and did not.
    Missed(MissedRun),
}

impl<'de> Deserialize<'de> for Listed {
    /// What the API lists as runs has started.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Run::deserialize(deserializer).map(|run| Self::Run(Box::new(run)))
    }
}

impl Listed {
    /// When it started, or when its window opened.
    const fn time(&self) -> DateTime<Utc> {
        match self {
            Self::Run(run) => run.start_time.0,
            Self::Missed(missed) => missed.window_start.0,
        }
    }

    fn run(&self) -> Option<&Run<'static>> {
        match self {
            Self::Run(run) => Some(run),
            Self::Missed(_) => None,
        }
    }

    /// Why it did not start, or starts no further host; absent otherwise.
    fn why(&self) -> Option<String> {
        match self {
            Self::Run(run) => {
                let stopping = run.stopping.as_ref().filter(|_| run.result.is_none());
                stopping.map(|stopping| progress(stopping.read()))
            }
            Self::Missed(missed) => Some(why_missed(missed)),
        }
    }

    fn cell(&self, of_run: impl FnOnce(&Run<'static>) -> String) -> String {
        self.run().map_or_else(|| "-".to_owned(), of_run)
    }
}

/// The newest `limit` of `runs` and of those that were `missed`, newest first. Of the missed ones those count whose window opened at
/// `from` or later and before `to`; if there may be older runs, none that is older than the last one.
pub(super) fn with_missed(
    runs: Vec<Listed>,
    missed: Vec<MissedRun>,
    limit: usize,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
) -> Vec<Listed> {
    let oldest = runs.last().filter(|_| runs.len() >= limit).map(Listed::time);
    let from = from.max(oldest);
    let is_meant = |missed: &MissedRun| {
        let opened = missed.window_start.0;
        from.is_none_or(|from| opened >= from) && to.is_none_or(|to| opened < to)
    };
    let missed = missed.into_iter().filter(is_meant).map(Listed::Missed);
    let mut all: Vec<_> = runs.into_iter().chain(missed).collect();
    all.sort_by_key(|listed| std::cmp::Reverse(listed.time()));
    all.truncate(limit);
    all
}

impl Row for Listed {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("RUN", |row, _| row.cell(|run| short(&run.id).to_owned())),
        Column::wide("ID", |row, _| row.cell(|run| run.id.to_string())),
        Column::new("BY", |row, _| row.run().map_or_else(|| "window".to_owned(), by)),
        Column::whole("STARTED", |row, zone| zone.show(row.time())),
        Column::new("TOOK", |row, _| row.cell(|run| duration(run).unwrap_or_else(|| "-".to_owned()))),
        Column::new("RESULT", |row, _| row.run().map_or("missed", result_or_phase).to_owned()),
        Column::new("UPGRADED", |row, _| row.cell(upgraded)),
        Column::wide("HOSTS", |row, _| row.cell(|run| counted(counts(run)))),
        Column::wide("WHY", |row, _| row.why().unwrap_or_default()),
    ];
    const NONE: &'static str = "no run to show";

    fn name(&self) -> Option<String> {
        self.run().map(|run| run.id.to_string())
    }
}

/// Why a run did not start, and how many more did not.
pub(crate) fn why_missed(missed: &MissedRun) -> String {
    let more = missed.unrecorded.map(|more| format!(" (and {more} more before it)"));
    format!("{}{}", missed.reason, more.unwrap_or_default())
}

/// Who or what started the run.
pub(crate) fn by(run: &Run<'_>) -> String {
    run.actor.as_ref().unwrap_or(&run.trigger).to_string()
}

/// How it ended, or what goes on in it.
fn result_or_phase<'a>(run: &'a Run<'_>) -> &'a str {
    let phase = || run.stopping.as_ref().map_or(&*run.phase, |stopping| stopping_phase(stopping.read()));
    run.result.as_deref().unwrap_or_else(phase)
}

/// The number of hosts of the run in each status.
pub(super) fn counts<'a>(run: &'a Run<'_>) -> &'a Counts {
    const NONE: &Counts = &Counts(BTreeMap::new());
    run.counts.read().unwrap_or(NONE)
}

/// How many of its hosts are upgraded, such as `2 of 3`.
fn upgraded(run: &Run<'_>) -> String {
    let Counts(counts) = counts(run);
    let upgraded = counts.get(HostStatus::Upgraded.as_str()).unwrap_or(&0);
    format!("{upgraded} of {}", counts.values().sum::<u64>())
}

/// How long it took; absent while it is active.
pub(super) fn duration(run: &Run<'_>) -> Option<String> {
    Some(span(run.start_time.0, run.end_time?.0))
}

impl View for RunInFull<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let zone = canvas.zone;
        let Self { run, hosts, .. } = self;
        let mut lines = vec![
            format!("run:      {}", sanitized(&run.id)),
            format!("by:       {}", sanitized(&by(run))),
            format!("started:  {}", zone.stamp(run.start_time)),
        ];
        lines.extend(run.reason.iter().map(|reason| format!("reason:   {}", sanitized(reason))));
        lines.extend(cancelled(run));
        lines.push(match (run.end_time, duration(run)) {
            (Some(end), Some(took)) => format!("ended:    {}, after {took}", zone.stamp(end)),
            (_, _) => format!("until:    {}", zone.stamp(run.not_after)),
        });
        lines.push(format!("result:   {}", sanitized(result_or_phase(run))));
        lines.push(format!("hosts:    {}\n", sanitized(&counted(counts(run)))));
        lines.push(table(hosts, canvas));
        lines.join("\n").trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        self.hosts.names()
    }
}

impl Row for HostOfRunInFull<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |host, _| host.hostname.to_string()),
        Column::new("STATUS", |host, _| host.status.to_string()),
        Column::whole("SINCE", |host, zone| zone.stamp(host.since)),
        Column::wide("APPLICATION", |host, _| host.application.to_string()),
        Column::wide("GROUP", |host, _| host.group.to_string()),
        Column::new("TOOK", |host, _| {
            let times = host.start_time.zip(host.end_time);
            times.map_or_else(|| "-".to_owned(), |(start, end)| span(start.0, end.0))
        }),
        Column::text("REASON", |host, _| host.reason.as_deref().unwrap_or_default().to_owned()),
    ];
    const NONE: &'static str = "no host is in the run";

    fn name(&self) -> Option<String> {
        Some(self.hostname.to_string())
    }
}

/// A host in a run, as the state and the history have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct InRun<'a> {
    pub(super) name: &'a str,
    pub(super) status: &'a Word<HostStatus>,
    pub(super) why: Option<&'a str>,
}

impl<'a> From<&'a HostOfRun<'_>> for InRun<'a> {
    fn from(host: &'a HostOfRun<'_>) -> Self {
        Self { name: &host.hostname, status: &host.status, why: host.reason.reason.as_deref() }
    }
}

impl<'a> From<&'a HostOfRunInFull<'_>> for InRun<'a> {
    fn from(host: &'a HostOfRunInFull<'_>) -> Self {
        Self { name: &host.hostname, status: &host.status, why: host.reason.as_deref() }
    }
}

/// Whether a host with this status is at work.
pub(crate) fn is_at_work(status: HostStatus) -> bool {
    status == HostStatus::Preparing || status.is_under_way()
}

/// The beginning of a run's id, which tells it from others.
pub(crate) fn short(id: &str) -> &str {
    id.char_indices().nth(ID_CHARS).map_or(id, |(end, _)| id.get(..end).unwrap_or(id))
}

/// Numbers of hosts by status, those that did not succeed first, such as `1 failed, 1 cancelled, 2 upgraded`.
pub(crate) fn counted(Counts(counts): &Counts) -> String {
    let bad = [HostStatus::Failed, HostStatus::TimedOut].map(HostStatus::as_str);
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|(status, _)| !bad.contains(&status.as_str()));
    let counted: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    if counted.is_empty() { "none".to_owned() } else { counted.join(", ") }
}

/// Whether a host with this status is one of those that a run upgrades. One that was cancelled was not begun.
pub(crate) fn belongs_to_run(status: &str) -> bool {
    status != HostStatus::Cancelled.as_str()
}

/// How much of a host's part in a run is done, in percent, by its status and by what its worker reports of the command under
/// way. Preparing changes nothing on the host, and nothing is complete before it has ended.
pub(crate) fn percent_done(status: &Word<HostStatus>, reported: Option<u8>) -> u64 {
    let Some(status) = status.known() else { return 0 };
    match status {
        HostStatus::Pending
        | HostStatus::Preparing
        | HostStatus::Prepared
        | HostStatus::Waiting
        | HostStatus::Draining => 0,
        HostStatus::Upgrading => u64::from(reported.unwrap_or(0)).min(99),
        HostStatus::Rebooting | HostStatus::Recovering => 99,
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => 100,
    }
}

/// The time from `start` to `end` in whole seconds, and zero if it is negative.
pub(crate) fn span(start: DateTime<Utc>, end: DateTime<Utc>) -> String {
    let seconds = u64::try_from((end - start).num_seconds()).unwrap_or(0);
    Duration::from_secs(seconds).to_string()
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::body::Page;
    use serde_json::json;

    use super::*;
    use crate::output::Zone;

    #[test]
    fn what_did_not_succeed_is_counted_first() {
        let counts = [("cancelled", 1), ("failed", 1), ("timed-out", 3), ("upgraded", 2)];
        let counts = counts.map(|(status, count)| (status.to_owned(), count)).into();
        assert_eq!(counted(&Counts(counts)), "1 failed, 3 timed-out, 1 cancelled, 2 upgraded");
    }

    #[test]
    fn only_what_has_ended_is_complete() {
        for status in HostStatus::ALL {
            let done = [None, Some(40), Some(100)].map(|reported| percent_done(&status.into(), reported));
            let expected = if status == HostStatus::Upgrading {
                [0, 40, 99]
            } else if matches!(status, HostStatus::Rebooting | HostStatus::Recovering) {
                [99; 3]
            } else {
                [if status.is_final() { 100 } else { 0 }; 3]
            };
            assert_eq!(done, expected, "{status}");
        }
        assert_eq!(percent_done(&Word::read("of a newer version"), Some(40)), 0);
    }

    #[test]
    fn missed_runs_are_listed_among_the_others() {
        let run = |day: u8| {
            json!({
                "id": format!("019aa3f0-00{day}-7000"), "trigger": "operator", "actor": "eve", "phase": "upgrading", "result": "completed",
                "not-after": "2026-11-30T01:00:00Z", "rollout": {},
                "start-time": format!("2026-11-{day}T01:00:00Z"), "end-time": format!("2026-11-{day}T01:10:00Z"), "counts": {"upgraded": 2},
            })
        };
        let missed = |day: u8| {
            let opened = format!("2026-11-{day}T00:00:00Z");
            let missed = json!({
                "window-start": opened, "latest-start": opened, "window-end": opened, "recorded-at": opened,
                "reason": "no host is there", "reason-kind": "no-hosts",
            });
            serde_json::from_value::<MissedRun>(missed).unwrap()
        };
        let list = |limit, from: Option<&str>, to: Option<&str>| {
            let runs = serde_json::from_value(json!([run(25), run(23)])).unwrap();
            let moment = |text: &str| text.parse().unwrap();
            let all = with_missed(
                runs,
                vec![missed(26), missed(24), missed(20)],
                limit,
                from.map(moment),
                to.map(moment),
            );
            all.iter()
                .map(|row| format!("{} {}", row.time().format("%d"), row.run().map_or("missed", |_| "run")))
                .collect::<Vec<_>>()
        };
        let all = ["26 missed", "25 run", "24 missed", "23 run", "20 missed"];
        assert_eq!(list(20, None, None), all);
        // There may be runs before the last one.
        assert_eq!(list(2, None, None), all[..2]);
        assert_eq!(
            list(20, Some("2026-11-24T00:00:00Z"), Some("2026-11-26T00:00:00Z")),
            ["25 run", "24 missed", "23 run"]
        );
        let rows = vec![Listed::Missed(missed(26))];
        let text = rows.text(&Canvas { is_wide: false, columns: Some(80), zone: Zone::Utc });
        let expected = "RUN  BY      STARTED               TOOK  RESULT  UPGRADED\n-    window  2026-11-26T00:00:00Z  -     missed  -";
        assert_eq!(text, expected);
    }

    #[test]
    fn run_that_starts_no_further_host_says_so() {
        let run = |kind: &str, result: Option<&str>| {
            let time = "2026-11-21T01:00:00Z";
            let stopping = json!({ "kind": kind, "actor": "eve", "reason": "wrong kernel" });
            serde_json::from_value(json!({
                "id": "r", "trigger": "operator", "start-time": time, "not-after": time, "phase": "upgrading",
                "result": result, "stopping": stopping, "rollout": {}, "counts": {},
            }))
            .unwrap()
        };
        let runs: Vec<Run<'_>> = [("cancelled", None), ("newer", None), ("cancelled", Some("cancelled"))]
            .map(|(kind, result)| run(kind, result))
            .into();
        let results: Vec<_> = runs.iter().map(result_or_phase).collect();
        assert_eq!(results, ["being cancelled", "stopping", "cancelled"]);
        let whys: Vec<_> = runs.into_iter().map(|run| Listed::Run(Box::new(run)).why()).collect();
        let why = |text: &str| Some(text.to_owned());
        assert_eq!(whys, [why("being cancelled by eve: wrong kernel"), why("stopping"), None]);
    }

    #[test]
    fn missed_runs_in_a_table() {
        let missed = |day: u8, reason: &str| {
            json!({
                "window-start": format!("2026-11-{day}T01:00:00Z"), "latest-start": format!("2026-11-{day}T04:00:00Z"),
                "window-end": format!("2026-11-{day}T05:00:00Z"), "recorded-at": "2026-11-23T09:12:31Z",
                "reason": reason, "reason-kind": "no-leader",
            })
        };
        let mut page = json!({ "items": [missed(23, "no orchestrator led"), missed(22, &"no host is there ".repeat(9))] });
        page["items"][0]["unrecorded"] = json!(3);
        let shown = |is_wide, columns| {
            let page: Page<MissedRun> = serde_json::from_value(page.clone()).unwrap();
            page.text(&Canvas { is_wide, columns, zone: Zone::Utc })
        };
        let narrow = shown(false, Some(80));
        assert!(
            narrow.starts_with(
                "WINDOW                REASON\n\
                 2026-11-23T01:00:00Z  no orchestrator led (and 3 more before it)\n"
            ),
            "{narrow}"
        );
        assert!(narrow.lines().all(|line| console::measure_text_width(line) <= 80), "{narrow}");
        let wide = shown(true, None);
        assert_eq!(
            wide.lines().nth(1).unwrap(),
            "2026-11-23T01:00:00Z  2026-11-23T05:00:00Z  2026-11-23T04:00:00Z  2026-11-23T09:12:31Z  \
             no orchestrator led (and 3 more before it)"
        );
        let none: Page<MissedRun> = serde_json::from_value(json!({ "items": [] })).unwrap();
        assert_eq!(
            none.text(&Canvas { is_wide: false, columns: None, zone: Zone::Utc }),
            "no run was missed"
        );
    }
}
