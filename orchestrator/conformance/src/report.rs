//! What is examined, and what came of it.

use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::BuildError;
use serde::Serialize;

/// How much is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// What the protocol demands and its clients rely on.
    Protocol,
    /// Exactly the statuses and kinds of our server.
    Strict,
}

/// What to examine, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The base URL of the server; a user and password in it are sent as HTTP Basic authentication.
    pub url: HttpUrl,
    /// Certificates for `https`, where they are not the system's.
    pub tls: Option<TlsFiles>,
    /// The group whose slots are taken.
    pub group: String,
    /// How much is expected.
    pub level: Level,
    /// How many slots of the group are free, if that is known: then this too is examined.
    pub slots: Option<usize>,
    /// Most slots taken at once, where it is not known how many there are.
    pub slots_max: usize,
}

/// What came of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail,
    /// It could not be tried, or nothing is expected.
    Skip,
}

/// A case that has been tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What came of it.
    pub verdict: Verdict,
    /// The case.
    pub case: &'static str,
    /// What was expected; empty when nothing was.
    pub expected: String,
    /// What was answered, or why it was not tried.
    pub got: String,
}

/// Every case that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The cases in their order.
    pub rows: Vec<Row>,
    /// Whether it was ended before it had tried all of them.
    pub interrupted: bool,
    /// Ids that may still hold a slot, because the server did not confirm that they do not.
    pub left: Vec<String>,
}

impl Report {
    /// How many cases had this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// Whether nothing is to be complained of.
    pub fn is_good(&self) -> bool {
        self.count(Verdict::Fail) == 0 && !self.interrupted && self.left.is_empty()
    }
}

/// The server could not be examined at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No client can be set up, for example for `https` without CA certificates.
    #[error(transparent)]
    Client(#[from] BuildError),
    /// The server does not answer the first request.
    #[error("cannot reach {url}: {cause}")]
    Unreachable {
        /// The server.
        url: HttpUrl,
        /// Why.
        cause: String,
    },
}
