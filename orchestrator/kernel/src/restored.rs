//! What is known of a restoration: where the state comes from, and which commands are still open.

use os_upgrade_protocol::{Action, GroupName, HostName, RunId};
use serde::{Deserialize, Serialize};

/// Where a restored state comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum RestoreSource {
    /// The store: all that its instance had taken in.
    Store,
    /// A backup: all that was there when it was made.
    Backup,
}

impl RestoreSource {
    /// The word in the history.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A command that was found in the control stream without a reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outstanding {
    /// The host it was sent to.
    pub host: HostName,
    /// The group whose slot the host takes.
    pub group: GroupName,
    /// The run it is of.
    pub run: RunId,
    /// What it asks.
    pub action: Action,
    /// Its sequence.
    pub sequence: u64,
}
