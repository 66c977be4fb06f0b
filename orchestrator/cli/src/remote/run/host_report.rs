//! What happened to one host in a run, as people see it.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_api_types::routes::run_hosts::{HostPhase, HostReport};
use os_upgrade_calendar::Duration;
use os_upgrade_console::describe;
use os_upgrade_protocol::text::sanitized;

use crate::output::{Canvas, Column, Row, View, or_dash, table};

impl View for HostReport<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let Self { host, phases, late_answers, .. } = self;
        let mut lines = vec![
            format!("host:     {}", sanitized(&host.hostname)),
            format!("status:   {} since {}", sanitized(host.status.as_str()), canvas.zone.stamp(host.since)),
        ];
        lines.extend(host.reason.as_ref().map(|why| format!("reason:   {}", sanitized(why))));
        lines.extend(late_answers.iter().map(|late| {
            let (action, late) = (sanitized(&late.action), sanitized(&describe(late).to_string()));
            format!("late:     to {action}, {}", canvas.zone.times_in(&late))
        }));
        let unavailable = self.versions_unavailable.iter();
        lines.extend(unavailable.map(|why| format!("versions: unknown, {}", sanitized(why))));
        lines.push(format!("\n{}", table(phases, canvas)));
        let changes = changes(self);
        if !changes.is_empty() {
            lines.push(table(&changes, canvas));
        }
        lines.join("\n").trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        None
    }
}

/// What has another version than before; nothing if it is not known what it was, or is.
fn changes(report: &HostReport<'_>) -> Vec<Change> {
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
    let change = |name: &String| Change {
        name: name.clone(),
        before: version(before, name),
        after: version(after, name),
    };
    changed.map(change).collect()
}

/// Something whose version has changed.
struct Change {
    name: String,
    before: String,
    after: String,
}

impl Row for Change {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("VERSION OF", |change, _| change.name.clone()),
        Column::new("BEFORE", |change, _| change.before.clone()),
        Column::text("AFTER", |change, _| change.after.clone()),
    ];
    const NONE: &'static str = "no version has changed";

    fn name(&self) -> Option<String> {
        None
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

    fn name(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;
    use crate::output::Zone;

    #[test]
    fn a_host_that_came_back_too_late() {
        let phase = |status: &str, minute: u32, seconds: Option<u64>, attempts: Option<u32>| {
            let start = format!("2026-11-21T01:{minute:02}:00Z");
            json!({ "status": status, "start-time": start, "seconds": seconds, "attempts": attempts })
        };
        let report = json!({
            "hostname": "h01", "status": "timed-out", "since": "2026-11-21T01:35:00Z",
            "reason": "it did not come back\u{1b}", "application": "a", "group": "default",
            "phases": [phase("preparing", 0, Some(65), Some(1)), phase("rebooting", 5, None, None)],
            "late-answers": [{ "time": "2026-11-21T01:42:10Z", "action": "reboot", "result": "done" }],
            "versions-before": { "linux": "6.1", "libc": "2.36", "old": "1" },
            "versions-after": { "linux": "6.12", "libc": "2.36" },
            "versions-unavailable": "NATS is unreachable",
        });
        let expected = "\
host:     h01
status:   timed-out since 2026-11-21T01:35:00Z
reason:   it did not come back\u{fffd}
late:     to reboot, it answered done at 2026-11-21T01:42:10Z
versions: unknown, NATS is unreachable

PHASE      FROM                  TOOK  ATTEMPTS
preparing  2026-11-21T01:00:00Z  1m5s  1
rebooting  2026-11-21T01:05:00Z  -     -

VERSION OF  BEFORE  AFTER
linux       6.1     6.12
old         1       -";
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        assert_eq!(HostReport::deserialize(report).unwrap().text(&canvas), expected);
    }
}
