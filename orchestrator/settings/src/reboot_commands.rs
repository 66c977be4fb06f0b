//! The commands of `[reboot]`: what their adapter needs, and the rules between their keys.

use std::time::Duration;

use super::merged::Merged;
use super::problem::Problem;
use super::schema::{Reboot, Settings};
use super::value::CommandWords;

const SECTION: &str = "reboot";

/// The operator's commands that reboot hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebootCommands {
    /// Reboots a host.
    pub reboot: CommandWords,
    /// Says whether a host has booted.
    pub boot_check: Option<CommandWords>,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How often one that has failed is tried again.
    pub retries: u32,
    /// The time before each of these attempts.
    pub interval: Duration,
}

impl RebootCommands {
    /// How long a command takes at most, with all attempts.
    pub fn within(&self) -> Duration {
        self.timeout * (self.retries + 1) + self.interval * self.retries
    }
}

impl Settings {
    /// The commands that reboot hosts; `None` if their workers do.
    pub fn reboot_commands(&self) -> Option<RebootCommands> {
        let Reboot { reboot_command, boot_check_command, command_timeout, .. } = &self.reboot;
        Some(RebootCommands {
            reboot: reboot_command.clone()?,
            boot_check: boot_check_command.clone(),
            timeout: command_timeout.as_ref()?.get(),
            retries: self.reboot.command_retries.get(),
            interval: self.reboot.command_interval.get(),
        })
    }
}

/// A command that reboots has a limit, and one that checks boots has one that reboots.
pub(super) fn command_rules(merged: &Merged) -> Option<Problem> {
    let given = |key| merged.given(SECTION, key);
    if let Some(raw) = given("reboot-command") {
        let why = "reboot.reboot-command: needs reboot.command-timeout, so that a command that hangs ends";
        return given("command-timeout").is_none().then(|| raw.problem(why.to_owned()));
    }
    let why = "reboot.boot-check-command: needs reboot.reboot-command; a worker says itself that its host has booted";
    given("boot-check-command").map(|raw| raw.problem(why.to_owned()))
}
