//! Builds the HTTP clients of this program.

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
    #[error("cannot set up an HTTP client for {url}")]
    Other {
        /// The base URL of the server.
        url: HttpUrl,
        source: reqwest::Error,
    },
}

/// A client for `url`'s scheme. It follows no redirects and ignores the environment's proxy, since its servers are part of
/// the site. The caller sets timeouts.
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

/// The whole body, or the first bytes of a larger one, which are more than `bytes_max`.
///
/// # Errors
/// The body is incomplete.
pub async fn read_up_to(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, reqwest::Error> {
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
    let text = error.source().map_or_else(|| "the request was not completed".to_owned(), with_causes);
    // The client library says which of its variants it is.
    text.strip_prefix("client error (Connect): ").unwrap_or(&text).to_owned()
}

/// Installs ring as the provider of rustls, once for the whole process: HTTP clients have none of their own.
pub fn install_crypto_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails if another provider is installed already, which works too.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
