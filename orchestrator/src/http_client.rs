//! How HTTP clients of this program are built. What they are used for lives with their users.

use std::sync::Once;

use reqwest::{ClientBuilder, Url, redirect};

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

/// TLS is rustls with ring, installed once for the whole process; reqwest brings no provider of its own.
fn install_crypto_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Someone else may have installed one: theirs does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
