//! Identifies the caller of a request by its credentials.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::browser::is_cross_site;
use super::credentials::Credentials;
use super::secret::PREFIX;
use super::{Caller, Denials, Denied, Oidc, PeerCertificate, Proof, Rights, Role, Token, WatchedTokens};

/// The kinds of credentials that an endpoint accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Bearer tokens.
    Bearer,
    /// HTTP Basic with the name and secret of a token, client certificates, and bearer tokens: what FleetLock clients
    /// support. The rest of the API does not accept Basic, because browsers send it automatically.
    FleetLock,
}

/// The credentials and origin of a request.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    /// The kinds of credentials that the endpoint accepts.
    pub scheme: Scheme,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The verified certificate of the connection, if the client has sent one.
    pub certificate: Option<&'a PeerCertificate>,
    /// The address of the client, if known.
    pub peer: Option<IpAddr>,
}

/// Identifies callers, with the token file and the identity provider. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Authenticator {
    tokens: Option<Arc<WatchedTokens>>,
    oidc: Option<Arc<Oidc>>,
    denials: Denials,
}

impl Authenticator {
    /// An authenticator that accepts the tokens of a file and of an identity provider. Without both, as [`Authenticator::default`],
    /// callers are not authenticated, and each is an admin.
    pub fn new(tokens: Option<WatchedTokens>, oidc: Option<Oidc>) -> Self {
        Self { tokens: tokens.map(Arc::new), oidc: oidc.map(Arc::new), denials: Denials::default() }
    }

    /// Whether callers are not authenticated, so that each is an admin.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && self.oidc.is_none()
    }

    /// Whether a request comes from a page of another web site, which may call nothing while every caller is an admin: a
    /// page of a name that resolves to this machine sends any header and any method.
    pub fn is_foreign_page(&self, headers: &HeaderMap) -> bool {
        self.is_open() && is_cross_site(headers)
    }

    /// The requests that were refused.
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// The token file, if one is configured.
    pub fn tokens(&self) -> Option<&WatchedTokens> {
        self.tokens.as_deref()
    }

    /// Watches the token file and refreshes the provider's keys until `shutdown`.
    pub async fn watch(self, shutdown: CancellationToken) {
        let tokens = async {
            if let Some(tokens) = self.tokens {
                tokens.watch(shutdown.clone()).await;
            }
        };
        let oidc = async {
            if let Some(oidc) = &self.oidc {
                oidc.watch(shutdown.clone()).await;
            }
        };
        tokio::join!(tokens, oidc, shutdown.cancelled());
    }

    /// Identifies the caller of a request.
    ///
    /// # Errors
    /// Why the caller is not authenticated.
    pub async fn caller(&self, shown: Presented<'_>, now: DateTime<Utc>) -> Result<Caller, Denied> {
        let Presented { scheme, headers, certificate, peer } = shown;
        if self.is_open() {
            let actor = peer.map_or_else(|| "api".to_owned(), |peer| format!("api {peer}"));
            return Ok(Caller { actor, rights: Rights::Role(Role::Admin) });
        }
        let tokens = self.tokens.as_ref().map(|tokens| tokens.tokens()).unwrap_or_default();
        let token = match (Credentials::of(headers), scheme, &self.oidc) {
            (Credentials::Bearer(token), _, Some(oidc)) if !token.starts_with(PREFIX) => {
                return oidc.caller(&token).await;
            }
            (Credentials::Bearer(secret), ..) if secret.starts_with(PREFIX) => {
                tokens.iter().find(|token| has_secret(token, &secret)).ok_or(Denied::Invalid)
            }
            (Credentials::Basic { name, secret }, Scheme::FleetLock, _) => {
                let named = |token: &&Token| token.name.as_str() == name && has_secret(token, &secret);
                tokens.iter().find(named).ok_or(Denied::Invalid)
            }
            (Credentials::None, Scheme::FleetLock, _) => {
                return certificate_caller(certificate.ok_or(Denied::Missing)?, &tokens, now);
            }
            (Credentials::None | Credentials::Basic { .. }, Scheme::Bearer, _) => Err(Denied::Missing),
            (Credentials::Bearer(_) | Credentials::Unknown, ..) => Err(Denied::Invalid),
        }?;
        if token.has_expired(now) { Err(Denied::Expired) } else { Ok(token.caller()) }
    }
}

fn has_secret(token: &Token, secret: &str) -> bool {
    match &token.proof {
        Proof::Secret(salted) => salted.matches(secret),
        Proof::Certificate(_) => false,
    }
}

/// The caller with `certificate`: every valid entry that names it counts, of any group.
fn certificate_caller(
    certificate: &PeerCertificate,
    tokens: &[Token],
    now: DateTime<Utc>,
) -> Result<Caller, Denied> {
    let (expired, valid): (Vec<_>, Vec<_>) = tokens
        .iter()
        .filter(|token| is_named_by(certificate, token))
        .partition(|token| token.has_expired(now));
    let mut each: Vec<&Token> = Vec::new();
    for token in valid {
        // An entry and its successor may overlap.
        if each.iter().all(|other| other.rights != token.rights) {
            each.push(token);
        }
    }
    match each[..] {
        [] if expired.is_empty() => Err(Denied::Missing),
        [] => Err(Denied::Expired),
        [token] => Ok(token.caller()),
        _ => {
            let names: Vec<_> = each.iter().map(|token| token.name.as_str()).collect();
            let groups = each.iter().filter_map(|token| match &token.rights {
                Rights::Group(group) => Some(group.clone()),
                Rights::Role(_) | Rights::Groups(_) | Rights::Nothing => None,
            });
            Ok(Caller {
                actor: format!("token {}", names.join(", ")),
                rights: Rights::Groups(groups.collect()),
            })
        }
    }
}

/// Whether `token` names `certificate`.
fn is_named_by(certificate: &PeerCertificate, token: &Token) -> bool {
    match &token.proof {
        Proof::Certificate(name) => {
            certificate.common_name() == Some(name) || certificate.dns_names().contains(name)
        }
        Proof::Secret(_) => false,
    }
}
