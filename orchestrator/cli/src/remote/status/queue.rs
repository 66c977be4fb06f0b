//! The reboot queue in the status.

use os_upgrade_api_types::body::{Counts, Page};
use os_upgrade_api_types::routes::reboot_queue::{Entry, EntryIndex};
use os_upgrade_api_types::routes::state::QueueInBrief;
use os_upgrade_console::progress::counted;
use os_upgrade_kernel::reboot_queue::EntryStatus;

/// Whether the queue is enabled, how many entries it has, and why none starts.
pub(super) fn in_brief(queue: &QueueInBrief) -> String {
    let enabled = if queue.enabled { "enabled" } else { "disabled" };
    let Counts(counts) = &queue.counts;
    let counted = if counts.is_empty() { "no entries".to_owned() } else { counted(&queue.counts) };
    // That it is disabled is said already.
    let why = queue.why.as_deref().filter(|_| queue.enabled && counts.contains_key("queued"));
    let why = why.map(|why| format!("; none starts: {why}")).unwrap_or_default();
    format!("{enabled}: {counted}{why}")
}

/// The entries at work, in lines. Those that need a person are elsewhere.
pub(super) fn under_way(entries: &Page<Entry<'_>>) -> impl Iterator<Item = String> {
    let at_work = entries.items.iter().filter(|entry| entry.status.is(EntryStatus::is_under_way));
    at_work.filter(|entry| !needs_person(entry)).map(line)
}

/// The entries that do not go on without a person.
pub(super) fn for_person<'a, 'b>(entries: &'a Page<Entry<'b>>) -> impl Iterator<Item = &'a Entry<'b>> {
    entries.items.iter().filter(|entry| needs_person(entry))
}

/// Whether the entry is among the first of the queue, or may be among those that were not read.
pub(super) fn may_have(entries: &Page<Entry<'_>>, index: EntryIndex) -> bool {
    entries.next.is_some() || entries.items.iter().any(|entry| entry.index == index)
}

/// Whether it failed, or nobody knows whether it did.
fn needs_person(entry: &Entry<'_>) -> bool {
    matches!(entry.why_kind.as_deref(), Some("failed" | "attempt-unknown"))
}

/// Its host, and why it is not progressing.
pub(super) fn line(entry: &Entry<'_>) -> String {
    let why = entry.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("entry {}, {} {}{why}", entry.index, entry.node, entry.status)
}
