//! The options that name any FleetLock server, and what a client of it needs.

use clap::Args;
use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;

use super::credentials::{Credentials, Source};
use super::tls::Tls;
use crate::Failure;
use crate::address::http_url;
use crate::contexts::ContextName;
use crate::rest::{self, Target};

#[derive(Debug, Args)]
pub(super) struct Server {
    /// The lock server's base URL; else `OS_UPGRADE_URL`, the current context, or `http://127.0.0.1:8646`; do not put user and password in
    /// it, since everybody on the machine can read command lines
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with = "context")]
    url: Option<HttpUrl>,
    /// The context whose first URL and authorities are used, of those that `os-upgrade context` manages; it comes before
    /// `OS_UPGRADE_URL`
    #[arg(long, value_name = "NAME")]
    context: Option<ContextName>,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    tls: Tls,
}

impl Server {
    /// The URL with user and password, where these were found, and the certificates' files.
    ///
    /// # Errors
    /// It is not clear which server is meant, the options contradict each other, or the credentials cannot be read.
    pub(super) fn resolve(self) -> Result<(HttpUrl, Source, TlsFiles), Failure> {
        let Self { url, context, credentials, mut tls } = self;
        // Any server may be named by its URL: what belongs to an instance is of no use there.
        let (url, files) = if let Some(url) = url {
            let files = tls.files(&url)?;
            (url, files)
        } else {
            let Target { urls, ca, .. } = rest::Server::new(None, context, tls.ca.take()).target()?;
            let url = urls.into_iter().next().ok_or_else(|| Failure::Usage("no URL is named".to_owned()))?;
            let files = tls.files_with(ca, &url)?;
            (url, files)
        };
        let (url, source) = credentials.in_url(&url)?;
        Ok((url, source, files))
    }
}
