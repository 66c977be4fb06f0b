//! Tests whether a FleetLock server does what clients rely on: a table of cases ([`table`]), tried over HTTP on any
//! server, os-upgrade's own or another.
//!
//! Each case has two expectations: what the protocol and its three clients, Zincati, fleetctl and fleetlockctl, demand,
//! and the exact answer of os-upgrade's own server. It can be run on a server in use: it uses ids of its own, takes the
//! slots of one group only, and gives them back after each case, whatever its verdict, and once more at the end. How a
//! server behaves when its storage fails cannot be tested from outside.

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

/// Tries every case until `stop`, and calls `row` after each. Slots that were taken are given back before it returns.
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
