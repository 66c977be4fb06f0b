//! A simulator: the kernel, the orchestrator's shell logic and the workers' rules, as they ship, in a simulated world.
//!
//! Everything around them is simulated: bus, lease, lock server, stores, clocks, hosts, operators. It runs in one
//! thread, and one seed decides everything, so that every run can be repeated. [`checker`] watches.

mod agenda;
mod agent;
mod bug;
mod bus;
mod checker;
mod cluster;
mod cluster_plan;
mod command_plan;
mod command_run;
mod corpus;
mod delivery_plan;
mod describe;
mod desired_stream;
mod desired_worker;
mod fault;
mod hook_provider;
mod host;
mod instance;
mod locks;
mod machine;
mod operator;
mod outage_plan;
mod outside;
mod peer;
mod plan;
mod provider;
mod queue_plan;
mod request;
mod search;
mod simulation;
mod steer_plan;
mod tally;
mod time;
mod trace;
mod unit_plan;
mod world;

pub use bug::Bug;
pub use checker::Violation;
pub use corpus::{CORPUS, Found};
pub use fault::Fault;
pub use outside::Digest;
pub use search::{Finding, SEEDS_MAX};
pub use simulation::{Outcome, simulate};
pub use tally::{Tally, replay};
pub use trace::Recording;
