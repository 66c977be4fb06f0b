//! A configuration as it goes to a host.

use std::fmt;

use crate::content::ContentBytes;
use crate::failure::ConfigurationProblem;
use crate::file_target::{is_file_path, is_owner};

/// A configuration that a provider gives.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// The files that it has, in the order of their bytes; without any it is one content, for the path that the provider's own
    /// configuration says.
    pub files: Vec<GivenFile>,
    /// The contents of all files, one after the other.
    pub bytes: ContentBytes,
    /// The SHA-256 in lowercase hexadecimal: of the JSON text as received, or of the decoded bytes of what was a text or one file.
    pub hash: String,
}

/// A file of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// Where it belongs on the host; valid by [`is_file_path`].
    pub path: String,
    /// Its permission bits, 0 to 0777.
    pub mode: Option<u32>,
    /// Its owner; valid by [`is_owner`], as is `group`.
    pub user: Option<String>,
    pub group: Option<String>,
    /// How many bytes of the configuration are its content.
    pub bytes: usize,
}

impl GivenFile {
    /// The file with that number, from 1, if all of it is valid.
    pub(super) fn new(
        file: usize,
        path: String,
        mode: Option<i64>,
        user: Option<String>,
        group: Option<String>,
        bytes: usize,
    ) -> Result<Self, ConfigurationProblem> {
        if !is_file_path(&path) {
            return Err(ConfigurationProblem::Path { file });
        }
        let bits = |mode: i64| u32::try_from(mode).ok().filter(|bits| *bits <= 0o777);
        let mode = mode.map(|mode| bits(mode).ok_or(ConfigurationProblem::Mode { file })).transpose()?;
        if [&user, &group].into_iter().flatten().any(|owner| !is_owner(owner)) {
            return Err(ConfigurationProblem::Owner { file });
        }
        Ok(Self { path, mode, user, group, bytes })
    }
}

/// The hash is left out: that of a short secret tells it.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Given");
        shown.field("files", &self.files).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_checked() {
        let some = |text: &str| Some(text.to_owned());
        let file = |path: &str, mode, user, group| GivenFile::new(2, path.to_owned(), mode, user, group, 7);
        let full = GivenFile {
            path: "/a".to_owned(),
            mode: Some(0o640),
            user: some("root"),
            group: some("app"),
            bytes: 7,
        };
        assert_eq!(file("/a", Some(0o640), some("root"), some("app")), Ok(full));
        let bare = GivenFile { path: "/a".to_owned(), mode: None, user: None, group: None, bytes: 7 };
        assert_eq!(file("/a", None, None, None), Ok(bare));
        for path in ["a", "", "/a/../b", "/a/./b", "/a/"] {
            assert_eq!(file(path, None, None, None), Err(ConfigurationProblem::Path { file: 2 }), "{path}");
        }
        for mode in [-1, 0o1000, 0o4755, i64::MAX, i64::MIN] {
            let refused = Err(ConfigurationProblem::Mode { file: 2 });
            assert_eq!(file("/a", Some(mode), None, None), refused, "{mode}");
        }
        for mode in [0, 0o777] {
            let bits = file("/a", Some(mode), None, None).unwrap().mode.map(i64::from);
            assert_eq!(bits, Some(mode));
        }
        for owner in ["", "a:b", "a b"] {
            let refused = Err(ConfigurationProblem::Owner { file: 2 });
            assert_eq!(file("/a", None, some(owner), None), refused, "{owner}");
            assert_eq!(file("/a", None, None, some(owner)), refused, "{owner}");
        }
    }

    #[test]
    fn nothing_that_tells_a_secret_is_displayed() {
        let bytes = ContentBytes::new(b"hunter2".to_vec());
        let given = Given { files: Vec::new(), bytes, hash: "f52fbd32".to_owned() };
        assert_eq!(format!("{given:?}"), "Given { files: [], bytes: 7 bytes, .. }");
    }
}
