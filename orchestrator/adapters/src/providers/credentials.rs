//! The credentials and the client certificate that a provider wants.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use os_upgrade_kernel::SecretName;
use os_upgrade_provider_rules::{CredentialsProblem, Failure, Origin};
use os_upgrade_tls::client_files::identity_from_pem;
use reqwest::Identity;
use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

/// An opened secret, and the origin to which it may go. In a header, a secret with a colon is `user:password`, for HTTP Basic authentication
/// (RFC 7617); one without is a bearer token, which never has a colon (RFC 6750).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    name: SecretName,
    secret: Zeroizing<String>,
    origin: Origin,
}

impl Credentials {
    /// The secret `name`, for `origin` alone.
    pub const fn new(name: SecretName, secret: Zeroizing<String>, origin: Origin) -> Self {
        Self { name, secret, origin }
    }

    /// The value of `Authorization` for a request to `origin`.
    ///
    /// # Errors
    /// They are for another origin, or no header can have them.
    pub(super) fn header_for(&self, origin: &Origin) -> Result<HeaderValue, Failure> {
        self.header(origin).map_err(|problem| credentials_failure(&self.name, problem))
    }

    fn header(&self, origin: &Origin) -> Result<HeaderValue, CredentialsProblem> {
        let secret = self.secret_for(origin)?;
        let value = if secret.contains(':') {
            if secret.chars().any(char::is_control) {
                return Err(CredentialsProblem::Malformed);
            }
            Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(secret.as_bytes())))
        } else {
            if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(CredentialsProblem::Malformed);
            }
            Zeroizing::new(format!("Bearer {secret}"))
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| CredentialsProblem::Malformed)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The client certificate for connections to `origin`.
    ///
    /// # Errors
    /// It is for another origin, or is none.
    pub(super) fn identity_for(&self, origin: &Origin) -> Result<Identity, Failure> {
        let identity = self
            .secret_for(origin)
            .and_then(|pem| identity_from_pem(pem.as_bytes()).map_err(|_| CredentialsProblem::Malformed));
        identity.map_err(|problem| certificate_failure(&self.name, problem))
    }

    fn secret_for(&self, origin: &Origin) -> Result<&str, CredentialsProblem> {
        if self.origin == *origin { Ok(self.secret.as_str()) } else { Err(CredentialsProblem::OtherOrigin) }
    }
}

/// The failure of a provider whose `credentials` are the secret `name`.
pub(super) fn credentials_failure(name: &SecretName, problem: CredentialsProblem) -> Failure {
    Failure::Credentials { problem, secret: Some(name.to_string()) }
}

/// The failure of a provider whose `client-certificate` is the secret `name`.
pub(super) fn certificate_failure(name: &SecretName, problem: CredentialsProblem) -> Failure {
    Failure::ClientCertificate { problem, secret: Some(name.to_string()) }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials for {}", self.origin)
    }
}
