//! The programs under test, as `cargo build` left them next to this test.

use std::path::PathBuf;

/// The orchestrator's program.
pub const ORCHESTRATOR: &str = "os-upgrade";
/// The worker's program.
pub const WORKER: &str = "os-upgrade-worker";

/// Where the program is. It must have been built: cargo builds the programs of a package for its own tests only.
pub fn path(name: &str) -> PathBuf {
    // This test stands in target/<profile>/deps.
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join(name);
    assert!(program.is_file(), "{} is missing: run `cargo build --workspace --bins`", program.display());
    program
}
