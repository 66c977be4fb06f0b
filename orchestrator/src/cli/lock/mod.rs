//! `os-upgrade lock`: FleetLock slots from the command line, of our server and of others.

mod conformance;

use clap::Subcommand;

use super::Failure;
use crate::config::HttpUrl;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Examine any FleetLock server: one row for each case, with what was expected and what it answered
    ///
    /// It asks under ids of its own and takes slots of one group, which must have a free one, for as long as a case
    /// needs them; all are given back, also on Ctrl-C. In a group that others use meanwhile, cases may be disturbed.
    /// It ends with 0 when no case failed.
    Conformance(conformance::Options),
}

/// Carries the command out.
pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Conformance(options) => Ok(conformance::run(options).await?),
    }
}

fn http_url(text: &str) -> Result<HttpUrl, String> {
    text.parse().map_err(|_| "an http:// or https:// URL is expected".to_owned())
}
