//! The settings of the streams.

use std::collections::HashMap;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use os_upgrade_protocol::subject;

/// The key in a stream's metadata for its site.
pub(super) const SITE: &str = "os-upgrade.site";

/// The key in the journal's metadata for the id of an unfinished restoration.
pub(super) const RESTORING: &str = "os-upgrade.restoring";

/// What the settings of the streams depend on.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// The site's name.
    pub site: &'a str,
    /// The number of copies of each stream.
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

/// The settings of all streams. Journal and control stream come first: they must not lose anything, and are
/// tagged with the site.
pub(super) fn configs(layout: &Layout<'_>) -> [Config; 4] {
    let [control, versions, workers] = os_upgrade_jetstream::worker_streams();
    let journal = [subject::JOURNAL_FACT, subject::JOURNAL_SNAPSHOT];
    let journal = Config {
        discard: DiscardPolicy::New,
        ..os_upgrade_jetstream::stream(subject::JOURNAL_STREAM, &journal)
    };
    let tagged = |config| Config { metadata: layout.metadata(), ..config };
    [tagged(journal), tagged(control), versions, workers]
        .map(|config| Config { num_replicas: layout.replicas, ..config })
}
