//! The reboot queue, and its entries.

use os_upgrade_api_types::body::{Counts, Page};
use os_upgrade_api_types::routes::reboot_queue::{Entry, EntryIndex};
use os_upgrade_api_types::routes::state::QueueInBrief;
use os_upgrade_kernel::reboot_queue::EntryStatus;

use crate::progress::{counted, progress_text};
use crate::row::{Column, Detail, Row, or_dash};
use crate::zone::Zone;

fn status(entry: &Entry<'_>) -> String {
    let and = if entry.cancel_requested { ", then cancelled" } else { "" };
    format!("{}{and}", entry.status)
}

/// Why it is not progressing, or how far it is.
fn remark(entry: &Entry<'_>, zone: Zone) -> String {
    let progress = entry.progress.as_ref().map(progress_text);
    let why = entry.why.as_ref().map(|why| zone.times_in(&why.text));
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
        ("why", entry.why.as_ref().map(|why| zone.times_in(&why.text))),
        ("output", entry.output.as_deref().map(str::to_owned)),
        ("progress", entry.progress.as_ref().map(progress_text)),
    ];
    lines.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// Whether the queue is enabled, how many entries it has, and why none starts.
pub(crate) fn in_brief(queue: &QueueInBrief) -> String {
    let enabled = if queue.enabled { "enabled" } else { "disabled" };
    let Counts(counts) = &queue.counts;
    let counted = if counts.is_empty() { "no entries".to_owned() } else { counted(&queue.counts) };
    // That it is disabled is said already.
    let is_waiting = counts.contains_key(EntryStatus::Queued.as_str());
    let why = queue.why.as_ref().filter(|_| queue.enabled && is_waiting);
    let why = why.map(|why| format!("; none starts: {}", why.text)).unwrap_or_default();
    format!("{enabled}: {counted}{why}")
}

/// The entries at work, in lines. Those that need a person are elsewhere.
pub(crate) fn under_way(entries: &Page<Entry<'_>>) -> impl Iterator<Item = String> {
    let at_work = entries.items.iter().filter(|entry| entry.status.is(EntryStatus::is_under_way));
    at_work.filter(|entry| !entry.needs_operator).map(line)
}

/// The entries that do not go on without a person.
pub(crate) fn for_person<'a, 'b>(entries: &'a Page<Entry<'b>>) -> impl Iterator<Item = &'a Entry<'b>> {
    entries.items.iter().filter(|entry| entry.needs_operator)
}

/// Whether the entry is among the first of the queue, or may be among those that were not read.
pub(crate) fn may_have(entries: &Page<Entry<'_>>, index: EntryIndex) -> bool {
    entries.next.is_some() || entries.items.iter().any(|entry| entry.index == index)
}

/// Its host, and why it is not progressing.
pub(crate) fn line(entry: &Entry<'_>) -> String {
    let why = entry.why.as_ref().map(|why| format!(": {}", why.text)).unwrap_or_default();
    format!("entry {}, {} {}{why}", entry.index, entry.node, entry.status)
}
