//! The crates of this workspace, and their root files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crate whose folders are layered, as the name of its target.
pub(crate) const LAYERED: &str = "os_upgrade_kernel";

/// A compilation unit: a library, a program, an example or a test.
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

/// What cargo tells of the workspace.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(directory())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Every target of every package of the workspace.
pub(crate) fn targets() -> Vec<Target> {
    let of = |package: &Value| -> Vec<Target> {
        let targets = package["targets"].as_array().unwrap().iter();
        targets
            .map(|target| Target { name: text(&target["name"]), root: text(&target["src_path"]).into() })
            .collect()
    };
    packages().iter().flat_map(of).collect()
}

/// Which packages of the workspace each of them uses, for tests left out.
pub(crate) fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let used = |package: &Value| -> BTreeSet<String> {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let own = dependencies.filter(|used| used["path"].is_string() && used["kind"].is_null());
        own.map(|used| text(&used["name"])).collect()
    };
    packages().iter().map(|package| (text(&package["name"]), used(package))).collect()
}

/// Whether a package is there for tests alone.
pub(crate) fn is_for_tests(package: &str) -> bool {
    let name = package.strip_prefix("os-upgrade-").unwrap_or(package);
    ["fuzz-targets", "simulation", "test-kubernetes", "test-site", "tests", "tidy"].contains(&name)
}

/// Every source file of the workspace, with its path from there and its text.
pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    let root = directory();
    let mut folders =
        ["fuzz", "orchestrator", "platform", "tests", "worker-sdk"].map(|name| root.join(name)).to_vec();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(found.len() > 300, "only {} files were found", found.len());
    found
}
