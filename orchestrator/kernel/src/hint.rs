//! Hints: whom to tell that the run is stopping. Nothing relies on them; they only save waiting for what will not count.

use os_upgrade_protocol::hint::{Hint, HintCause};
use os_upgrade_protocol::{HostName, RunId};

use crate::fact::Fact;
use crate::run::{HostStatus, Run, RunHost, StopCause};
use crate::state::State;

/// What to tell, and the hosts that have a command and have not answered it. `facts` are those of one record, `state` is
/// the one after them.
pub fn hint(facts: &[Fact], state: &State) -> Option<(Hint, Vec<HostName>)> {
    let run = facts.iter().find_map(stopping)?;
    let told = [&state.run, &state.last_run].into_iter().flatten().find(|known| known.id == *run)?;
    let cause = cause(told.stopping.as_ref()?)?;
    let hosts = at_work(told);
    (!hosts.is_empty()).then(|| (Hint { run: Some(run.clone()), cause }, hosts))
}

fn stopping(fact: &Fact) -> Option<&RunId> {
    let Fact::RunStopping { run, .. } = fact else { return None };
    Some(run)
}

/// A run that has failed stays so when it is cancelled after that.
fn cause(stopping: &StopCause) -> Option<HintCause> {
    match stopping {
        StopCause::Cancelled { .. } => Some(HintCause::Cancelled),
        StopCause::Failed { .. } => Some(HintCause::Failed),
        // Nobody knows who is still at work on it.
        StopCause::Restored { .. } => None,
    }
}

fn at_work(run: &Run) -> Vec<HostName> {
    // One that was given up may come to its end yet, which frees its slot: it is left to it.
    let may_stop = |host: &RunHost| host.unanswered().is_some() && host.status != HostStatus::TimedOut;
    let unanswered = run.hosts().iter().filter(|(_, host)| may_stop(host));
    unanswered.map(|(name, _)| name.clone()).collect()
}
