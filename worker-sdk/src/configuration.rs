//! A configuration, as a worker's handler gets it.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;

use os_upgrade_protocol::{Content, ItemId};
use zeroize::Zeroize as _;

/// What is to be in force for one name. Its content may be secret: it is cleared from memory when this is dropped, and it is in no log
/// and no state file.
pub struct Configuration {
    pub(crate) name: String,
    pub(crate) id: ItemId,
    pub(crate) content: Secret,
    pub(crate) changed: Vec<PathBuf>,
}

impl Configuration {
    /// What it is called; unique for the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which version of it this is: another content has another id, and an id says nothing of the content.
    pub const fn id(&self) -> &ItemId {
        &self.id
    }

    /// The bytes, 512 KiB at most. If it has files, those of one file follow those of another.
    pub fn content(&self) -> &[u8] {
        &self.content.bytes
    }

    /// Whether it is files, which the library has put in place.
    pub fn has_files(&self) -> bool {
        !self.content.files.is_empty()
    }

    /// The files that the library has put in place, changed or removed for it since this handler last succeeded, or may have.
    pub fn changed(&self) -> &[PathBuf] {
        &self.changed
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration")
            .field("name", &self.name)
            .field("id", &self.id)
            .field("changed", &self.changed)
            .finish_non_exhaustive()
    }
}

/// A content that is cleared from memory when it is dropped.
pub(crate) struct Secret(pub(crate) Content);

impl Deref for Secret {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.bytes.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_not_shown() {
        let content = Content { files: Vec::new(), bytes: b"canary".to_vec() };
        let configuration = Configuration {
            name: "app".to_owned(),
            id: ItemId::new("1").unwrap(),
            content: Secret(content),
            changed: Vec::new(),
        };
        assert_eq!(configuration.content(), b"canary");
        let shown = format!("{configuration:?}");
        assert!(shown.contains("app") && !shown.contains("canary") && !shown.contains("99"), "{shown}");
    }
}
