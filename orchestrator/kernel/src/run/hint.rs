//! Hints: tell hosts that their run is stopping. Nothing relies on them; they only save useless waiting.

use os_upgrade_protocol::hint::{Hint, HintCause};
use os_upgrade_protocol::{HostName, RunId};

use super::host::{HostStatus, RunHost};
use super::state::{Run, StopCause};
use crate::fact::{Fact, RunFact};
use crate::state::State;

/// The hint that a record calls for, and the hosts that have an unanswered command. `facts` are those of the record,
/// `state` is the state after them. `None` if no run stops or no host is at work.
pub fn hint(facts: &[Fact], state: &State) -> Option<(Hint, Vec<HostName>)> {
    let run = facts.iter().find_map(stopping)?;
    let stopped = [&state.run, &state.last_run].into_iter().flatten().find(|known| known.id == *run)?;
    let cause = cause(stopped.stopping.as_ref()?)?;
    let hosts = at_work(stopped);
    (!hosts.is_empty()).then(|| (Hint { run: Some(run.clone()), cause }, hosts))
}

fn stopping(fact: &Fact) -> Option<&RunId> {
    let Fact::Run(RunFact::Stopping { run, .. }) = fact else { return None };
    Some(run)
}

fn cause(stopping: &StopCause) -> Option<HintCause> {
    match stopping {
        StopCause::Cancelled { .. } => Some(HintCause::Cancelled),
        StopCause::Failed { .. } => Some(HintCause::Failed),
        // It is not known which hosts are still at work.
        StopCause::Restored { .. } => None,
    }
}

fn at_work(run: &Run) -> Vec<HostName> {
    // A host that timed out or was given up may still finish, which releases its slot: it gets no hint.
    let may_stop = |host: &RunHost| host.unanswered().is_some() && host.status != HostStatus::TimedOut;
    let unanswered = run.hosts().iter().filter(|(_, host)| may_stop(host));
    unanswered.map(|(name, _)| name.clone()).collect()
}
