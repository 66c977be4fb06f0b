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
//! dry_run(state, view, operation, now)         where units would go after an operation on them
//! next_start(state, view, config, now)         when the next run would start with it
//! lasting_warnings(state, view)                what to know of the one in force
//! hint(facts, state)                           which hosts to notify that a run is stopping
//! ```
//!
//! The journal stores facts. [`State`] is the fold of the facts, so a restarted instance, a successor and a newer
//! version all get the same state from the same journal.

mod about;
mod answer;
mod apply;
mod as_text;
pub mod clock;
pub mod config;
pub mod control;
mod decide;
pub mod desired;
mod effects;
pub mod enrolment;
pub mod fact;
mod fnv;
pub mod format;
mod in_seconds;
mod jitter;
mod job;
mod left_out;
mod no_answer;
pub mod node;
mod owner;
mod pause;
pub mod reason;
pub mod reboot_queue;
mod record;
mod remembered;
mod request;
mod restoration;
pub mod run;
pub mod secrets;
pub mod slot;
pub mod start;
pub mod state;
mod step;
mod system_job;
pub mod unit;
mod view;
mod why;

pub use answer::{Accepted, RefusalClass};
pub use clock::{Clock, ClockDoubt};
pub use config::difference::Difference;
pub use config::tag::Expected;
pub use config::{
    Config, ConfigOperation, ConfigProvider, ConfigRefusal, FileMode, LockProvider, OnFailure, OnRemoval,
    PROVIDERS_MAX, ProviderKind, Reclaim, Selector, Settings, Warning, lasting_warnings, next_start,
    warnings,
};
pub use control::{ControlMessage, InReplyTo};
pub use decide::{Decision, Input, decide, dry_run};
pub use desired::{
    CALLBACK_TOKENS_MAX, ConfigurationWait, Desired, DesiredHost, DesiredItem, DesiredOperation,
    DesiredRefusal, DesiredUnit, FailedItem, FailedProvider, HookDevice, HookProvider, ItemState, LeftOver,
    ManifestOrder, Resumption, StoredItem, ToldMetadata, Withholding,
};
pub use effects::{Effect, Order, Purge, effects, is_wanted, manifests, other_effects, sends};
pub use enrolment::{
    Approval, Deferral, Enrolled, Enrolment, EnrolmentOperation, EnrolmentRefusal, KeyState, PinnedKey,
    Withdrawal,
};
pub use fact::Fact;
pub use job::{Job, JobDone, System};
pub use no_answer::NoAnswer;
pub use node::{
    KubernetesSettings, Node, NodeFence, NodeJob, NodeOperation, NodeOrder, NodeOutcome, NodeRefusal,
    NodeStage, NodeStep, NodeWait, PODS_NAMED_MAX, Pod, PodObstacle, Pods, Volumes,
};
pub use owner::Owner;
pub use pause::{Pause, PauseCause, PauseOperation, PauseRefusal};
pub use reason::Reason;
pub use reboot_queue::{
    ApiServerOrder, Backoff, CommandJob, CommandOrder, CommandOutcome, EntryBlocker, RebootCommandSettings,
    RebootOperation, RebootRefusal, RebootSettings, explain_entry, needs_operator, next_reboot,
};
pub use record::{Batch, FactCursor, Record};
pub use remembered::Remembered;
pub use request::{Answer, Family, Operation, Refusal, Request};
pub use restoration::{Outstanding, Restoration, RestoreSource, restoration};
pub use run::{
    Enlisted, HostEvent, HostStatus, LastEnd, LateAnswer, LateResult, NOT_REACHED_RUNS, NoTarget, Phase,
    Preview, Retry, Run, RunHost, RunOperation, RunRefusal, RunResult, StopCause, TARGETS_MAX,
    TIMEOUT_DEFAULT, Targets, Trigger, hint, preview,
};
pub use secrets::{Sealed, Secret, SecretName, SecretNameError, SecretOperation, SecretRefusal, Strongbox};
pub use slot::{
    ClientId, ClientIdError, LockOperation, LockOutcome, Slot, SlotJob, SlotOperation, SlotOrder,
    SlotRefusal, SlotState,
};
pub use start::{
    BlockedStart, Forecast, MissedReason, MissedRun, MissedRuns, NextRun, StartBlocker, Startable,
    UsedWindow, WindowBlocker, WindowUse, denied, forecast, startable,
};
pub use state::{ApplyError, State};
pub use system_job::Subject;
pub use unit::{Admission, Closed, Machine, MachineOffer, Standing, Unit, UnitOperation, UnitRefusal, Units};
pub use view::{AgentSeen, Configures, Poll, Reachability, SeenHost, SeenMark, SeenNode, Silence, View};
pub use why::{Cause, Explainer, Explanation, HostBlocker, Why};
