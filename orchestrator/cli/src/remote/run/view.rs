//! Runs as people see them: a list, and one run with its hosts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::duration::Duration;
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;

use crate::output::{Canvas, Column, Row, View, table};

/// How much of an id a narrow table shows: the time in it, in milliseconds, which tells runs apart.
const ID_CHARS: usize = 13;

/// A page of runs.
#[derive(Debug, Deserialize)]
pub(crate) struct RunPage {
    pub(crate) items: Vec<Run>,
}

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
}

/// A host in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Host {
    pub(crate) hostname: String,
    pub(crate) status: String,
    pub(crate) since: String,
    pub(crate) reason: Option<String>,
    pub(crate) application: String,
    pub(crate) group: String,
    pub(crate) start_time: Option<String>,
    pub(crate) end_time: Option<String>,
}

impl View for RunPage {
    fn text(&self, canvas: &Canvas) -> String {
        self.items.text(canvas)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.items.names()
    }
}

impl Row for Run {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("RUN", |run, _| short(&run.id).to_owned()),
        Column::wide("ID", |run, _| run.id.clone()),
        Column::new("BY", |run, _| run.by()),
        Column::new("STARTED", |run, zone| zone.time(&run.start_time)),
        Column::new("TOOK", |run, _| run.duration().unwrap_or_else(|| "-".to_owned())),
        Column::new("RESULT", |run, _| run.result.clone().unwrap_or_else(|| run.phase.clone())),
        Column::text("HOSTS", |run, _| counted(&run.counts)),
    ];
    const NONE: &'static str = "there has been no run";

    fn name(&self) -> Option<String> {
        Some(self.id.clone())
    }
}

impl Run {
    /// Who or what started it.
    pub(crate) fn by(&self) -> String {
        self.actor.clone().unwrap_or_else(|| self.trigger.clone())
    }

    /// How long it took; absent while it is active.
    fn duration(&self) -> Option<String> {
        took(&self.start_time, self.end_time.as_deref()?)
    }
}

impl View for Run {
    fn text(&self, canvas: &Canvas) -> String {
        let zone = canvas.zone;
        let result = self.result.as_deref().unwrap_or(&self.phase);
        let mut lines = vec![
            format!("run:      {}", sanitized(&self.id)),
            format!("by:       {}", sanitized(&self.by())),
            format!("started:  {}", zone.time(&self.start_time)),
        ];
        lines.extend(self.reason.iter().map(|reason| format!("reason:   {}", sanitized(reason))));
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
        Column::new("SINCE", |host, zone| zone.time(&host.since)),
        Column::wide("APPLICATION", |host, _| host.application.clone()),
        Column::wide("GROUP", |host, _| host.group.clone()),
        Column::new("TOOK", |host, _| {
            let times = host.start_time.as_deref().zip(host.end_time.as_deref());
            times.and_then(|(start, end)| took(start, end)).unwrap_or_else(|| "-".to_owned())
        }),
        Column::text("REASON", |host, _| host.reason.clone().unwrap_or_default()),
    ];
    const NONE: &'static str = "no host is in the run";

    fn name(&self) -> Option<String> {
        Some(self.hostname.clone())
    }
}

/// The beginning of a run's id, which tells it from others.
pub(crate) fn short(id: &str) -> &str {
    id.char_indices().nth(ID_CHARS).map_or(id, |(end, _)| id.get(..end).unwrap_or(id))
}

/// Numbers of hosts by status, such as `2 upgraded, 1 failed`.
pub(crate) fn counted(counts: &BTreeMap<String, u64>) -> String {
    let counted: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    if counted.is_empty() { "none".to_owned() } else { counted.join(", ") }
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
