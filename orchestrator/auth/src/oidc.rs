//! JSON Web Tokens of an identity provider: checks that they are genuine, for this service and currently valid, and
//! which role they give.
//!
//! Only the asymmetric algorithms in [`ALGORITHMS`] are accepted, whatever a token claims.

mod crypto;
mod keys;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::text::one_line;
use os_upgrade_settings::{ApiOidc, Jwks, StringList};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::keys::Keys;
use super::{Caller, Denied, Rights, Role};

/// The accepted signature algorithms.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Largest difference between the provider's clock and ours, in seconds.
const LEEWAY_SECS: u64 = 30;

/// Longest subject, in characters: as long as the standard allows.
const SUBJECT_CHARS_MAX: usize = 255;

/// Why the identity provider of `[api.oidc]` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The HTTP client cannot be created.
    #[error("the HTTP client cannot be set up")]
    Client(#[from] reqwest::Error),
    /// The file with its keys cannot be used.
    #[error("{}, the `jwks` of [api.oidc], {why}", path.display())]
    Keys {
        path: PathBuf,
        /// The rest of a sentence about the file.
        why: String,
    },
}

/// Checks the file of `[api.oidc] jwks`; returns how many keys it has. With a `reader`, a user id, it must belong to root
/// or `reader`.
///
/// # Errors
/// It cannot be read, can be written by others, or is not a JSON Web Key Set.
pub fn check_keys(path: &Path, reader: Option<u32>) -> Result<usize, OidcError> {
    keys::read_of(path, reader).map(|set| set.keys.len()).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &keys::FetchError) -> OidcError {
    // Its messages begin with "it".
    let why = with_causes(error).strip_prefix("it ").map(str::to_owned);
    OidcError::Keys { path: path.to_owned(), why: why.unwrap_or_else(|| with_causes(error)) }
}

/// An identity provider.
#[derive(Debug)]
pub struct Oidc {
    issuer: String,
    audience: String,
    role_claim: String,
    roles: [(Role, StringList); 3],
    keys: Arc<Keys>,
}

impl Oidc {
    /// The provider configured in `settings`; `None` without one.
    ///
    /// # Errors
    /// The HTTP client cannot be created, or others may write the file with the keys.
    pub fn from_settings(settings: &ApiOidc) -> Result<Option<Self>, OidcError> {
        let (Some(issuer), Some(audience), Some(jwks)) =
            (&settings.issuer, &settings.audience, &settings.jwks)
        else {
            return Ok(None);
        };
        crypto::install();
        let keys = Keys::new(jwks.clone())?;
        if let (Jwks::File(path), Err(error)) = (jwks, keys.check_writers()) {
            return Err(unusable(path, &error));
        }
        let ApiOidc { viewers, operators, admins, role_claim, .. } = settings.clone();
        Ok(Some(Self {
            issuer: issuer.as_str().to_owned(),
            audience: audience.as_str().to_owned(),
            role_claim: role_claim.as_str().to_owned(),
            roles: [(Role::Admin, admins), (Role::Operator, operators), (Role::Viewer, viewers)],
            keys: Arc::new(keys),
        }))
    }

    /// Keeps the provider's keys up to date until `shutdown`.
    pub(super) async fn watch(&self, shutdown: CancellationToken) {
        Arc::clone(&self.keys).watch(shutdown).await;
    }

    /// The caller with `token`.
    pub(super) async fn caller(&self, token: &str) -> Result<Caller, Denied> {
        let refused = |error: &jsonwebtoken::errors::Error| {
            tracing::debug!(%error, "a JSON Web Token is refused");
            if matches!(error.kind(), ErrorKind::ExpiredSignature) {
                Denied::Expired
            } else {
                Denied::Invalid
            }
        };
        let header = decode_header(token).map_err(|error| refused(&error))?;
        // Extensions marked critical must be understood, and none is.
        if !ALGORITHMS.contains(&header.alg) || header.crit.is_some() {
            return Err(Denied::Invalid);
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let decoded = decode::<Map<String, Value>>(token, &key, &self.validation(header.alg));
        let claims = decoded.map_err(|error| refused(&error))?.claims;
        let text = |name| claims.get(name).and_then(Value::as_str);
        // The library accepts a list of issuers too.
        if text("iss") != Some(&self.issuer) {
            return Err(Denied::Invalid);
        }
        // Two subjects must not be one in the history, so none is shortened or changed for it.
        let subject = text("sub").filter(|subject| is_shown_to_the_letter(subject)).ok_or(Denied::Invalid)?;
        let actor = format!("oidc {subject}");
        Ok(Caller { actor, rights: self.role(&claims).map_or(Rights::Nothing, Rights::Role) })
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY_SECS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation
    }

    /// The highest role that `claims` give; `None` if they give none.
    fn role(&self, claims: &Map<String, Value>) -> Option<Role> {
        let words = words(claim(claims, &self.role_claim)?);
        let given = |(role, known): &(Role, StringList)| {
            words.iter().any(|word| known.contains(word)).then_some(*role)
        };
        self.roles.iter().filter_map(given).max()
    }
}

/// Whether `subject` appears in logs and in the history exactly as it is.
fn is_shown_to_the_letter(subject: &str) -> bool {
    !subject.is_empty() && one_line(subject, SUBJECT_CHARS_MAX) == subject
}

/// The claim of this name, or at this path of names separated by dots.
fn claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let mut parts = name.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    })
}

/// The strings of a list, or the words of one string.
fn words(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => text.split_whitespace().collect(),
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
