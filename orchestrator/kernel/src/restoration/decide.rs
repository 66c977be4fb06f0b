//! Restoration: continuing from data kept outside the bus after the bus has lost acknowledged data.
//!
//! What happened in between is not known, so it fails closed: a host that may be at work holds its slot, and the active
//! run ends; an operator starts a new one.

use super::record::{Outstanding, RestoreSource};
use crate::fact::{Fact, PauseFact, RestorationFact, RunFact};
use crate::pause::PauseCause;
use crate::reason::Reason;
use crate::run::{HostEvent, HostStatus, Run, RunResult, StopCause};
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

/// The facts of a restoration of `state`: the active run fails, then every slot that may be held is held, and the site is paused until
/// somebody has looked after its hosts.
pub fn restoration(state: &State, restoration: Restoration) -> Vec<Fact> {
    let Restoration { source, actor, control_kept, outstanding } = restoration;
    let mut facts = state.run.as_ref().map_or_else(Vec::new, |run| end_run(run, &actor));
    let cause = PauseCause::Restored { actor: actor.clone() };
    facts.push(PauseFact::Paused { cause, until: None }.into());
    facts.push(Fact::Restoration(RestorationFact::Restored { source, actor, control_kept, outstanding }));
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
        | HostStatus::Cancelled
        | HostStatus::NotReached => None,
    };
    let (mut facts, mut ended) = (Vec::new(), run.clone());
    for (name, host) in run.hosts() {
        let Some(event) = event(host.status) else { continue };
        // The time does not matter to what is counted.
        ended.apply(name, &event, run.started_at).expect("each status has the event that ends it");
        facts.push(Fact::of_host(&run.id, name, event));
    }
    if run.stopping.is_none() {
        let cause = StopCause::Restored { actor: actor.to_owned() };
        facts.push(Fact::Run(RunFact::Stopping { run: run.id.clone(), cause }));
    }
    facts.push(Fact::Run(RunFact::ended(&ended, RunResult::Failed)));
    facts
}
