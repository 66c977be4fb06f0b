//! A machine is lost only once its agent has been silent to the leader for thirty seconds, and not if most agents have fallen silent with it.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use os_upgrade_protocol::HostName;
use os_upgrade_shell::journal::AppendId;

use super::super::desired::Writer;
use super::super::violation::Violation;
use crate::time::{Micros, SECOND};

/// How long an agent may be silent.
const GRACE: Duration = Duration::from_secs(30);
/// What a process that counts in ticks may count too much: one for the heartbeat, one for itself, and one that came after a pause.
const GRACE_MIN: Micros = 27 * SECOND;
/// An agent that was heard later has missed no heartbeat.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
/// Machines that fall silent within this time of each other may do so for one reason.
const TOGETHER_WITHIN: Duration = Duration::from_mins(5);

/// A machine as a process sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenMachine {
    /// How long its agent has been silent.
    pub(crate) silent_for: Duration,
    /// Whether its host is at work, so that it may be silent for longer.
    pub(crate) is_at_work: bool,
}

#[derive(Debug, Default)]
pub(super) struct Silences {
    /// When a heartbeat of each agent has reached each process last.
    heard: BTreeMap<(Writer, HostName), Micros>,
    /// When each process began to lead.
    awaited: BTreeMap<Writer, Micros>,
    /// What was appended, or tried to, about each machine: it was decided when it was appended first.
    appended: HashSet<(AppendId, HostName)>,
}

impl Silences {
    /// A process begins to lead.
    pub(super) fn awaited(&mut self, now: Micros, writer: Writer) {
        self.awaited.insert(writer, now);
    }

    /// A heartbeat reaches a process.
    pub(super) fn heard(&mut self, now: Micros, writer: Writer, host: &HostName) {
        self.heard.insert((writer, host.clone()), now);
    }

    /// A process appends that a machine is lost.
    pub(super) fn lost(
        &mut self,
        now: Micros,
        writer: Writer,
        (append, host): (&AppendId, &HostName),
        seen: &BTreeMap<HostName, SeenMachine>,
    ) -> Result<(), Violation> {
        if !self.appended.insert((append.clone(), host.clone())) {
            return Ok(());
        }
        let heard = self.heard.get(&(writer, host.clone())).max(self.awaited.get(&writer));
        let silent_for = now - heard.copied().unwrap_or_default();
        if silent_for < GRACE_MIN {
            let text =
                format!("{host} is lost to {writer:?}, which has heard it {silent_for} microseconds before");
            return Err(Violation::new("silent", text));
        }
        let Some(own) = seen.get(host).map(|machine| machine.silent_for) else { return Ok(()) };
        let fell_silent_with_it = |(other, machine): &(&HostName, &SeenMachine)| {
            let is_together = machine.silent_for.abs_diff(own) <= TOGETHER_WITHIN;
            *other == host || (machine.silent_for >= GRACE && is_together && !machine.is_at_work)
        };
        let together = seen.iter().filter(fell_silent_with_it).count();
        // Whether a host at work could be reached that misses heartbeats is not known.
        let could_be_reached = |(other, machine): &(&HostName, &SeenMachine)| {
            let is_known = *other == host || !machine.is_at_work || machine.silent_for <= HEARD_WITHIN;
            is_known && machine.silent_for <= own + TOGETHER_WITHIN
        };
        let reachable = seen.iter().filter(could_be_reached).count();
        if 2 * together > reachable {
            let text = format!("{host} is lost, and {together} of {reachable} fell silent with it: {seen:?}");
            return Err(Violation::new("mass", text));
        }
        Ok(())
    }
}
