//! What the streams are made with.

use std::collections::HashMap;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use os_upgrade_protocol::subject;

/// The key of a stream's metadata that says whose it is.
pub(super) const SITE: &str = "os-upgrade.site";

/// The key of the journal's metadata that says that a restoration has begun to fill it, and which.
pub(super) const RESTORING: &str = "os-upgrade.restoring";

/// What the streams are made with.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// The site whose they are.
    pub site: &'a str,
    /// Copies of each.
    pub replicas: usize,
}

impl Layout<'_> {
    pub(super) fn metadata(&self) -> HashMap<String, String> {
        HashMap::from([(SITE.to_owned(), self.site.to_owned())])
    }

    pub(super) fn journal(&self) -> Config {
        let [journal, ..] = configs(self);
        journal
    }

    pub(super) fn control(&self) -> Config {
        let [_, control, ..] = configs(self);
        control
    }
}

/// Journal and control stream first: those that must not lose anything, nor be mistaken for another site's.
pub(super) fn configs(layout: &Layout<'_>) -> [Config; 4] {
    let [control, versions, workers] = os_upgrade_jetstream::worker_streams();
    let journal = [subject::JOURNAL_FACT, subject::JOURNAL_SNAPSHOT];
    let journal = Config {
        discard: DiscardPolicy::New,
        ..os_upgrade_jetstream::stream(subject::JOURNAL_STREAM, &journal)
    };
    let marked = |config| Config { metadata: layout.metadata(), ..config };
    [marked(journal), marked(control), versions, workers]
        .map(|config| Config { num_replicas: layout.replicas, ..config })
}
