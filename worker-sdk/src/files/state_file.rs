//! Which files the worker has put where: a file of its own in the state directory, for the worker alone, as digests of short secrets could be
//! guessed.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_protocol::HostName;
use os_upgrade_worker_rules::StateFileError;
use os_upgrade_worker_rules::state_file::{FORMAT, read, written};
use serde::{Deserialize, Serialize};

/// The largest such file that is read and written, in bytes.
const FILES_STATE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A file that this worker has put on the host, or is about to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnedFile {
    pub(crate) path: String,
    /// The SHA-256, in hexadecimal digits, of what it may contain: one, or those before and after a change that may have
    /// been cut off.
    pub(crate) digests: Vec<String>,
}

/// The files of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilesOfName {
    pub(crate) files: Vec<OwnedFile>,
    /// Whether the handler has not succeeded since they were changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unhandled: bool,
}

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilesState {
    format: u32,
    host: HostName,
    pub(crate) names: BTreeMap<String, FilesOfName>,
}

impl FilesState {
    /// The state of a host on which no file was put.
    pub(crate) const fn new(host: HostName) -> Self {
        Self { format: FORMAT, host, names: BTreeMap::new() }
    }

    /// Reads the state of `host`.
    ///
    /// # Errors
    /// The bytes are damaged, have another format, or are the state of another host.
    pub(crate) fn parse(bytes: &[u8], host: &HostName) -> Result<Self, StateFileError> {
        let state: Self = read(bytes, FILES_STATE_BYTES_MAX)?;
        if state.host != *host {
            return Err(StateFileError::OtherHost(state.host));
        }
        Ok(state)
    }

    /// The contents of the file; `None` if they are more than are read.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        Some(written(self)).filter(|bytes| bytes.len() <= FILES_STATE_BYTES_MAX)
    }

    /// The paths that belong to other names than `name`.
    pub(crate) fn of_others(&self, name: &str) -> BTreeSet<String> {
        let others = self.names.iter().filter(|(other, _)| *other != name);
        others.flat_map(|(_, of_name)| of_name.files.iter().map(|file| file.path.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_back() {
        let host = HostName::new("h1").unwrap();
        let file = |path: &str| OwnedFile { path: path.to_owned(), digests: vec!["00".repeat(32)] };
        let of_name = |path: &str, unhandled| FilesOfName { files: vec![file(path)], unhandled };
        let mut state = FilesState::new(host.clone());
        state.names.insert("app".to_owned(), of_name("/etc/app.conf", true));
        state.names.insert("net".to_owned(), of_name("/etc/net.conf", false));
        assert_eq!(FilesState::parse(&state.to_bytes().unwrap(), &host).unwrap(), state);
        assert_eq!(state.of_others("app"), BTreeSet::from(["/etc/net.conf".to_owned()]));
        let other = FilesState::parse(&state.to_bytes().unwrap(), &HostName::new("h2").unwrap());
        assert!(matches!(other, Err(StateFileError::OtherHost(_))));
        assert!(FilesState::parse(b"{", &host).is_err());
        let long = "x".repeat(FILES_STATE_BYTES_MAX);
        state.names.insert("long".to_owned(), of_name(&long, false));
        assert_eq!(state.to_bytes(), None);
    }
}
