//! The operator's command that reboots a host, once for an entry: an attempt, and what came of it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::entry::EntryEvent;

/// An attempt to reboot a host with the operator's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// What is rebooted, the command's last argument: the name of the Kubernetes node, or of the host if it is none.
    pub node: String,
    /// How far it is.
    pub stage: AttemptStage,
    /// When it entered this stage.
    pub since: DateTime<Utc>,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptStage {
    /// The command is to be run once the cordon of the host's node allows it.
    Due,
    /// The command is being run, in the leadership that began it: it ends with that.
    Running,
    /// The command says that the reboot has begun.
    Succeeded,
    /// Whether the reboot has begun is not known.
    Unknown,
    /// The command says that the reboot has not begun.
    Failed,
    /// The host has booted.
    Booted,
}

impl Attempt {
    pub(super) fn first(node: &str, at: DateTime<Utc>) -> Self {
        Self { number: 1, node: node.to_owned(), stage: AttemptStage::Due, since: at }
    }

    /// Whether its host is told to reboot, or was, and counts as rebooted once it is in another boot.
    pub(crate) const fn awaits_boot(&self) -> bool {
        match self.stage {
            AttemptStage::Due | AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed => {
                true
            }
            // The command ends first.
            AttemptStage::Running | AttemptStage::Booted => false,
        }
    }

    /// The attempt after `event`; `None` if that is illegal in its stage.
    pub(super) fn after(&self, event: &EntryEvent, at: DateTime<Utc>) -> Option<Self> {
        use AttemptStage as S;
        let to = |stage| Self { stage, since: at, ..self.clone() };
        Some(match (self.stage, event) {
            (S::Unknown, EntryEvent::AttemptDue { node, .. }) => {
                Self { number: self.number.saturating_add(1), node: node.clone(), ..to(S::Due) }
            }
            (S::Due, EntryEvent::AttemptBegan) => to(S::Running),
            (S::Running, EntryEvent::AttemptSucceeded) => to(S::Succeeded),
            (S::Running, EntryEvent::AttemptUnknown { .. }) => to(S::Unknown),
            (S::Running, EntryEvent::Failed { .. }) => to(S::Failed),
            (S::Due | S::Succeeded | S::Unknown | S::Failed, EntryEvent::Booted { .. }) => to(S::Booted),
            _ => return None,
        })
    }

    /// The attempt after a restoration at `at` from data that may be old: its host may have been told since.
    pub(super) fn restored(&self, at: DateTime<Utc>) -> Self {
        match self.stage {
            AttemptStage::Due | AttemptStage::Running => {
                Self { stage: AttemptStage::Unknown, since: at, ..self.clone() }
            }
            AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed | AttemptStage::Booted => {
                self.clone()
            }
        }
    }
}
