//! Commands that call an instance's API.

mod cluster;
mod completion;
mod config;
mod context;
mod drain;
pub(crate) mod events;
pub(crate) mod histories;
mod hosts;
mod machines;
pub(crate) mod options;
mod pause;
mod providers;
mod reboot_queue;
mod release;
mod run;
mod status;
mod strongbox;
mod units;
mod version;
mod windows;

use clap::Subcommand;

use crate::Failure;

/// Every command of this folder.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what goes on: the run, who works and who waits, what is next, and what needs a person
    ///
    /// With --watch it is read again when something happens, and every 15 s.
    #[command(after_help = examples!["status", "status --watch", "status -o json"])]
    Status(status::Status),
    /// Start, watch, list and cancel runs
    #[command(subcommand)]
    Run(run::Command),
    /// Begin nothing further on a site: no run, no host of the active one, and no reboot
    ///
    /// What is under way is finished, and the active run may end in time without the hosts that had not begun. Runs that are due
    /// meanwhile are missed. FleetLock clients get slots as before.
    #[command(after_help = examples![
        "pause --reason 'the fair is on'", "pause --reason 'not tonight' --until tomorrow", "pause --reason 'a freeze' --until 2026-12-27"
    ])]
    Pause(pause::Pause),
    /// End the pause of a site
    #[command(after_help = examples!["resume", "resume --reason 'the fair is over'"])]
    Resume(pause::Resume),
    /// Show the instances of a site
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Manage named instances, with what their API needs, and choose the one that commands call
    #[command(subcommand)]
    Context(context::Command),
    /// Read and change the configuration of a site's upgrades
    #[command(subcommand)]
    Config(config::Command),
    /// Show what has happened on a site, or follow what happens
    ///
    /// Without --follow, everything since --since or --after, or as far back as the history goes.
    #[command(after_help = examples![
        "events --since today",
        "events --run last",
        "events --follow",
        "events --follow --kinds run-ended,host --host h01 -o json",
    ])]
    Events(events::Options),
    /// List the hosts of a site, and decide which take part in runs
    #[command(subcommand)]
    Hosts(hosts::Command),
    /// Show what the drain of a host's Kubernetes node would do, without draining it
    ///
    /// Nodes are drained before their hosts upgrade or reboot, by runs and by the reboot queue. This shows which pods would be
    /// evicted then, and which would keep the node from being drained as things are.
    #[command(after_help = examples!["drain --dry-run h01", "drain --dry-run h01 -o json"])]
    Drain(drain::Drain),
    /// Queue reboots of hosts without an upgrade, and show, cancel, stop and resume them
    #[command(subcommand, visible_alias = "rq")]
    RebootQueue(reboot_queue::Command),
    /// List when the maintenance windows are open
    #[command(after_help = examples!["windows", "windows --count 3 --utc"])]
    Windows(windows::Windows),
    /// Show where configuration of hosts comes from, and how far it is
    #[command(subcommand)]
    Providers(providers::Command),
    /// Submit, start and stop units of systemd on the hosts, and show where they run
    #[command(subcommand)]
    Units(units::Command),
    /// Show the hosts that run units
    #[command(subcommand)]
    Machines(machines::Command),
    /// Show and end that hosts are not told what they are to have
    #[command(subcommand)]
    Desired(providers::Desired),
    /// Manage the site's secrets, and the key that seals them
    #[command(subcommand)]
    Strongbox(strongbox::Command),
    /// Print the version, and which time zone data the system has; with --url or --context also the versions of a site's instances
    #[command(after_help = examples!["version", "version -o json", "version --url http://127.0.0.1:8646"])]
    Version(version::Version),
}

/// Runs `command`.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Status(options) => status::run(options).await,
        Command::Run(command) => run::run(command).await,
        Command::Pause(options) => pause::pause(options).await,
        Command::Resume(options) => pause::resume(options).await,
        Command::Windows(options) => windows::run(options).await,
        Command::Cluster(command) => cluster::run(command).await,
        Command::Config(command) => config::run(command).await,
        Command::Context(command) => context::run(command),
        Command::Events(options) => events::run(options).await,
        Command::Hosts(command) => hosts::run(command).await,
        Command::Drain(options) => drain::run(options).await,
        Command::RebootQueue(command) => reboot_queue::run(command).await,
        Command::Providers(command) => providers::run(command).await,
        Command::Desired(command) => providers::run_desired(command).await,
        Command::Units(command) => units::run(command).await,
        Command::Machines(command) => machines::run(command).await,
        Command::Strongbox(command) => strongbox::run(command).await,
        Command::Version(options) => version::run(options).await,
    }
}
