//! The commands of `[reboot]`: what their adapter needs, and the rules between their keys.

use std::time::Duration;

use super::problem::Problem;
use super::schema::{Reboot, Settings, read};
use super::value::CommandWords;

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
pub(super) fn command_rules(reboot: &read::Reboot<'_>) -> Option<Problem> {
    if reboot.reboot_command.given.is_some() {
        let why = "so that a command that hangs ends";
        return reboot.reboot_command.needs(&reboot.command_timeout, why);
    }
    let why = "needs reboot.reboot-command; a worker says itself that its host has booted";
    reboot.boot_check_command.problem(why)
}
