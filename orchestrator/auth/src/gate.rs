//! Who a request comes from, by what it shows.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::browser::is_from_elsewhere;
use super::credentials::Credentials;
use super::secret::PREFIX;
use super::{Caller, Denials, Denied, Oidc, PeerCertificate, Proof, Rights, Role, Token, WatchedTokens};

/// The ways to show who one is that an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Bearer tokens.
    Bearer,
    /// HTTP Basic with the name and secret of a token, client certificates, and bearer tokens: FleetLock clients have
    /// nothing else. The rest of the API does not take Basic, which browsers send without being asked.
    FleetLock,
}

/// What a request shows.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    /// How it may show who sends it.
    pub scheme: Scheme,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The certificate of its connection, which was verified.
    pub certificate: Option<&'a PeerCertificate>,
    /// Where it comes from.
    pub peer: Option<IpAddr>,
}

/// What decides who a request comes from. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    tokens: Option<Arc<WatchedTokens>>,
    oidc: Option<Arc<Oidc>>,
    denials: Denials,
}

impl Gate {
    /// One that takes the tokens of a file and of an identity provider. Without either, as [`Gate::default`], it takes
    /// whoever comes for an admin.
    pub fn new(tokens: Option<WatchedTokens>, oidc: Option<Oidc>) -> Self {
        Self { tokens: tokens.map(Arc::new), oidc: oidc.map(Arc::new), denials: Denials::default() }
    }

    /// Whether whoever comes is an admin.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && self.oidc.is_none()
    }

    /// The requests that were not let in.
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// The token file, if there is to be one.
    pub fn tokens(&self) -> Option<&WatchedTokens> {
        self.tokens.as_deref()
    }

    /// Keeps what it knows up to date until `shutdown`.
    pub async fn follow(self, shutdown: CancellationToken) {
        let tokens = async {
            if let Some(tokens) = self.tokens {
                tokens.follow(shutdown.clone()).await;
            }
        };
        let oidc = async {
            if let Some(oidc) = &self.oidc {
                oidc.follow(shutdown.clone()).await;
            }
        };
        tokio::join!(tokens, oidc, shutdown.cancelled());
    }

    /// Who a request comes from.
    ///
    /// # Errors
    /// Nobody knows.
    pub async fn caller(&self, shown: Presented<'_>, now: DateTime<Utc>) -> Result<Caller, Denied> {
        let Presented { scheme, headers, certificate, peer } = shown;
        if self.is_open() {
            // FleetLock's own header keeps pages of other sites out.
            if scheme == Scheme::Bearer && is_from_elsewhere(headers) {
                return Err(Denied::Elsewhere);
            }
            let actor = peer.map_or_else(|| "api".to_owned(), |peer| format!("api {peer}"));
            return Ok(Caller { actor, rights: Rights::Role(Role::Admin) });
        }
        let tokens = self.tokens.as_ref().map(|tokens| tokens.tokens()).unwrap_or_default();
        let token = match (Credentials::of(headers), scheme, &self.oidc) {
            (Credentials::Bearer(token), _, Some(oidc)) if !token.starts_with(PREFIX) => {
                return oidc.caller(&token).await;
            }
            (Credentials::Bearer(secret), ..) if secret.starts_with(PREFIX) => {
                tokens.iter().find(|token| proves(token, &secret)).ok_or(Denied::Invalid)
            }
            (Credentials::Basic { name, secret }, Scheme::FleetLock, _) => {
                let named = |token: &&Token| token.name.as_str() == name && proves(token, &secret);
                tokens.iter().find(named).ok_or(Denied::Invalid)
            }
            (Credentials::None, Scheme::FleetLock, _) => {
                return of_certificate(certificate.ok_or(Denied::Missing)?, &tokens, now);
            }
            (Credentials::None | Credentials::Basic { .. }, Scheme::Bearer, _) => Err(Denied::Missing),
            (Credentials::Bearer(_) | Credentials::Unknown, ..) => Err(Denied::Invalid),
        }?;
        if token.has_expired(now) { Err(Denied::Expired) } else { Ok(token.caller()) }
    }
}

fn proves(token: &Token, secret: &str) -> bool {
    match &token.proof {
        Proof::Secret(salted) => salted.is_of(secret),
        Proof::Certificate(_) => false,
    }
}

/// Who has shown `certificate`: every entry that names it and is valid counts, of whatever group.
fn of_certificate(
    certificate: &PeerCertificate,
    tokens: &[Token],
    now: DateTime<Utc>,
) -> Result<Caller, Denied> {
    let (expired, valid): (Vec<_>, Vec<_>) =
        tokens.iter().filter(|token| names(certificate, token)).partition(|token| token.has_expired(now));
    let mut each: Vec<&Token> = Vec::new();
    for token in valid {
        // The successor of an entry may be there before its time.
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

/// Whether `token` is that of the owner of `certificate`.
fn names(certificate: &PeerCertificate, token: &Token) -> bool {
    match &token.proof {
        Proof::Certificate(name) => {
            certificate.common_name() == Some(name) || certificate.dns_names().contains(name)
        }
        Proof::Secret(_) => false,
    }
}
