//! Watches files by polling their metadata, so that they can be reloaded when they change.
//!
//! Unlike inotify, this works on every file system, and notices when a symbolic link is changed to another file. Callers
//! read the files, and decide what to do with one that cannot be used.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Time between two checks of a file that an operator changes.
pub const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The version of a file: inode, size, mtime and ctime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version([i64; 6]);

impl Version {
    /// The version of the file with these metadata.
    pub fn of(metadata: &Metadata) -> Self {
        let [inode, size] = [metadata.ino(), metadata.size()].map(u64::cast_signed);
        let (written, changed) = (metadata.mtime(), metadata.ctime());
        Self([inode, size, written, metadata.mtime_nsec(), changed, metadata.ctime_nsec()])
    }

    /// The version of the file at `path`; `None` if its metadata cannot be read.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}

/// Calls `check` now and then `every` so often until `shutdown`, on a thread where it may block: a file system that hangs
/// must not delay anything else. If `check` panics, that is logged with `what`, and the calls end.
pub async fn watch(
    what: &str,
    every: Duration,
    shutdown: CancellationToken,
    mut check: impl FnMut() + Send + 'static,
) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        let checked = tokio::task::spawn_blocking(move || {
            check();
            check
        });
        check = match shutdown.run_until_cancelled(checked).await {
            None => return,
            Some(Ok(check)) => check,
            Some(Err(error)) => {
                tracing::error!(%error, "{what} is no longer watched");
                return;
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn replaced_file_has_another_version() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["a", "b"].map(|name| directory.path().join(name));
        assert_eq!(Version::at(&path), None);
        fs::write(&path, "1").unwrap();
        fs::write(&other, "2").unwrap();
        let first = Version::at(&path);
        assert!(first.is_some());
        assert_eq!(Version::at(&path), first);
        // The new file has the same size, and was written in the same second.
        fs::rename(&other, &path).unwrap();
        assert_ne!(Version::at(&path), first);
    }

    #[tokio::test]
    async fn checks_repeat_until_shutdown() {
        tokio::time::pause();
        let (sender, checks) = mpsc::channel();
        let shutdown = CancellationToken::new();
        let end = shutdown.clone();
        let mut number = 0;
        watch("it", CHECK_EVERY, shutdown, move || {
            number += 1;
            sender.send(number).unwrap();
            if number == 3 {
                end.cancel();
            }
        })
        .await;
        assert_eq!(checks.iter().collect::<Vec<_>>(), [1, 2, 3]);
        // A panic ends only the watch.
        #[expect(clippy::panic, reason = "it is what is tested")]
        watch("it", CHECK_EVERY, CancellationToken::new(), || panic!("it cannot be checked")).await;
    }
}
