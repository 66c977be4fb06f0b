//! The state directory: `<host>.json`, the state file; `<host>.desired.json`, that of configurations, and `<host>.files.json`, of files that were put for them; `.corrupt` beside them, the last ones
//! that could not be read; `<host>.key`, to which configurations are sealed; `<host>.lock`, held while a worker runs. Several hosts may share a directory. Whoever can write to it could have a
//! worker repeat or skip an upgrade, or overwrite any file by a link, so it must belong to the worker alone.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use os_upgrade_protocol::HostName;
use os_upgrade_sealing::PrivateKey;
use os_upgrade_worker_rules::{DesiredState, Loaded, StateFile, StateFileError};
use zeroize::Zeroizing;

use crate::Error;
use crate::files::FilesState;

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
    /// Creates the directory if necessary, for this user alone, and locks the host's state in it.
    ///
    /// # Errors
    /// The directory cannot be used, it or a file of the host in it belongs to another user, can be written by one or is a
    /// link, or another worker holds the lock.
    pub(crate) fn open(directory: &Path, host: &HostName) -> Result<Self, Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::StateDir { path, source }
        };
        create(directory).map_err(failed(directory))?;
        check_directory(directory, host)?;
        let path = directory.join(format!("{}.json", host.token()));
        let lock_path = path.with_extension("lock");
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
        Ok(Self { directory: directory.to_owned(), path, host: host.clone(), _lock: lock })
    }

    /// Reads the state file; a corrupt one is copied to `<host>.json.corrupt`.
    pub(crate) fn load(&self) -> Result<Loaded, Error> {
        self.read(&self.path, StateFile::parse)
    }

    /// As [`Self::load`], of configurations.
    pub(crate) fn load_desired(&self) -> Result<Loaded<DesiredState>, Error> {
        self.read(&self.desired_path(), DesiredState::parse)
    }

    fn desired_path(&self) -> PathBuf {
        self.path.with_extension("desired.json")
    }

    fn read<F>(
        &self,
        path: &Path,
        parse: impl FnOnce(&[u8], &HostName) -> Result<F, StateFileError>,
    ) -> Result<Loaded<F>, Error> {
        let failed = |source| Error::StateDir { path: path.to_owned(), source };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::Nothing),
            // Not corrupt but unreadable: the next start may be able to read it, so it is not replaced.
            Err(source) => return Err(failed(source)),
        };
        match parse(&bytes, &self.host) {
            Ok(file) => Ok(Loaded::File(Box::new(file))),
            Err(error) => {
                // The corrupt file stays until the next save replaces it, so a restart before that leads here again.
                fs::copy(path, path.with_extension("json.corrupt")).map_err(failed)?;
                let error = format!("{}: {error}", path.display());
                Ok(Loaded::Corrupt { error })
            }
        }
    }

    /// Replaces the state file atomically: whatever fails, the old or the new one exists. After `Ok` the new one is
    /// durable.
    pub(crate) fn save(&self, state: &StateFile) -> io::Result<()> {
        self.write(&self.path, &state.to_bytes())
    }

    /// As [`Self::save`], of configurations.
    pub(crate) fn save_desired(&self, state: &DesiredState) -> io::Result<()> {
        self.write(&self.desired_path(), &state.to_bytes())
    }

    /// As [`Self::load`], of the files that were put. Without it none is this worker's.
    pub(crate) fn load_files(&self) -> Result<FilesState, Error> {
        match self.read(&self.files_path(), FilesState::parse)? {
            Loaded::File(state) => Ok(*state),
            Loaded::Nothing => Ok(FilesState::new(self.host.clone())),
            Loaded::Corrupt { error } => {
                tracing::error!(
                    "which files this worker has put cannot be read, a copy is kept ({error}); move those files away"
                );
                Ok(FilesState::new(self.host.clone()))
            }
        }
    }

    /// As [`Self::save`], of the files that were put.
    pub(crate) fn save_files(&self, state: &FilesState) -> io::Result<()> {
        let bytes = state.to_bytes().ok_or_else(|| io::Error::other("there are too many of them"))?;
        self.write(&self.files_path(), &bytes)
    }

    fn files_path(&self) -> PathBuf {
        self.path.with_extension("files.json")
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let with_path =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let options = File::options().write(true).create(true).truncate(true).clone();
        self.replace(path, bytes, &options).map_err(with_path)
    }

    /// Replaces the file at `path`; `options` are those of the new one.
    fn replace(&self, path: &Path, bytes: &[u8], options: &OpenOptions) -> io::Result<()> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let mut file = options.open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(&self.directory)?.sync_all()
    }

    /// The key to which the host's configurations are sealed; made if there is none.
    ///
    /// # Errors
    /// It cannot be read or made, is damaged, or others can read it. It is not replaced then: what was sealed to it could never be opened.
    pub(crate) fn key(&self) -> Result<PrivateKey, Error> {
        let path = self.path.with_extension("key");
        let failed = |source| Error::StateDir { path: path.clone(), source };
        let unusable = |why: &str| {
            let why = format!(
                "{why}: remove it, and the worker makes another key; until everything is sealed to that, no configuration can \
                 be opened"
            );
            Error::UnsafeStateDir { path: path.clone(), why }
        };
        match fs::metadata(&path) {
            Ok(metadata) if metadata.mode() & 0o077 != 0 => {
                return Err(unusable("is the host's private key, and others can read it"));
            }
            Ok(_) => {
                let bytes = Zeroizing::new(fs::read(&path).map_err(failed)?);
                return PrivateKey::from_bytes(&bytes).ok_or_else(|| unusable("is damaged"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(source)),
        }
        let key = PrivateKey::generate();
        // Of a start that was cut off.
        match fs::remove_file(path.with_extension("key.new")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let options = File::options().write(true).create_new(true).mode(0o600).clone();
        self.replace(&path, &*key.to_bytes(), &options).map_err(failed)?;
        Ok(key)
    }
}

/// Creates `directory` for this user alone, whatever the umask, and its parents as usual.
fn create(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Checks that nobody else can write to `directory`, or has put a link or a file of theirs in place of one of `host`.
fn check_directory(directory: &Path, host: &HostName) -> Result<(), Error> {
    let failed = |source| Error::StateDir { path: directory.to_owned(), source };
    let unsafe_path = |path: &Path| {
        let path = path.to_owned();
        move |why| Error::UnsafeStateDir { path, why }
    };
    // The owner of a process's directory in /proc is its effective user.
    let me = fs::metadata("/proc/self").map_err(failed)?.uid();
    check_owner(&fs::metadata(directory).map_err(failed)?, me, 0o022).map_err(unsafe_path(directory))?;
    let own = format!("{}.", host.token());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(&own) {
            let metadata = match entry.metadata() {
                // A worker that runs has just replaced it; the lock tells.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata.map_err(failed)?,
            };
            if metadata.is_symlink() {
                let why = "is a link, which no worker makes: remove it".to_owned();
                return Err(unsafe_path(&entry.path())(why));
            }
            check_owner(&metadata, me, 0o002).map_err(unsafe_path(&entry.path()))?;
        }
    }
    Ok(())
}

/// Checks that root or `me` owns what `metadata` is of, and that its mode has none of `writers`.
fn check_owner(metadata: &fs::Metadata, me: u32, writers: u32) -> Result<(), String> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    if owner != me && owner != 0 {
        return Err(format!("belongs to user {owner}, and must belong to user {me}, whose worker this is"));
    }
    if mode & writers != 0 {
        return Err(format!(
            "can be written by others (mode {mode:03o}): run chmod go-w on it, and check its contents"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

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
    fn directory_of_others_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let made = directory.path().join("made");
        drop(Store::open(&made, &host()).unwrap());
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        for mode in [0o720, 0o702, 0o777] {
            fs::set_permissions(&made, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Store::open(&made, &host()).is_err(), "{mode:o}");
        }
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        drop(Store::open(&made, &host()).unwrap());
    }

    #[test]
    fn planted_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        fs::write(&target, "precious").unwrap();
        let me = fs::metadata(&target).unwrap();
        assert!(
            check_owner(&me, me.uid(), 0o022).is_ok() && check_owner(&me, me.uid() + 1, 0).is_err()
                || me.uid() == 0
        );
        let state = directory.path().join("state");
        let name = host().token();
        for file in [
            "lock",
            "json",
            "json.new",
            "json.corrupt",
            "key",
            "key.new",
            "desired.json",
            "progress",
            "script",
            "upgrade",
        ] {
            drop(Store::open(&state, &host()).unwrap());
            let link = state.join(format!("{name}.{file}"));
            drop(fs::remove_file(&link));
            symlink(&target, &link).unwrap();
            assert!(Store::open(&state, &host()).is_err(), "{file}");
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
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
    fn configurations_have_their_own_file() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), &host()).unwrap();
        assert_eq!(store.load_desired().unwrap(), Loaded::Nothing);
        let mut state = DesiredState::new(host());
        state.configurations.insert("app".to_owned(), None);
        store.save_desired(&state).unwrap();
        assert_eq!(store.load_desired().unwrap(), Loaded::File(Box::new(state)));
        assert_eq!(store.load().unwrap(), Loaded::Nothing);
        let path = directory.path().join("h1%2Eexample%2Ecom.desired.json");
        fs::write(&path, "{").unwrap();
        assert!(matches!(store.load_desired().unwrap(), Loaded::Corrupt { .. }));
        assert_eq!(fs::read(path.with_extension("json.corrupt")).unwrap(), b"{");
    }

    #[test]
    fn keys_stay_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), &host()).unwrap();
        let path = directory.path().join("h1%2Eexample%2Ecom.key");
        fs::write(path.with_extension("key.new"), "cut off").unwrap();
        let key = store.key().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(store.key().unwrap().public(), key.public());
        let bytes = fs::read(&path).unwrap();
        for (content, mode, why) in [
            (&bytes[..31], 0o600, "is damaged: remove it"),
            (&bytes, 0o640, "is the host's private key, and others can read it: remove it"),
        ] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = store.key().unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(why), "{error}");
            assert_eq!(fs::read(&path).unwrap(), content);
        }
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
