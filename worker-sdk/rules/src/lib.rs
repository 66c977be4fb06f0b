//! The rules of a worker, without any I/O: what a worker does with a command and in which order, whatever crashes.
//!
//! [`WorkerLogic`] takes an [`Event`] and the time ([`Now`]), and returns [`Action`]s; it reads no clock, no file and no
//! network. A thin executor (the SDK's driver, or a simulator) carries the actions out and reports back with events.
//!
//! Everything depends on this order: the state file is saved, *then* the handler runs or the host reboots; the
//! outcome is saved, *then* the reply is published; the stream has stored the reply, *then* the command is
//! acknowledged. So the process may die between any two actions, and the next process continues from the file.
//!
//! The stream may be rolled back to an earlier moment as well, with the orchestrator and without the worker. What then
//! identifies a command is in [`state_file`]; the answers there are sent again, and nothing is done again.
//!
//! [`desired`] has the rules about configuration, which are apart from those about commands.

pub mod action;
pub mod consumer;
pub mod desired;
pub mod event;
pub mod handler;
pub mod limits;
pub mod log_message;
pub mod logic;
pub mod state_file;
pub mod versions;

pub use action::{Action, OutgoingReply, RebootCall};
pub use consumer::DeliverFrom;
pub use desired::{DesiredAction, DesiredEvent, DesiredLogic, DesiredMessage, DesiredState};
pub use event::{Event, Loaded, Now, Received};
pub use handler::{Call, HandlerCall, HandlerResult, Upgraded};
pub use log_message::{DropReason, Ignored, Level, LogMessage};
pub use logic::{Activity, WorkerConfig, WorkerLogic};
pub use state_file::{
    Answer, BootId, Current, Phase, Position, Prepared, RebootDue, StateFile, StateFileError,
};
