//! Units and machines: what operators want to run, on which hosts that is, and where it still has to stop.
//!
//! `os-upgrade-scheduler` says what unit files mean and which machine suits a unit; here is what the site knows of both. A unit that is
//! placed is part of what its host is to have (`desired/`), and what its agent reports tells whether it runs.

mod closed;
mod fact;
mod fold;
mod offer;
mod plan;
pub(crate) mod request;
mod rules;
mod state;
mod steps;

pub use self::closed::Closed;
pub use self::fact::{TakenAway, UnitFact};
pub use self::offer::{Admission, MachineOffer};
pub use self::request::{UnitOperation, UnitRefusal};
pub(crate) use self::rules::offer;
pub use self::state::{Machine, Standing, UNITS_BYTES_MAX, UNITS_MAX, Unit, Units};
pub(crate) use self::steps::{find_stopped, join_first, judge_machines, place};
