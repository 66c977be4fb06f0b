//! User and password for lock servers, as an option or a variable: what stands in a `--url` can be read by everybody on
//! the machine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use os_upgrade_settings::HttpUrl;

use crate::Failure;

/// The variable that holds them.
pub(super) const VARIABLE: &str = "OS_UPGRADE_LOCK_CREDENTIALS";

#[derive(Debug, Args)]
pub(super) struct Credentials {
    /// A file with the user and password to send as HTTP Basic authentication, `user:password`; by default those of the
    /// variable `OS_UPGRADE_LOCK_CREDENTIALS`, if there are any
    #[arg(long, value_name = "FILE")]
    credentials_file: Option<PathBuf>,
}

/// Where user and password were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// In the URL, or nowhere.
    Url,
    /// In this file.
    File(PathBuf),
    /// In the variable.
    Variable,
}

impl Credentials {
    /// `url` with the user and password to send, and where these were found. Those of a URL come before the variable's.
    ///
    /// # Errors
    /// They are given twice, or are none.
    pub(super) fn in_url(self, url: &HttpUrl) -> Result<(HttpUrl, Found), Failure> {
        match self.credentials_file {
            Some(_) if url.has_credentials() => {
                Err(Failure::Usage("--credentials-file: there are user and password in --url".to_owned()))
            }
            Some(path) => Ok((put_into(url, &of_file(&path)?)?, Found::File(path))),
            None if url.has_credentials() => Ok((url.clone(), Found::Url)),
            None => match std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty()) {
                Some(text) => {
                    let url = put_into(url, &text).with_context(|| format!("the variable {VARIABLE}"))?;
                    Ok((url, Found::Variable))
                }
                None => Ok((url.clone(), Found::Url)),
            },
        }
    }
}

fn of_file(path: &Path) -> anyhow::Result<String> {
    let read = std::fs::read_to_string(path);
    read.with_context(|| format!("cannot read the file of --credentials-file, {}", path.display()))
}

/// What is wrong with `text` is said without a word of it.
fn put_into(url: &HttpUrl, text: &str) -> anyhow::Result<HttpUrl> {
    let text = text.trim();
    match text.split_once(':') {
        Some((user, password)) if !user.is_empty() && !text.contains(char::is_control) => {
            Ok(url.with_credentials(user, password))
        }
        Some(_) | None => bail!("user:password is expected, on one line"),
    }
}
