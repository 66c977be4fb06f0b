//! The data directory, which only one process at a time may use, and the instance's name, which is kept there.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

const LOCK_FILE: &str = "lock";
const INSTANCE_FILE: &str = "instance";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read or written.
    #[error("cannot use the data directory {}", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The reason.
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
    let name = uuid::Uuid::new_v4().simple().to_string();
    fs::write(file, &name)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn lock_is_exclusive_and_name_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let first = DataDirectory::lock(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let second = DataDirectory::lock(&path).unwrap_err();
        assert!(matches!(second, Error::InUse { .. }), "{second}");
        let name = first.instance().to_owned();
        drop(first);
        assert_eq!(DataDirectory::lock(&path).unwrap().instance(), name);
    }
}
