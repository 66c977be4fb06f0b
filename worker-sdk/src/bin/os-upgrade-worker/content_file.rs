//! The file with the content of a configuration, which the script `configure` reads: in memory where there is a directory for that, and
//! removed when the script has ended.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use os_upgrade_worker_sdk::{Error, HostName};
use sha2::{Digest as _, Sha256};
use tracing::warn;

/// Usually in memory. A worker of root makes it, or systemd with `RuntimeDirectory=os-upgrade-worker`.
const RUNTIME_DIR: &str = "/run/os-upgrade-worker";

/// Where the file may be, the best place first.
#[derive(Debug)]
pub(crate) struct ContentFile {
    paths: Vec<PathBuf>,
}

/// The written file, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    path: &'a Path,
}

impl ContentFile {
    /// The file of a host: in the runtime directory of the system, that of the user, or the state directory. Workers with the same host name on
    /// one machine, such as those of two sites to try, have state directories of their own, so the name depends on that.
    pub(crate) fn of_host(state_dir: &Path, host: &str, user_dir: Option<&OsStr>) -> Result<Self, Error> {
        let token = HostName::new(host).map_err(|source| Error::Name { of: "host", source })?.token();
        let user_dir = user_dir.map(Path::new).filter(|path| path.is_absolute());
        let directories = [Some(Path::new(RUNTIME_DIR)), user_dir, Some(state_dir)];
        let state_dir_path = std::path::absolute(state_dir).unwrap_or_else(|_| state_dir.to_owned());
        let digest = Sha256::digest(state_dir_path.as_os_str().as_encoded_bytes());
        let worker = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
        let name = format!("{token}.{worker:016x}.content");
        Ok(Self { paths: directories.into_iter().flatten().map(|directory| directory.join(&name)).collect() })
    }

    /// Removes what an earlier worker left behind.
    pub(crate) fn clear(&self) {
        self.paths.iter().for_each(|path| remove(path));
    }

    /// Writes `content` for this user alone.
    pub(crate) fn write(&self, content: &[u8]) -> io::Result<Written<'_>> {
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for path in &self.paths {
            match write(path, content) {
                Ok(()) => return Ok(Written { path }),
                Err(failed) => {
                    remove(path);
                    error = io::Error::new(failed.kind(), format!("{}: {failed}", path.display()));
                }
            }
        }
        Err(error)
    }
}

impl Written<'_> {
    pub(crate) const fn path(&self) -> &Path {
        self.path
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        remove(self.path);
    }
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    if directory == Path::new(RUNTIME_DIR) {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let metadata = fs::symlink_metadata(directory)?;
    // The owner of a process's directory in /proc is its effective user.
    if !metadata.is_dir()
        || metadata.uid() != fs::metadata("/proc/self")?.uid()
        || metadata.mode() & 0o022 != 0
    {
        return Err(io::Error::other("its directory can be written by others"));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    File::options().write(true).create_new(true).mode(0o600).open(path)?.write_all(content)
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
        Err(error) => warn!("cannot remove {}, which may hold a secret: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn content_is_there_until_it_is_dropped() {
        let state = tempfile::tempdir().unwrap();
        let user = tempfile::tempdir().unwrap();
        let mut file = ContentFile::of_host(state.path(), "h1", Some(user.path().as_os_str())).unwrap();
        let first = file.paths.remove(0);
        assert_eq!(first.parent(), Some(Path::new("/run/os-upgrade-worker")));
        let name = first.file_name().unwrap().to_owned();
        let same = ContentFile::of_host(state.path(), "h1", None).unwrap();
        assert_eq!(same.paths[0], first, "the next worker removes what this one left behind");
        let other = ContentFile::of_host(user.path(), "h1", None).unwrap();
        assert_ne!(other.paths[0], first, "another worker has a file of its own");
        fs::write(user.path().join(&name), "of a worker that was killed").unwrap();
        let written = file.write(b"secret").unwrap();
        assert_eq!(written.path(), user.path().join(&name));
        assert_eq!(fs::read(written.path()).unwrap(), b"secret");
        assert_eq!(fs::metadata(written.path()).unwrap().mode() & 0o777, 0o600);
        drop(written);
        assert!(!user.path().join(&name).exists());

        fs::set_permissions(user.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let written = file.write(b"secret").unwrap();
        assert_eq!(written.path(), state.path().join(&name));
        std::mem::forget(written);
        file.clear();
        assert!(!state.path().join(&name).exists());
        let error = ContentFile { paths: vec![state.path().join("a/h1.content")] }.write(b"").unwrap_err();
        assert!(error.to_string().contains("a/h1.content: No such file"), "{error}");
    }
}
