//! The crates of this workspace, and where their source begins.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What is compiled as one: a library, a program, an example or a test.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its name, as in `os_upgrade_kernel`.
    pub(crate) name: String,
    /// The file of its root module.
    pub(crate) root: PathBuf,
}

/// The directory of the workspace.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every target of every package of the workspace.
pub(crate) fn targets() -> Vec<Target> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(directory())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let targets = packages.flat_map(|package| {
        let targets = package["targets"].as_array().unwrap().iter();
        targets.map(|target| Target { name: text(&target["name"]), root: text(&target["src_path"]).into() })
    });
    targets.collect()
}
