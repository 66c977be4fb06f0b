//! The valid tokens: those of the last usable version of the token file.
//!
//! An unusable file changes nothing, so a half-written one locks nobody out. Without a file no token is valid.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use os_upgrade_platform::file_watch::{self, Version};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::token_file::{self, FileError, Tokens};

/// A token file that is watched for changes.
#[derive(Debug)]
pub struct WatchedTokens {
    path: PathBuf,
    tokens: ArcSwap<Tokens>,
    /// Tells that they have changed.
    changes: watch::Sender<()>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The version of the file that [`WatchedTokens::tokens`] come from; `None` without a file.
    version: Option<Version>,
    /// What is wrong with the current file; `None` if it is usable.
    problem: Option<String>,
}

impl WatchedTokens {
    /// Reads the file. A missing file is not an error: no token is valid until it exists.
    ///
    /// # Errors
    /// The file is unusable.
    pub fn open(path: PathBuf) -> Result<Self, FileError> {
        let (tokens, changes) = (ArcSwap::default(), watch::Sender::default());
        let watched = Self { path, tokens, changes, seen: Mutex::default() };
        match watched.read_if_changed() {
            Ok(_) => Ok(watched),
            Err(missing @ FileError::Missing { .. }) => {
                tracing::warn!("{missing}; until then no token is valid");
                watched.seen().problem = Some(missing.to_string());
                Ok(watched)
            }
            Err(error) => Err(error),
        }
    }

    /// The tokens of the file, including expired ones.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.tokens.load_full()
    }

    /// Tells from now on that tokens have changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn set(&self, tokens: Arc<Tokens>) {
        self.tokens.store(tokens);
        self.changes.send_replace(());
    }

    /// What is wrong with the current file; `None` if it is usable.
    pub fn problem(&self) -> Option<String> {
        self.seen().problem.clone()
    }

    /// Watches the file until `shutdown`.
    pub async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        file_watch::watch("the token file", file_watch::CHECK_EVERY, shutdown, move || self.reload()).await;
    }

    /// Reloads the file if it has changed and is usable, and logs changes and problems.
    pub(super) fn reload(&self) {
        let result = self.read_if_changed();
        let mut seen = self.seen();
        match result {
            Ok(changed) => {
                if changed || seen.problem.is_some() {
                    tracing::info!(path = %self.path.display(), tokens = self.tokens.load().len(), "token file read");
                }
                seen.problem = None;
            }
            Err(error) => {
                let is_missing = matches!(error, FileError::Missing { .. });
                if is_missing {
                    self.set(Arc::default());
                    seen.version = None;
                }
                let problem = with_source(&error);
                if seen.problem.as_ref() != Some(&problem) {
                    let consequence =
                        if is_missing { "no token is valid" } else { "the tokens read before stay valid" };
                    tracing::error!("{problem}; {consequence}");
                }
                seen.problem = Some(problem);
            }
        }
    }

    /// Reads the file if its version has changed; returns whether it has.
    fn read_if_changed(&self) -> Result<bool, FileError> {
        let before = self.seen().version;
        if before.is_some() && before == Version::at(&self.path) {
            return Ok(false);
        }
        let (tokens, version) = token_file::read_version(&self.path)?;
        self.set(Arc::new(tokens));
        self.seen().version = Some(version);
        Ok(true)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_source(error: &FileError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}
