//! What a worker remembers of what its host is to have: a file of its own in the state directory. It has names and ids, and nothing of
//! what the items say.

use std::collections::BTreeMap;

use os_upgrade_protocol::{HostName, ItemId, Revision};
use serde::{Deserialize, Serialize};

use crate::StateFileError;
use crate::state_file::{FORMAT, read, written};

/// The largest such file that is read, in bytes: one with [`NAMES_MAX`] of the longest names is smaller.
pub const DESIRED_STATE_BYTES_MAX: usize = 512 * 1024;
/// How many names may be in force, or still to be revoked: those of a full manifest, and those of the one before it.
pub const NAMES_MAX: usize = 2 * os_upgrade_protocol::limits::CONFIGURATIONS_MAX;

/// Which manifest was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The site, which stays the same.
    pub site: String,
    #[serde(flatten)]
    pub revision: Revision,
}

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DesiredState {
    format: u32,
    /// Whose state this is.
    pub host: HostName,
    /// The newest manifest that was accepted, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Accepted>,
    /// The item that is in force for each name of a configuration; `None` if a handler was begun for the name and has not succeeded, so that
    /// it is not known what is in force.
    pub configurations: BTreeMap<String, Option<ItemId>>,
}

impl DesiredState {
    /// The state of a host that has accepted no manifest.
    pub fn new(host: HostName) -> Self {
        Self { format: FORMAT, host, accepted: None, configurations: BTreeMap::new() }
    }

    /// Reads the state of `host`.
    ///
    /// # Errors
    /// The bytes are damaged, have another format, or are the state of another host.
    pub fn parse(bytes: &[u8], host: &HostName) -> Result<Self, StateFileError> {
        let state: Self = read(bytes, DESIRED_STATE_BYTES_MAX)?;
        if state.host != *host {
            return Err(StateFileError::OtherHost(state.host));
        }
        Ok(state)
    }

    /// The contents of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        written(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostName {
        HostName::new("h1").unwrap()
    }

    fn full() -> DesiredState {
        let id = ItemId::new("Zm9v").unwrap();
        DesiredState {
            accepted: Some(Accepted {
                site: "hall-1".to_owned(),
                revision: Revision { epoch: 3, sequence: 7 },
            }),
            configurations: [("app".to_owned(), Some(id)), ("net".to_owned(), None)].into(),
            ..DesiredState::new(host())
        }
    }

    #[test]
    fn states_are_read_back() {
        for state in [full(), DesiredState::new(host())] {
            assert_eq!(DesiredState::parse(&state.to_bytes(), &host()).unwrap(), state);
        }
    }

    #[test]
    fn longest_states_fit() {
        let id = ItemId::new(&"x".repeat(64)).unwrap();
        let names =
            (0..NAMES_MAX).map(|number| (format!("{}{number:03}", "\"".repeat(252)), Some(id.clone())));
        let state = DesiredState { configurations: names.collect(), ..full() };
        assert_eq!(state.configurations.len(), NAMES_MAX);
        assert_eq!(DesiredState::parse(&state.to_bytes(), &host()).unwrap(), state);
    }

    #[test]
    fn invalid_states_are_rejected() {
        let good = String::from_utf8(full().to_bytes()).unwrap();
        let parse = |text: &str| DesiredState::parse(text.as_bytes(), &host());
        assert!(matches!(parse(""), Err(StateFileError::Json(_))));
        assert!(matches!(parse(&good.replace("Zm9v", "a.b")), Err(StateFileError::Json(_))));
        let newer = good.replace("\"format\": 1", "\"format\": 2");
        assert!(matches!(parse(&newer), Err(StateFileError::Format(2))));
        let other = good.replace("\"h1\"", "\"h2\"");
        assert!(matches!(parse(&other), Err(StateFileError::OtherHost(_))));
        let large = " ".repeat(DESIRED_STATE_BYTES_MAX + 1);
        assert!(matches!(parse(&large), Err(StateFileError::TooLarge(_))));
    }
}
