//! Whether a script can be run, checked before it is. What the kernel or a shell says instead, such as "not found" about a
//! file that exists, does not tell what is wrong with it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use os_upgrade_systems::script::{HEAD_BYTES, Interpreter, Misbegun, interpreter};

/// How much of a failed script is searched for line ends of Windows, in bytes.
const SEARCHED_BYTES: u64 = 64 * 1024;

/// Where `env` looks if PATH is not set: in glibc's default.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Why a script cannot be run: the rest of a sentence about it, with advice.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is a link to {}, which does not exist", .0.display())]
    DanglingLink(PathBuf),
    #[error("it is not a file")]
    NotFile,
    #[error("it is not executable; run chmod +x on it")]
    NotExecutable,
    #[error("permission denied; its file system may be mounted noexec")]
    Denied,
    #[error("{0}")]
    Misbegun(Misbegun),
    #[error("its interpreter {interpreter} cannot be run; install it, or correct the first line: {errno}")]
    Interpreter { interpreter: String, errno: Errno },
    #[error("its interpreter {0} is not in the search path; install it, or correct the first line")]
    NotInSearchPath(String),
}

/// Whether there is something at `path`, even if it cannot be run.
///
/// # Errors
/// Its directory cannot be read.
pub(crate) fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks that the kernel can run the script at `path`.
///
/// # Errors
/// It cannot.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(fs::read_link(path).map_or(Error::Io(error), Error::DanglingLink));
        }
        metadata => metadata?,
    };
    if !metadata.is_file() {
        return Err(Error::NotFile);
    }
    match access(path, AccessFlags::X_OK) {
        Ok(()) => {}
        Err(Errno::EACCES) if !is_executable(&metadata) => return Err(Error::NotExecutable),
        Err(Errno::EACCES) => return Err(Error::Denied),
        Err(errno) => return Err(Error::Io(errno.into())),
    }
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(u64::try_from(HEAD_BYTES).unwrap_or(u64::MAX)).read_to_end(&mut head)?,
        // A binary may be executable and not readable.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let directory = path.parent().unwrap_or(path);
    match interpreter(&head).map_err(Error::Misbegun)? {
        Interpreter::Kernel => Ok(()),
        Interpreter::Path(interpreter) => check_interpreter(directory, interpreter),
        Interpreter::InSearchPath { env, name } => {
            check_interpreter(directory, env)?;
            let search = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
            let is_found = |at: PathBuf| access(&directory.join(at).join(&name), AccessFlags::X_OK).is_ok();
            if std::env::split_paths(&search).any(is_found) {
                Ok(())
            } else {
                Err(Error::NotInSearchPath(name))
            }
        }
    }
}

/// Checks an interpreter, whose path may be relative to the script's `directory`.
fn check_interpreter(directory: &Path, interpreter: String) -> Result<(), Error> {
    let path = directory.join(&interpreter);
    let checked = access(&path, AccessFlags::X_OK)
        .and_then(|()| if path.is_dir() { Err(Errno::EISDIR) } else { Ok(()) });
    checked.map_err(|errno| Error::Interpreter { interpreter, errno })
}

fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

/// Whether most lines after the first of the script at `path`, which has failed, end as those of Windows. Then a shell takes the
/// carriage return for a part of each command. Single ones may be text that it prints.
pub(crate) fn has_carriage_returns(path: &Path) -> bool {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SEARCHED_BYTES).read_to_end(&mut text));
    read.is_ok() && text.starts_with(b"#!") && most_lines_end_with_return(&text)
}

/// Whether most lines after the first end with a carriage return.
fn most_lines_end_with_return(text: &[u8]) -> bool {
    let lines = || text.split_inclusive(|byte| *byte == b'\n').skip(1);
    lines().filter(|line| line.ends_with(b"\r\n")).count() * 2 > lines().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_carriage_returns_are_no_line_ends_of_windows() {
        for (text, expected) in [
            (&b"#!/bin/sh\necho\r\nfalse\r\n"[..], true),
            (b"#!/bin/sh\necho\r\nfalse\r\nexit", true),
            (b"#!/bin/sh\nprintf 'a\r\nb'\nfalse\n", false),
            (b"#!/bin/sh\nfalse\n", false),
            (b"#!/bin/sh\r\n", false),
        ] {
            assert_eq!(most_lines_end_with_return(text), expected, "{:?}", String::from_utf8_lossy(text));
        }
    }
}
