//! The worker's package, as its crate describes it for cargo-deb, with the program that cargo has built for the tests. It is
//! built here because cargo-deb itself takes minutes to build; `make deb` and `make test-vm` use cargo-deb. Its additions
//! to the maintainer scripts, restarting the service and removing its links, are missing, and so are the manual pages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::engine::succeeded;
use crate::debian::dpkg_deb;
use crate::files::copy;
use crate::programs;

const CRATE: &str = "os-upgrade-worker-sdk";

/// Builds the package at `deb`.
pub(super) fn build_worker(deb: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = succeeded(
        Command::new(cargo)
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(env!("CARGO_MANIFEST_DIR")),
    );
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let described = metadata["packages"].as_array().unwrap().iter().find(|it| it["name"] == CRATE).unwrap();
    let of_crate = Path::new(text(&described["manifest_path"])).parent().unwrap();
    let about = &described["metadata"]["deb"];
    let (name, version) = (text(&about["name"]), text(&described["version"]));
    let tree = tempfile::tempdir().unwrap();
    let tree = tree.path();

    let assets =
        about["assets"].as_array().unwrap().iter().map(|asset| [0, 1, 2].map(|part| text(&asset[part])));
    for [from, to, mode] in assets.filter(|[from, _, _]| !from.starts_with("../target/manual/")) {
        // cargo-deb replaces cargo's directory and profile in these paths.
        let from = from.strip_prefix("target/release/").map_or_else(|| of_crate.join(from), programs::path);
        let to =
            if to.ends_with('/') { tree.join(to).join(from.file_name().unwrap()) } else { tree.join(to) };
        put(&from, &to, u32::from_str_radix(mode, 8).unwrap());
    }
    let units = &about["systemd-units"];
    let unit = format!("{}.service", text(&units["unit-name"]));
    let from = of_crate.join(text(&units["unit-scripts"])).join(&unit);
    put(&from, &tree.join("usr/lib/systemd/system").join(unit), 0o644);

    let control = tree.join("DEBIAN");
    for script in fs::read_dir(of_crate.join(text(&about["maintainer-scripts"]))).unwrap() {
        let script = script.unwrap();
        put(&script.path(), &control.join(script.file_name()), 0o755);
    }
    let configuration =
        about["conf-files"].as_array().unwrap().iter().map(|file| format!("{}\n", text(file)));
    fs::write(control.join("conffiles"), configuration.collect::<String>()).unwrap();
    let architecture = succeeded(Command::new("dpkg").arg("--print-architecture"));
    let maintainer = text(&about["maintainer"]);
    let fields = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {architecture}Maintainer: {maintainer}\n\
         Description: made for a test\n"
    );
    fs::write(control.join("control"), fields).unwrap();
    dpkg_deb(tree, deb);
}

fn put(from: &Path, to: &Path, mode: u32) {
    copy(from, to);
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
