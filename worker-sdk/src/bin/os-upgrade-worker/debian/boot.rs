//! Syncs `/boot` soon after changes. A boot loader reads it without its filesystem's journal, and the kernel writes
//! changes to their final place only half a minute later. A host that loses power in between might not boot.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_systems::text::one_line;
use tracing::warn;

use crate::system::tools::Tools;

/// How often it is checked. A file that is still being written differs between two checks.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// Time limit for a sync, so that a slow disk does not delay the host's answer any longer.
const SYNC_WITHIN: Duration = Duration::from_mins(2);
/// The directories of kernels and of GRUB's menu.
const DIRECTORIES: [&str; 2] = ["boot", "boot/grub"];

/// The files with what shows a change: inode number, size, and the time of the last change.
type FileStates = Vec<(PathBuf, u64, u64, (i64, i64))>;

/// The `/boot` of a system that is being changed.
#[derive(Debug)]
pub(super) struct Boot<'a> {
    tools: &'a Tools,
    /// The files at the last sync; `None` before the first.
    synced: Option<FileStates>,
}

impl<'a> Boot<'a> {
    pub(super) const fn new(tools: &'a Tools) -> Self {
        Self { tools, synced: None }
    }

    /// Syncs changes as soon as no further change follows, until this future is dropped.
    pub(super) async fn watch(&mut self) -> Infallible {
        let mut before = file_states(self.tools.root());
        loop {
            tokio::time::sleep(POLL_EVERY).await;
            let now = file_states(self.tools.root());
            if now == before {
                self.sync(now).await;
            } else {
                before = now;
            }
        }
    }

    /// Syncs the last changes.
    pub(super) async fn finish(&mut self) {
        self.sync(file_states(self.tools.root())).await;
    }

    async fn sync(&mut self, now: FileStates) {
        if now.is_empty() || self.synced.as_ref() == Some(&now) {
            return;
        }
        // Unlike the sync of a single file, this writes more than the journal.
        let arguments = ["--file-system", "/boot"].map(str::to_owned);
        let failure = match tokio::time::timeout(SYNC_WITHIN, self.tools.run("sync", &arguments)).await {
            Ok(Ok(finished)) if finished.status.success() => None,
            Ok(Ok(finished)) => Some(one_line(&finished.all())),
            Ok(Err(error)) => Some(error.message().to_owned()),
            Err(_) => Some(format!("sync has not ended within {} s", SYNC_WITHIN.as_secs())),
        };
        if let Some(failure) = failure {
            warn!("cannot sync /boot; if the power fails within a minute, this host may not boot: {failure}");
        }
        self.synced = Some(now);
    }
}

/// The files of `/boot`; empty if it does not exist.
fn file_states(root: &Path) -> FileStates {
    let entries = DIRECTORIES.iter().filter_map(|name| fs::read_dir(root.join(name)).ok()).flatten();
    let files = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let metadata = fs::symlink_metadata(&path).ok()?;
        Some((path, metadata.ino(), metadata.size(), (metadata.ctime(), metadata.ctime_nsec())))
    });
    let mut files: FileStates = files.collect();
    files.sort();
    files
}
