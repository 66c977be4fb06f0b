//! Files that are followed while the program runs: looked at again and again, and read again when they are others.
//!
//! Metadata are enough for that, work on every file system, and follow a link that is turned to another file, which watches
//! of the file miss. What is read, and what becomes of a file that cannot be used, is its reader's.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Time between two looks at a file.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which version of a file there is: another one differs in some of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version([i64; 6]);

impl Version {
    /// That of the file with these metadata.
    pub fn of(metadata: &Metadata) -> Self {
        let [inode, size] = [metadata.ino(), metadata.size()].map(u64::cast_signed);
        let (written, changed) = (metadata.mtime(), metadata.ctime());
        Self([inode, size, written, metadata.mtime_nsec(), changed, metadata.ctime_nsec()])
    }

    /// That of the file at `path`, if it can be looked at.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}

/// Calls `look` now and once a second until `shutdown`, where it may block: a file system that hangs must hold up nothing
/// else. `what` is followed no more when it panics, and the log says so.
pub async fn follow(what: &str, shutdown: CancellationToken, mut look: impl FnMut() + Send + 'static) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        let looked = tokio::task::spawn_blocking(move || {
            look();
            look
        });
        look = match shutdown.run_until_cancelled(looked).await {
            None => return,
            Some(Ok(look)) => look,
            Some(Err(error)) => {
                tracing::error!(%error, "{what} is not followed any more");
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
    fn versions_of_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["a", "b"].map(|name| directory.path().join(name));
        assert_eq!(Version::at(&path), None);
        fs::write(&path, "1").unwrap();
        fs::write(&other, "2").unwrap();
        let first = Version::at(&path);
        assert!(first.is_some());
        assert_eq!(Version::at(&path), first);
        // As long as before, and of the same second.
        fs::rename(&other, &path).unwrap();
        assert_ne!(Version::at(&path), first);
    }

    #[tokio::test]
    async fn it_is_looked_at_until_the_end() {
        tokio::time::pause();
        let (sender, looks) = mpsc::channel();
        let shutdown = CancellationToken::new();
        let end = shutdown.clone();
        let mut number = 0;
        follow("it", shutdown, move || {
            number += 1;
            sender.send(number).unwrap();
            if number == 3 {
                end.cancel();
            }
        })
        .await;
        assert_eq!(looks.iter().collect::<Vec<_>>(), [1, 2, 3]);
        // One that panics ends it, and nothing else.
        #[expect(clippy::panic, reason = "it is what is tested")]
        follow("it", CancellationToken::new(), || panic!("it cannot be looked at")).await;
    }
}
