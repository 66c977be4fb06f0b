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
mod outcome;
mod report;
mod runner;
mod session;
mod table;

use tokio_util::sync::CancellationToken;

pub use self::report::{Error, Level, Options, Report, Row, Verdict};
use self::runner::Runner;
use self::session::Session;

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
    let runner = Runner(Session::new(options, stop)?);
    let session = &runner.0;
    session.reach().await?;
    let mut report = Report { rows: Vec::new(), interrupted: false, left: Vec::new() };
    for case in table::CASES {
        let tried = runner.attempt(case).await;
        if stop.is_cancelled() {
            report.interrupted = true;
            break;
        }
        session.release_all().await;
        row(&tried);
        report.rows.push(tried);
    }
    report.left = session.give_back().await;
    Ok(report)
}
