//! The credentials that a provider wants.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use os_upgrade_provider_rules::{CredentialsProblem, Origin};
use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

/// An opened secret, and the origin to which it may go. A secret with a colon is `user:password`, for HTTP Basic authentication (RFC 7617);
/// one without is a bearer token, which never has a colon (RFC 6750).
pub struct Credentials {
    secret: Zeroizing<String>,
    origin: Origin,
}

impl Credentials {
    /// These credentials, for `origin` alone.
    pub const fn new(secret: Zeroizing<String>, origin: Origin) -> Self {
        Self { secret, origin }
    }

    /// The value of `Authorization` for a request to `origin`.
    ///
    /// # Errors
    /// They are for another origin, or no header can have them.
    pub(super) fn header_for(&self, origin: &Origin) -> Result<HeaderValue, CredentialsProblem> {
        if self.origin != *origin {
            return Err(CredentialsProblem::OtherOrigin);
        }
        let value = if self.secret.contains(':') {
            if self.secret.chars().any(char::is_control) {
                return Err(CredentialsProblem::Malformed);
            }
            Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(self.secret.as_bytes())))
        } else {
            if self.secret.is_empty() || !self.secret.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(CredentialsProblem::Malformed);
            }
            Zeroizing::new(format!("Bearer {}", *self.secret))
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| CredentialsProblem::Malformed)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials for {}", self.origin)
    }
}
