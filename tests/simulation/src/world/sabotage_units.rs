//! Planted bugs of units, as far as they are in what is decided. See [`crate::bug`].

use os_upgrade_kernel::Fact;
use os_upgrade_kernel::fact::UnitFact;
use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::GRACE;
use os_upgrade_shell::instance::Instance as Logic;
use os_upgrade_shell::journal::codec::Message;

use super::World;
use super::sabotage::{each, with_facts};
use crate::bug::Bug;

impl World {
    /// The message with the record that is appended instead.
    pub(super) fn sabotage_unit_record(&self, index: usize, message: Message) -> Message {
        let Some(logic) = &self.instances[index].logic else { return message };
        match self.bug {
            Some(Bug::StopNotAwaited) => with_facts(message, |facts| each(facts, stopped_at_once)),
            Some(Bug::PlacedAnywhere) => {
                let first = logic.state().units.machines.keys().next().cloned();
                with_facts(message, |facts| {
                    facts.into_iter().map(|fact| placed_on(first.as_ref(), fact)).collect()
                })
            }
            Some(Bug::MassBelieved) => with_facts(message, |facts| {
                // A record without facts is shown to nobody.
                let silent = if facts.is_empty() { Vec::new() } else { lost_by_silence(logic) };
                facts.into_iter().chain(silent).collect()
            }),
            _ => message,
        }
    }
}

/// Nobody waits for the host from which a unit is taken.
fn stopped_at_once(fact: Fact) -> Vec<Fact> {
    let Fact::Unit(UnitFact::Taken { unit, hosts, .. }) = &fact else { return vec![fact] };
    let stopped: Vec<Fact> = hosts
        .iter()
        .map(|host| Fact::Unit(UnitFact::Stopped { unit: unit.clone(), host: host.clone() }))
        .collect();
    [fact].into_iter().chain(stopped).collect()
}

fn placed_on(first: Option<&HostName>, fact: Fact) -> Fact {
    match (first, fact) {
        (Some(first), Fact::Unit(UnitFact::Placed { unit, .. })) => {
            Fact::Unit(UnitFact::Placed { unit, hosts: vec![first.clone()] })
        }
        (_, fact) => fact,
    }
}

/// The machines that have been silent for long enough, however many they are.
fn lost_by_silence(logic: &Logic) -> Vec<Fact> {
    let (state, view) = (logic.state(), logic.inventory().view());
    let machines = state.units.machines.iter().filter(|(host, machine)| {
        machine.lost_since.is_none() && view.agent_silence(host) >= GRACE && logic.is_leading()
    });
    machines.map(|(host, _)| Fact::Unit(UnitFact::MachineLost { host: host.clone() })).collect()
}
