//! The file with the key of a strongbox. It is read within bounds, and only if others have no access to it.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use os_upgrade_platform::plain_file;
use zeroize::Zeroizing;

use super::key::{InvalidKey, Key};

/// The largest file that is read, in bytes: a key has 44 characters, and white space around it is ignored.
const FILE_BYTES_MAX: usize = 4 * 1024;

/// Mode bits that the file must not have. The group may read it, because that is how root's files are given to a
/// service and how systemd provides credentials.
const OTHERS: u32 = 0o026;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("cannot read {}, the `key-file` of [strongbox]", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// Others may know the key.
    #[error("{}, the `key-file` of [strongbox], {why}", path.display())]
    Unsafe {
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// The content is not a key.
    #[error("{}, the `key-file` of [strongbox]", path.display())]
    Unfit { path: PathBuf, source: InvalidKey },
}

/// Reads the key in the file at `path`.
///
/// # Errors
/// It is not a regular file, cannot be read, is accessible to others, or does not contain a key.
pub fn read(path: &Path) -> Result<Key, KeyFileError> {
    let owned = || path.to_owned();
    let unreadable = |source| KeyFileError::Unreadable { path: owned(), source };
    let (file, metadata) = plain_file::open(path).map_err(unreadable)?;
    check(&metadata, geteuid().as_raw()).map_err(|why| KeyFileError::Unsafe { path: owned(), why })?;
    // Allocated once: a growing buffer would leave copies of the key in memory.
    let mut text = Zeroizing::new(Vec::with_capacity(FILE_BYTES_MAX + 1));
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut text).map_err(unreadable)?;
    let unfit = |source| KeyFileError::Unfit { path: owned(), source };
    if text.len() > FILE_BYTES_MAX {
        return Err(unfit(InvalidKey));
    }
    let text = std::str::from_utf8(&text).map_err(|_| unfit(InvalidKey))?;
    Key::parse(text).map_err(unfit)
}

/// Checks that only root, `reader` and a group of theirs can read the file.
fn check(metadata: &fs::Metadata, reader: u32) -> Result<(), String> {
    let (mode, owner) = (metadata.mode() & 0o777, metadata.uid());
    if mode & OTHERS != 0 {
        return Err(format!(
            "can be read or written by others (mode {mode:03o}): chmod 0400 it, or 0440 for a group, and make a new key \
             if others have had it"
        ));
    }
    if owner != 0 && owner != reader {
        return Err(format!(
            "belongs to user {owner}: chown it to user {reader}, who reads it, or to root with mode 0440"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::NamedTempFile;

    use super::*;

    fn file(content: &[u8], mode: u32) -> NamedTempFile {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), content).unwrap();
        file.as_file().set_permissions(fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    fn error(file: &NamedTempFile) -> String {
        let error = read(file.path()).unwrap_err();
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        let path = file.path().display().to_string();
        format!("{error}{source}").replace(&path, "FILE")
    }

    #[test]
    fn file_readable_by_others_is_refused() {
        let key = Key::random().unwrap();
        let text = format!("{}\n", *key.reveal());
        for mode in [0o400, 0o440, 0o600, 0o640] {
            let read = read(file(text.as_bytes(), mode).path()).unwrap();
            assert_eq!(*read.reveal(), *key.reveal(), "{mode:o}");
        }
        for mode in [0o404, 0o402, 0o420, 0o644, 0o660, 0o666] {
            let expected = format!(
                "FILE, the `key-file` of [strongbox], can be read or written by others (mode {mode:03o}): chmod 0400 \
                 it, or 0440 for a group, and make a new key if others have had it"
            );
            assert_eq!(error(&file(text.as_bytes(), mode)), expected);
        }
        let metadata = file(text.as_bytes(), 0o400).as_file().metadata().unwrap();
        assert_eq!(check(&metadata, metadata.uid()), Ok(()));
        let other = check(&metadata, metadata.uid() + 1);
        assert_eq!(other.is_ok(), metadata.uid() == 0, "root's is trusted: {other:?}");
    }

    #[test]
    fn unusable_files_are_refused() {
        let text = Key::random().unwrap().reveal();
        let spaced = |bytes: usize| format!("{}{}", *text, " ".repeat(bytes - text.len()));
        assert!(read(file(spaced(FILE_BYTES_MAX).as_bytes(), 0o400).path()).is_ok());
        let no_key = "FILE, the `key-file` of [strongbox]: it is not a key: 32 bytes in base64 are expected, as \
                      `os-upgrade strongbox key` prints them";
        for content in [spaced(FILE_BYTES_MAX + 1).as_bytes(), &[0xff; 44], b""] {
            assert_eq!(error(&file(content, 0o400)), no_key);
        }
        let missing = read(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read /nowhere/at/all, the `key-file` of [strongbox]");
        // Reading these would block or never end.
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
        for path in [&fifo, Path::new("/dev/zero")] {
            let KeyFileError::Unreadable { source, .. } = read(path).unwrap_err() else { panic!("{path:?}") };
            assert_eq!(source.to_string(), "it is not a file");
        }
    }
}
