//! How HTTP clients of this program are built. What they are used for lives with their users.

use std::error::Error as _;
use std::sync::Once;

use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::HttpUrl;
use reqwest::{ClientBuilder, Response, Url, redirect};

use crate::pem_file::PemError;

/// Why a client could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PemError),
    /// Something else, for example no CA certificates on this machine.
    #[error("cannot set up a FleetLock client for {url}")]
    Other {
        /// The server.
        url: HttpUrl,
        /// Why.
        source: reqwest::Error,
    },
}

/// A client for `url`'s scheme that follows no redirects and uses no proxy of the environment, as what it talks to is
/// part of the site. Timeouts are the caller's.
pub fn builder(url: &Url) -> ClientBuilder {
    install_crypto_provider();
    let builder = ClientBuilder::new().redirect(redirect::Policy::none()).no_proxy();
    if url.scheme() == "https" {
        builder
    } else {
        // Without this a machine that has no CA certificates could not even speak plain HTTP.
        builder.tls_certs_only([])
    }
}

/// The whole body, or more than `bytes_max` bytes of one that is larger.
///
/// # Errors
/// It does not come to its end.
pub async fn beginning(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() <= bytes_max
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The error's causes on one line, without the URL, which may hold a password and is known anyway.
pub fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    error.source().map_or_else(|| "the request came to no end".to_owned(), with_causes)
}

/// TLS is rustls with ring, installed once for the whole process; reqwest brings no provider of its own.
fn install_crypto_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Someone else may have installed one: theirs does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
