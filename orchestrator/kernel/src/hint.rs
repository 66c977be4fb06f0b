//! Hints: whom to tell that the run is stopping. Nothing relies on them; they only save waiting for what will not count.

use os_upgrade_protocol::hint::{Hint, HintCause};
use os_upgrade_protocol::{HostName, RunId};

use crate::fact::Fact;
use crate::run::{Run, StopCause};
use crate::state::State;

/// What to tell, and the hosts that have a command and have not answered it. `facts` are those of one record, `state` is
/// the one after them.
pub fn hint(facts: &[Fact], state: &State) -> Option<(Hint, Vec<HostName>)> {
    let (run, cause) = facts.iter().find_map(stopping)?;
    let told = [&state.run, &state.last_run].into_iter().flatten().find(|known| known.id == *run)?;
    let hosts = at_work(told);
    (!hosts.is_empty()).then(|| (Hint { run: Some(run.clone()), cause }, hosts))
}

fn stopping(fact: &Fact) -> Option<(&RunId, HintCause)> {
    let Fact::RunStopping { run, cause } = fact else { return None };
    match cause {
        StopCause::Cancelled { .. } => Some((run, HintCause::Cancelled)),
        StopCause::Failed { .. } => Some((run, HintCause::Failed)),
        // Nobody knows who is still at work on it.
        StopCause::Restored { .. } => None,
    }
}

fn at_work(run: &Run) -> Vec<HostName> {
    let unanswered = run.hosts().iter().filter(|(_, host)| host.unanswered().is_some());
    unanswered.map(|(name, _)| name.clone()).collect()
}
