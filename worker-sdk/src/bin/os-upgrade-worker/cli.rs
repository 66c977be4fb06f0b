//! The command line. Options of several commands are in `options`, those of one kind of host in that kind's module.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::debian::DebianArgs;
use crate::image::ImageArgs;
use crate::options::{NatsArgs, WorkerArgs, positive_duration};

/// Carry out OS upgrades on this host.
#[derive(Debug, Parser)]
#[command(
    name = "os-upgrade-worker",
    version,
    about,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run scripts for the commands of the orchestrator
    #[command(
        long_about = "Run scripts for the commands of the orchestrator.

The scripts are DIR/prepare, upgrade, reboot, health and versions. Without a script, prepare and health
succeed, versions is empty, and upgrade and reboot are errors.

With DIR/configure, which must be there when the worker starts, the host takes configurations from the
orchestrator: configure puts one in force, and DIR/revoke takes one out of force. Each may be called again for
the same configuration, and one that fails is, after a pause of up to five minutes. They run one at a time, but
may run while another script does. Such as configure for the program app:
  #!/bin/sh
  set -e
  case $OS_UPGRADE_CONFIG_NAME in
  app) install -m 640 -g app \"$OS_UPGRADE_CONFIG_FILE\" /etc/app.conf; systemctl reload app ;;
  *) echo \"unknown: $OS_UPGRADE_CONFIG_NAME\" >&2; exit 1 ;;
  esac

Exit status: 0 means done. From upgrade, 194 means done and a reboot is required. Any other status is an error,
whose message is the last line that the script wrote to standard error. versions prints a flat JSON object.

A script begins with the line of its interpreter, such as #!/bin/sh, and is executable. One that cannot be run
is an error, not a missing script.

Environment of the scripts:
  OS_UPGRADE_HOST       the host
  OS_UPGRADE_RUN        the run, if the command names one
  OS_UPGRADE_NOT_AFTER  the end of the run (RFC 3339), if it has one
  OS_UPGRADE_RESUME     1 if the script may have been started for the same command before and cut off
  OS_UPGRADE_REBOOTED   1 if the host has rebooted since the upgrade was first started
  OS_UPGRADE_PROGRESS   a file for progress lines, with a percentage, such as `40 unpacking linux`, or without,
                        such as `unpacking linux`; operators see the last line. Not for versions,
                        configure and revoke
  OS_UPGRADE_CONFIG_NAME  what the configuration is called. For configure and revoke
  OS_UPGRADE_CONFIG_ID    which version of it this is. For configure
  OS_UPGRADE_CONFIG_FILE  a file with its content that only this user can read, in /run/os-upgrade-worker, in
                          XDG_RUNTIME_DIR or in the state directory, whichever can be used first; it is removed
                          when the script has ended. For configure
  Everything else is inherited, except OS_UPGRADE_NATS_URL, which may hold a password.

A script runs in its own process group. When this process is stopped, the group is sent SIGTERM, and SIGKILL
five seconds later; the next start resumes the work. Scripts that a killed worker left running are stopped
before the next one begins. reboot is the exception: it is never stopped.

After reboot has exited with 0, the boot id must change within the reboot wait; otherwise it is run again,
up to three times in total, and then the command is answered with an error.",
        after_long_help = "Exit status: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 when
its configuration is wrong, such as another host's credentials.
The log goes to standard error; RUST_LOG sets its level, such as RUST_LOG=debug."
    )]
    Exec(ExecArgs),

    /// Upgrade this Debian host with APT and dpkg
    #[command(
        long_about = "Upgrade this Debian host with APT and dpkg.

prepare updates all package lists, simulates a dist-upgrade, checks that it is allowed and that there is enough
disk space, and downloads all packages. It uses its own package lists and cache, so it changes nothing in the
system, and upgrade installs exactly what was prepared.

upgrade first finishes an interrupted installation (dpkg --configure --pending, apt-get --fix-broken install),
then runs dist-upgrade without questions; changed configuration files of the host are kept. It continues when
this process ends, and the next start waits for it. It requires a reboot when /run/reboot-required exists,
or a newer kernel of the running one's flavour or another build of it is installed, unless a reboot has already failed
to bring it; whether it does is announced as well, for operators to see.

A reboot goes ahead despite users who are logged in, and waits for programs that inhibit it.

health, after a reboot and after an upgrade that needs none: systemd has started its units, no unit has failed
and no package is unfinished that was not before, and the health script, if there is one, exits with 0. It is
checked until all of this holds or the health wait is over. After an upgrade every package is fully installed.

versions are those of the kernel (linux), the release (os-release) and the packages given with --package.",
        after_long_help = "Exit status: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 when
its configuration is wrong, such as another host's credentials.
The log, with the output of APT and dpkg, goes to standard error."
    )]
    Debian(DebianArgs),

    /// Upgrade this image-based host with bootc or rpm-ostree
    #[command(
        long_about = "Upgrade this image-based host with bootc or rpm-ostree.

prepare downloads the newest image that the host tracks (upgrade --download-only); a reboot would not boot it
yet. upgrade stages it for the next boot (bootc upgrade --from-downloaded, rpm-ostree upgrade --cache-only)
and requires a reboot, if there is something newer. A bootc without --download-only downloads during upgrade.

A reboot goes ahead despite users who are logged in, and waits for programs that inhibit it.

health, after the reboot: the host runs the image that this run has staged, systemd has started its units, no
unit has failed that had not before, and the health script, if there is one, exits with 0.

versions are those of the kernel (linux), the release (os-release) and the image (image, image-version,
image-id).",
        after_long_help = "Exit status: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 when
its configuration is wrong, such as another host's credentials.
The log, with the output of bootc and rpm-ostree, goes to standard error."
    )]
    Image(ImageArgs),

    /// Check a running worker, in any language, against the rules of the protocol
    #[command(
        long_about = "Check a running worker, in any language, against the rules of the protocol.

It plays the orchestrator on a separate nats-server that the worker is connected to, and prints one row for each
rule; when it has to wait, it says on standard error for what. The worker really prepares, upgrades and reboots, several times: use handlers that do no harm. Its state must
be empty, or as after a finished run.

The rules about reboots need an upgrade that requires one: its script exits with 194 in os-upgrade-worker exec.

A worker that takes configurations gets some called check-a, check-b and so on, without files, which its handler must
accept, and others that it cannot open. At the end none is in force. It must not have followed a site's manifests.

Rules that need a restart of the worker or a reboot of its host are skipped unless commands for them are given; both
commands are run by sh. The restart command kills the worker as a crash would, and starts it again. The reboot command
is run once the worker has received the reboot command; if the worker really reboots the host, use `true`, otherwise
a command that changes the worker's boot id and restarts it.",
        after_long_help = "Exit status: 0 when all rules hold, 1 when one is broken or skipped or the check failed, 2 \
for a wrong command line."
    )]
    Check(CheckArgs),

    /// Write a manual page for each command, and the completions of each shell, as packages ship them
    #[command(hide = true)]
    Manual {
        /// The directory, which is created
        directory: PathBuf,
    },
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

    /// Shell command that reboots the worker's host, or simulates it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) reboot_command: Option<String>,

    /// How long the worker may take for steps that need no work
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive_duration)]
    pub(crate) patience: Duration,

    /// How long a prepare, an upgrade, a reboot or a configuration may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive_duration)]
    pub(crate) work_wait: Duration,

    /// Exit with 0 even if rules were skipped
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
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn manual_has_every_command() {
        let directory = tempfile::tempdir().unwrap();
        os_upgrade_platform::manual::write(directory.path(), &Cli::command()).unwrap();
        for file in ["os-upgrade-worker.1", "os-upgrade-worker-debian.1"] {
            let text = std::fs::read_to_string(directory.path().join(file)).unwrap();
            assert!(text.contains("debian"), "{file}");
        }
    }

    #[test]
    fn option_values_are_validated() {
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
