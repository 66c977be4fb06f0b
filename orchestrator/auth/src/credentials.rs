//! The credentials in the headers of a request.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Denied;

/// The credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// The request has no `Authorization`.
    None,
    /// `Authorization: Bearer <token>`.
    Bearer(String),
    /// `Authorization: Basic <base64 of name:secret>`.
    Basic {
        /// The name of the token.
        name: String,
        /// The secret of the token.
        secret: String,
    },
    /// An unsupported or malformed header, or more than one.
    Unknown,
}

/// The bearer token of a request, for an endpoint that checks it itself.
///
/// # Errors
/// There is none, or more than one.
pub fn bearer(headers: &HeaderMap) -> Result<String, Denied> {
    match Credentials::of(headers) {
        Credentials::Bearer(token) => Ok(token),
        Credentials::None | Credentials::Basic { .. } => Err(Denied::Missing),
        Credentials::Unknown => Err(Denied::Invalid),
    }
}

impl Credentials {
    /// Reads the credentials in `headers`.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::None,
            (Some(value), None) => value.to_str().ok().and_then(Self::parse).unwrap_or(Self::Unknown),
            (Some(_), Some(_)) => Self::Unknown,
        }
    }

    fn parse(value: &str) -> Option<Self> {
        let (scheme, rest) = value.trim().split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Bearer(rest.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let text = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
        let (name, secret) = text.split_once(':')?;
        Some(Self::Basic { name: name.to_owned(), secret: secret.to_owned() })
    }
}
