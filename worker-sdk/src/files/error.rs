//! Why files cannot be put or removed. Every text names the path and says what to do; none has contents of a file.

use std::io;

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathFault {
    #[error("is not absolute")]
    Relative,
    #[error("is the whole file system; give a directory in it")]
    WholeFileSystem,
    #[error("has an empty component, or . or ..")]
    Component,
    #[error("has control characters")]
    Control,
    #[error("is not valid UTF-8")]
    NotUtf8,
    #[error("has more than {max} bytes")]
    TooLong { max: usize },
    #[error("has the name of a temporary file of the worker; choose another")]
    Temporary,
}

/// Why files cannot be put or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("{path:?} cannot be a root for files: it {fault}")]
    Root { path: String, fault: PathFault },
    #[error("{path:?} cannot be the path of a file: it {fault}")]
    Path { path: String, fault: PathFault },
    #[error(
        "{path} is not below a root for files ({roots}): choose another path, or configure a root for it"
    )]
    NotBelowRoot { path: String, roots: String },
    #[error("{count} files are more than one name may have ({max}): divide them among several names")]
    TooMany { count: usize, max: usize },
    #[error("{path} is to have the mode {mode:o}: choose one of 0 to 777, without setuid, setgid and sticky")]
    Mode { path: String, mode: u32 },
    #[error("{path} is there twice: leave one of them out")]
    Repeated { path: String },
    #[error("{path} belongs to another name: choose another path, or take it out there first")]
    OfOther { path: String },
    #[error("{path} is to be in {file}, which is to be a file: choose another path for one of them")]
    InFile { path: String, file: String },
    #[error("{path} is to belong to the user {name:?}, whom this host does not have: create the user first")]
    UnknownUser { path: String, name: String },
    #[error(
        "{path} is to belong to the group {name:?}, which this host does not have: create the group first"
    )]
    UnknownGroup { path: String, name: String },
    #[error(
        "{path} cannot be given to {owner}: let the worker run as root, which alone may give files away, or leave user \
         and group out"
    )]
    NotPermitted { path: String, owner: String },
    #[error(
        "{path} needs the root {root}, which does not exist: create or mount it, or correct the roots for files"
    )]
    RootMissing { path: String, root: String },
    #[error(
        "{path} cannot be used, as {at} is a symbolic link: use the path that it leads to, or move it away"
    )]
    Link { path: String, at: String },
    #[error("{path} cannot be used, as {at} is not a directory: move it away, or choose another path")]
    NotDirectory { path: String, at: String },
    #[error("{path} is {kind}, which is neither replaced nor removed: move it away, or choose another path")]
    NotRegular { path: String, kind: &'static str },
    #[error("{path} exists, and this worker has not put it there: move it away, or choose another path")]
    Foreign { path: String },
    #[error("{path} has been changed by somebody else since this worker put it there: move it away")]
    Changed { path: String },
    #[error(
        "{path} cannot be used without the system call openat2: run Linux 5.6 or later, and let seccomp allow it"
    )]
    NoOpenat2 { path: String },
    #[error("cannot {action} {path}")]
    Io { path: String, action: &'static str, source: io::Error },
}
