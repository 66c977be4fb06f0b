//! Commands that call an instance's API.

mod cluster;
mod context;
pub(crate) mod histories;
mod hosts;
pub(crate) mod options;
mod strongbox;

use clap::Subcommand;

use crate::Failure;

/// Every command of this folder.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the instances of a site
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Manage named instances, with what their API needs, and choose the one that commands call
    #[command(subcommand)]
    Context(context::Command),
    /// List the hosts of a site, and decide which take part in runs
    #[command(subcommand)]
    Hosts(hosts::Command),
    /// Manage the site's secrets, and the key that seals them
    #[command(subcommand)]
    Strongbox(strongbox::Command),
}

/// Runs `command`.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Cluster(command) => cluster::run(command).await,
        Command::Context(command) => context::run(command),
        Command::Hosts(command) => hosts::run(command).await,
        Command::Strongbox(command) => strongbox::run(command).await,
    }
}
