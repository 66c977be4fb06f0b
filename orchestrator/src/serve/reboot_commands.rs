//! The operator's commands that the settings name.

use os_upgrade_adapters::reboot_command::{Attempts, CommandLine, RebootCommands};
use os_upgrade_settings::{self as settings, CommandWords, Settings};

/// The commands of `[reboot]`; `None` if workers reboot their hosts.
pub(super) fn of(settings: &Settings) -> Option<RebootCommands> {
    let commands = settings.reboot_commands()?;
    let within = commands.within();
    let settings::RebootCommands { reboot, boot_check, timeout, retries, interval } = commands;
    let line = |words: &CommandWords| CommandLine::new(words.iter().map(ToOwned::to_owned));
    Some(RebootCommands {
        reboot: line(&reboot)?,
        boot_check: boot_check.as_ref().and_then(line),
        attempts: Attempts { timeout, retries, interval },
        within,
    })
}
