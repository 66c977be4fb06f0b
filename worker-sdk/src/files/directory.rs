//! A directory below a root, held open, and all that is done in it. Every path is resolved by `openat2` without following
//! a symbolic link, and every change is relative to the open directory: whoever replaces a directory on the way by a link
//! in the meantime does not lead the worker elsewhere.

use std::ffi::CStr;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat2, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fsync, linkat, unlinkat};
use os_upgrade_protocol::limits::ITEM_BYTES_MAX;
use sha2::{Digest as _, Sha256};

use super::error::FilesError;
use super::paths::{Location, is_temporary, temporary};

/// SHA-256 as hexadecimal digits.
pub(crate) fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hexadecimal).collect()
}

fn hexadecimal(digit: u8) -> char {
    char::from_digit(digit.into(), 16).expect("four bits are one digit")
}

/// Who may do what with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    /// Permission bits. Of a file on the host, also setuid, setgid and sticky.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A regular file on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Absent if the file is larger than any that a worker puts.
    pub(crate) digest: Option<String>,
    pub(crate) access: Access,
}

/// An open directory.
pub(crate) struct Directory(OwnedFd);

impl Directory {
    /// Opens the directory of `location`; `None` if it or the root does not exist.
    pub(crate) fn find(location: &Location<'_>) -> Result<Option<Self>, FilesError> {
        let Some(root) = root(location)? else { return Ok(None) };
        let walked = walk(root, location, Missing::Leave)?;
        walked.map(|directory| Self::readable(&directory, location)).transpose()
    }

    /// Opens the directory of `location`, and creates it and its parents below the root as necessary: with mode 0755,
    /// whatever the umask, for the worker's own user. The root must exist.
    pub(crate) fn create(location: &Location<'_>) -> Result<Self, FilesError> {
        let root = root(location)?.ok_or_else(|| root_missing(location))?;
        let walked = walk(root, location, Missing::Create)?;
        Self::readable(&walked.expect("missing directories are created"), location)
    }

    /// The directory that `path_only` names, open for its entries and to be synced.
    fn readable(path_only: &OwnedFd, location: &Location<'_>) -> Result<Self, FilesError> {
        let opened = open_beneath(path_only, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY);
        opened
            .map(Self)
            .map_err(|errno| failure(errno, location.path, location.directory(), "open the directory of"))
    }

    /// What is at `location`; an error if it is no regular file.
    pub(crate) fn look(&self, location: &Location<'_>) -> Result<Option<Found>, FilesError> {
        let failed = |errno| failure(errno, location.path, location.path, "examine");
        // Devices are not opened, because that may have effects.
        let stat = match fstatat(&self.0, location.name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => return Ok(None),
            stat => stat.map_err(failed)?,
        };
        check_regular(stat.st_mode, location.path)?;
        let file = match open_beneath(&self.0, location.name, OFlag::O_NONBLOCK | OFlag::O_NOCTTY) {
            Err(Errno::ENOENT) => return Ok(None),
            file => File::from(file.map_err(failed)?),
        };
        let failed = |source| FilesError::Io { path: location.path.to_owned(), action: "read", source };
        let metadata = file.metadata().map_err(failed)?;
        check_regular(metadata.mode(), location.path)?;
        let access = Access { mode: metadata.mode() & 0o7777, uid: metadata.uid(), gid: metadata.gid() };
        // One byte more than the largest, to notice a larger one.
        let mut content = Vec::new();
        file.take(ITEM_BYTES_MAX as u64 + 1).read_to_end(&mut content).map_err(failed)?;
        let digest = (content.len() <= ITEM_BYTES_MAX).then(|| digest(&content));
        Ok(Some(Found { digest, access }))
    }

    /// Writes `content` to a temporary file for `location`, complete and synced. It is removed unless it is published.
    pub(crate) fn stage<'d>(
        &'d self,
        location: Location<'d>,
        content: &[u8],
        access: &Access,
    ) -> Result<Staged<'d>, FilesError> {
        let failed = |errno| failure(errno, location.path, location.path, "write a temporary file for");
        let name = temporary(RandomState::new().hash_one(()));
        // For the worker alone until it has its owner.
        let how = how(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL).mode(Mode::S_IRUSR | Mode::S_IWUSR);
        let mut file = File::from(openat2(&self.0, name.as_str(), how).map_err(failed)?);
        let staged = Staged { directory: self, location, name };
        let failed = |source| FilesError::Io {
            path: location.path.to_owned(),
            action: "write a temporary file for",
            source,
        };
        file.write_all(content).map_err(failed)?;
        let (uid, gid) = (Uid::from_raw(access.uid), Gid::from_raw(access.gid));
        fchown(&file, Some(uid), Some(gid)).map_err(|errno| {
            if errno == Errno::EPERM {
                let owner = format!("user {uid} and group {gid}");
                return FilesError::NotPermitted { path: location.path.to_owned(), owner };
            }
            failed(errno.into())
        })?;
        fchmod(&file, Mode::from_bits_truncate(access.mode)).map_err(|errno| failed(errno.into()))?;
        file.sync_all().map_err(failed)?;
        Ok(staged)
    }

    /// Removes the file at `location`; one that is gone is fine.
    pub(crate) fn remove(&self, location: &Location<'_>) -> Result<(), FilesError> {
        self.unlink(location.name).map_err(|errno| failure(errno, location.path, location.path, "remove"))
    }

    /// Makes durable what was done in this directory, by this process or one before.
    pub(crate) fn sync(&self, location: &Location<'_>) -> Result<(), FilesError> {
        let synced = fsync(&self.0);
        synced.map_err(|errno| failure(errno, location.path, location.directory(), "sync the directory of"))
    }

    /// Removes temporary files of a worker that was killed. One may have its final owner already, so the name tells, which
    /// nobody else gives to a file; whoever can create one here can as well remove it.
    pub(crate) fn sweep(&self, location: &Location<'_>) -> Result<(), FilesError> {
        let failed =
            |errno| failure(errno, location.path, location.directory(), "remove old temporary files beside");
        // Another open file, because reading moves its position.
        let entries = open_beneath(&self.0, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY).and_then(Dir::from_fd);
        for entry in entries.map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_str().is_ok_and(is_temporary)
                && self.is_regular(entry.file_name()).map_err(failed)?
            {
                self.unlink(entry.file_name()).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn is_regular(&self, name: &CStr) -> Result<bool, Errno> {
        match fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => Ok(false),
            stat => Ok(kind(stat?.st_mode) == SFlag::S_IFREG),
        }
    }

    fn unlink<P: nix::NixPath + ?Sized>(&self, name: &P) -> Result<(), Errno> {
        match unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::ENOENT) => Ok(()),
            unlinked => unlinked,
        }
    }
}

/// A complete temporary file in the directory of its location.
pub(crate) struct Staged<'d> {
    directory: &'d Directory,
    location: Location<'d>,
    name: String,
}

impl Staged<'_> {
    /// Gives the file its name, in place of the file that is there if `replace`. Without `replace`, a file that somebody
    /// has just put there stays.
    pub(crate) fn publish(self, replace: bool) -> Result<(), FilesError> {
        let Self { directory: Directory(directory), location, .. } = &self;
        let rename = || renameat(directory, self.name.as_str(), directory, location.name);
        let published = if replace {
            rename()
        } else {
            // A rename would replace, and musl has no `renameat2`.
            match linkat(directory, self.name.as_str(), directory, location.name, AtFlags::empty()) {
                Err(Errno::EEXIST) => return Err(FilesError::Foreign { path: location.path.to_owned() }),
                // Not every file system has hard links.
                Err(Errno::EPERM | Errno::EOPNOTSUPP) => rename(),
                linked => linked,
            }
        };
        published.map_err(|errno| failure(errno, location.path, location.path, "replace"))
    }
}

impl Drop for Staged<'_> {
    /// Removes the temporary name, if it is still there.
    fn drop(&mut self) {
        if let Err(error) = self.directory.unlink(self.name.as_str()) {
            let file = format!("{}/{}", self.location.directory(), self.name);
            tracing::warn!(file, %error, "cannot remove a temporary file; the next change in this directory will");
        }
    }
}

/// What to do with directories that do not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Leave,
}

/// The root of `location`, whose path must not lead over a link either.
fn root(location: &Location<'_>) -> Result<Option<OwnedFd>, FilesError> {
    let slash = open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
    let mut directory = slash.map_err(|errno| failure(errno, location.path, "/", "open the root of"))?;
    let mut at = String::new();
    for name in location.root_components() {
        at = format!("{at}/{name}");
        match open_beneath(&directory, name, OFlag::O_PATH | OFlag::O_DIRECTORY) {
            Ok(opened) => directory = opened,
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(failure(errno, location.path, &at, "open the root of")),
        }
    }
    Ok(Some(directory))
}

/// Checks that the root of `location` exists.
pub(crate) fn check_root(location: &Location<'_>) -> Result<(), FilesError> {
    root(location)?.map(drop).ok_or_else(|| root_missing(location))
}

fn root_missing(location: &Location<'_>) -> FilesError {
    FilesError::RootMissing { path: location.path.to_owned(), root: location.root.to_owned() }
}

/// The directory of `location`, from its root on.
fn walk(root: OwnedFd, location: &Location<'_>, missing: Missing) -> Result<Option<OwnedFd>, FilesError> {
    let mut directory = root;
    let mut at = location.root.to_owned();
    for name in location.parents() {
        at = format!("{at}/{name}");
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
        let opened = match open_beneath(&directory, name, flags) {
            Err(Errno::ENOENT) if missing == Missing::Leave => return Ok(None),
            Err(Errno::ENOENT) => create_in(&directory, name),
            opened => opened,
        };
        directory = opened.map_err(|errno| failure(errno, location.path, &at, "open the directory of"))?;
    }
    Ok(Some(directory))
}

/// Creates the directory `name` in `parent`.
fn create_in(parent: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let access = Mode::from_bits_truncate(0o755);
    match mkdirat(parent, name, access) {
        // Somebody else was faster: the directory is theirs.
        Err(Errno::EEXIST) => return open_beneath(parent, name, OFlag::O_PATH | OFlag::O_DIRECTORY),
        created => created?,
    }
    let created = open_beneath(parent, name, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
    // The parent may have passed on its setgid bit, which stays.
    fchmod(&created, Mode::from_bits_truncate(fstat(&created)?.st_mode) | access)?;
    fsync(&created)?;
    fsync(open_beneath(parent, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY)?)?;
    Ok(created)
}

fn how(flags: OFlag) -> OpenHow {
    let resolve =
        ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve)
}

fn open_beneath(directory: impl AsFd, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    openat2(directory, path, how(flags))
}

/// What `errno` means for the file at `path`, when `at`, the file or a directory on the way to it, was used.
fn failure(errno: Errno, path: &str, at: &str, action: &'static str) -> FilesError {
    let (path, at) = (path.to_owned(), at.to_owned());
    if errno == Errno::ELOOP {
        FilesError::Link { path, at }
    } else if errno == Errno::ENOTDIR {
        FilesError::NotDirectory { path, at }
    } else if errno == Errno::ENOSYS {
        FilesError::NoOpenat2 { path }
    } else {
        FilesError::Io { path, action, source: io::Error::from(errno) }
    }
}

/// The type of a file in its mode.
fn kind(mode: u32) -> SFlag {
    SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits())
}

/// Checks that a file with `mode` is a regular one.
fn check_regular(mode: u32, path: &str) -> Result<(), FilesError> {
    let path = path.to_owned();
    let kind = match kind(mode) {
        SFlag::S_IFREG => return Ok(()),
        SFlag::S_IFLNK => return Err(FilesError::Link { at: path.clone(), path }),
        SFlag::S_IFDIR => "a directory",
        SFlag::S_IFIFO => "a pipe",
        SFlag::S_IFSOCK => "a socket",
        _ => "a device",
    };
    Err(FilesError::NotRegular { path, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_hexadecimal() {
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn kernel_errors_say_what_to_do() {
        let text = |errno| failure(errno, "/srv/d/a", "/srv/d", "examine").to_string();
        assert_eq!(
            text(Errno::ENOSYS),
            "/srv/d/a cannot be used without the system call openat2: run Linux 5.6 or later, and let seccomp allow it"
        );
        assert_eq!(
            text(Errno::ELOOP),
            "/srv/d/a cannot be used, as /srv/d is a symbolic link: use the path that it leads to, or move it away"
        );
        assert_eq!(
            text(Errno::ENOTDIR),
            "/srv/d/a cannot be used, as /srv/d is not a directory: move it away, or choose another path"
        );
        assert_eq!(text(Errno::EIO), "cannot examine /srv/d/a");
    }
}
