//! Entries of the reboot queue, as a terminal shows them.

use os_upgrade_api_types::routes::reboot_queue::{Entry, IsEnabled};
use os_upgrade_console::rows::reboot_queue;

use crate::output::{Canvas, View, details};

/// The width of the names of details.
const HEAD_COLUMNS: usize = 14;

impl View for Entry<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        details(reboot_queue::details(self, canvas.zone), HEAD_COLUMNS)
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(vec![self.index.to_string()])
    }
}

impl View for IsEnabled {
    fn text(&self, _: &Canvas) -> String {
        self.enabled.to_string()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::body::Page;
    use os_upgrade_console::Zone;
    use os_upgrade_console::rows::histories::QueueChange;
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    const NARROW: Canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };

    #[test]
    fn entries_in_a_table() {
        let entries = json!([
            {
                "index": "7", "node": "h\u{1b}1", "status": "rebooting", "last_transition_time": "2026-11-21T01:00:05Z",
                "drain_backoff_count": 0, "required": false, "added_at": "2026-11-21T01:00:00Z", "cancel_requested": true, "boot_id": "one",
                "why": { "kind": "reply-awaited", "text": "its worker has not answered reboot since 2026-11-21T01:00:06Z" },
                "added_by": "anna", "reason": "a new kernel",
            },
            {
                "index": "8", "node": "h2", "status": "queued", "last_transition_time": "2026-11-21T01:00:00Z",
                "drain_backoff_count": 2, "drain_backoff_expire": "2026-11-21T01:10:00Z", "why": { "kind": "disabled", "text": "the queue is disabled" },
                "required": true, "added_at": "2026-11-21T01:00:00Z", "cancel_requested": false,
            },
        ]);
        let entries = Vec::<Entry>::deserialize(entries).unwrap();
        let expected = "\
INDEX  NODE  STATUS                     SINCE                 BY    WHY
7      h\u{fffd}1   rebooting, then cancelled  2026-11-21T01:00:05Z  anna  its worker has not answered reboot since 2026-11-21T01:00:06Z
8      h2    queued                     2026-11-21T01:00:00Z  -     the queue is disabled";
        let shown = View::text(&entries[0], &NARROW);
        assert!(
            shown.contains("\nadded:         2026-11-21T01:00:00Z by anna\nreason:        a new kernel\n"),
            "{shown}"
        );
        assert_eq!(entries.text(&NARROW), expected);
        let expected = "\
index:         8
node:          h2
status:        queued since 2026-11-21T01:00:00Z
added:         2026-11-21T01:00:00Z, because its host needs a reboot
backoffs:      2, until 2026-11-21T01:10:00Z
why:           the queue is disabled";
        assert_eq!(View::text(&entries[1], &NARROW), expected);
    }

    #[test]
    fn the_history_in_a_table() {
        let item = |fact: serde_json::Value| json!({"sequence": 7, "place": 0, "time": "2026-11-21T01:00:00.000Z", "type": fact["type"], "host": fact.get("host"), "actor": "anna", "fact": fact});
        let given_up = json!({"kind": "given-up", "actor": "anna", "reason": "burnt"});
        let reason = json!({"kind": "reboot-command-failed", "detail": "no route", "output": ""});
        let failed = json!({"kind": "failed", "reason": reason});
        let page = json!({ "items": [
            item(json!({"type": "reboot", "index": 7, "host": "h1", "event": given_up})),
            item(json!({"type": "reboots-queued", "hosts": ["h1", "h2"], "actor": "anna", "reason": "a new kernel"})),
            item(json!({"type": "reboot", "index": 7, "host": "h1", "event": failed})),
            item(json!({"type": "reboot", "index": 8, "host": "h2", "event": {"kind": "failed", "reason": {"kind": "of-a-newer-version"}}})),
            item(json!({"type": "reboot-queue-switched", "enabled": true, "actor": "anna"})),
            item(json!({"type": "reboot-backoff-reset", "actor": "anna"})),
        ]});
        let expected = "\
TIME                  WHO   ACTION         ENTRY  NODES   REASON
2026-11-21T01:00:00Z  anna  given up       7      h1      burnt
2026-11-21T01:00:00Z  anna  queued                h1, h2  a new kernel
2026-11-21T01:00:00Z  anna  failed         7      h1      the reboot command failed: no route
2026-11-21T01:00:00Z  anna  failed         8      h2      of-a-newer-version
2026-11-21T01:00:00Z  anna  enabled                       
2026-11-21T01:00:00Z  anna  backoff reset                 ";
        let text = Page::<QueueChange>::deserialize(page).unwrap().text(&NARROW);
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        assert_eq!(trimmed(&text), trimmed(expected));
    }
}
