//! Restoration: continuing from data kept outside the bus after the bus has lost acknowledged data.
//!
//! What happened in between is not known, so it fails closed: a host that may be at work holds its slot, and the active
//! run ends; an operator starts a new one.

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Watermark;
use os_upgrade_protocol::{Action, HostName};

use crate::config::LockProvider;
use crate::fact::Fact;
use crate::node::Node;
use crate::reason::Reason;
use crate::restore_record::{Outstanding, RestoreSource};
use crate::run::{HostEvent, HostStatus, Run, RunResult, StopCause};
use crate::slot::{SentCommand, Slot, SlotState};
use crate::state::State;

/// What is known of a restoration, apart from the restored state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// Where the state comes from.
    pub source: RestoreSource,
    /// Who restores it.
    pub actor: String,
    /// Whether the control stream is the one that the state refers to, so that its commands can still be retracted.
    pub control_kept: bool,
    /// Commands in the control stream without a reply.
    pub outstanding: Vec<Outstanding>,
}

/// The facts of a restoration of `state`: the active run fails, then every slot that may be held is held.
pub fn restoration(state: &State, restoration: Restoration) -> Vec<Fact> {
    let Restoration { source, actor, control_kept, outstanding } = restoration;
    let mut facts = state.run.as_ref().map_or_else(Vec::new, |run| end_run(run, &actor));
    facts.push(Fact::Restored { source, actor, control_kept, outstanding });
    facts
}

/// The facts that end the active run as failed.
fn end_run(run: &Run, actor: &str) -> Vec<Fact> {
    let reason = || Reason::Restored { actor: actor.to_owned() };
    let event = |status: HostStatus| match status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting => {
            Some(HostEvent::Cancelled { reason: reason() })
        }
        // Its upgrade may have begun in what is lost.
        HostStatus::Draining | HostStatus::Upgrading | HostStatus::Rebooting => {
            Some(HostEvent::Failed { reason: reason() })
        }
        HostStatus::Recovering => Some(HostEvent::Upgraded),
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => None,
    };
    let hosts = run.hosts().iter().filter_map(|(name, host)| Some((name, event(host.status)?)));
    let mut facts: Vec<Fact> = hosts.map(|(name, event)| Fact::of_host(&run.id, name, event)).collect();
    if run.stopping.is_none() {
        let cause = StopCause::Restored { actor: actor.to_owned() };
        facts.push(Fact::RunStopping { run: run.id.clone(), cause });
    }
    facts.push(Fact::RunEnded { run: run.id.clone(), result: RunResult::Failed });
    facts
}

impl State {
    /// Drops the fence of the earlier leadership, and holds every slot that may be held.
    pub(crate) fn apply_restored(
        &mut self,
        control_kept: bool,
        outstanding: &[Outstanding],
        at: DateTime<Utc>,
    ) {
        self.fence = None;
        // A run started in the open occurrence may have been lost: none is started in it again.
        self.watermark = Watermark::up_to(at);
        if !control_kept {
            self.retractions.clear();
        }
        self.reboot_queue.restored(at);
        self.restored_nodes(at);
        let hosts: Vec<HostName> = self.slots.keys().cloned().collect();
        for host in hosts {
            if let Some(slot) = self.slots.get_mut(&host) {
                assume_held(slot, at);
            }
        }
        for command in outstanding {
            if control_kept {
                self.retractions.insert(command.sequence, command.host.clone());
            }
            match command.action {
                Action::Prepare => {}
                Action::Upgrade | Action::Reboot => self.assume_at_work(command, at),
            }
        }
    }

    fn assume_at_work(&mut self, command: &Outstanding, at: DateTime<Utc>) {
        let sent = SentCommand { action: command.action, sequence: command.sequence };
        let provider = self.settings.provider;
        let slot = self.slots.entry(command.host.clone()).or_insert_with(|| Slot {
            group: command.group.clone(),
            provider,
            state: SlotState::Held,
            since: at,
            held_since: None,
            refusal: None,
            in_doubt: false,
            unlocked_at: None,
            owner: command.owner.clone(),
            command: None,
            begun: true,
            unsent_at_fence: None,
        });
        // The slot may have been in release after an earlier command.
        slot.state = SlotState::Held;
        slot.since = slot.held_since.take().unwrap_or(slot.since);
        slot.refusal = None;
        slot.in_doubt |= slot.unlocked_at.take().is_some();
        slot.owner = command.owner.clone();
        slot.command = Some(sent);
        let (has_node, host) =
            (self.settings.kubernetes.as_ref().is_some_and(|it| it.includes(&command.host)), &command.host);
        if has_node {
            self.nodes.entry(host.clone()).or_insert_with(|| Node::assumed_cordoned(at));
        }
        let (group, owner, since) = (slot.group.clone(), slot.owner.clone(), slot.since);
        if slot.provider == LockProvider::Embedded {
            self.semaphores.lock_for_owner(&group, command.host.as_str(), &owner, since);
        }
    }
}

/// A requested slot may have been granted, and a granted one used, in the part of the journal that is lost.
fn assume_held(slot: &mut Slot, at: DateTime<Utc>) {
    match slot.state {
        SlotState::Requested => {
            slot.state = SlotState::Held;
            slot.since = at;
        }
        // The step it was held for had ended.
        SlotState::Releasing { .. } => return,
        SlotState::Held => {}
    }
    slot.begun = true;
    slot.unsent_at_fence = None;
}
