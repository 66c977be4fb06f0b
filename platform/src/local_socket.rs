//! A Unix socket for programs on this machine: who may connect, who has connected, and what becomes of its file.
//!
//! The file has its group and mode before anybody can connect, replaces one of a process that was killed, and goes away with the socket.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{Group, Uid, User, getegid};
use tokio::net::{UnixListener, UnixSocket, UnixStream};

/// The mode of the file: its user and its group may connect.
pub const MODE: u32 = 0o660;
/// How many connections may wait until they are accepted, as for TCP.
const BACKLOG: u32 = 1024;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The directory of the path does not exist.
    #[error("cannot listen on {}: its directory does not exist", .path.display())]
    NoDirectory {
        /// The path of the socket.
        path: PathBuf,
    },
    /// There is something else at the path.
    #[error("cannot listen on {}: there is something else that is not a socket", .path.display())]
    NotASocket {
        /// The path of the socket.
        path: PathBuf,
    },
    /// Another process listens.
    #[error("cannot listen on {}: another process does", .path.display())]
    InUse {
        /// The path of the socket.
        path: PathBuf,
    },
    /// No group has this name.
    #[error("there is no group {name}")]
    UnknownGroup {
        /// The name.
        name: String,
    },
    /// Groups cannot be looked up.
    #[error("cannot look up the group {name}")]
    Group {
        /// The name of the group.
        name: String,
        source: Errno,
    },
    /// The file cannot be given to the group, for example because the user of this process is not a member.
    #[error("cannot give {} to its group, of which this user must be a member", .path.display())]
    NotMember {
        /// The path of the socket.
        path: PathBuf,
        source: io::Error,
    },
    /// Something else fails.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// The path of the socket.
        path: PathBuf,
        /// What fails: the verb.
        action: &'static str,
        source: io::Error,
    },
}

/// A socket that listens. Its file is removed once this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    listener: UnixListener,
    file: SocketFile,
}

impl LocalSocket {
    /// Listens at `path`, for programs of this process's user and of `group`, which is this process's own by default. A socket on
    /// which nobody listens is replaced. Directories are not created.
    ///
    /// # Errors
    /// The group is unknown, somebody listens already, or the file cannot be made.
    pub async fn bind(path: &Path, group: Option<&str>) -> Result<Self, SocketError> {
        let failed = |action| move |source| SocketError::Io { path: path.to_owned(), action, source };
        let group = group_id(group)?;
        remove_stale(path).await?;
        let socket = UnixSocket::new_stream().map_err(failed("make"))?;
        socket.bind(path).map_err(|source| {
            if source.kind() == ErrorKind::NotFound {
                SocketError::NoDirectory { path: path.to_owned() }
            } else {
                failed("make")(source)
            }
        })?;
        let file = SocketFile {
            path: path.to_owned(),
            identity: SocketFile::identity(path).map_err(failed("find"))?,
        };
        // Nobody can connect before it listens.
        lchown(path, None, Some(group))
            .map_err(|source| SocketError::NotMember { path: path.to_owned(), source })?;
        fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed("set the mode of"))?;
        Ok(Self { listener: socket.listen(BACKLOG).map_err(failed("listen on"))?, file })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Waits for a connection; also returns the id of the user whose program it is.
    ///
    /// # Errors
    /// There are too few open files, for example; another connection may be accepted later.
    pub async fn accept(&self) -> io::Result<(UnixStream, u32)> {
        let (stream, _) = self.listener.accept().await?;
        let user = stream.peer_cred()?.uid();
        Ok((stream, user))
    }
}

/// The file of a socket.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    /// What tells the file at `path` from others that were or will be there.
    fn identity(path: &Path) -> io::Result<(u64, u64)> {
        let found = fs::symlink_metadata(path)?;
        Ok((found.dev(), found.ino()))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone, or another process may have made one of its own.
        if Self::identity(&self.path).is_ok_and(|found| found == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

/// Removes the socket at `path` if nobody listens on it. Of two processes that start in the same moment, the later one may
/// take the path from the other, as nothing tells a socket that is about to listen from one that does not any more.
async fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |action| move |source| SocketError::Io { path: path.to_owned(), action, source };
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("find")(error)),
    };
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(SocketError::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed("replace"))
        }
        // Its connections are not accepted in time.
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(SocketError::InUse { path: path.to_owned() })
        }
        Err(error) => Err(failed("connect to")(error)),
    }
}

/// The id of the group `name`, or that of this process's group.
///
/// # Errors
/// There is no such group, or groups cannot be looked up.
pub fn group_id(name: Option<&str>) -> Result<u32, SocketError> {
    let Some(name) = name else { return Ok(getegid().as_raw()) };
    let found = Group::from_name(name)
        .map_err(|source| SocketError::Group { name: name.to_owned(), source })?
        .ok_or_else(|| SocketError::UnknownGroup { name: name.to_owned() })?;
    Ok(found.gid.as_raw())
}

/// The name of a user; `None` if there is none, or if users cannot be looked up. It may block, for example on a directory server.
pub fn user_name(user: u32) -> Option<String> {
    let found = User::from_uid(Uid::from_raw(user)).inspect_err(|error| {
        tracing::debug!(user, %error, "cannot look up the name of a user");
    });
    found.ok().flatten().map(|found| found.name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener as Listener;

    use nix::unistd::geteuid;
    use tempfile::TempDir;

    use super::*;

    fn place() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.sock");
        (directory, path)
    }

    async fn refused(path: &Path, group: Option<&str>) -> String {
        LocalSocket::bind(path, group).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn file_has_group_and_mode_and_goes_away() {
        let (_directory, path) = place();
        let own = Group::from_gid(getegid()).unwrap().unwrap().name;
        for group in [None, Some(own.as_str())] {
            let socket = LocalSocket::bind(&path, group).await.unwrap();
            let file = fs::symlink_metadata(&path).unwrap();
            assert_eq!((file.mode() & 0o7777, file.gid()), (MODE, getegid().as_raw()));
            assert_eq!(socket.path(), path);
            drop(socket);
            assert!(!path.exists());
        }
    }

    #[tokio::test]
    async fn users_of_connections_are_known() {
        let (_directory, path) = place();
        let socket = LocalSocket::bind(&path, None).await.unwrap();
        let _client = UnixStream::connect(&path).await.unwrap();
        let (_stream, user) = socket.accept().await.unwrap();
        assert_eq!(user, geteuid().as_raw());
        assert_eq!(user_name(user), User::from_uid(geteuid()).unwrap().map(|user| user.name));
        assert_eq!(user_name(4_000_000_000), None);
    }

    #[tokio::test]
    async fn stale_socket_is_replaced() {
        let (_directory, path) = place();
        drop(Listener::bind(&path).unwrap());
        assert!(path.exists(), "as after a kill");
        let _socket = LocalSocket::bind(&path, None).await.unwrap();
        UnixStream::connect(&path).await.unwrap();
    }

    #[tokio::test]
    async fn sockets_in_use_and_other_files_are_kept() {
        let (directory, path) = place();
        let other = Listener::bind(&path).unwrap();
        let shown = path.display();
        assert_eq!(refused(&path, None).await, format!("cannot listen on {shown}: another process does"));
        assert!(other.accept().is_ok() && path.exists());
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let expected =
            format!("cannot listen on {}: there is something else that is not a socket", file.display());
        assert_eq!(refused(&file, None).await, expected);
        assert!(file.exists());
    }

    #[tokio::test]
    async fn socket_of_another_process_stays_at_the_end() {
        let (_directory, path) = place();
        let socket = LocalSocket::bind(&path, None).await.unwrap();
        fs::remove_file(&path).unwrap();
        // Not the inode that has just become free.
        fs::write(path.with_extension("between"), "").unwrap();
        let _other = Listener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn missing_directory_and_group_are_named() {
        let (directory, path) = place();
        let missing = directory.path().join("missing/s.sock");
        let expected = format!("cannot listen on {}: its directory does not exist", missing.display());
        assert_eq!(refused(&missing, None).await, expected);
        assert!(!directory.path().join("missing").exists());
        assert_eq!(refused(&path, Some("no-such-group")).await, "there is no group no-such-group");
        assert!(!path.exists(), "nothing was made");
    }
}
