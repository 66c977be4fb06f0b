//! What each system outside of the bus implements for its jobs, and what a job is about.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{GroupName, HostName};

use crate::fact::Fact;
use crate::no_answer::NoAnswer;
use crate::state::State;
use crate::view::View;

/// What a job is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Host(HostName),
}

/// The jobs of one system.
pub(crate) trait SystemJob: Sized {
    /// The outcome of a job.
    type Outcome;

    /// The jobs that `state` needs in this system.
    fn wanted(state: &State) -> impl Iterator<Item = Self>;

    /// The facts that follow from `outcome`.
    fn done(&self, state: &State, view: &View, outcome: &Self::Outcome, now: DateTime<Utc>) -> Vec<Fact>;

    /// The facts that follow when a leadership begins: jobs of an earlier one may still be under way.
    fn leadership_began(state: &State) -> impl Iterator<Item = Fact> + '_;

    /// The outcome when there is no answer.
    fn unanswered(why: NoAnswer) -> Self::Outcome;

    /// Whether the system has granted or refused it.
    fn is_answer(outcome: &Self::Outcome) -> bool;

    /// What it is about.
    fn subject(&self) -> Subject;

    /// Whether it releases what another job has taken.
    fn is_release(&self) -> bool;

    /// Whether a leader begins one only once it has read what its predecessors did.
    fn needs_fence() -> bool {
        false
    }

    /// The limited pool that it takes from or releases to, if any.
    fn pool(&self) -> Option<&GroupName>;
}
