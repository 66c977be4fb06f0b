//! The command line of `debian`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;

use crate::options::{WorkerArgs, positive_duration};
use crate::system::SystemOptions;

#[derive(Debug, Args)]
pub(crate) struct DebianArgs {
    #[command(flatten)]
    pub(crate) worker: WorkerArgs,

    #[command(flatten)]
    pub(crate) settings: Settings,

    #[command(flatten)]
    pub(crate) system: SystemOptions,
}

/// How a Debian host is upgraded.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// Root of the system to upgrade; a root other than / is entered with chroot and cannot be rebooted
    #[arg(long, value_name = "DIR", default_value = "/", env = "OS_UPGRADE_ROOT")]
    pub(crate) root: PathBuf,

    /// Directory below the root for package lists and packages of the next upgrade
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/cache/os-upgrade-worker",
        env = "OS_UPGRADE_CACHE_DIR"
    )]
    pub(crate) cache_dir: PathBuf,

    /// How many packages an upgrade may remove
    #[arg(long, value_name = "COUNT", default_value_t = 5, env = "OS_UPGRADE_REMOVALS_MAX")]
    pub(crate) removals_max: usize,

    /// Let an upgrade also remove essential packages
    #[arg(long, env = "OS_UPGRADE_ALLOW_ESSENTIAL_REMOVALS", value_parser = BoolishValueParser::new())]
    pub(crate) allow_essential_removals: bool,

    /// Fail the preparation when packages are on hold; otherwise they stay as they are
    #[arg(long, env = "OS_UPGRADE_REFUSE_HELD", value_parser = BoolishValueParser::new())]
    pub(crate) refuse_held: bool,

    /// How much space must stay free on each disk that is written to, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 200, env = "OS_UPGRADE_FREE_SPACE")]
    pub(crate) free_space: u64,

    /// How long to wait for another process that uses APT or dpkg
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        env = "OS_UPGRADE_LOCK_WAIT",
        value_parser = positive_duration
    )]
    pub(crate) lock_wait: Duration,

    /// Package whose version is published, or a pattern of dpkg-query such as 'linux-image-*'; may be given several times
    #[arg(long = "package", value_name = "NAME", env = "OS_UPGRADE_PACKAGES", value_delimiter = ' ')]
    pub(crate) packages: Vec<String>,
}
