//! Finds the process that has locked a file, without touching the lock.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The id of the process that has locked the file, from `/proc/locks`; `None` if it is not locked or that cannot be read.
/// Trying to lock the file instead could make a starting process fail.
pub fn holder(path: &Path) -> Option<u32> {
    let file = fs::metadata(path).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // `7: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`. The device is not compared, since some file systems report
    // different numbers here.
    let inode = format!(":{}", file.ino());
    let mut lines = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words.get(5).is_some_and(|place| place.ends_with(&inode)))?;
    line.get(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_is_found_while_locked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(holder(file.path()), None);
        file.as_file().lock().unwrap();
        assert_eq!(holder(file.path()), Some(std::process::id()));
        file.as_file().unlock().unwrap();
        assert_eq!(holder(file.path()), None);
    }
}
