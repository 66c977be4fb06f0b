//! `/boot`, which a boot loader reads without the journal of its filesystem: what has changed there is put in its place soon
//! after, and not when the kernel comes to it half a minute later, so that a host that loses power in between boots.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_systems::text::one_line;
use tracing::warn;

use crate::system::tools::Tools;

/// How often it is looked at. A file that is still being written differs from one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long it may take to put it in its place. A disk that is slower than this keeps no host from its answer.
const PLACE_WITHIN: Duration = Duration::from_mins(2);
/// Where kernels are, and where GRUB has its menu.
const DIRECTORIES: [&str; 2] = ["boot", "boot/grub"];

/// What shows that a file is another, or holds something else: its number, size, and the time of its last change.
type Seen = Vec<(PathBuf, u64, u64, (i64, i64))>;

/// The `/boot` of a system that is being changed.
#[derive(Debug)]
pub(super) struct Boot<'a> {
    tools: &'a Tools,
    /// How it was when it was last put in its place. What was before is not known.
    placed: Option<Seen>,
}

impl<'a> Boot<'a> {
    pub(super) const fn new(tools: &'a Tools) -> Self {
        Self { tools, placed: None }
    }

    /// Puts each change in its place once no other follows it, until this is dropped.
    pub(super) async fn watch(&mut self) -> Infallible {
        let mut before = seen(self.tools.root());
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = seen(self.tools.root());
            if now == before {
                self.place(now).await;
            } else {
                before = now;
            }
        }
    }

    /// Puts in its place what was changed last.
    pub(super) async fn finish(&mut self) {
        self.place(seen(self.tools.root())).await;
    }

    async fn place(&mut self, now: Seen) {
        if now.is_empty() || self.placed.as_ref() == Some(&now) {
            return;
        }
        // Unlike the sync of a single file, it is not content with the journal.
        let words = ["--file-system", "/boot"].map(str::to_owned);
        let wrong = match tokio::time::timeout(PLACE_WITHIN, self.tools.run("sync", &words)).await {
            Ok(Ok(said)) if said.status.success() => None,
            Ok(Ok(said)) => Some(one_line(&said.all())),
            Ok(Err(error)) => Some(error.message().to_owned()),
            Err(_) => Some(format!("sync has not ended within {} s", PLACE_WITHIN.as_secs())),
        };
        if let Some(wrong) = wrong {
            warn!("should the power go within a minute, this host may not boot: {wrong}");
        }
        self.placed = Some(now);
    }
}

/// The files of `/boot`; none where it is not there.
fn seen(root: &Path) -> Seen {
    let entries = DIRECTORIES.iter().filter_map(|name| fs::read_dir(root.join(name)).ok()).flatten();
    let files = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let metadata = fs::symlink_metadata(&path).ok()?;
        Some((path, metadata.ino(), metadata.size(), (metadata.ctime(), metadata.ctime_nsec())))
    });
    let mut files: Seen = files.collect();
    files.sort();
    files
}
