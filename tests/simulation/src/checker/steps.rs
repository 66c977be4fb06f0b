//! Steps of hosts, from the `upgrade` that opens one to the `done` that closes it, and the slots they need.

use std::collections::BTreeSet;

use os_upgrade_kernel::{ClientId, LockProvider, OnFailure};
use os_upgrade_protocol::{Action, CommandId, GroupName, HostName, Outcome, Reply, RunId};

use super::Checker;
use crate::locks::LockServer;
use crate::time::{Micros, SECOND};

/// A host's step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    run: RunId,
    /// Its last command.
    action: Action,
    sequence: u64,
    /// Whether the host may be under upgrade.
    open: bool,
    /// Whether it was given up because it did not come back from its reboot.
    silent: bool,
    /// The sequence of the `done` with which it ended.
    done: Option<u64>,
}

impl Step {
    /// Whether the host may be under upgrade.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

impl Checker {
    /// An `upgrade` or a `reboot` stands in the stream.
    pub(super) fn step_commanded(&mut self, sequence: u64, id: &CommandId, locks: &LockServer) {
        let group = self.group_of(&id.host);
        let held = match self.provider {
            LockProvider::Embedded => self.granted.contains(&id.host),
            LockProvider::External => locks.holds(&group, id.host.as_str()),
        };
        if !held {
            self.violated("S4", format!("{id} stands in the stream without a slot"));
        }
        let (run, action) = (id.run.clone(), id.action);
        let step = Step { run, action, sequence, open: true, silent: false, done: None };
        self.steps.insert(id.host.clone(), step);
        self.check_slots(&group);
    }

    /// S1, counting hosts under upgrade and clients from outside; who is both counts once.
    pub(super) fn check_slots(&mut self, group: &GroupName) {
        let open = self.steps.iter().filter(|(_, step)| step.open).map(|(host, _)| host);
        let hosts = open.filter(|host| self.group_of(host) == *group).map(HostName::as_str);
        let clients = self.clients.iter().filter(|(of, _)| of == group).map(|(_, id)| id.as_str());
        let holders: BTreeSet<&str> = hosts.chain(clients).collect();
        let slots = self.slots.get(group).copied().unwrap_or(0) as usize;
        if holders.len() > slots {
            let text = format!("{holders:?} have a slot of group {group}, which has {slots}");
            self.violated("S1", text);
        }
    }

    /// A reply stands in the stream.
    pub(super) fn step_answered(
        &mut self,
        host: &HostName,
        reply: &Reply,
        in_reply_to: Option<u64>,
        sequence: u64,
    ) {
        let on_failure = self.on_failure;
        let Some(step) = self.steps.get_mut(host) else { return };
        let answers = match in_reply_to {
            Some(command) => command == step.sequence,
            None => sequence > step.sequence,
        };
        if !answers || reply.action != step.action {
            return;
        }
        match (&reply.result, on_failure) {
            (Outcome::Done, _) => {
                step.open = false;
                step.done.get_or_insert(sequence);
            }
            // The slot stays: the host may be down, or still at work.
            (Outcome::Error(_), OnFailure::Hold) => {}
            (Outcome::Error(_), OnFailure::Release) => step.open = false,
            (Outcome::RebootRequired, _) if step.action == Action::Upgrade => {}
            (Outcome::RebootRequired, OnFailure::Hold) => {}
            (Outcome::RebootRequired, OnFailure::Release) => step.open = false,
        }
    }

    /// The command that the step is at was deleted before anybody was given it.
    pub(super) fn step_undone(&mut self, host: &HostName, sequence: u64) {
        if let Some(step) = self.steps.get_mut(host)
            && step.sequence == sequence
        {
            step.open = false;
        }
    }

    /// The command of a host that did not come back has been taken back, or is in its worker's hands.
    pub(super) fn silent_retracted(&mut self, host: &HostName, sequence: u64) {
        let silent = self.steps.get(host).is_some_and(|step| step.silent && step.sequence == sequence);
        if silent && self.on_failure == OnFailure::Release {
            self.steps.get_mut(host).expect("it has just been there").open = false;
        }
    }

    /// A host has been given up in the middle of its run, as one that does not answer.
    pub(super) fn said_silent(&mut self, run: &RunId, host: &HostName) {
        let fence = self.follower.state.fence.as_ref().map_or(0, |fence| fence.sequence);
        let Some(step) = self.steps.get_mut(host) else { return };
        step.silent = true;
        if step.done.is_some_and(|done| done < fence) {
            let text = format!(
                "{host} is given up in {run}, though its answer stood there before its leader's fence"
            );
            self.violated("live", text);
        }
    }

    /// A run has ended: where failed hosts are released, those that fell silent are as well.
    pub(super) fn run_ended(&mut self, run: &RunId) {
        if self.on_failure == OnFailure::Release {
            for step in self.steps.values_mut().filter(|step| step.run == *run) {
                step.open = false;
            }
        }
    }

    /// The slot of `host`, if it `held` one, may go to others from now on.
    pub(super) fn slot_freed(&mut self, host: &HostName, held: bool) {
        if held && self.steps.get(host).is_some_and(|step| step.open) {
            self.violated("S6", format!("the slot of {host} is freed while it may be under upgrade"));
        }
    }

    /// An operator has taken the slot of `host` back, and so taken it upon them that it does no harm. Not where it is at
    /// work: what is under way would go on beside whoever is granted the slot next.
    pub(super) fn slot_taken_back(&mut self, host: &HostName) {
        if self.semaphores.is_under_way(host) {
            self.violated("S6", format!("the slot of {host} is taken back while it is at work"));
        }
        if let Some(step) = self.steps.get_mut(host) {
            step.open = false;
        }
    }

    /// The longest time for which a host held its slot, since that was last forgotten.
    pub(crate) fn longest_turn(&self) -> Micros {
        let now = self.turns.values().map(|since| self.now - since);
        now.fold(self.longest_turn, Micros::max)
    }

    pub(crate) fn forget_longest_turn(&mut self) {
        self.longest_turn = 0;
    }

    /// The turn of `host` begins, or ends.
    pub(super) fn turn_changes(&mut self, host: &HostName, begins: bool) {
        if begins {
            self.turns.insert(host.clone(), self.now);
        } else if let Some(since) = self.turns.remove(host) {
            self.longest_turn = self.longest_turn.max(self.now - since);
        }
    }

    /// A client that had been refused was granted a slot after so long, and should have been within that.
    pub(crate) fn waited(&mut self, client: &ClientId, waited: Micros, within: Micros) {
        self.waits += 1;
        if waited > within {
            let (waited, within) = (waited / SECOND, within / SECOND);
            let text = format!("{client} waited {waited} s, and should have waited {within} s at most");
            self.violated("fair", text);
        }
    }

    /// A question to the lock server leaves a process, which holds the lease or not.
    pub(crate) fn lock_server_asked(&mut self, host: &HostName, leads: bool) {
        if !leads {
            self.violated("lease", format!("the lock server is asked about {host} without the lease"));
        }
    }

    /// The lock server is asked to take the slot of `host` back.
    pub(crate) fn unlock_asked(&mut self, host: &HostName) {
        self.slot_freed(host, true);
    }

    /// The journal says that `host` is through.
    pub(super) fn said_upgraded(&mut self, run: &RunId, host: &HostName) {
        let done = self.steps.get(host).is_some_and(|step| step.done.is_some() && step.run == *run);
        if !done {
            self.violated("live", format!("{host} is said to be upgraded in {run}, but has not said so"));
        }
    }
}
