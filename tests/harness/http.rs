//! HTTP clients for tests: without proxies and redirects, trusting only the given authorities.

use std::sync::Once;

use reqwest::{Certificate, ClientBuilder, redirect};

/// A builder of a client that trusts the authorities `ca` for `https`.
pub fn builder(ca: impl IntoIterator<Item = Certificate>) -> ClientBuilder {
    // rustls uses one crypto provider for the whole process.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A library may have installed one already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    ClientBuilder::new().redirect(redirect::Policy::none()).no_proxy().tls_certs_only(ca)
}
