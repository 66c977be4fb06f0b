//! URLs on the command line.

use os_upgrade_settings::HttpUrl;

/// Where an instance listens by default.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8646";

/// Parses a URL given on the command line.
///
/// # Errors
/// It is not an HTTP URL.
pub(crate) fn http_url(text: &str) -> Result<HttpUrl, String> {
    text.parse().map_err(|_| "an http:// or https:// URL is expected".to_owned())
}
