//! What hosts' commands have printed, read on demand: it is neither journaled nor in the published state.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, Output};

/// The output of a command, and when it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// The output, as its host has sent it.
    pub output: Output,
    /// When it was stored.
    pub stored_at: DateTime<Utc>,
}

/// The outputs cannot be read now; why, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutputsError(pub String);

/// What reading the outputs of a host returns.
pub type OutputsRead<'a> = Pin<Box<dyn Future<Output = Result<Vec<StoredOutput>, OutputsError>> + Send + 'a>>;

/// Where outputs are kept.
pub trait KeepsOutputs: fmt::Debug + Send + Sync {
    /// What is kept of the commands of `host`, oldest first, within some seconds.
    fn of_host<'a>(&'a self, host: &'a HostName) -> OutputsRead<'a>;
}

/// The outputs of hosts' commands; by default there are none. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Outputs(Option<Arc<dyn KeepsOutputs>>);

impl Outputs {
    /// The outputs that are kept there.
    pub fn new(kept: impl KeepsOutputs + 'static) -> Self {
        Self(Some(Arc::new(kept)))
    }

    /// What is kept of the commands of `host`, oldest first.
    ///
    /// # Errors
    /// They cannot be read now.
    pub async fn of_host(&self, host: &HostName) -> Result<Vec<StoredOutput>, OutputsError> {
        match &self.0 {
            Some(kept) => kept.of_host(host).await,
            None => Ok(Vec::new()),
        }
    }
}
