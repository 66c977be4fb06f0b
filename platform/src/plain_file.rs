//! Opens regular files only: reading another kind, such as a FIFO without a writer, could block a start or a command
//! forever. Files that decide who has rights must not be writable by others.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens the regular file at `path` for reading, without blocking, and returns it with its metadata.
///
/// # Errors
/// It is not a regular file, or cannot be opened.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(io::Error::other("it is not a file")) }
}

/// Checks that only the owner can write a file. With a `reader`, a user id, the owner must be root or `reader`.
///
/// # Errors
/// What is wrong, and what to do: the rest of a sentence about the file.
pub fn check_writers(metadata: &Metadata, reader: Option<u32>) -> Result<(), String> {
    if metadata.mode() & 0o022 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!(
            "can be written by others (mode {mode:03o}): run chmod go-w on it, and check its contents"
        ));
    }
    let owner = metadata.uid();
    if let Some(reader) = reader.filter(|reader| owner != 0 && owner != *reader) {
        return Err(format!(
            "belongs to user {owner}, and must belong to root or user {reader}, who reads it"
        ));
    }
    Ok(())
}

/// The user, beside root, to whom a file that is examined may belong: this process's. Absent for root, who may look at the
/// files of another user's service.
pub fn examiner() -> Option<u32> {
    Some(user()).filter(|user| *user != 0)
}

/// This process's user.
pub fn user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn fifos_and_directories_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        nix::unistd::mkfifo(&path, Mode::S_IRUSR).unwrap();
        assert_eq!(open(&path).unwrap_err().to_string(), "it is not a file");
        assert_eq!(open(directory.path()).unwrap_err().to_string(), "it is not a file");
        assert_eq!(open(&directory.path().join("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(directory.path().join("file"), "12").unwrap();
        assert_eq!(open(&directory.path().join("file")).unwrap().1.len(), 2);
    }
}
