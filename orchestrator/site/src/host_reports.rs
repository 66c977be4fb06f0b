//! What hosts have reported over time, read on demand from where it is kept: what their commands printed, and the versions
//! that they published. It is neither journaled nor in the published state.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, Output};
use tokio::sync::Semaphore;

/// A report, and when it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// The report, as its host has sent it.
    pub report: T,
    /// When it was stored.
    pub at: DateTime<Utc>,
}

/// The reports cannot be read now; why, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReportsError(pub String);

/// What reading the reports of a host returns, oldest first.
pub type ReportsRead<'a, T> = Pin<Box<dyn Future<Output = Result<Vec<Stored<T>>, ReportsError>> + Send + 'a>>;

/// Where reports are kept. Each is read within some seconds.
pub trait KeepsReports: fmt::Debug + Send + Sync {
    /// What is kept of the output of commands of `host`.
    fn outputs<'a>(&'a self, host: &'a HostName) -> ReportsRead<'a, Output>;

    /// What is kept of the versions of `host`, as it has sent them: a host may send many, and few of them are read.
    fn versions<'a>(&'a self, host: &'a HostName) -> ReportsRead<'a, Bytes>;
}

/// How many hosts' reports are read at once: they come in many messages, 16 MiB at most.
const READS_MAX: usize = 4;

/// The reports of hosts; by default there are none. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct HostReports(Option<Arc<Kept>>);

#[derive(Debug)]
struct Kept {
    reports: Box<dyn KeepsReports>,
    turns: Semaphore,
}

impl HostReports {
    /// The reports that are kept there.
    pub fn new(kept: impl KeepsReports + 'static) -> Self {
        Self(Some(Arc::new(Kept { reports: Box::new(kept), turns: Semaphore::new(READS_MAX) })))
    }

    /// What is kept of the output of commands of `host`, oldest first.
    ///
    /// # Errors
    /// It cannot be read now.
    pub async fn outputs(&self, host: &HostName) -> Result<Vec<Stored<Output>>, ReportsError> {
        let Some(kept) = &self.0 else { return Ok(Vec::new()) };
        let _turn = kept.turns.acquire().await.expect("it is never closed");
        kept.reports.outputs(host).await
    }

    /// What is kept of the versions of `host` as it has sent them, oldest first.
    ///
    /// # Errors
    /// They cannot be read now.
    pub async fn versions(&self, host: &HostName) -> Result<Vec<Stored<Bytes>>, ReportsError> {
        let Some(kept) = &self.0 else { return Ok(Vec::new()) };
        let _turn = kept.turns.acquire().await.expect("it is never closed");
        kept.reports.versions(host).await
    }
}
