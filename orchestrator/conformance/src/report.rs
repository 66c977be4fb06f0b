//! The options and the report of an examination.

use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::BuildError;
use serde::Serialize;

/// How strict the expectations are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// What the protocol demands and its clients rely on.
    Protocol,
    /// Exactly the statuses and kinds of os-upgrade's own server.
    Strict,
}

/// The options of an examination.
#[derive(Debug, Clone)]
pub struct Options {
    /// The base URL of the server; a user and password in it are sent as HTTP Basic authentication.
    pub url: HttpUrl,
    /// Certificates for `https`; `None` for the system's.
    pub tls: Option<TlsFiles>,
    /// The group whose slots are taken.
    pub group: String,
    /// How strict the expectations are.
    pub level: Level,
    /// How many slots of the group are free, if known; this is then tested too.
    pub slots: Option<usize>,
    /// The most slots taken at once if `slots` is not known.
    pub slots_max: usize,
}

/// The result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail,
    /// Not tried, or nothing is expected.
    Skip,
}

/// A case that has been tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The result.
    pub verdict: Verdict,
    /// The name of the case.
    pub case: &'static str,
    /// What was expected; empty if nothing was.
    pub expected: String,
    /// The answer, or why the case was not tried.
    pub got: String,
}

/// Every case that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The cases, in the order of the table.
    pub rows: Vec<Row>,
    /// Whether it was stopped before all cases were tried.
    pub interrupted: bool,
    /// Ids that may still hold a slot, because the server did not confirm that they do not.
    pub left: Vec<String>,
}

impl Report {
    /// The number of cases with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// Whether all cases were tried, none failed, and all slots are given back.
    pub fn is_good(&self) -> bool {
        self.count(Verdict::Fail) == 0 && !self.interrupted && self.left.is_empty()
    }
}

/// Why the server could not be tested at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No client can be set up, for example for `https` without CA certificates.
    #[error(transparent)]
    Client(#[from] BuildError),
    /// The server does not answer the first request.
    #[error("cannot reach {url}: {cause}")]
    Unreachable {
        /// The base URL of the server.
        url: HttpUrl,
        /// The reason.
        cause: String,
    },
}
