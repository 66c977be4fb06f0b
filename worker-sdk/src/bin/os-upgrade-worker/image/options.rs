//! The command line of `image`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::options::{WorkerArgs, positive_duration};
use crate::system::SystemOptions;

#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    #[command(flatten)]
    pub(crate) worker: WorkerArgs,

    #[command(flatten)]
    pub(crate) settings: Settings,

    #[command(flatten)]
    pub(crate) system: SystemOptions,
}

/// How an image-based host is upgraded.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// Tool that upgrades this host [default: bootc if it reports a booted image, otherwise rpm-ostree]
    #[arg(long, value_enum, value_name = "TOOL", env = "OS_UPGRADE_IMAGE_TOOL")]
    pub(crate) tool: Option<Kind>,

    /// How long to wait for another transaction of rpm-ostree
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        env = "OS_UPGRADE_LOCK_WAIT",
        value_parser = positive_duration
    )]
    pub(crate) lock_wait: Duration,
}

/// The tool that upgrades the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Bootc,
    RpmOstree,
}
