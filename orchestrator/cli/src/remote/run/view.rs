//! Runs as people see them: a list, and one run with its hosts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::LateAnswer;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::HostStatus;
use os_upgrade_shell::text::sanitized;
use serde::{Deserialize, Deserializer};

use crate::output::{Canvas, Column, Row, View, table};

/// How much of an id a narrow table shows: the time in it, in milliseconds, which tells runs apart.
const ID_CHARS: usize = 13;

/// A run; without its hosts in a page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) trigger: String,
    pub(crate) actor: Option<String>,
    /// Why, as the operator says.
    pub(crate) reason: Option<String>,
    pub(crate) start_time: String,
    pub(crate) not_after: String,
    pub(crate) end_time: Option<String>,
    /// Absent while the run is active.
    pub(crate) result: Option<String>,
    pub(crate) phase: String,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) hosts: Vec<Host>,
    /// Why no further host was started; absent if all were.
    pub(crate) stopping: Option<Stopping>,
}

/// Why no further host of a run was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Stopping {
    kind: String,
    actor: Option<String>,
    reason: Option<String>,
    /// The host whose failure stopped the run.
    host: Option<String>,
}

impl Stopping {
    pub(super) fn is_cancel(&self) -> bool {
        self.kind == "cancelled"
    }

    /// What goes on in the active run, in a word or two.
    fn phase(&self) -> &'static str {
        if self.is_cancel() { "being cancelled" } else { "stopping" }
    }

    /// What goes on in the active run, such as `being cancelled by eve: wrong kernel`.
    pub(crate) fn progress(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match (self.kind.as_str(), &self.actor, &self.host) {
            ("cancelled", Some(actor), _) => format!("being cancelled by {actor}{reason}"),
            ("failed", _, Some(host)) => format!("stopping after the failure of {host}"),
            ("restored", Some(actor), _) => format!("stopping, because {actor} restored the site"),
            _ => self.phase().to_owned(),
        }
    }

    /// Who cancelled the run, and why.
    fn cancelled(&self) -> Option<String> {
        let actor = self.actor.as_ref().filter(|_| self.is_cancel())?;
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Some(format!("cancelled: by {}", sanitized(&format!("{actor}{reason}"))))
    }
}

/// A host in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Host {
    pub(crate) hostname: String,
    pub(crate) status: String,
    pub(crate) since: String,
    pub(crate) reason: Option<String>,
    /// Only in the state's answer.
    #[serde(rename = "late-answer")]
    pub(crate) late_answer: Option<LateAnswer>,
    /// What its Kubernetes node waits for: not in the answer, but added from the state while the run is active.
    #[serde(skip)]
    pub(crate) node: Option<String>,
    pub(crate) application: String,
    pub(crate) group: String,
    pub(crate) start_time: Option<String>,
    pub(crate) end_time: Option<String>,
}

/// A run that was due in a maintenance window and did not start.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct MissedRun {
    pub(crate) window_start: String,
    latest_start: String,
    window_end: String,
    recorded_at: String,
    reason: String,
    /// How many were missed before it that are not listed.
    unrecorded: u64,
}

impl Row for MissedRun {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("WINDOW", |run, zone| zone.time(&run.window_start)),
        Column::wide("UNTIL", |run, zone| zone.time(&run.window_end)),
        Column::wide("LATEST START", |run, zone| zone.time(&run.latest_start)),
        Column::wide("RECORDED", |run, zone| zone.time(&run.recorded_at)),
        Column::text("REASON", |run, _| run.why()),
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
    Run(Box<Run>),
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
    fn time(&self) -> &str {
        match self {
            Self::Run(run) => &run.start_time,
            Self::Missed(missed) => &missed.window_start,
        }
    }

    fn run(&self) -> Option<&Run> {
        match self {
            Self::Run(run) => Some(run),
            Self::Missed(_) => None,
        }
    }

    /// Why it did not start, or starts no further host; absent otherwise.
    fn why(&self) -> Option<String> {
        match self {
            Self::Run(run) => run.stopping.as_ref().filter(|_| run.result.is_none()).map(Stopping::progress),
            Self::Missed(missed) => Some(missed.why()),
        }
    }

    fn cell(&self, of_run: impl FnOnce(&Run) -> String) -> String {
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
    let moment = |text: &str| text.parse::<DateTime<Utc>>().ok();
    let oldest = runs.last().filter(|_| runs.len() >= limit).and_then(|run| moment(run.time()));
    let from = from.max(oldest);
    let is_meant = |missed: &MissedRun| {
        let opened = moment(&missed.window_start);
        from.is_none_or(|from| opened >= Some(from)) && to.is_none_or(|to| opened < Some(to))
    };
    let missed = missed.into_iter().filter(is_meant).map(Listed::Missed);
    let mut all: Vec<_> = runs.into_iter().chain(missed).collect();
    all.sort_by_key(|listed| std::cmp::Reverse(moment(listed.time())));
    all.truncate(limit);
    all
}

impl Row for Listed {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("RUN", |row, _| row.cell(|run| short(&run.id).to_owned())),
        Column::wide("ID", |row, _| row.cell(|run| run.id.clone())),
        Column::new("BY", |row, _| row.run().map_or_else(|| "window".to_owned(), Run::by)),
        Column::whole("STARTED", |row, zone| zone.time(row.time())),
        Column::new("TOOK", |row, _| row.cell(|run| run.duration().unwrap_or_else(|| "-".to_owned()))),
        Column::new("RESULT", |row, _| row.run().map_or("missed", Run::result_or_phase).to_owned()),
        Column::new("UPGRADED", |row, _| row.cell(Run::upgraded)),
        Column::wide("HOSTS", |row, _| row.cell(|run| counted(&run.counts))),
        Column::wide("WHY", |row, _| row.why().unwrap_or_default()),
    ];
    const NONE: &'static str = "no run to show";

    fn name(&self) -> Option<String> {
        self.run().map(|run| run.id.clone())
    }
}

impl MissedRun {
    /// Why it did not start, and how many more did not.
    pub(crate) fn why(&self) -> String {
        let more = match self.unrecorded {
            0 => String::new(),
            more => format!(" (and {more} more before it)"),
        };
        format!("{}{more}", self.reason)
    }
}

impl Run {
    /// Who or what started it.
    pub(crate) fn by(&self) -> String {
        self.actor.clone().unwrap_or_else(|| self.trigger.clone())
    }

    /// How it ended, or what goes on in it.
    fn result_or_phase(&self) -> &str {
        let phase = || self.stopping.as_ref().map_or(self.phase.as_str(), |stopping| stopping.phase());
        self.result.as_deref().unwrap_or_else(phase)
    }

    /// How many of its hosts are upgraded, such as `2 of 3`.
    fn upgraded(&self) -> String {
        let upgraded = self.counts.get(HostStatus::Upgraded.as_str()).unwrap_or(&0);
        format!("{upgraded} of {}", self.counts.values().sum::<u64>())
    }

    /// How long it took; absent while it is active.
    fn duration(&self) -> Option<String> {
        took(&self.start_time, self.end_time.as_deref()?)
    }
}

impl View for Run {
    fn text(&self, canvas: &Canvas) -> String {
        let zone = canvas.zone;
        let result = self.result_or_phase();
        let mut lines = vec![
            format!("run:      {}", sanitized(&self.id)),
            format!("by:       {}", sanitized(&self.by())),
            format!("started:  {}", zone.time(&self.start_time)),
        ];
        lines.extend(self.reason.iter().map(|reason| format!("reason:   {}", sanitized(reason))));
        lines.extend(self.stopping.as_ref().and_then(Stopping::cancelled));
        lines.push(match (&self.end_time, self.duration()) {
            (Some(end), Some(took)) => format!("ended:    {}, after {took}", zone.time(end)),
            (Some(end), None) => format!("ended:    {}", zone.time(end)),
            (None, _) => format!("until:    {}", zone.time(&self.not_after)),
        });
        lines.push(format!("result:   {}", sanitized(result)));
        lines.push(format!("hosts:    {}\n", sanitized(&counted(&self.counts))));
        lines.push(table(&self.hosts, canvas));
        lines.join("\n").trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        self.hosts.names()
    }
}

impl Row for Host {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |host, _| host.hostname.clone()),
        Column::new("STATUS", |host, _| host.status.clone()),
        Column::whole("SINCE", |host, zone| zone.time(&host.since)),
        Column::wide("APPLICATION", |host, _| host.application.clone()),
        Column::wide("GROUP", |host, _| host.group.clone()),
        Column::new("TOOK", |host, _| {
            let times = host.start_time.as_deref().zip(host.end_time.as_deref());
            times.and_then(|(start, end)| took(start, end)).unwrap_or_else(|| "-".to_owned())
        }),
        Column::text("REASON", |host, _| host.why().unwrap_or_default().to_owned()),
    ];
    const NONE: &'static str = "no host is in the run";

    fn name(&self) -> Option<String> {
        Some(self.hostname.clone())
    }
}

impl Host {
    /// What the run has recorded about it, or what its node waits for, which is not recorded with the run.
    pub(crate) fn why(&self) -> Option<&str> {
        self.reason.as_deref().or(self.node.as_deref())
    }

    /// The status; absent if this program does not know it.
    pub(crate) fn known_status(&self) -> Option<HostStatus> {
        HostStatus::ALL.into_iter().find(|known| known.as_str() == self.status)
    }

    /// Whether it is at work.
    pub(crate) fn is_under_way(&self) -> bool {
        let status = self.known_status();
        status.is_some_and(|status| status == HostStatus::Preparing || status.is_under_way())
    }
}

/// The beginning of a run's id, which tells it from others.
pub(crate) fn short(id: &str) -> &str {
    id.char_indices().nth(ID_CHARS).map_or(id, |(end, _)| id.get(..end).unwrap_or(id))
}

/// Numbers of hosts by status, those that did not succeed first, such as `1 failed, 1 cancelled, 2 upgraded`.
pub(crate) fn counted(counts: &BTreeMap<String, u64>) -> String {
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
pub(crate) fn percent_done(status: &str, reported: Option<u8>) -> u64 {
    let Some(status) = HostStatus::ALL.into_iter().find(|known| known.as_str() == status) else { return 0 };
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

/// The time between two moments in RFC 3339, such as `24m7s`.
pub(crate) fn took(start: &str, end: &str) -> Option<String> {
    let moment = |text: &str| DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    Some(span(moment(start)?, moment(end)?))
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
        assert_eq!(counted(&counts), "1 failed, 3 timed-out, 1 cancelled, 2 upgraded");
    }

    #[test]
    fn only_what_has_ended_is_complete() {
        for status in HostStatus::ALL {
            let done = [None, Some(40), Some(100)].map(|reported| percent_done(status.as_str(), reported));
            let expected = if status == HostStatus::Upgrading {
                [0, 40, 99]
            } else if matches!(status, HostStatus::Rebooting | HostStatus::Recovering) {
                [99; 3]
            } else {
                [if status.is_final() { 100 } else { 0 }; 3]
            };
            assert_eq!(done, expected, "{status}");
        }
        assert_eq!(percent_done("of a newer version", Some(40)), 0);
    }

    #[test]
    fn draining_host_says_what_its_node_waits_for() {
        let node = Some("its node is being drained".to_owned());
        let draining =
            Host { hostname: "h01".to_owned(), status: "draining".to_owned(), node, ..Host::default() };
        assert_eq!(draining.why(), Some("its node is being drained"));
        let failed = Host { reason: Some("no space".to_owned()), ..draining.clone() };
        assert_eq!(failed.why(), Some("no space"));
        let run = Run { hosts: vec![draining], ..Run::default() };
        let text = run.text(&Canvas { is_wide: false, columns: None, zone: Zone::Utc });
        assert!(text.ends_with("its node is being drained"), "{text}");
    }

    #[test]
    fn missed_runs_are_listed_among_the_others() {
        let run = |day: u8| {
            json!({
                "id": format!("019aa3f0-00{day}-7000"), "trigger": "operator", "actor": "eve", "phase": "upgrading", "result": "completed",
                "start-time": format!("2026-11-{day}T01:00:00Z"), "end-time": format!("2026-11-{day}T01:10:00Z"), "counts": {"upgraded": 2},
            })
        };
        let missed = |day: u8| MissedRun {
            window_start: format!("2026-11-{day}T00:00:00Z"),
            reason: "no host is there".to_owned(),
            ..MissedRun::default()
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
                .map(|row| format!("{} {}", &row.time()[8..10], row.run().map_or("missed", |_| "run")))
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
            let stopping = json!({ "kind": kind, "actor": "eve", "reason": "wrong kernel" });
            serde_json::from_value(
                json!({ "id": "r", "phase": "upgrading", "result": result, "stopping": stopping }),
            )
            .unwrap()
        };
        let runs: Vec<Run> = [("cancelled", None), ("failed", None), ("cancelled", Some("cancelled"))]
            .map(|(kind, result)| run(kind, result))
            .into();
        let results: Vec<_> = runs.iter().map(Run::result_or_phase).collect();
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
