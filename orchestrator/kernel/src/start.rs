//! The start of runs: whether one can start, when the next one does, and which were missed.
//!
//! `startable.rs` says whether a run can start now, and `begin.rs` what it begins with. `forecast.rs` says when the next one starts by
//! itself, and `timer.rs` remembers that between ticks. `overdue.rs` finds the runs that were missed, and `missed.rs` is what is
//! known of them. `steps.rs` decides starts and missed runs.

mod begin;
mod blocker;
mod forecast;
mod missed;
mod overdue;
mod startable;
mod steps;
mod timer;

pub(crate) use self::begin::{enlist, enlisted_now, start};
pub use self::blocker::{StartBlocker, UsedWindow, WindowBlocker, WindowUse};
pub(crate) use self::forecast::next;
pub use self::forecast::{Forecast, NextRun, Start, calendar, denied, forecast};
pub use self::missed::{MissedReason, MissedRun, MissedRuns};
pub use self::overdue::BlockedStart;
pub use self::startable::{Startable, startable};
pub(crate) use self::steps::{due, leave_out_unreachable, record_missed};
pub use self::timer::{Due, StartTimer};
