//! The state directory: `<host>.json`, the state file; `<host>.json.corrupt`, the last one that could not be read;
//! `<host>.lock`, held while a worker runs. Several hosts may share a directory.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use os_upgrade_protocol::HostName;
use os_upgrade_worker_rules::{Loaded, StateFile};

use crate::Error;

/// The state directory of one host, locked.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    path: PathBuf,
    host: HostName,
    /// Released with the process, however it ends.
    _lock: File,
}

impl Store {
    /// Creates the directory if necessary, and locks the host's state in it.
    pub(crate) fn open(directory: &Path, host: &HostName) -> Result<Self, Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::StateDir { path, source }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let lock_path = directory.join(format!("{}.lock", host.token()));
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(failed(&lock_path))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::StateDirLocked { path: lock_path.clone() },
            TryLockError::Error(source) => failed(&lock_path)(source),
        })?;
        Ok(Self {
            directory: directory.to_owned(),
            path: directory.join(format!("{}.json", host.token())),
            host: host.clone(),
            _lock: lock,
        })
    }

    /// Reads the state file; a corrupt one is copied to `<host>.json.corrupt`.
    pub(crate) fn load(&self) -> Result<Loaded, Error> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::Nothing),
            // Not corrupt but unreadable: the next start may be able to read it, so it is not replaced.
            Err(source) => return Err(self.failed(source)),
        };
        match StateFile::parse(&bytes, &self.host) {
            Ok(file) => Ok(Loaded::File(Box::new(file))),
            Err(error) => {
                // The corrupt file stays until the next save replaces it, so a restart before that leads here again.
                let copy = self.path.with_extension("json.corrupt");
                fs::copy(&self.path, &copy).map_err(|source| self.failed(source))?;
                let error = format!("{}: {error}", self.path.display());
                Ok(Loaded::Corrupt { error })
            }
        }
    }

    /// Replaces the state file atomically: whatever fails, the old or the new one exists. After `Ok` the new one is
    /// durable.
    pub(crate) fn save(&self, state: &StateFile) -> io::Result<()> {
        let with_path =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.path.display()));
        self.replace(state).map_err(with_path)
    }

    fn replace(&self, state: &StateFile) -> io::Result<()> {
        let temporary = self.path.with_extension("json.new");
        let mut file = File::create(&temporary)?;
        file.write_all(&state.to_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        File::open(&self.directory)?.sync_all()
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::StateDir { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostName {
        HostName::new("h1.example.com").unwrap()
    }

    #[test]
    fn saved_state_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let nested = directory.path().join("a/b");
        let store = Store::open(&nested, &host()).unwrap();
        assert_eq!(store.load().unwrap(), Loaded::Nothing);
        let mut state = StateFile::new(host());
        store.save(&state).unwrap();
        state.distrusted = true;
        store.save(&state).unwrap();
        assert_eq!(store.load().unwrap(), Loaded::File(Box::new(state)));
    }

    #[test]
    fn corrupt_file_is_copied() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), &host()).unwrap();
        let path = directory.path().join("h1%2Eexample%2Ecom.json");
        fs::write(&path, "{\"format\": 1, \"ho").unwrap();
        assert!(matches!(store.load().unwrap(), Loaded::Corrupt { .. }));
        let copy = directory.path().join("h1%2Eexample%2Ecom.json.corrupt");
        assert_eq!(fs::read(copy).unwrap(), fs::read(&path).unwrap());
        // It stays corrupt until the next save.
        assert!(matches!(store.load().unwrap(), Loaded::Corrupt { .. }));
        store.save(&StateFile::new(host())).unwrap();
        assert!(matches!(store.load().unwrap(), Loaded::File(_)));
    }

    #[test]
    fn save_errors_name_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let nested = directory.path().join("state");
        let store = Store::open(&nested, &host()).unwrap();
        fs::remove_dir_all(&nested).unwrap();
        let error = store.save(&StateFile::new(host())).unwrap_err();
        let path = nested.join("h1%2Eexample%2Ecom.json");
        assert!(error.to_string().starts_with(&format!("{}: No such file", path.display())), "{error}");
    }

    #[test]
    fn one_host_has_one_worker() {
        let directory = tempfile::tempdir().unwrap();
        let first = Store::open(directory.path(), &host()).unwrap();
        assert!(matches!(Store::open(directory.path(), &host()), Err(Error::StateDirLocked { .. })));
        let other = HostName::new("h2").unwrap();
        assert!(Store::open(directory.path(), &other).is_ok());
        drop(first);
        assert!(Store::open(directory.path(), &host()).is_ok());
    }
}
