//! The files of a site's NATS. Secrets are written once, readable only by their owner.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nkeys::{KeyPair, KeyPairType};

/// A file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read, or written.
    #[error("cannot use {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// It holds no key of the expected kind.
    #[error("{} holds no such key: {source}", path.display())]
    NoKey { path: PathBuf, source: nkeys::error::Error },
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FileError + use<> {
    let path = path.to_owned();
    move |source| FileError::Io { path, source }
}

/// Creates `directory` and `parts` in it, accessible only by their owner.
pub(super) fn directories(directory: &Path, parts: &[&str]) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    for path in std::iter::once(directory.to_owned()).chain(parts.iter().map(|part| directory.join(part))) {
        builder.create(&path).map_err(failed(&path))?;
    }
    Ok(())
}

pub(super) fn exists(path: &Path) -> Result<bool, FileError> {
    path.try_exists().map_err(failed(path))
}

pub(super) fn read(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(failed(path))
}

/// The contents of all files in `directory` with this extension, sorted by name.
pub(super) fn read_all(directory: &Path, extension: &str) -> Result<Vec<String>, FileError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

/// Writes a file that everybody may read, atomically.
pub(super) fn write_public(path: &Path, text: &str) -> Result<(), FileError> {
    write(path, text, 0o644, |file| file.persist(path).map(drop))
}

/// Writes a file that only its owner may read, atomically; fails if it exists.
pub(super) fn write_new_secret(path: &Path, text: &str) -> Result<(), FileError> {
    write(path, text, 0o600, |file| file.persist_noclobber(path).map(drop))
}

fn write(
    path: &Path,
    text: &str,
    mode: u32,
    persist: impl FnOnce(tempfile::NamedTempFile) -> Result<(), tempfile::PersistError>,
) -> Result<(), FileError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    let written = builder.permissions(Permissions::from_mode(mode)).tempfile_in(directory);
    let written = written.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    });
    let persisted = written.and_then(|file| persist(file).map_err(|error| error.error));
    persisted.map_err(failed(path))
}

pub(super) fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The key whose seed is in `path`; created if the file does not exist.
pub(super) fn secret_key(path: &Path, kind: KeyPairType) -> Result<KeyPair, FileError> {
    if exists(path)? {
        return read_key(path);
    }
    let key = KeyPair::new(kind);
    let seed = key.seed().map_err(|source| FileError::NoKey { path: path.to_owned(), source })?;
    write_new_secret(path, &seed)?;
    Ok(key)
}

pub(super) fn read_key(path: &Path) -> Result<KeyPair, FileError> {
    let seed = read(path)?;
    KeyPair::from_seed(seed.trim()).map_err(|source| FileError::NoKey { path: path.to_owned(), source })
}
