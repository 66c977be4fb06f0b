//! Commands that call an instance's API.

mod cluster;
pub(crate) mod histories;
mod hosts;
mod strongbox;

use clap::Subcommand;

/// Every command of this folder.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the instances of a site
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// List the hosts of a site, and decide which take part in runs
    #[command(subcommand)]
    Hosts(hosts::Command),
    /// Manage the site's secrets, and the key that seals them
    #[command(subcommand)]
    Strongbox(strongbox::Command),
}

/// Runs `command`.
pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Cluster(command) => cluster::run(command).await,
        Command::Hosts(command) => hosts::run(command).await,
        Command::Strongbox(command) => strongbox::run(command).await,
    }
}
