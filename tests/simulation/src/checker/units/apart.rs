//! A unit that is not global runs on one machine at a time, unless one of them is cut off: whoever does not hear that it is to stop goes on.
//!
//! A host is *behind* from when its machine is lost, or removed, until it accepts the newest manifest. What runs there meanwhile may run
//! elsewhere too, until it stops there.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_protocol::HostName;

use super::super::violation::Violation;

#[derive(Debug, Default)]
pub(super) struct Apart {
    /// The hosts on which each unit runs, each with whether it may run elsewhere too.
    runs: BTreeMap<String, BTreeMap<HostName, bool>>,
    /// The hosts that may follow an older manifest.
    behind: BTreeSet<HostName>,
}

impl Apart {
    /// Nobody waits any more for what `host` reports.
    pub(super) fn lost(&mut self, host: &HostName) {
        self.behind.insert(host.clone());
        for hosts in self.runs.values_mut() {
            if let Some(is_excused) = hosts.get_mut(host) {
                *is_excused = true;
            }
        }
    }

    /// `host` has accepted the newest manifest.
    pub(super) fn caught_up(&mut self, host: &HostName) {
        self.behind.remove(host);
    }

    /// A unit begins to run on `host`.
    pub(super) fn begins(&mut self, host: &HostName, unit: &str, is_global: bool) -> Result<(), Violation> {
        let is_excused = self.behind.contains(host);
        let beside = self.elsewhere(unit, std::slice::from_ref(host)).cloned();
        self.runs.entry(unit.to_owned()).or_default().insert(host.clone(), is_excused);
        match beside.filter(|_| !is_global && !is_excused) {
            Some(other) => Err(twice(unit, host, &format!("begins while it runs on {other}"))),
            None => Ok(()),
        }
    }

    /// A unit does not run on `host` any more.
    pub(super) fn ends(&mut self, host: &HostName, unit: &str) {
        if let Some(hosts) = self.runs.get_mut(unit) {
            hosts.remove(host);
        }
    }

    /// A unit that is not global is placed on `hosts`.
    pub(super) fn placed(&self, unit: &str, hosts: &[HostName]) -> Result<(), Violation> {
        let Some(other) = self.elsewhere(unit, hosts) else { return Ok(()) };
        Err(twice(unit, other, &format!("runs while it is placed on {hosts:?}")))
    }

    /// A unit counts as stopped on `host`.
    pub(super) fn stopped(&self, unit: &str, host: &HostName) -> Result<(), Violation> {
        match self.runs.get(unit).and_then(|hosts| hosts.get(host)) {
            Some(false) => Err(twice(unit, host, "counts as stopped, and runs")),
            Some(true) | None => Ok(()),
        }
    }

    /// A host other than `hosts` on which the unit runs, and may not run elsewhere too.
    fn elsewhere(&self, unit: &str, hosts: &[HostName]) -> Option<&HostName> {
        let mut others = self.runs.get(unit)?.iter();
        others.find(|(host, is_excused)| !**is_excused && !hosts.contains(*host)).map(|(host, _)| host)
    }
}

fn twice(unit: &str, host: &HostName, what: &str) -> Violation {
    Violation::new("apart", format!("{unit} of {host} {what}"))
}
