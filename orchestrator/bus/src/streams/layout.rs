//! The settings of the streams.

use std::collections::HashMap;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use os_upgrade_protocol::subject;
use os_upgrade_shell::lease::LEASE_TTL;

/// The bucket of the lease.
pub(crate) const LEASE_BUCKET: &str = "os-upgrade-lease";
/// The stream of that bucket.
pub(crate) const LEASE_STREAM: &str = "KV_os-upgrade-lease";

/// The key in a stream's metadata for its site.
pub(super) const SITE: &str = "os-upgrade.site";

/// The key in the metadata of control stream and journal for the id of an unfinished restoration.
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
    pub(crate) fn metadata(&self) -> HashMap<String, String> {
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

    /// The stream of the lease's bucket: a key-value store of one entry that expires, as clients create it.
    pub(crate) fn lease(&self) -> Config {
        Config {
            name: LEASE_STREAM.to_owned(),
            subjects: vec![format!("$KV.{LEASE_BUCKET}.>")],
            max_age: LEASE_TTL,
            max_messages_per_subject: 1,
            max_consumers: -1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            num_replicas: self.replicas,
            ..Config::default()
        }
    }
}

/// The settings of all streams.
pub(super) fn settings(layout: &Layout<'_>) -> impl Iterator<Item = Config> {
    configs(layout).into_iter().chain([layout.lease()])
}

/// The settings of all streams but the lease's. Journal and control stream come first: they must not lose anything, and are
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
