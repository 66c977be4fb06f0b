//! What the checker sees of units, of machines and of their agents.

use std::collections::BTreeMap;

use os_upgrade_kernel::fact::{EnrolmentFact, UnitFact};
use os_upgrade_kernel::{Fact, State};
use os_upgrade_protocol::{HostName, ItemId, Revision};
use os_upgrade_shell::journal::AppendId;

use super::Checker;
use super::desired::Writer;
use super::units::{LaunchedItem, SeenMachine};
use super::violation::Violation;

impl Checker {
    /// A fact was added to the journal, which folds to `state`.
    pub(super) fn unit_fact(&mut self, fact: &Fact, state: &State) {
        if let Fact::Enrolment(EnrolmentFact::HostRemoved { host, .. }) = fact {
            self.units.host_gone(host);
        }
        let Fact::Unit(fact) = fact else { return };
        let check = match fact {
            UnitFact::Placed { .. } => "units.placed",
            UnitFact::MachineLost { .. } => "units.lost",
            UnitFact::Submitted { .. }
            | UnitFact::Wanted { .. }
            | UnitFact::Destroyed { .. }
            | UnitFact::MachineJoined { .. }
            | UnitFact::MachineFound { .. }
            | UnitFact::Taken { .. }
            | UnitFact::Stopped { .. } => "units.fact",
        };
        self.violations.record(check, self.units.fact(self.now, fact, state));
    }

    /// A record was added to the journal, which folds to `state`.
    pub(super) fn check_peers(&mut self, state: &State) {
        if self.units.awaits_peers() {
            self.violations.record("units.peers", self.units.check_peers(state));
        }
    }

    /// A unit begins to run on `host`.
    pub(crate) fn unit_begins(&mut self, host: &HostName, unit: &str) {
        self.violations.record("units.begins", self.units.begins(host, unit));
    }

    /// A unit does not run on `host` any more.
    pub(crate) fn unit_ends(&mut self, host: &HostName, unit: &str) {
        self.units.ends(host, unit);
    }

    /// The agent of `host` has started the unit by this item, which it has in force.
    pub(crate) fn unit_launched(&mut self, host: &HostName, unit: &str, item: &ItemId) {
        self.units.launched(host, unit, item);
    }

    /// The agent of `host` has accepted a manifest: if that is the newest one, what runs there is what belongs there, or stops.
    pub(crate) fn units_accepted(&mut self, host: &HostName, revision: Revision) {
        if revision >= self.journal.state().desired_revision(host) {
            self.units.caught_up(host);
        }
    }

    /// An instance shows these units as launched: on this host by this item.
    pub(crate) fn launched_shown(&mut self, shown: Vec<LaunchedItem>) {
        // A host may have launched something by an item of that id that nobody remembers.
        if self.is_rolled_back {
            return;
        }
        for shown in shown {
            self.violations.record("units.launched", self.units.check_launched(&shown));
        }
    }

    /// A process begins to lead, and listens to agents from here on.
    pub(crate) fn agents_awaited(&mut self, writer: Writer) {
        self.units.agents_awaited(self.now, writer);
    }

    /// A heartbeat of an agent reaches a process.
    pub(crate) fn agent_heard(&mut self, writer: Writer, host: &HostName) {
        self.units.agent_heard(self.now, writer, host);
    }

    /// A process, which sees the machines so, appends that one is lost.
    pub(crate) fn machine_lost(
        &mut self,
        writer: Writer,
        append: &AppendId,
        host: &HostName,
        seen: &BTreeMap<HostName, SeenMachine>,
    ) {
        let checked = self.units.machine_lost(self.now, writer, (append, host), seen);
        self.violations.record("units.machine_lost", checked);
    }

    /// How many facts about units and machines there were.
    pub(crate) fn unit_facts(&self) -> u64 {
        self.units.facts()
    }

    /// Nothing has happened since there were so many facts about units.
    pub(crate) fn check_still(&mut self, facts: u64) {
        let more = self.units.facts() - facts;
        let violation = || Violation::new("still", format!("{more} facts of units follow from nothing"));
        self.violations.record("units.still", if more == 0 { Ok(()) } else { Err(violation()) });
    }
}
