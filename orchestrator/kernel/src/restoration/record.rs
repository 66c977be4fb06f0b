//! The data of a restoration: where the state comes from, and which commands are unanswered.

use os_upgrade_protocol::{Action, GroupName, HostName};
use serde::{Deserialize, Serialize};

use crate::owner::Owner;

/// Where a restored state comes from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum RestoreSource {
    /// The store: the journal as far as its instance had applied it.
    Store,
    /// A backup: the journal at the time of the backup.
    Backup,
}

impl RestoreSource {
    /// The word in the history.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A command in the control stream without a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outstanding {
    /// The host it was sent to.
    pub host: HostName,
    /// The group whose slot the host needs.
    pub group: GroupName,
    /// Whose command it is.
    #[serde(rename = "run")]
    pub owner: Owner,
    pub action: Action,
    /// The command's sequence in the control stream.
    pub sequence: u64,
}
