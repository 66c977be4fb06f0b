//! The data directory, which only one process at a time may use, and the instance's name, which is kept there.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::file_lock;

const LOCK_FILE: &str = "lock";
const INSTANCE_FILE: &str = "instance";
/// How much of the machine's name becomes a part of the instance's.
const MACHINE_CHARS_MAX: usize = 20;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read or written.
    #[error("cannot use the data directory {}", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        source: io::Error,
    },
    /// Another process uses it.
    #[error("the data directory {} is in use by another orchestrator", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

/// The data directory, locked until this is dropped or the process ends.
#[derive(Debug)]
pub struct DataDirectory {
    _lock: File,
    instance: String,
}

/// The id of the process that uses the data directory `path`; `None` if none does, or that cannot be read.
pub fn user(path: &Path) -> Option<u32> {
    file_lock::holder(&path.join(LOCK_FILE))
}

impl DataDirectory {
    /// Locks the directory `path`, which is created if missing.
    ///
    /// # Errors
    /// It cannot be used, or another process uses it.
    pub fn lock(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Unusable { path: path.to_owned(), source };
        create(path).map_err(failed)?;
        let file = path.join(LOCK_FILE);
        let lock = File::options().create(true).truncate(false).write(true).open(file).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let instance = instance(path).map_err(failed)?;
        Ok(Self { _lock: lock, instance })
    }

    /// The instance's name, which stays the same across restarts.
    pub fn instance(&self) -> &str {
        &self.instance
    }
}

/// Creates the directory `path` for this user alone, whatever the umask, and its parents as usual. One that exists stays
/// as it is.
///
/// # Errors
/// One cannot be created.
pub fn create(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

fn instance(path: &Path) -> io::Result<String> {
    let file = path.join(INSTANCE_FILE);
    match fs::read_to_string(&file) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = new_name(&machine, uuid::Uuid::new_v4());
    fs::write(file, &name)?;
    Ok(name)
}

/// The name of a new instance: that of its `machine`, by which people know it, and something that tells it from others there.
fn new_name(machine: &str, unique: uuid::Uuid) -> String {
    let is_kept = |character: &char| character.is_ascii_alphanumeric() || *character == '-';
    let machine: String = machine.trim().chars().take_while(is_kept).take(MACHINE_CHARS_MAX).collect();
    let (unique, ..) = unique.as_fields();
    if machine.is_empty() { format!("{unique:08x}") } else { format!("{machine}-{unique:08x}") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn lock_is_exclusive_and_name_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        assert_eq!(user(&path), None);
        let first = DataDirectory::lock(&path).unwrap();
        assert_eq!(user(&path), Some(std::process::id()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let second = DataDirectory::lock(&path).unwrap_err();
        assert!(matches!(second, Error::InUse { .. }), "{second}");
        let name = first.instance().to_owned();
        drop(first);
        assert_eq!(DataDirectory::lock(&path).unwrap().instance(), name);
    }

    #[test]
    fn instances_are_named_after_their_machine() {
        let unique = uuid::Uuid::from_u128(0x0012_ab34 << 96);
        for (machine, expected) in [
            ("node-1\n", "node-1-0012ab34"),
            ("node-1.example.org\n", "node-1-0012ab34"),
            ("a-machine-with-a-very-long-name", "a-machine-with-a-ver-0012ab34"),
            ("\u{1b}[2J", "0012ab34"),
            ("", "0012ab34"),
        ] {
            assert_eq!(new_name(machine, unique), expected);
        }
    }
}
