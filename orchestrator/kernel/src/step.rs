//! A host's step: its way with a slot, which is the same for a run and for an entry of the reboot queue.
//!
//! slot -> drain -> command -> boot -> recover -> ended
//!
//! Runs and entries store how far they are in words of their own, [`HostStatus`](crate::run::HostStatus) and
//! [`EntryStatus`](crate::reboot_queue::EntryStatus), from which the [`Stage`] follows. Slots and nodes outlive both, so they name
//! their owner, and [`State::step_of`](crate::State::step_of) finds the step.

mod rules;
mod stage;

pub(crate) use self::rules::{Step, StepEvent, of_step};
pub(crate) use self::stage::{Move, Stage};
