//! Going on from what was kept outside the bus, after the bus has lost what it had acknowledged.
//!
//! What happened in between is not known, so everything that may be is taken to be: a host that may be at work holds
//! its slot, and what was under way is given up, to be begun anew by an operator.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName};

use crate::config::LockProvider;
use crate::fact::Fact;
use crate::reason::Reason;
use crate::restored::{Outstanding, RestoreSource};
use crate::run::{HostEvent, HostStatus, Run, RunResult, StopCause};
use crate::slot::{SentCommand, Slot, Standing};
use crate::state::State;
use crate::watermark::Watermark;

/// What is known of a restoration besides the state that is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// Where the state comes from.
    pub source: RestoreSource,
    /// Who restores it.
    pub actor: String,
    /// Whether the control stream is the one that the state knows, so that its commands can still be retracted.
    pub control_kept: bool,
    /// Commands in it that no reply has answered.
    pub outstanding: Vec<Outstanding>,
}

/// The facts of a restoration of `state`: the active run ends as failed, then everything that may be held is.
pub fn restoration(state: &State, restoration: Restoration) -> Vec<Fact> {
    let Restoration { source, actor, control_kept, outstanding } = restoration;
    let mut facts = state.run.as_ref().map_or_else(Vec::new, |run| give_up(run, &actor));
    facts.push(Fact::Restored { source, actor, control_kept, outstanding });
    facts
}

fn give_up(run: &Run, actor: &str) -> Vec<Fact> {
    let reason = || Reason::Restored { actor: actor.to_owned() };
    let event = |status: HostStatus| match status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting => {
            Some(HostEvent::Cancelled { reason: reason() })
        }
        HostStatus::Upgrading | HostStatus::Rebooting => Some(HostEvent::Failed { reason: reason() }),
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
    /// Nothing of an earlier leadership counts any more, and what may be held is held.
    pub(crate) fn apply_restored(
        &mut self,
        control_kept: bool,
        outstanding: &[Outstanding],
        at: DateTime<Utc>,
    ) {
        self.fence = None;
        // A run may have been lost that was started in the occurrence under way: no other is started in it.
        self.watermark = Watermark::up_to(at);
        if !control_kept {
            self.retractions.clear();
        }
        let hosts: Vec<HostName> = self.slots.keys().cloned().collect();
        for host in hosts {
            if let Some(slot) = self.slots.get_mut(&host) {
                may_be_held(slot, at);
            }
        }
        for command in outstanding {
            if control_kept {
                self.retractions.insert(command.sequence, command.host.clone());
            }
            match command.action {
                Action::Prepare => {}
                Action::Upgrade | Action::Reboot => self.may_be_at_work(command, at),
            }
        }
    }

    fn may_be_at_work(&mut self, command: &Outstanding, at: DateTime<Utc>) {
        let sent = SentCommand { action: command.action, sequence: command.sequence };
        let provider = self.settings.provider;
        let slot = self.slots.entry(command.host.clone()).or_insert_with(|| Slot {
            group: command.group.clone(),
            provider,
            standing: Standing::Held,
            since: at,
            held_since: None,
            run: command.run.clone(),
            command: None,
            begun: true,
            unsent_at_fence: None,
        });
        // It was on its way back for an earlier command.
        slot.standing = Standing::Held;
        slot.since = slot.held_since.take().unwrap_or(slot.since);
        slot.run = command.run.clone();
        slot.command = Some(sent);
        let (group, run, since) = (slot.group.clone(), slot.run.clone(), slot.since);
        if slot.provider == LockProvider::Embedded {
            self.semaphores.lock_for_run(&group, command.host.as_str(), &run, since);
        }
    }
}

/// One that was asked for may have been granted, and one that was granted may have been used, without our knowing.
fn may_be_held(slot: &mut Slot, at: DateTime<Utc>) {
    match slot.standing {
        Standing::Requested => {
            slot.standing = Standing::Held;
            slot.since = at;
        }
        // What it was taken for had ended.
        Standing::Releasing { .. } => return,
        Standing::Held => {}
    }
    slot.begun = true;
    slot.unsent_at_fence = None;
}
