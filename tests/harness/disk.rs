//! Full disks, simulated by a process limit on the size of files.

use std::path::Path;
use std::process::Command;

use os_upgrade_platform::child;

/// A command that runs `program` such that a write beyond the limit fails, as on a full disk, and does not kill it.
pub fn command(program: &Path) -> Command {
    let mut command = child::command("sh");
    // An ignored signal stays ignored across exec.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(program);
    command
}

/// Keeps all files of the process from growing beyond `bytes`.
pub fn fill(pid: u32, bytes: u64) {
    limit(pid, &bytes.to_string());
}

/// Lets the process's files grow again.
pub fn make_room(pid: u32) {
    limit(pid, "unlimited");
}

fn limit(pid: u32, limit: &str) {
    let (pid, fsize) = (pid.to_string(), format!("--fsize={limit}:"));
    let status = Command::new("prlimit").args(["--pid", &pid, &fsize]).status().unwrap();
    assert!(status.success(), "prlimit: {status}");
}
