//! The hosts that are not told what they are to have, and what each would gain and lose.

use std::collections::BTreeSet;

use os_upgrade_protocol::{HostName, ItemKind};
use os_upgrade_provider_rules::ProviderName;

use super::state::DesiredItem;
use crate::state::State;
use crate::view::View;

/// A host that is not told what it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld<'a> {
    pub host: &'a HostName,
    /// Whether it has something newer than this site knows of.
    pub is_ahead: bool,
    /// The providers of which it would get something that it does not have.
    pub gains: Vec<&'a ProviderName>,
    /// The names of the configurations that it would lose, as its worker says them.
    pub loses: Vec<&'a str>,
}

impl State {
    /// The hosts that are not told what they are to have.
    pub fn withheld_hosts<'a>(&'a self, view: &'a View) -> Vec<Withheld<'a>> {
        let (known, told) = (self.desired.hosts.keys(), view.applied.keys());
        let hosts: BTreeSet<&HostName> = known.chain(told).collect();
        hosts.into_iter().filter_map(|host| self.withheld(view, host)).collect()
    }

    fn withheld<'a>(&'a self, view: &'a View, host: &'a HostName) -> Option<Withheld<'a>> {
        let is_ahead = self.is_ahead(view, host);
        let told = self.told(view, host).map_or(&[][..], |applied| &applied.items);
        let desired = self.desired.hosts.get(host);
        let is_concerned = desired.is_some() || !told.is_empty();
        if !is_ahead && (self.is_delivered(host) || !is_concerned) {
            return None;
        }
        let told: Vec<_> = told.iter().filter(|it| it.kind == ItemKind::Configuration).collect();
        let items = || desired.iter().flat_map(|desired| &desired.items);
        let has = |(name, item): &(&ProviderName, &DesiredItem)| {
            told.iter().any(|it| it.name == name.as_str() && it.id.as_ref() == Some(&item.id))
        };
        let gains = items().filter(|item| !has(item)).map(|(name, _)| name).collect();
        let is_kept = |name: &str| items().any(|(kept, _)| kept.as_str() == name);
        let loses = told.iter().map(|it| it.name.as_str()).filter(|name| !is_kept(name)).collect();
        Some(Withheld { host, is_ahead, gains, loses })
    }
}
