//! The programs under test, in cargo's target directory: cargo builds all programs and examples for the workspace's tests.

use std::ffi::OsStr;
use std::path::PathBuf;

use tokio::process::Command;

/// The orchestrator's program.
pub const ORCHESTRATOR: &str = "os-upgrade";
/// The worker's program.
pub const WORKER: &str = "os-upgrade-worker";

/// The path of a program or example, such as `os-upgrade` or `examples/full`.
pub fn path(name: &str) -> PathBuf {
    // Programs are in target/<profile>, tests in its deps.
    let this = std::env::current_exe().unwrap();
    let beside = this.parent().unwrap();
    let programs = if beside.ends_with("deps") { beside.parent().unwrap() } else { beside };
    let program = programs.join(name);
    assert!(
        program.is_file(),
        "{} is missing: run `cargo build --workspace --bins --examples`",
        program.display()
    );
    program
}

/// A command with default signal handling. Started by `nohup` or in the background of a script, the tests have some signals
/// ignored, and child processes would inherit that.
pub fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT").arg(program);
    command
}
