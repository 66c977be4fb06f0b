//! HTTP clients of the tests: they use no proxy, follow no redirect and trust only the authorities that they are given.

use std::sync::Once;

use reqwest::{Certificate, ClientBuilder, redirect};

/// A builder of a client that trusts the authorities `ca` for `https`.
pub fn builder(ca: impl IntoIterator<Item = Certificate>) -> ClientBuilder {
    // TLS is rustls, which takes one provider of cryptography for the whole process.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A library in this process may have installed one: it does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    ClientBuilder::new().redirect(redirect::Policy::none()).no_proxy().tls_certs_only(ca)
}
