//! The hosts that are not told what they are to have, and what each would gain and lose.

use std::collections::BTreeSet;

use os_upgrade_protocol::{AppliedItem, HostName, ItemKind};
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_scheduler::UnitName;

use super::state::DesiredItem;
use crate::state::State;
use crate::view::View;

/// Why a host is not told what it is to have, until an operator resumes the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withholding {
    /// The site was restored.
    Restored,
    /// It has something newer than this site knows of.
    Ahead,
}

/// What becomes of a host once its delivery is resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption<'a> {
    /// The providers of which it gets something that it does not have, and the units that it does not have.
    pub gains: Vec<&'a str>,
    /// The names of the configurations and units that it loses, as its worker says them.
    pub loses: Vec<&'a str>,
}

impl State {
    /// The hosts that are not told what they are to have.
    pub fn withheld_hosts<'a>(&'a self, view: &'a View) -> impl Iterator<Item = (&'a HostName, Withholding)> {
        let (known, reporting) = (self.desired.hosts.keys(), view.applied.keys());
        let hosts: BTreeSet<&HostName> = known.chain(reporting).collect();
        hosts.into_iter().filter_map(|host| Some((host, self.withholding(view, host)?)))
    }

    fn withholding(&self, view: &View, host: &HostName) -> Option<Withholding> {
        if self.is_ahead(view, host) {
            return Some(Withholding::Ahead);
        }
        let has_items = || self.reported(view, host).is_some_and(|applied| !applied.items.is_empty());
        let is_concerned = self.desired.hosts.contains_key(host) || has_items();
        (is_concerned && !self.is_delivered(host)).then_some(Withholding::Restored)
    }

    /// What `host` gains and loses once its delivery is resumed.
    pub fn resumption<'a>(&'a self, view: &'a View, host: &HostName) -> Resumption<'a> {
        let reported: &[AppliedItem] = self.reported(view, host).map_or(&[][..], |applied| &applied.items);
        let of_kind = |kind: ItemKind| reported.iter().filter(move |it| it.kind == kind);
        let desired = self.desired.hosts.get(host);
        let items = || desired.iter().flat_map(|desired| &desired.items);
        let units = || desired.iter().flat_map(|desired| desired.units.keys());
        let has = |(name, item): &(&ProviderName, &DesiredItem)| {
            let mut having = of_kind(ItemKind::Configuration);
            having.any(|it| it.name == name.as_str() && it.id.as_ref() == Some(&item.id))
        };
        // After a restoration every unit has another item, whatever its contents are.
        let runs = |name: &UnitName| of_kind(ItemKind::Unit).any(|it| it.name == name.as_str());
        let is_kept = |it: &AppliedItem| match it.kind {
            ItemKind::Configuration => items().any(|(kept, _)| kept.as_str() == it.name),
            ItemKind::Unit => units().any(|kept| kept.as_str() == it.name),
            ItemKind::Other => true,
        };
        let gains = items().filter(|item| !has(item)).map(|(name, _)| name.as_str());
        let gains = gains.chain(units().filter(|name| !runs(name)).map(UnitName::as_str)).collect();
        let loses = reported.iter().filter(|it| !is_kept(it)).map(|it| it.name.as_str()).collect();
        Resumption { gains, loses }
    }
}
