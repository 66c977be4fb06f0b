//! The files of configurations: put in place before the handler is called, and removed before it is told that a name is revoked. Which files
//! are the worker's is saved before they are changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use os_upgrade_protocol::Content;
use os_upgrade_protocol::error::with_causes;

use crate::files::{FilesError, FilesOfName, FilesState, Plan, Roots, remove};
use crate::store::Store;

/// Where files may be put, and which ones were. One change at a time is made.
#[derive(Debug)]
pub(in crate::driver) struct Files {
    roots: Roots,
    store: Arc<Store>,
    state: Mutex<FilesState>,
}

impl Files {
    pub(in crate::driver) const fn new(roots: Roots, store: Arc<Store>, state: FilesState) -> Self {
        Self { roots, store, state: Mutex::new(state) }
    }

    /// Puts the files of the configuration `name` in place. Returns those that were changed since the handler last succeeded, or might have
    /// been.
    ///
    /// # Errors
    /// One cannot be put where it is wanted, or this cannot be saved.
    pub(super) fn place(&self, name: &str, content: &Content) -> Result<Vec<PathBuf>, String> {
        let wanted: Vec<_> = content.each_file().collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.names.get(name).cloned().unwrap_or_default();
        if wanted.is_empty() && before == FilesOfName::default() {
            return Ok(Vec::new());
        }
        let plan = Plan::new(&self.roots, &before.files, &state.of_others(name), &wanted).map_err(text)?;
        self.save(&mut state, name, FilesOfName { files: plan.owned(), unhandled: true })?;
        let placed = plan.carry_out().map_err(text)?;
        let mut changed = placed.changed;
        if before.unhandled {
            let all = before.files.iter().chain(&placed.owned).map(|file| PathBuf::from(&file.path));
            changed = changed.into_iter().chain(all).collect();
            changed.sort();
            changed.dedup();
        }
        let unhandled = before.unhandled || !changed.is_empty();
        self.save(&mut state, name, FilesOfName { files: placed.owned, unhandled })?;
        Ok(changed)
    }

    /// The handler has succeeded for `name`.
    ///
    /// # Errors
    /// That cannot be saved.
    pub(super) fn handled(&self, name: &str) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.names.get(name).cloned() {
            Some(of_name) if of_name.unhandled => {
                self.save(&mut state, name, FilesOfName { unhandled: false, ..of_name })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Removes the files of the configuration `name`.
    ///
    /// # Errors
    /// One has been changed by somebody else, or cannot be removed, or this cannot be saved.
    pub(super) fn remove(&self, name: &str) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_name) = state.names.get(name).cloned() else { return Ok(()) };
        remove(&self.roots, &of_name.files).map_err(text)?;
        self.save(&mut state, name, FilesOfName::default())
    }

    /// Saves what is of `name`. On an error nothing has changed.
    fn save(&self, state: &mut FilesState, name: &str, of_name: FilesOfName) -> Result<(), String> {
        let mut next = state.clone();
        if of_name.files.is_empty() && !of_name.unhandled {
            next.names.remove(name);
        } else {
            next.names.insert(name.to_owned(), of_name);
        }
        if next != *state {
            self.store
                .save_files(&next)
                .map_err(|error| format!("which files are the worker's cannot be saved: {error}"))?;
            *state = next;
        }
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(error: FilesError) -> String {
    with_causes(&error)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use os_upgrade_protocol::{FileEntry, HostName};
    use tempfile::TempDir;

    use super::*;

    /// A worker whose files may be put below a directory.
    struct Setup {
        root: TempDir,
        state: TempDir,
    }

    impl Setup {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
        }

        /// The files as a process that starts now knows them.
        fn files(&self) -> Files {
            let host = HostName::new("h1").unwrap();
            let store = Arc::new(Store::open(self.state.path(), &host).unwrap());
            let state = store.load_files().unwrap();
            Files::new(Roots::new([self.root.path().to_owned()]).unwrap(), store, state)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn content(&self, files: &[(&str, &str)]) -> Content {
            let entry = |(name, bytes): &(&str, &str)| FileEntry {
                path: self.path(name).display().to_string(),
                mode: None,
                user: None,
                group: None,
                bytes: bytes.len(),
            };
            let bytes = files.iter().flat_map(|(_, bytes)| bytes.bytes()).collect();
            Content { files: files.iter().map(entry).collect(), bytes }
        }
    }

    fn read(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    #[test]
    fn changed_files_are_told_until_the_handler_has_succeeded() {
        let setup = Setup::new();
        let (a, b) = (setup.path("a"), setup.path("b"));
        let both = setup.content(&[("a", "1"), ("b", "1")]);
        let files = setup.files();
        assert_eq!(files.place("app", &both).unwrap(), [a.clone(), b.clone()]);
        drop(files);
        // The process ended before the handler had succeeded.
        let files = setup.files();
        assert_eq!(files.place("app", &both).unwrap(), [a.clone(), b.clone()]);
        files.handled("app").unwrap();
        assert_eq!(files.place("app", &both).unwrap(), [""; 0].map(PathBuf::from));
        drop(files);
        let files = setup.files();
        assert_eq!(files.place("app", &setup.content(&[("a", "2")])).unwrap(), [a.clone(), b.clone()]);
        assert_eq!((read(&a), read(&b)), (Some("2".to_owned()), None));
        files.handled("app").unwrap();
        files.remove("app").unwrap();
        files.remove("app").unwrap();
        assert_eq!(read(&a), None);
    }

    #[test]
    fn paths_belong_to_one_name_and_changed_files_to_nobody() {
        let setup = Setup::new();
        let files = setup.files();
        let one = setup.content(&[("a", "1")]);
        files.place("app", &one).unwrap();
        let error = files.place("net", &one).unwrap_err();
        assert!(
            error.ends_with("belongs to another name: choose another path, or take it out there first"),
            "{error}"
        );
        fs::write(setup.path("a"), "by hand").unwrap();
        for error in
            [files.place("app", &setup.content(&[("a", "2")])).unwrap_err(), files.remove("app").unwrap_err()]
        {
            assert!(error.contains("has been changed by somebody else"), "{error}");
        }
        assert_eq!(read(&setup.path("a")), Some("by hand".to_owned()));
        let elsewhere = Content {
            files: vec![FileEntry { path: "/etc/passwd".to_owned(), ..one.files[0].clone() }],
            ..one
        };
        let error = files.place("users", &elsewhere).unwrap_err();
        assert!(error.starts_with("/etc/passwd is not below a root for files"), "{error}");
    }
}
