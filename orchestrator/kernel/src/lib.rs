//! The kernel: decides what happens next in a site's upgrade.
//!
//! Pure and synchronous: the current time and new ids are part of the input. This crate and its dependencies have no
//! clock, no randomness, no I/O, no logging and no await. The main functions:
//!
//! ```text
//! decide(state, view, input, now) -> facts     what follows from an input, given the state
//! state.apply(at, fact)                        one fact folded into the state
//! effects(state)                               what should be under way, given the state
//! startable(state, view)                       what a run can start with now, or what blocks it
//! forecast(state, view, now)                   when the next run starts automatically
//! next_reboot(state, view, now)                which entry of the reboot queue can start, or what blocks all
//! explain(state, view, forecast, host)         why a host is not moving
//! warnings(state, view, config, now)           what would follow from another configuration
//! next_start(state, view, config, now)         when the next run would start with it
//! lasting_warnings(state, view)                what to know of the one in force
//! hint(facts, state)                           which hosts to notify that a run is stopping
//! ```
//!
//! The journal stores facts. [`State`] is the fold of the facts, so a restarted instance, a successor and a newer
//! version all get the same state from the same journal.

mod api_server_order;
mod backoff;
pub mod blocker;
pub mod client_id;
pub mod clock;
pub mod config;
pub mod decide;
pub mod effects;
pub mod enrolment;
pub mod explain;
pub mod fact;
mod fnv;
pub mod forecast;
pub mod format;
pub mod hint;
pub mod ignored_replies;
mod jitter;
pub mod job;
mod left_out;
pub mod missed;
mod no_answer;
pub mod node;
mod node_fence;
mod node_wait;
mod nodes;
mod overdue;
mod owner;
pub mod reason;
pub mod reboot_queue;
pub mod reboots;
pub mod record;
mod remembered;
pub mod restoration;
pub mod restore_record;
pub mod run;
pub mod semaphore;
pub mod slot;
pub mod start;
pub mod start_timer;
pub mod state;
pub mod strongbox;
mod tense;
pub mod turns;
pub mod view;
pub mod warning;

pub use api_server_order::ApiServerOrder;
pub use backoff::Backoff;
pub use blocker::{Blocker, Cause, HostBlocker, StartBlocker, UsedWindow, WindowBlocker, WindowUse};
pub use client_id::{ClientId, ClientIdError};
pub use clock::{Clock, ClockDoubt};
pub use config::difference::Difference;
pub use config::tag::Expected;
pub use config::{
    Config, KubernetesSettings, LockProvider, OnFailure, RebootCommandSettings, RebootSettings, Reclaim,
    Settings,
};
pub use decide::{
    Accepted, Answer, ConfigOperation, ConfigRefusal, ControlMessage, Decision, EnrolmentOperation,
    EnrolmentRefusal, Family, Input, LockOperation, NodeOperation, NodeRefusal, Operation, RebootOperation,
    RebootRefusal, Refusal, RefusalClass, Request, RunOperation, RunRefusal, SecretOperation, SecretRefusal,
    SlotOperation, SlotRefusal, decide,
};
pub use effects::{Effect, Order, Purge, effects, is_wanted, other_effects, sends};
pub use enrolment::{Approval, Enrolled, Enrolment, Withdrawal};
pub use explain::{Explanation, explain};
pub use fact::Fact;
pub use forecast::{Forecast, NextRun, denied, forecast};
pub use hint::hint;
pub use job::{
    CommandJob, CommandOrder, CommandOutcome, Job, JobDone, LockOutcome, NodeJob, NodeOrder, NodeOutcome,
    SlotJob, SlotOrder, System,
};
pub use missed::{MissedReason, MissedRun, MissedRuns};
pub use no_answer::NoAnswer;
pub use node::{Node, NodeStage, NodeStep};
pub use node_fence::NodeFence;
pub use node_wait::{NodeWait, PODS_NAMED_MAX, Pod, PodObstacle, Pods, Volumes};
pub use overdue::BlockedStart;
pub use owner::Owner;
pub use reason::{Reason, WITHHELD};
pub use reboots::{EntryBlocker, explain_entry, needs_operator, next_reboot};
pub use record::{Batch, FactCursor, Record};
pub use remembered::Remembered;
pub use restoration::{Restoration, restoration};
pub use restore_record::{Outstanding, RestoreSource};
pub use run::{
    Enlisted, HostEvent, HostStatus, LateAnswer, LateResult, Phase, Run, RunHost, RunResult, StopCause,
    Trigger,
};
pub use slot::{InReplyTo, Slot, SlotState};
pub use start::{Startable, startable};
pub use state::{ApplyError, State};
pub use strongbox::{Sealed, Secret, SecretName, SecretNameError, Strongbox};
pub use view::{Reachability, SeenHost, SeenMark, SeenNode, Silence, View};
pub use warning::{Warning, lasting_warnings, next_start, warnings};
