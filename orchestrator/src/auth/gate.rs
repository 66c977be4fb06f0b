//! Who a request comes from, by what it shows.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::credentials::Credentials;
use super::secret::PREFIX;
use super::{Caller, Denials, Denied, KeptTokens, Proof, Rights, Role, Token};

/// The ways to show who one is that an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Bearer tokens.
    Bearer,
    /// HTTP Basic with the name and secret of a token, client certificates, and bearer tokens: FleetLock clients have
    /// nothing else. The rest of the API does not take Basic, which browsers send without being asked.
    FleetLock,
}

/// What decides who a request comes from. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    tokens: Option<Arc<KeptTokens>>,
    denials: Denials,
}

impl Gate {
    /// One that takes the tokens of a file. [`Gate::default`] takes whoever comes for an admin.
    pub fn with_tokens(tokens: KeptTokens) -> Self {
        Self { tokens: Some(Arc::new(tokens)), denials: Denials::default() }
    }

    /// Whether whoever comes is an admin.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none()
    }

    /// The requests that were not let in.
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// The token file, if there is to be one.
    pub fn tokens(&self) -> Option<&KeptTokens> {
        self.tokens.as_deref()
    }

    /// Keeps what it knows up to date until `shutdown`.
    pub async fn follow(self, shutdown: CancellationToken) {
        match self.tokens {
            Some(tokens) => tokens.follow(shutdown).await,
            None => shutdown.cancelled().await,
        }
    }

    /// Who a request with `headers` from `peer` comes from.
    ///
    /// # Errors
    /// Nobody knows.
    #[expect(clippy::unused_async, reason = "the keys of an identity provider may have to be fetched")]
    pub async fn caller(
        &self,
        scheme: Scheme,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
        now: DateTime<Utc>,
    ) -> Result<Caller, Denied> {
        let Some(tokens) = &self.tokens else {
            let actor = peer.map_or_else(|| "api".to_owned(), |peer| format!("api {peer}"));
            return Ok(Caller { actor, rights: Rights::Role(Role::Admin) });
        };
        let tokens = tokens.tokens();
        let proves = |token: &Token, secret: &str| match &token.proof {
            Proof::Secret(salted) => salted.is_of(secret),
            Proof::Certificate(_) => false,
        };
        let found = match (Credentials::of(headers), scheme) {
            (Credentials::Bearer(secret), _) if secret.starts_with(PREFIX) => {
                tokens.iter().find(|token| proves(token, &secret))
            }
            (Credentials::Basic { name, secret }, Scheme::FleetLock) => {
                tokens.iter().find(|token| token.name.as_str() == name && proves(token, &secret))
            }
            (Credentials::None, _) | (Credentials::Basic { .. }, Scheme::Bearer) => {
                return Err(Denied::Missing);
            }
            (Credentials::Bearer(_) | Credentials::Unknown, _) => None,
        };
        let token = found.ok_or(Denied::Invalid)?;
        if token.has_expired(now) { Err(Denied::Expired) } else { Ok(token.caller()) }
    }
}
