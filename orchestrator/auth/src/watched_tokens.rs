//! The tokens that are valid now: those of the file as it was when it last could be used.
//!
//! A file that cannot be used changes nothing, so that one that is half written locks nobody out; a file that is not there
//! leaves no token valid.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use os_upgrade_platform::file_watch::{self, Version};
use tokio_util::sync::CancellationToken;

use super::token_file::{self, FileError, Tokens};

/// A token file, followed.
#[derive(Debug)]
pub struct WatchedTokens {
    path: PathBuf,
    tokens: ArcSwap<Tokens>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The file that [`WatchedTokens::tokens`] are of.
    version: Option<Version>,
    /// What is wrong with the file that is there now.
    problem: Option<String>,
}

impl WatchedTokens {
    /// Reads the file. That there is none is no error: no token is valid until there is one.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn open(path: PathBuf) -> Result<Self, FileError> {
        let kept = Self { path, tokens: ArcSwap::default(), seen: Mutex::default() };
        match kept.look() {
            Ok(_) => Ok(kept),
            Err(missing @ FileError::Missing { .. }) => {
                tracing::warn!("{missing}; until then no token is valid");
                kept.seen().problem = Some(missing.to_string());
                Ok(kept)
            }
            Err(error) => Err(error),
        }
    }

    /// The tokens that are valid now, expired ones among them.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.tokens.load_full()
    }

    /// What is wrong with the file, if anything.
    pub fn problem(&self) -> Option<String> {
        self.seen().problem.clone()
    }

    /// Follows the file until `shutdown`.
    pub async fn follow(self: Arc<Self>, shutdown: CancellationToken) {
        file_watch::follow("the token file", shutdown, move || self.look_again()).await;
    }

    /// Takes in the file as it is now, if that can be used, and logs what is new about it.
    pub(super) fn look_again(&self) {
        let looked = self.look();
        let mut seen = self.seen();
        match looked {
            Ok(changed) => {
                if changed || seen.problem.is_some() {
                    tracing::info!(path = %self.path.display(), tokens = self.tokens.load().len(), "token file read");
                }
                seen.problem = None;
            }
            Err(error) => {
                let gone = matches!(error, FileError::Missing { .. });
                if gone {
                    self.tokens.store(Arc::default());
                    seen.version = None;
                }
                let problem = chain(&error);
                if seen.problem.as_ref() != Some(&problem) {
                    let consequence = if gone { "no token is valid" } else { "the tokens it had stay valid" };
                    tracing::error!("{problem}; {consequence}");
                }
                seen.problem = Some(problem);
            }
        }
    }

    /// Whether there was something new.
    fn look(&self) -> Result<bool, FileError> {
        let before = self.seen().version;
        if before.is_some() && before == Version::at(&self.path) {
            return Ok(false);
        }
        let (tokens, version) = token_file::read_version(&self.path)?;
        self.tokens.store(Arc::new(tokens));
        self.seen().version = Some(version);
        Ok(true)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn chain(error: &FileError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}
