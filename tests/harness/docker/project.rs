//! The project's directory, and the tools that `make tools` installs in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root directory of the project.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A tool for `docker/` that `make tools` installs.
pub fn tool(name: &str) -> Command {
    let path = repository().join(".tools/docker/bin").join(name);
    assert!(path.is_file(), "{} is missing: run `make tools`", path.display());
    Command::new(path)
}
