//! What happened to one host in a run, as a terminal shows it.

use os_upgrade_api_types::routes::run_hosts::HostReport;
use os_upgrade_console::rows::run_hosts;

use super::view::HEAD_COLUMNS;
use crate::output::{Canvas, View, details, table};

impl View for HostReport<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let details = details(run_hosts::details(self, canvas.zone), HEAD_COLUMNS);
        let mut lines = vec![format!("{details}\n"), table(&self.phases, canvas)];
        let changes = run_hosts::changes(self);
        if !changes.is_empty() {
            lines.push(table(&changes, canvas));
        }
        lines.join("\n").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_that_came_back_too_late() {
        let phase = |status: &str, minute: u32, seconds: Option<u64>, attempts: Option<u32>| {
            let start = format!("2026-11-21T01:{minute:02}:00Z");
            json!({ "status": status, "start-time": start, "seconds": seconds, "attempts": attempts })
        };
        let report = json!({
            "hostname": "h01", "status": "timed-out", "since": "2026-11-21T01:35:00Z",
            "why": { "kind": "boot-timeout", "text": "it did not come back\u{1b}" }, "application": "a", "group": "default",
            "phases": [phase("preparing", 0, Some(65), Some(1)), phase("rebooting", 5, None, None)],
            "late-answers": [{ "time": "2026-11-21T01:42:10Z", "action": "reboot", "result": "done" }],
            "versions-before": { "linux": "6.1", "libc": "2.36", "old": "1" },
            "versions-after": { "linux": "6.12", "libc": "2.36" },
            "versions-unavailable": "NATS is unreachable",
        });
        let expected = "\
host:     h01
status:   timed-out since 2026-11-21T01:35:00Z
why:      it did not come back\u{fffd}
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
