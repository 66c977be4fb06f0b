//! Entries of the reboot queue, as people see them.

use os_upgrade_api_types::body::Fact;
use os_upgrade_api_types::routes::reboot_queue::{Entry, IsEnabled};
use os_upgrade_protocol::text::sanitized;
use serde::Deserialize;

use crate::output::{Canvas, Column, Row, View, Zone, or_dash, progress_text};
use crate::remote::histories;

/// What is said of an empty queue.
pub(super) const NONE: &str = "the reboot queue is empty";

fn status(entry: &Entry<'_>) -> String {
    let and = if entry.cancel_requested { ", then cancelled" } else { "" };
    format!("{}{and}", entry.status)
}

/// Why it is not progressing, or how far it is.
fn remark(entry: &Entry<'_>, zone: Zone) -> String {
    let progress = entry.progress.as_ref().map(progress_text);
    let why = entry.why.as_deref().map(|why| zone.times_in(why));
    progress.or(why).unwrap_or_default()
}

impl Row for Entry<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("INDEX", |entry, _| entry.index.to_string()),
        Column::new("NODE", |entry, _| entry.node.to_string()),
        Column::new("STATUS", |entry, _| status(entry)),
        Column::whole("SINCE", |entry, zone| zone.stamp(entry.last_transition_time)),
        Column::wide("ADDED", |entry, zone| zone.stamp(entry.added_at)),
        Column::new("BY", |entry, _| or_dash(entry.added_by.as_deref())),
        Column::wide("REASON", |entry, _| or_dash(entry.reason.as_deref())),
        Column::wide("BACKOFFS", |entry, _| entry.drain_backoff_count.to_string()),
        Column::wide("BACKOFF UNTIL", |entry, zone| zone.stamp_or_dash(entry.drain_backoff_expire)),
        Column::wide("BOOT", |entry, _| or_dash(entry.boot_id.as_deref())),
        Column::text("WHY", remark),
    ];
    const NONE: &'static str = NONE;

    fn name(&self) -> Option<String> {
        Some(self.index.to_string())
    }
}

impl View for Entry<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let zone = canvas.zone;
        let backoffs = (self.drain_backoff_count > 0).then(|| {
            let until = self.drain_backoff_expire.map(|until| format!(", until {}", zone.stamp(until)));
            format!("{}{}", self.drain_backoff_count, until.unwrap_or_default())
        });
        let by_itself = if self.required { ", because its host needs a reboot" } else { "" };
        let by = self.added_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let lines = [
            ("index", Some(self.index.to_string())),
            ("node", Some(self.node.to_string())),
            ("status", Some(format!("{} since {}", status(self), zone.stamp(self.last_transition_time)))),
            ("added", Some(format!("{}{by}{by_itself}", zone.stamp(self.added_at)))),
            ("reason", self.reason.as_deref().map(str::to_owned)),
            ("backoffs", backoffs),
            ("boot to leave", self.boot_id.as_deref().map(str::to_owned)),
            ("why", self.why.as_deref().map(|why| zone.times_in(why))),
            ("output", self.output.as_deref().map(str::to_owned)),
            ("progress", self.progress.as_ref().map(progress_text)),
        ];
        let lines = lines.into_iter().filter_map(|(name, text)| Some((name, text?)));
        lines
            .map(|(name, text)| format!("{:<15}{}", format!("{name}:"), sanitized(&text)))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(vec![self.index.to_string()])
    }
}

impl View for IsEnabled {
    fn text(&self, _: &Canvas) -> String {
        self.enabled.to_string()
    }

    fn names(&self) -> Option<Vec<String>> {
        None
    }
}

/// What was done to the queue, or happened to one of its entries.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Change(Fact<'static>);

impl Row for Change {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |Self(fact), zone| zone.show(fact.time.0)),
        Column::new("WHO", |Self(fact), _| histories::who(fact)),
        Column::new("ACTION", |Self(fact), _| histories::entry(fact).action.into_owned()),
        Column::new("ENTRY", |Self(fact), _| {
            histories::entry(fact).index.map(|index| index.to_string()).unwrap_or_default()
        }),
        Column::text("NODES", |Self(fact), _| histories::hosts(fact)),
        Column::text("REASON", |Self(fact), _| histories::reason(fact)),
    ];
    const NONE: &'static str = "no reboot has been queued";

    fn name(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use os_upgrade_api_types::body::Page;

    const NARROW: Canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };

    #[test]
    fn entries_in_a_table() {
        let entries = json!([
            {
                "index": "7", "node": "h\u{1b}1", "status": "rebooting", "last_transition_time": "2026-11-21T01:00:05Z",
                "drain_backoff_count": 0, "required": false, "added_at": "2026-11-21T01:00:00Z", "cancel_requested": true, "boot_id": "one",
                "why": "its worker has not answered reboot since 2026-11-21T01:00:06Z", "why_kind": "reply-awaited",
                "added_by": "anna", "reason": "a new kernel",
            },
            {
                "index": "8", "node": "h2", "status": "queued", "last_transition_time": "2026-11-21T01:00:00Z",
                "drain_backoff_count": 2, "drain_backoff_expire": "2026-11-21T01:10:00Z", "why": "the queue is disabled",
                "required": true, "added_at": "2026-11-21T01:00:00Z", "cancel_requested": false, "why_kind": "disabled",
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
        let item = |fact: serde_json::Value| json!({"sequence": 7, "place": 0, "time": "2026-11-21T01:00:00.000Z", "type": fact["type"], "actor": "anna", "fact": fact});
        let given_up = json!({"kind": "given-up", "actor": "anna", "reason": "burnt"});
        let reason = json!({"kind": "reboot-command-failed", "detail": "no route", "output": ""});
        let failed = json!({"kind": "failed", "reason": reason});
        let page = json!({ "items": [
            item(json!({"type": "reboot", "index": 7, "host": "h1", "event": given_up})),
            item(json!({"type": "reboots-queued", "hosts": ["h1", "h2"], "actor": "anna", "reason": "a new kernel"})),
            item(json!({"type": "reboot", "index": 7, "host": "h1", "event": failed})),
            item(json!({"type": "reboot-queue-switched", "enabled": true, "actor": "anna"})),
            item(json!({"type": "reboot-backoff-reset", "actor": "anna"})),
        ]});
        let expected = "\
TIME                  WHO   ACTION         ENTRY  NODES   REASON
2026-11-21T01:00:00Z  anna  given up       7      h1      burnt
2026-11-21T01:00:00Z  anna  queued                h1, h2  a new kernel
2026-11-21T01:00:00Z  anna  failed         7      h1      the reboot command failed: no route
2026-11-21T01:00:00Z  anna  enabled                       
2026-11-21T01:00:00Z  anna  backoff reset                 ";
        let text = Page::<Change>::deserialize(page).unwrap().text(&NARROW);
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        assert_eq!(trimmed(&text), trimmed(expected));
    }
}
