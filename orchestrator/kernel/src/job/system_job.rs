//! What each system outside of the bus says of its jobs.

use os_upgrade_protocol::{GroupName, HostName};

use crate::fact::Fact;
use crate::reason::NoAnswer;
use crate::state::State;
use crate::view::View;

/// The jobs of one system.
pub(super) trait SystemJob: Sized {
    /// What becomes of one.
    type Outcome;

    /// What is to be done in the system, given `state`.
    fn wanted(state: &State) -> impl Iterator<Item = Self>;

    /// What follows from what became of it.
    fn done(&self, state: &State, view: &View, outcome: &Self::Outcome) -> Vec<Fact>;

    /// What becomes of it when nothing is heard.
    fn unanswered(why: NoAnswer) -> Self::Outcome;

    /// Whether the system has said yes or no.
    fn is_answer(outcome: &Self::Outcome) -> bool;

    /// The host that it is about.
    fn host(&self) -> &HostName;

    /// Whether it gives back what another has taken.
    fn is_release(&self) -> bool;

    /// What it takes from, or gives back to, if that may have nothing left.
    fn pool(&self) -> Option<&GroupName>;
}
