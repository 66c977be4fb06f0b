//! The control stream: commands, replies and fences, as they are read.

mod fact;
mod fence;
mod fold;
mod ignored_replies;
pub(crate) mod messages;
mod rules;
mod sent_command;

pub use self::fact::{ControlFact, IgnoreCause};
pub use self::fence::Fence;
pub use self::ignored_replies::IgnoredReplies;
pub use self::messages::ControlMessage;
pub(crate) use self::messages::{fence_stored, retracted};
pub use self::sent_command::{InReplyTo, SentCommand};
