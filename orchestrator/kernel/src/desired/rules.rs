//! What other subjects ask of what hosts are to have.

use os_upgrade_protocol::{HostName, Revision};
use os_upgrade_provider_rules::ProviderName;

use crate::config::ConfigProvider;
use crate::state::State;
use crate::view::View;

impl State {
    /// The last restoration as an epoch, in seconds since 1970; 0 if there was none.
    pub fn epoch(&self) -> u64 {
        u64::try_from(self.restored).unwrap_or_default()
    }

    /// The provider `name`, if `host` is to have what it gives.
    pub fn provider_for(&self, name: &ProviderName, host: &HostName) -> Option<&ConfigProvider> {
        let provider = self.config.as_ref()?.provider(name)?;
        let can_have = self.enrolled(host).takes_part() && self.enrolment.pinned(host).is_some();
        (can_have && provider.selects(host)).then_some(provider)
    }

    /// Whether `host` is told what it is to have: not after a restoration until an operator says so.
    pub fn is_delivered(&self, host: &HostName) -> bool {
        let resumed = self.desired.hosts.get(host).map_or(0, |host| host.resumed);
        self.epoch() <= resumed.max(self.desired.resumed)
    }

    /// How new the manifest of `host` is that follows from this state.
    pub fn desired_revision(&self, host: &HostName) -> Revision {
        let entry = self.desired.hosts.get(host);
        Revision { epoch: self.desired_epoch(host), sequence: entry.map_or(0, |entry| entry.changed) }
    }

    /// What an item of `host` is sealed for that is sealed now.
    pub fn next_sealed(&self, host: &HostName) -> Revision {
        Revision { epoch: self.desired_epoch(host), sequence: self.desired.changes + 1 }
    }

    /// Whether `host` has told of a manifest that is newer than any of this site's. It is left alone until an operator says what is to become
    /// of it.
    pub fn is_ahead(&self, view: &View, host: &HostName) -> bool {
        let newest = Revision { epoch: self.desired_epoch(host), sequence: self.desired.changes };
        let told = view.applied(host).filter(|applied| applied.site == self.settings.site);
        told.is_some_and(|applied| applied.revision > newest)
    }

    fn desired_epoch(&self, host: &HostName) -> u64 {
        self.epoch().max(self.desired.hosts.get(host).map_or(0, |host| host.resumed))
    }
}
