//! What happens to the rules about configuration, and what they request.

use os_upgrade_protocol::Item;

use super::message::DesiredMessage;
use super::state_file::DesiredState;
use crate::Loaded;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredEvent {
    /// The process has started; always the first event.
    Started(Loaded<DesiredState>),
    /// The stream was asked for the host's manifest; `None` if it has none.
    ManifestRead(Option<Vec<u8>>),
    /// What has failed is to be tried again now: there is a new connection, or a hint.
    RetryNow,
    /// The item of [`DesiredAction::Get`] was opened, or why it was not.
    Got(Result<(), String>),
    /// The handler of [`DesiredAction::Configure`] or [`DesiredAction::Revoke`] has returned.
    Finished(Result<(), String>),
    /// The last requested state is durably saved.
    StateSaved,
    /// The state could not be saved; the previous one may still be in place.
    StateSaveFailed(String),
    /// Time has passed; see [`crate::limits::TICK_EVERY`].
    Tick,
}

/// One action. The executor carries them out one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredAction {
    /// Replace the state file, durably; answered by `StateSaved` or `StateSaveFailed`.
    SaveState(Box<DesiredState>),
    /// Get this item, open it and keep its content; answered by `Got`.
    Get(Item),
    /// Apply this item, whose content was kept, and forget the content; answered by `Finished`.
    Configure(Item),
    /// Forget the content that was kept; not answered.
    Discard,
    /// Revoke the configuration of this name; answered by `Finished`.
    Revoke(String),
    /// Log a message for the operator; not answered.
    Log(DesiredMessage),
}
