//! Runs: one pass through the hosts of a site, with the state of each host in it.

mod event;
mod fact;
mod fold;
mod hint;
mod host;
mod index;
mod place;
pub(crate) mod request;
mod rules;
mod state;
mod steps;
mod turns;

pub use self::event::{Enlisted, HostEvent, HostStep};
pub use self::fact::RunFact;
pub use self::hint::hint;
pub use self::host::{
    CountedAs, HostBackoff, HostStatus, IllegalTransition, Issued, LateAnswer, LateResult, RunHost,
};
pub use self::place::Place;
pub use self::request::{
    NoTarget, Preview, Retry, RunOperation, RunRefusal, TARGETS_MAX, TIMEOUT_DEFAULT, Targets, preview,
};
pub use self::state::{Ended, HostError, Phase, Run, RunResult, StopCause, StopKind, Trigger, TriggerKind};
pub(crate) use self::steps::{
    begin_upgrades, expire, finish, leave_out_late, leave_out_unconfigured, prepare_next, stop,
    time_out_replies,
};
pub use self::turns::{LastEnd, NOT_REACHED_RUNS, Turns};
