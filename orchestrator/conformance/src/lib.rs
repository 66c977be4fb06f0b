//! Whether a FleetLock server does what clients rely on: a table of cases ([`table`]), and what asks any server over
//! HTTP, ours or another's.
//!
//! Each case has two expectations: what the protocol and its three clients, Zincati, fleetctl and fleetlockctl, demand,
//! and what exactly our server answers. It can be pointed at a server in use: it asks under ids of its own, takes the
//! slots of one group at most, gives each back as soon as a case is over, whatever came of it, and at the end once more.
//! What a server does when its own storage is away cannot be asked from outside, and is not here.

mod answer;
mod body;
mod case;
mod contend;
mod http;
mod names;
mod runner;
mod table;

use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::BuildError;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use self::runner::Runner;

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

/// The length of the longest name of a case, in characters.
pub fn case_width() -> usize {
    table::CASES.iter().map(|case| case.name.chars().count()).max().unwrap_or_default()
}

/// Tries every case until `stop`, and tells `row` of each. Slots that were taken are given back before it returns.
///
/// # Errors
/// The server cannot be reached.
pub async fn run(
    options: &Options,
    stop: &CancellationToken,
    mut row: impl FnMut(&Row),
) -> Result<Report, Error> {
    let runner = Runner::new(options, stop)?;
    runner.reach().await?;
    let mut report = Report { rows: Vec::new(), interrupted: false, left: Vec::new() };
    for case in table::CASES {
        let tried = runner.attempt(case).await;
        if stop.is_cancelled() {
            report.interrupted = true;
            break;
        }
        runner.release_all().await;
        row(&tried);
        report.rows.push(tried);
    }
    report.left = runner.give_back().await;
    Ok(report)
}
