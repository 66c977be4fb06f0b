//! Entries of the reboot queue.

use os_upgrade_api_types::routes::reboot_queue::Entry;

use crate::progress::progress_text;
use crate::row::{Column, Detail, Row, or_dash};
use crate::zone::Zone;

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
    const NONE: &'static str = "the reboot queue is empty";

    fn name(&self) -> Option<String> {
        Some(self.index.to_string())
    }
}

/// What `reboot-queue show` says of an entry.
pub fn details(entry: &Entry<'_>, zone: Zone) -> Vec<Detail> {
    let backoffs = (entry.drain_backoff_count > 0).then(|| {
        let until = entry.drain_backoff_expire.map(|until| format!(", until {}", zone.stamp(until)));
        format!("{}{}", entry.drain_backoff_count, until.unwrap_or_default())
    });
    let by_itself = if entry.required { ", because its host needs a reboot" } else { "" };
    let by = entry.added_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let lines = [
        ("index", Some(entry.index.to_string())),
        ("node", Some(entry.node.to_string())),
        ("status", Some(format!("{} since {}", status(entry), zone.stamp(entry.last_transition_time)))),
        ("added", Some(format!("{}{by}{by_itself}", zone.stamp(entry.added_at)))),
        ("reason", entry.reason.as_deref().map(str::to_owned)),
        ("backoffs", backoffs),
        ("boot to leave", entry.boot_id.as_deref().map(str::to_owned)),
        ("why", entry.why.as_deref().map(|why| zone.times_in(why))),
        ("output", entry.output.as_deref().map(str::to_owned)),
        ("progress", entry.progress.as_ref().map(progress_text)),
    ];
    lines.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}
