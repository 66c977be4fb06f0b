//! Wall clocks that a test sets while processes run by them. Monotonic clocks stay as they are.
//!
//! libfaketime is preloaded, and reads from a file how wrong the clock is whenever the process asks for the time. A
//! nats-server asks the kernel without any library, so QEMU's user mode runs it, and asks in its place. `make
//! clock-steps` downloads both.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use os_upgrade_platform::nats_server;
use tempfile::TempDir;

use crate::programs;

/// Starts a program as this process, by the clock of its directory. The memory that libfaketime shares with child
/// processes is named after the process id, and an ended process may have left one behind.
const LAUNCHER: &str = r#"#!/bin/sh
rm -f /dev/shm/faketime_shm_$$ /dev/shm/sem.faketime_sem_$$
echo $$ >>'DIRECTORY/started'
exec env LD_PRELOAD='FAKER' LD_LIBRARY_PATH='BESIDE' FAKETIME_TIMESTAMP_FILE='DIRECTORY/offset' \
    FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 PROGRAM "$@"
"#;

/// A clock for any number of processes. To be dropped after them.
#[derive(Debug)]
pub struct Clock {
    directory: TempDir,
}

impl Clock {
    /// A clock that is right.
    pub fn new() -> Self {
        let clock = Self { directory: tempfile::tempdir().unwrap() };
        clock.set(TimeDelta::zero());
        clock
    }

    /// Makes the clock wrong by `offset`, at once.
    pub fn set(&self, offset: TimeDelta) {
        // Replaced in one step, as a process may be reading it.
        let new = self.path("offset.new");
        fs::write(&new, format!("{:+}\n", offset.num_seconds())).unwrap();
        fs::rename(new, self.path("offset")).unwrap();
    }

    /// The orchestrator's program, to run by this clock.
    pub fn orchestrator(&self) -> PathBuf {
        self.launcher("orchestrator", &quoted(&programs::path(programs::ORCHESTRATOR)))
    }

    /// The worker's program, to run by this clock.
    pub fn worker(&self) -> PathBuf {
        self.launcher("worker", &quoted(&programs::path(programs::WORKER)))
    }

    /// The nats-server, to run by this clock.
    pub async fn nats_server(&self) -> PathBuf {
        let server = nats_server::find().await.unwrap().path;
        let emulator = downloaded().join(format!("usr/bin/qemu-{}", std::env::consts::ARCH));
        self.launcher("nats-server", &format!("{} {}", quoted(&emulator), quoted(&server)))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn launcher(&self, name: &str, program: &str) -> PathBuf {
        let libraries = downloaded().join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
        let text = LAUNCHER
            .replace("DIRECTORY", self.directory.path().to_str().unwrap())
            .replace("FAKER", libraries.join("faketime/libfaketimeMT.so.1").to_str().unwrap())
            .replace("BESIDE", libraries.to_str().unwrap())
            .replace("PROGRAM", program);
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let started = fs::read_to_string(self.path("started")).unwrap_or_default();
        for id in started.lines() {
            for name in ["faketime_shm_", "sem.faketime_sem_"] {
                // A process that ends gracefully removes its own.
                let _ = fs::remove_file(format!("/dev/shm/{name}{id}"));
            }
        }
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

fn downloaded() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/clock-steps");
    assert!(tree.with_extension("made").is_file(), "what sets clocks is missing: run `make clock-steps`");
    tree.canonicalize().unwrap()
}
