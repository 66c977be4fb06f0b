//! Configuration providers: what they say about hosts, and how that changes.

use std::collections::BTreeMap;

use fastrand::Rng;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::ProviderName;

/// What all providers say at present.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// The number of the content for each host of each provider; `None` if the provider has nothing for it.
    present: BTreeMap<(ProviderName, HostName), Option<u64>>,
    /// The contents that each has had.
    earlier: BTreeMap<(ProviderName, HostName), Vec<u64>>,
    /// Counts contents. Each belongs to one host of one provider.
    contents: u64,
    /// Counts items.
    items: u64,
}

impl Words {
    /// The number of the content that `provider` has for `host`.
    pub(crate) fn of(&self, provider: &ProviderName, host: &HostName) -> Option<u64> {
        self.present.get(&(provider.clone(), host.clone())).copied().flatten()
    }

    /// `provider` changes its mind about `host`: it has something new, nothing any more, or what it had before. Returns what it says now.
    pub(crate) fn change(&mut self, rng: &mut Rng, provider: &ProviderName, host: &HostName) -> Option<u64> {
        let pair = (provider.clone(), host.clone());
        let earlier = self.earlier.entry(pair.clone()).or_default();
        let word = match rng.u32(..10) {
            0..=2 => None,
            3..=4 if !earlier.is_empty() => rng.choice(earlier.iter().copied()),
            _ => {
                self.contents += 1;
                earlier.push(self.contents);
                Some(self.contents)
            }
        };
        self.present.insert(pair, word);
        word
    }

    /// The number of the next item.
    pub(crate) fn next_item(&mut self) -> u64 {
        self.items += 1;
        self.items
    }
}
