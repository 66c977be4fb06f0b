//! A site in containers of a real engine: the images of `docker/Dockerfile` and the compose file, as users run them, under
//! names of its own. Base images are made of the Debian systems in `.tools/` and of what is on the machine, for there may
//! be no registry. What is made carries the site's label and goes with the site.

mod engine;
mod images;
mod package;
mod site;

pub use images::{PACKAGES, REBOOTS};
pub use site::{Fault, ORCHESTRATORS, Site};

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the whole project.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A program for `docker/` that `make tools` fetches.
pub fn tool(name: &str) -> Command {
    let path = repository().join(".tools/docker/bin").join(name);
    assert!(path.is_file(), "{} is missing: run `make tools`", path.display());
    Command::new(path)
}

/// Copies a file with its permissions, and makes the directories that it stands in.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}
