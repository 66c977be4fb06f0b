//! Whether the programs of `[reboot]` can be executed.

use std::env;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use os_upgrade_settings::{CommandWords, Settings};

use super::check::Check;

/// Each command of `[reboot]`, which the orchestrator runs only once there is a host to reboot.
pub(super) fn examine(settings: &Settings) -> Vec<Check> {
    let Some(commands) = settings.reboot_commands() else { return Vec::new() };
    let check = |key: &str, words: &CommandWords| {
        let program = words.iter().next().unwrap_or_default();
        let name = format!("[reboot] {key}");
        match find(program) {
            Some(path) => Check::ok(name, format!("{} can be executed by this user", path.display())),
            None => Check::problem(
                name,
                format!("{program} cannot be executed by this user, or is not there"),
                "correct the setting, which no shell reads, or install the program on the machine of each instance",
            ),
        }
    };
    let reboot = check("reboot-command", &commands.reboot);
    let boot_check = commands.boot_check.as_ref().map(|words| check("boot-check-command", words));
    [reboot].into_iter().chain(boot_check).collect()
}

/// The file that is executed: the named one, or the first of that name on the PATH.
fn find(program: &str) -> Option<PathBuf> {
    let is_executable = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|path| is_executable(path))
}
