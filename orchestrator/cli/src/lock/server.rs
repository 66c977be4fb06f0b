//! The options that name any FleetLock server, and what a client of it needs.

use clap::Args;
use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;

use super::credentials::{Credentials, Source};
use super::tls::Tls;
use crate::Failure;
use crate::address::{DEFAULT_URL, http_url};

#[derive(Debug, Args)]
pub(super) struct Server {
    /// The lock server's base URL; do not put user and password in it, since everybody on the machine can read command
    /// lines
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = http_url)]
    url: HttpUrl,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    tls: Tls,
}

impl Server {
    /// The URL with user and password, where these were found, and the certificates' files.
    ///
    /// # Errors
    /// The options contradict each other, or the credentials cannot be read.
    pub(super) fn resolve(self) -> Result<(HttpUrl, Source, TlsFiles), Failure> {
        let files = self.tls.files(&self.url)?;
        let (url, source) = self.credentials.in_url(&self.url)?;
        Ok((url, source, files))
    }
}
