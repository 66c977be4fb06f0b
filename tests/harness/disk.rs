//! Disks that are full: a process whose files cannot grow any more, until room is made.

use std::path::Path;
use std::process::Command;

use os_upgrade_platform::child;

/// A command that runs `program` so that writing to a full disk fails, as it does on a real one, instead of ending it.
pub fn command(program: &Path) -> Command {
    let mut command = child::command("sh");
    // What is ignored stays so in the program.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(program);
    command
}

/// Lets no file of the process grow beyond `bytes`.
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
