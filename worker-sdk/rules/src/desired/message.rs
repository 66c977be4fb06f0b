//! Log messages of the rules about configuration.

use std::fmt;

use os_upgrade_protocol::{ItemId, ManifestRefusal, Revision};

use crate::Level;

/// One message to the operator. Its text is the same for each attempt, so that repetitions can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredMessage {
    /// A newer manifest was accepted.
    Accepted { revision: Revision, items: usize },
    /// A manifest is not followed.
    Refused { refusal: ManifestRefusal, detail: String },
    /// An item is in force.
    Configured { name: String, id: ItemId },
    /// A name is no longer in force.
    Revoked { name: String },
    /// An item could not be applied, or a name not be revoked.
    Failed { name: String, error: String },
    /// The state file could not be saved.
    SaveFailed { error: String },
    /// The state file could not be read.
    StateFileCorrupt { error: String },
    /// An event answers no action.
    Unexpected(&'static str),
}

impl DesiredMessage {
    /// The severity of the message.
    pub const fn level(&self) -> Level {
        match self {
            Self::Unexpected(_) => Level::Debug,
            Self::Accepted { .. } | Self::Configured { .. } | Self::Revoked { .. } => Level::Info,
            Self::Refused { .. } | Self::Failed { .. } | Self::SaveFailed { .. } => Level::Warn,
            Self::StateFileCorrupt { .. } => Level::Error,
        }
    }
}

impl fmt::Display for DesiredMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { revision: Revision { epoch, sequence }, items } => {
                write!(f, "manifest {sequence} of epoch {epoch} is accepted, with {items} items")
            }
            Self::Refused { refusal, detail } => {
                let why = match refusal {
                    ManifestRefusal::OtherSite => "it is of another site",
                    ManifestRefusal::Older => "it is older than the accepted one",
                    ManifestRefusal::Malformed => "it is malformed",
                    ManifestRefusal::Other => "for a reason that is not known",
                };
                write!(f, "the manifest is refused, and nothing changes: {why}: {detail}")
            }
            Self::Configured { name, id } => write!(f, "configuration {name} is in force, as {id}"),
            Self::Revoked { name } => write!(f, "configuration {name} is revoked"),
            Self::Failed { name, error } => {
                write!(f, "configuration {name} failed, and is tried again: {error}")
            }
            Self::SaveFailed { error } => {
                write!(
                    f,
                    "cannot save the state of configurations, so none is applied until that works: {error}"
                )
            }
            Self::StateFileCorrupt { error } => write!(
                f,
                "the state of configurations is unreadable: all are applied again, and names that are no longer in the manifest \
                 stay as they are; a copy of the file was kept: {error}"
            ),
            Self::Unexpected(event) => write!(f, "{event} answers no pending action"),
        }
    }
}
