//! The operator's commands that the settings name.

use os_upgrade_settings::{self as settings, CommandWords, Settings};

use super::{Attempts, CommandLine, RebootCommands};

impl RebootCommands {
    /// The commands of `[reboot]`; `None` if workers reboot their hosts.
    pub fn from_settings(settings: &Settings) -> Option<Self> {
        let commands = settings.reboot_commands()?;
        let within = commands.within();
        let settings::RebootCommands { reboot, boot_check, timeout, retries, interval } = commands;
        let line = |words: &CommandWords| CommandLine::new(words.iter().map(ToOwned::to_owned));
        Some(Self {
            reboot: line(&reboot)?,
            boot_check: boot_check.as_ref().and_then(line),
            attempts: Attempts { timeout, retries, interval },
            within,
        })
    }

    /// Each command with its key in `[reboot]`.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, &CommandLine)> {
        let boot_check = self.boot_check.as_ref().map(|command| ("boot-check-command", command));
        [("reboot-command", &self.reboot)].into_iter().chain(boot_check)
    }
}
