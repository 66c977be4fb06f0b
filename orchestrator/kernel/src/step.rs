//! A host's step: what happens to it from its slot to its end, in a run and for an entry of the reboot queue alike.
//!
//! slot -> drain -> command -> boot -> recover -> ended
//!
//! Runs and entries store how far they are in words of their own, [`HostStatus`](crate::run::HostStatus) and
//! [`EntryStatus`](crate::reboot_queue::EntryStatus), from which the [`Stage`] follows. A slot outlives its owner, which it names, and
//! the node belongs to the slot; [`State::step_of`](crate::State::step_of) finds the step.

mod rules;
mod stage;

pub(crate) use self::rules::{Step, StepEvent, of_step};
pub(crate) use self::stage::{Move, Stage};
