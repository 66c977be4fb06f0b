//! Workers of any kind as processes that are kept running.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The worker in Python.
pub(super) const PYTHON_WORKER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../worker-sdk/examples/python/worker.py");

pub(super) const VERSIONS: (&str, &str) = ("versions", r#"echo '{"linux":"1"}'"#);

/// The command line of the worker in Python.
pub(super) fn python(url: &str) -> String {
    const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/nats-py");
    for package in ["nats", "cryptography"] {
        assert!(Path::new(LIBRARY).join(package).is_dir(), "{package} is missing: run `make tools`");
    }
    let environment = format!("OS_UPGRADE_NATS_URL={url} BOOT_ID_FILE=boot-id PYTHONPATH='{LIBRARY}'");
    format!("{environment} python3 '{PYTHON_WORKER}' h01 scripts")
}

/// A worker of any kind, restarted whenever it ends, as an init system would.
pub(super) struct Supervised {
    pub(super) directory: TempDir,
    supervisor: Child,
}

impl Supervised {
    /// A worker with scripts: its command line, to be run in a directory with `scripts` and `boot-id`.
    pub(super) fn start(worker: &str, scripts: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::create_dir(path.join("scripts")).unwrap();
        for (name, body) in scripts {
            let script = path.join("scripts").join(name);
            std::fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(path.join("boot-id"), "boot-1\n").unwrap();
        let again = format!("while :; do {worker} >>log 2>&1 & echo $! >pid; wait $!; sleep 0.1; done");
        let supervisor = Command::new("sh").args(["-c", &again]).current_dir(path).kill_on_drop(true).spawn();
        Self { supervisor: supervisor.unwrap(), directory }
    }

    /// The commands that restart it, and its host.
    pub(super) fn commands(&self) -> [String; 2] {
        let at = self.directory.path().display();
        let restart = format!("kill -9 $(cat '{at}/pid')");
        let reboot = format!("cat /proc/sys/kernel/random/uuid >'{at}/boot-id'; {restart}");
        [restart, reboot]
    }

    /// What it has printed.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).unwrap_or_default();
        // The supervisor first, or it would restart the worker.
        let supervisor = self.supervisor.id().map(|id| id.to_string()).unwrap_or_default();
        let _ = std::process::Command::new("kill").args(["-9", &supervisor, pid.trim()]).status();
    }
}
