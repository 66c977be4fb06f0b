//! The command line. What several commands have of it is in `options`, what one kind of host has beside that kind.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::debian::DebianArgs;
use crate::image::ImageArgs;
use crate::options::{NatsArgs, WorkerArgs, positive_duration};

/// Carries out OS upgrades on this host.
#[derive(Debug, Parser)]
#[command(version, about, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs scripts for the commands of the orchestrator
    #[command(
        long_about = "Runs scripts for the commands of the orchestrator.

The scripts are DIR/prepare, upgrade, reboot, health and versions. Without a script, prepare and health
succeed, versions is empty, and upgrade and reboot are errors.

Exit status: 0 is done; of upgrade, 3 is done and asks for a reboot; anything else is an error, whose
message is the last line that the script wrote to its standard error. versions prints a flat JSON object.

Environment of the scripts:
  OS_UPGRADE_HOST       the host
  OS_UPGRADE_RUN        the run, if the command names one
  OS_UPGRADE_NOT_AFTER  the end of the run (RFC 3339), if it has one
  OS_UPGRADE_RESUME     1 if the script may have been started for the same command before and been cut off
  OS_UPGRADE_REBOOTED   1 if the host has booted since the upgrade was first started
  OS_UPGRADE_PROGRESS   a file for lines that say how far the script is, such as `40 unpacking linux`, or what
                        it does, `unpacking linux`; the last line is shown to operators. Not for versions

A script runs in a process group of its own. When this process is asked to end, the group is sent SIGTERM,
and SIGKILL five seconds later; the work is taken up at the next start. What a killed worker left running is
ended before the next one begins. reboot is the exception: it is never stopped.

After reboot has exited with 0, the boot id must change within the reboot wait; otherwise it is run again,
three times in all, and then the command is answered with an error.",
        after_long_help = "Exit status: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 when
what it is given is wrong, such as another host's credentials.
The log goes to standard error; RUST_LOG sets its level, such as RUST_LOG=debug."
    )]
    Exec(ExecArgs),

    /// Upgrades this Debian host with APT and dpkg
    #[command(
        long_about = "Upgrades this Debian host with APT and dpkg.

prepare reads all sources anew, simulates a dist-upgrade, looks whether it is allowed and whether there is
room for it, and downloads everything. It has package lists and packages of its own, so it changes nothing
of the system, and what it prepared is what upgrade installs.

upgrade first ends what was cut off (dpkg --configure --pending, apt-get --fix-broken install), then runs
dist-upgrade without questions; changed configuration files of the host are kept. It goes on when this
process ends, and the next start waits for it. It asks for a reboot when /run/reboot-required is there or
another kernel is installed than the one that runs.

health, after a reboot and after an upgrade that needs none: every package is installed whole, systemd has
started what it starts, no unit has failed that had not before, and the health script, if there is one, exits
with 0. It is looked at until that is so, or the health wait is over.

versions are those of the kernel (linux), the release (os-release) and the packages given with --package.",
        after_long_help = "Exit status: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 when
what it is given is wrong, such as another host's credentials.
The log, with everything that APT and dpkg say, goes to standard error."
    )]
    Debian(DebianArgs),

    /// Upgrades this host, which runs an image, with bootc or rpm-ostree
    #[command(
        long_about = "Upgrades this host, which runs an image, with bootc or rpm-ostree.

prepare downloads the newest image of what the host follows (upgrade --download-only); a reboot would not
take it yet. upgrade has the next reboot take it (bootc upgrade --from-downloaded, rpm-ostree upgrade
--cache-only) and asks for that reboot, if there is something newer. A bootc that cannot download only
downloads in upgrade.

health, after the reboot: the host runs that image and was not rolled back, systemd has started what it
starts, no unit has failed that had not before, and the health script, if there is one, exits with 0.

versions are those of the kernel (linux), the release (os-release) and the image (image, image-version,
image-id).",
        after_long_help = "Exit status: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 when
what it is given is wrong, such as another host's credentials.
The log, with everything that bootc and rpm-ostree say, goes to standard error."
    )]
    Image(ImageArgs),

    /// Checks a running worker, in whatever language, against the rules of the protocol
    #[command(
        long_about = "Checks a running worker, in whatever language, against the rules of the protocol.

It plays the orchestrator, on a nats-server of its own that the worker is connected to, and prints one row for each
rule. The worker really prepares, upgrades, and reboots, several times: let it do nothing that matters. Its state is
to be as after a finished run, or empty.

Rules that need the worker to be restarted or its host to be rebooted are skipped unless commands say how; both are
run by sh. The restart command ends the worker as a crash would, and starts it again. The reboot command is run once
the worker has been told to reboot; where that really reboots the host, it is `true`, and elsewhere it gives the
worker another boot id and restarts it.",
        after_long_help = "Exit status: 0 when all rules hold, 1 when one is broken or skipped or nothing could be \
checked, 2 for a wrong command line."
    )]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) nats: NatsArgs,

    /// Name of the host that the worker serves
    #[arg(long, value_name = "NAME")]
    pub(crate) host: String,

    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,

    /// Shell command that kills the worker and starts it again
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart_command: Option<String>,

    /// Shell command that reboots the worker's host, or seems to
    #[arg(long, value_name = "COMMAND")]
    pub(crate) reboot_command: Option<String>,

    /// How long the worker may take for what needs no work
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive_duration)]
    pub(crate) patience: Duration,

    /// How long a prepare, an upgrade or a reboot may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive_duration)]
    pub(crate) work_wait: Duration,

    /// End with 0 also when rules were skipped
    #[arg(long)]
    pub(crate) allow_skipped: bool,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// JSON, for programs
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) worker: WorkerArgs,

    /// Directory of the scripts
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn values_are_checked() {
        let parse = |more: &[&str]| {
            let base = ["os-upgrade-worker", "exec", "--application", "a", "--dir", "/d"];
            Cli::try_parse_from(base.iter().chain(more))
        };
        assert!(
            parse(&["--nats", "nats://me:pw@h:4222,h2", "--label", "a=b=c", "--reboot-wait", "90s"]).is_ok()
        );
        for wrong in [
            &["--nats", "http://["] as &[&str],
            &["--nats", ""],
            &["--nats", "h,"],
            &["--nats", "h", "--label", "a"],
            &["--nats", "h", "--reboot-wait", "0s"],
            &["--nats", "h", "--group", "a_b"],
            &["--nats", "h", "--unknown"],
        ] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }
}
