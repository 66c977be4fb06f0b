//! User and password for lock servers, from a file or a variable: everybody on the machine can read a `--url`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use os_upgrade_settings::HttpUrl;

use crate::Failure;

/// The variable that holds user and password.
pub(super) const VARIABLE: &str = "OS_UPGRADE_LOCK_CREDENTIALS";

#[derive(Debug, Args)]
pub(super) struct Credentials {
    /// A file with the `user:password` to send as HTTP Basic authentication; by default it is taken from the variable
    /// `OS_UPGRADE_LOCK_CREDENTIALS`, if set
    #[arg(long, value_name = "FILE")]
    credentials_file: Option<PathBuf>,
}

/// Where user and password were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// In the URL, or nowhere.
    Url,
    /// In this file.
    File(PathBuf),
    /// In the variable.
    Variable,
}

impl Credentials {
    /// `url` with the user and password to send, and where these were found. Those in the URL win over the variable.
    ///
    /// # Errors
    /// They are given twice, or cannot be read.
    pub(super) fn in_url(self, url: &HttpUrl) -> Result<(HttpUrl, Source), Failure> {
        match self.credentials_file {
            Some(_) if url.has_credentials() => {
                Err(Failure::Usage("--credentials-file: --url already has user and password".to_owned()))
            }
            Some(path) => {
                let with = read_file(&path).and_then(|text| put_into(url, &text));
                Ok((with.map_err(|error| Failure::unusable(&error))?, Source::File(path)))
            }
            None if url.has_credentials() => Ok((url.clone(), Source::Url)),
            None => match std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty()) {
                Some(text) => {
                    let with = put_into(url, &text).with_context(|| format!("the variable {VARIABLE}"));
                    Ok((with.map_err(|error| Failure::unusable(&error))?, Source::Variable))
                }
                None => Ok((url.clone(), Source::Url)),
            },
        }
    }
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    let read = std::fs::read_to_string(path);
    read.with_context(|| format!("cannot read the file of --credentials-file, {}", path.display()))
}

/// Puts `user:password` into `url`. The error does not quote `text`, which is secret.
fn put_into(url: &HttpUrl, text: &str) -> anyhow::Result<HttpUrl> {
    let text = text.trim();
    match text.split_once(':') {
        Some((user, password)) if !user.is_empty() && !text.contains(char::is_control) => {
            Ok(url.with_credentials(user, password))
        }
        Some(_) | None => bail!("user:password is expected, on one line"),
    }
}
