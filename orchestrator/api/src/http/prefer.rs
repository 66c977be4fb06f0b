//! `Prefer` (RFC 7240): whether a client wants the result of a change in the answer. Any other preference is ignored.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::HeaderName;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use os_upgrade_api_types::headers;

/// The header of the request.
pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");
/// The header of an answer that follows the preference.
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// Its value.
pub(crate) const APPLIED: HeaderValue = HeaderValue::from_static(headers::REPRESENTATION);

/// Most preferences that are considered.
const PREFERENCES_MAX: usize = 64;

/// What an answer to a change contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preference {
    /// What the specification says: usually nothing.
    Specified,
    /// `return=representation`: the result.
    Representation,
}

impl Preference {
    /// The preference in `headers`. Of several values of `return` the first counts.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        let mut preferences = values.flat_map(|value| value.split(',')).take(PREFERENCES_MAX);
        let wanted = preferences.find_map(|preference| {
            let (name, value) = preference.split(';').next()?.split_once('=')?;
            name.trim().eq_ignore_ascii_case("return").then(|| value.trim().trim_matches('"'))
        });
        match wanted {
            Some("representation") => Self::Representation,
            Some(_) | None => Self::Specified,
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Preference {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_return_counts() {
        for (values, expected) in [
            (&[][..], Preference::Specified),
            (&["return=representation"], Preference::Representation),
            (&["respond-async, Return = \"representation\"; a=b"], Preference::Representation),
            (&["wait=5", "return=representation"], Preference::Representation),
            (&["return=minimal, return=representation"], Preference::Specified),
            (&["return", "representation", "x-return=representation"], Preference::Specified),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(PREFER, HeaderValue::from_static(value));
            }
            assert_eq!(Preference::of(&headers), expected, "{values:?}");
        }
    }
}
