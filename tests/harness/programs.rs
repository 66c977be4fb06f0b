//! The programs under test, as cargo left them next to this test: it builds all programs and examples for the tests of
//! the workspace.

use std::ffi::OsStr;
use std::path::PathBuf;

use tokio::process::Command;

/// The orchestrator's program.
pub const ORCHESTRATOR: &str = "os-upgrade";
/// The worker's program.
pub const WORKER: &str = "os-upgrade-worker";

/// Where the program or example of this name is, `os-upgrade` or `examples/full`.
pub fn path(name: &str) -> PathBuf {
    // A program stands in target/<profile>, a test in its deps.
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

/// A command whose signals do what they do by default. They are ignored where the tests were started by `nohup` or in the
/// background of a script, and the program would go on ignoring them.
pub fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT").arg(program);
    command
}
