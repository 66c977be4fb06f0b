//! The operator's command that reboots a host, once for an entry: an attempt, and what came of it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

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
    pub(crate) const fn ends_by_boot(&self) -> bool {
        match self.stage {
            AttemptStage::Due | AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed => {
                true
            }
            // The command ends first.
            AttemptStage::Running | AttemptStage::Booted => false,
        }
    }

    /// The next attempt.
    pub(super) fn again(&self, node: &str, at: DateTime<Utc>) -> Self {
        Self { number: self.number.saturating_add(1), ..Self::first(node, at) }
    }

    /// The attempt at another stage from `at` on.
    pub(super) fn to(&self, stage: AttemptStage, at: DateTime<Utc>) -> Self {
        Self { stage, since: at, ..self.clone() }
    }

    /// The attempt after a restoration at `at` from data that may be old: its host may have been told since.
    pub(super) fn restored(&self, at: DateTime<Utc>) -> Self {
        match self.stage {
            AttemptStage::Due | AttemptStage::Running => self.to(AttemptStage::Unknown, at),
            AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed | AttemptStage::Booted => {
                self.clone()
            }
        }
    }
}
