//! Whether the programs of `[reboot]` can be executed.

use os_upgrade_adapters::reboot_command::{CommandLine, RebootCommands};
use os_upgrade_settings::Settings;

use super::check::Check;

/// Each command of `[reboot]`, which the orchestrator runs only once there is a host to reboot.
pub(super) fn examine(settings: &Settings) -> Vec<Check> {
    let check = |(key, command): (&str, &CommandLine)| {
        let name = format!("[reboot] {key}");
        match command.executable() {
            Some(path) => Check::ok(name, format!("{} can be executed by this user", path.display())),
            None => Check::problem(
                name,
                format!("{} cannot be executed by this user, or is not there", command.program()),
                "correct the setting, which no shell reads, or install the program on the machine of each instance",
            ),
        }
    };
    RebootCommands::from_settings(settings).iter().flat_map(RebootCommands::commands).map(check).collect()
}
