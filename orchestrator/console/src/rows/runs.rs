//! Runs, those that were missed, and the hosts in a run.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::Counts;
use os_upgrade_api_types::routes::runs::{HostOfRunInFull, MissedRun, Run, StopCause};
use os_upgrade_api_types::word::Word;
use os_upgrade_kernel::HostStatus;
use serde::{Deserialize, Deserializer};

use crate::progress::counted;
use crate::row::{Column, Detail, Row};
use crate::start::too_little_left;
use crate::zone::{Zone, span};

/// How much of an id a narrow table shows: the time in it, in milliseconds, which tells runs apart.
const ID_CHARS: usize = 13;

/// What is shown in place of a result for a run that was due and did not start.
pub const MISSED: &str = "missed";

/// Whether an operator has cancelled the run.
pub const fn is_cancel(stopping: Option<&StopCause>) -> bool {
    matches!(stopping, Some(StopCause::Cancelled { .. }))
}

/// What goes on in an active run that stops, in a word or two; no cause is one of a newer version.
fn stopping_phase(stopping: Option<&StopCause>) -> &'static str {
    if is_cancel(stopping) { "being cancelled" } else { "stopping" }
}

/// What goes on in an active run that stops, such as `being cancelled by eve: wrong kernel`.
pub fn stopping(stopping: Option<&StopCause>) -> String {
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
    Some(format!("by {}", with_reason(actor, reason.as_deref())))
}

impl Row for MissedRun {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("WINDOW", |run, zone| zone.stamp(run.window_start)),
        Column::wide("UNTIL", |run, zone| zone.stamp(run.window_end)),
        Column::wide("LATEST START", |run, zone| zone.stamp(run.latest_start)),
        Column::wide("RECORDED", |run, zone| zone.stamp(run.recorded_at)),
        Column::text("WHY", |run, _| why_missed(run)),
    ];
    const NONE: &'static str = "no run was missed";
}

/// A line in the list of runs.
#[derive(Debug)]
pub enum Listed {
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
                let cause = run.stopping.as_ref().filter(|_| run.result.is_none());
                cause.map(|cause| stopping(cause.read()))
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
pub fn with_missed(
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
        Column::new("RESULT", |row, _| row.run().map_or(MISSED, result_or_phase).to_owned()),
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
pub fn why_missed(missed: &MissedRun) -> String {
    let MissedRun { why, latest_start, window_end, unrecorded, .. } = missed;
    let more = unrecorded.map(|more| format!(" (and {more} more before it)"));
    format!("{}{}{}", why.text, too_little_left(*latest_start, *window_end), more.unwrap_or_default())
}

/// Who or what started the run, and whether with chosen hosts.
pub fn by(run: &Run<'_>) -> String {
    let chosen = if run.targeted { " for chosen hosts" } else { "" };
    format!("{}{chosen}", run.actor.as_ref().unwrap_or(&run.trigger))
}

/// How it ended, or what goes on in it.
fn result_or_phase<'a>(run: &'a Run<'_>) -> &'a str {
    let phase = || run.stopping.as_ref().map_or(&*run.phase, |cause| stopping_phase(cause.read()));
    run.result.as_ref().map_or_else(phase, Word::as_str)
}

/// The number of hosts of the run in each status.
pub fn counts<'a>(run: &'a Run<'_>) -> &'a Counts {
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
pub fn duration(run: &Run<'_>) -> Option<String> {
    Some(span(run.start_time.0, run.end_time?.0))
}

/// The beginning of a run's id, which tells it from others.
pub fn short(id: &str) -> &str {
    id.char_indices().nth(ID_CHARS).map_or(id, |(end, _)| id.get(..end).unwrap_or(id))
}

/// What `run show` says of a run, besides its hosts.
pub fn details(run: &Run<'_>, zone: Zone) -> Vec<Detail> {
    let end = match (run.end_time, duration(run)) {
        (Some(end), Some(took)) => ("ended", format!("{}, after {took}", zone.stamp(end))),
        (_, _) => ("until", zone.stamp(run.not_after)),
    };
    let lines = [
        Some(("run", run.id.to_string())),
        Some(("by", by(run))),
        Some(("started", zone.stamp(run.start_time))),
        run.reason.as_ref().map(|reason| ("reason", reason.to_string())),
        cancelled(run).map(|by| ("cancelled", by)),
        Some(end),
        Some(("result", result_or_phase(run).to_owned())),
        Some(("hosts", counted(counts(run)))),
    ];
    lines.into_iter().flatten().collect()
}

/// How long its upgrade took; `-` until it has ended.
pub(super) fn took(host: &HostOfRunInFull<'_>) -> String {
    let times = host.start_time.zip(host.end_time);
    times.map_or_else(|| "-".to_owned(), |(start, end)| span(start.0, end.0))
}

impl Row for HostOfRunInFull<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |host, _| host.hostname.to_string()),
        Column::new("STATUS", |host, _| host.status.to_string()),
        Column::whole("SINCE", |host, zone| zone.stamp(host.since)),
        Column::wide("APPLICATION", |host, _| host.application.to_string()),
        Column::wide("GROUP", |host, _| host.group.to_string()),
        Column::new("TOOK", |host, _| took(host)),
        Column::text("WHY", |host, _| host.why.as_ref().map(|why| why.text.clone()).unwrap_or_default()),
    ];
    const NONE: &'static str = "no host is in the run";

    fn name(&self) -> Option<String> {
        Some(self.hostname.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
                "why": { "kind": "no-hosts", "text": "no host is there" },
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
}
