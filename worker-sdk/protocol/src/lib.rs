//! The wire between the orchestrator and its workers: message types, stream and subject names, headers, limits.
//!
//! Both sides use this crate, and it defines everything that a worker in another language needs.
//! It does no I/O and makes no decisions.
//!
//! Payloads are those of Avassa's "OS upgrade management"; fields beyond that document are extensions that a
//! plain worker may omit and must ignore. Unknown fields are ignored in both directions.

pub mod ack_subject;
pub mod announcement;
pub mod applied;
pub mod command;
pub mod consumer;
pub mod content;
pub mod desired_fence;
pub mod error;
pub mod fence;
pub mod header;
pub mod heartbeat;
pub mod hint;
pub mod host_key;
pub mod json;
pub mod limits;
pub mod manifest;
pub mod name;
pub mod output;
pub mod progress;
pub mod reply;
pub mod run_id;
pub mod subject;
pub mod text;
pub mod time;
pub mod tls_error;
pub mod unit_item;
pub mod versions;

pub use ack_subject::AckSubject;
pub use announcement::Announcement;
pub use applied::{Applied, AppliedItem, ManifestRefusal, ReportedState, UnitReport};
pub use command::{Action, Command, CommandId};
pub use consumer::{ConsumerAnswer, ConsumerRequest};
pub use content::{Content, FileEntry};
pub use desired_fence::DesiredFence;
pub use fence::Fence;
pub use heartbeat::Heartbeat;
pub use hint::{Hint, HintCause};
pub use host_key::{HostKey, HostKeyError};
pub use json::ParseError;
pub use manifest::{Item, ItemId, ItemIdError, ItemKind, Manifest, Revision};
pub use name::{ApplicationName, GroupName, HostName, LongToken, NameError, is_word};
pub use output::{Output, OutputTail};
pub use progress::Progress;
pub use reply::{Outcome, Reply};
pub use run_id::RunId;
pub use unit_item::{UnitItem, WantedState};
pub use versions::Versions;
