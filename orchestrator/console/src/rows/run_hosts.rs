//! What happened to one host in a run.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_api_types::routes::run_hosts::{HostPhase, HostReport};
use os_upgrade_api_types::routes::runs::Run;
use os_upgrade_calendar::Duration;
use serde::Deserialize;

use crate::describe::describe;
use crate::row::{Column, Detail, Row, or_dash};
use crate::rows::runs::{short, took};
use crate::zone::Zone;

/// What `run show` says of a host, besides its phases and versions.
pub fn details(report: &HostReport<'_>, zone: Zone) -> Vec<Detail> {
    let HostReport { host, late_answers, versions_unavailable, .. } = report;
    let mut lines = vec![
        ("host", host.hostname.to_string()),
        ("status", format!("{} since {}", host.status, zone.stamp(host.since))),
    ];
    lines.extend(host.why.as_ref().map(|why| ("why", why.text.clone())));
    lines.extend(late_answers.iter().map(|late| {
        let answered = zone.times_in(&describe(late).to_string());
        ("late", format!("to {}, {answered}", late.action))
    }));
    lines.extend(versions_unavailable.iter().map(|why| ("versions", format!("unknown, {why}"))));
    lines
}

/// What has another version than before; nothing if it is not known what it was, or is.
pub fn changes(report: &HostReport<'_>) -> Vec<VersionChange> {
    let (Some(before), Some(after)) = (&report.versions_before, &report.versions_after) else {
        return Vec::new();
    };
    let (before, after) = (&before.0, &after.0);
    if before.is_empty() || after.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let version =
        |versions: &BTreeMap<String, String>, name: &str| or_dash(versions.get(name).map(String::as_str));
    let change = |name: &String| VersionChange {
        name: name.clone(),
        before: version(before, name),
        after: version(after, name),
    };
    changed.map(change).collect()
}

/// Something whose version has changed.
#[derive(Debug)]
pub struct VersionChange {
    name: String,
    before: String,
    after: String,
}

impl Row for VersionChange {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("VERSION OF", |change, _| change.name.clone()),
        Column::new("BEFORE", |change, _| change.before.clone()),
        Column::text("AFTER", |change, _| change.after.clone()),
    ];
    const NONE: &'static str = "no version has changed";
}

/// The part of a host in a run.
#[derive(Debug, Deserialize)]
pub struct PartInRun {
    run: Run<'static>,
    host: HostReport<'static>,
}

impl Row for PartInRun {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("RUN", |part, _| short(&part.run.id).to_owned()),
        Column::whole("STARTED", |part, zone| zone.stamp(part.run.start_time)),
        Column::new("STATUS", |part, _| part.host.host.status.to_string()),
        Column::whole("SINCE", |part, zone| zone.stamp(part.host.host.since)),
        Column::wide("TOOK", |part, _| took(&part.host.host)),
        Column::text("WHY", |part, _| {
            let why = part.host.host.why.as_ref().map(|why| why.text.clone());
            let late = part.host.late_answers.iter().map(|late| describe(late).to_string());
            why.into_iter().chain(late).collect::<Vec<_>>().join("; ")
        }),
    ];
    const NONE: &'static str = "it has had no part in a run";

    fn name(&self) -> Option<String> {
        Some(self.run.id.to_string())
    }
}

impl Row for HostPhase {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("PHASE", |phase, _| phase.status.to_string()),
        Column::whole("FROM", |phase, zone| zone.stamp(phase.start_time)),
        Column::new("TOOK", |phase, _| {
            phase.seconds.map_or_else(|| "-".to_owned(), |seconds| Duration::from_secs(seconds).to_string())
        }),
        Column::new("ATTEMPTS", |phase, _| {
            phase.attempts.map_or_else(|| "-".to_owned(), |attempts| attempts.to_string())
        }),
    ];
    const NONE: &'static str = "nothing has happened to it";
}
