//! The files of a configuration, which are put in place before the handler is called.

use std::path::PathBuf;

use os_upgrade_protocol::Content;

/// Puts the files of the configuration `name` in place, and returns those that it has changed.
///
/// # Errors
/// One of them is below none of the directories that are configured for this.
pub(super) fn place(_name: &str, content: &Content) -> Result<Vec<PathBuf>, String> {
    match content.files.first() {
        None => Ok(Vec::new()),
        Some(file) => Err(format!("no root is configured for {}", file.path)),
    }
}

/// Removes the files of the configuration `name`.
#[expect(clippy::unnecessary_wraps, reason = "removing can fail once files can be placed")]
pub(super) fn remove(_name: &str) -> Result<(), String> {
    Ok(())
}
