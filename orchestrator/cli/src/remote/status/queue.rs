//! The reboot queue in the status.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::remote::run::view::counted;

/// The queue in the state of the site.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Queue {
    enabled: bool,
    counts: BTreeMap<String, u64>,
    why: Option<String>,
}

impl Queue {
    /// Whether it is enabled, how many entries it has, and why none starts.
    pub(super) fn line(&self) -> String {
        let enabled = if self.enabled { "enabled" } else { "disabled" };
        let counts = if self.counts.is_empty() { "no entries".to_owned() } else { counted(&self.counts) };
        // That it is disabled is said already.
        let why = self.why.as_deref().filter(|_| self.enabled && self.counts.contains_key("queued"));
        let why = why.map(|why| format!("; none starts: {why}")).unwrap_or_default();
        format!("{enabled}: {counts}{why}")
    }
}

/// The first entries of the queue.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entries {
    items: Vec<Entry>,
    /// Present if there are more.
    next: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    pub(super) index: String,
    node: String,
    status: String,
    why: Option<String>,
    why_kind: Option<String>,
}

impl Entries {
    /// Those at work, in lines. Those that need a person are elsewhere.
    pub(super) fn under_way(&self) -> impl Iterator<Item = String> {
        let at_work =
            self.items.iter().filter(|entry| matches!(entry.status.as_str(), "draining" | "rebooting"));
        at_work.filter(|entry| !entry.needs_person()).map(Entry::line)
    }

    /// Those that do not go on without a person.
    pub(super) fn for_person(&self) -> impl Iterator<Item = &Entry> {
        self.items.iter().filter(|entry| entry.needs_person())
    }

    /// Whether the entry is there, or may be among those that were not read.
    pub(super) fn may_have(&self, index: &str) -> bool {
        self.next.is_some() || self.items.iter().any(|entry| entry.index == index)
    }
}

impl Entry {
    /// Whether it failed, or nobody knows whether it did.
    fn needs_person(&self) -> bool {
        matches!(self.why_kind.as_deref(), Some("failed" | "attempt-unknown"))
    }

    /// Its host, and why it is not progressing.
    pub(super) fn line(&self) -> String {
        let why = self.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("entry {}, {} {}{why}", self.index, self.node, self.status)
    }
}
