//! The provider's public keys. They are fetched at start, at intervals, and when a token names an unknown key, with a
//! pause in between, because any client can name unknown keys. The pause is short, so that such clients cannot delay a
//! rotation of keys for long. While the provider is unreachable, the last keys stay in use.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use os_upgrade_platform::file_watch::{self, Version};
use os_upgrade_platform::plain_file;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::Jwks;
use os_upgrade_tls::http_client::{self, read_up_to};
use reqwest::{Client, StatusCode, Url};
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::super::Denied;

/// How long the provider may take to answer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Largest key set that is read, in bytes.
const BYTES_MAX: usize = 256 * 1024;

/// Interval at which keys are fetched anyway, so that revoked keys are dropped.
const REFRESH_INTERVAL: Duration = Duration::from_mins(10);

/// Pause between two fetches because of an unknown key.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Keys {
    source: Jwks,
    /// The client for a URL; `None` for a file.
    http: Option<Client>,
    set: ArcSwapOption<JwkSet>,
    last_fetch: Mutex<Option<Fetched>>,
}

/// The last attempt to fetch the keys.
#[derive(Debug, Clone, Copy)]
struct Fetched {
    at: Instant,
    /// Whether it returned a key set.
    succeeded: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("it cannot be read")]
    File(#[from] io::Error),
    #[error("it {0}")]
    Unsafe(String),
    #[error("no answer")]
    Http(#[from] reqwest::Error),
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("it is larger than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("it is not a JSON Web Key Set")]
    Content(#[from] serde_json::Error),
}

impl Keys {
    pub(super) fn new(source: Jwks) -> Result<Self, reqwest::Error> {
        let http = match &source {
            Jwks::Url(url) => Some(http_client::builder(url).timeout(FETCH_TIMEOUT).build()?),
            Jwks::File(_) => None,
        };
        Ok(Self { source, http, set: ArcSwapOption::empty(), last_fetch: Mutex::default() })
    }

    /// Checks that nobody else may write the file with the keys, if they are in one. One that cannot be read yet may come
    /// later.
    pub(super) fn check_writers(&self) -> Result<(), FetchError> {
        match &self.source {
            Jwks::Url(_) => Ok(()),
            Jwks::File(path) => match read(path) {
                Err(refused @ FetchError::Unsafe(_)) => Err(refused),
                Ok(_) | Err(_) => Ok(()),
            },
        }
    }

    /// Keeps the keys up to date until `shutdown`: from a URL at intervals, from a file when it changes.
    pub(super) async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        if let Jwks::File(path) = self.source.clone() {
            let mut last = None;
            let check = move || {
                let version = Some(Version::at(&path));
                if version != last {
                    last = version;
                    *self.last_fetch.blocking_lock() = Some(self.store(read(&path)));
                }
            };
            file_watch::watch("the file of [api.oidc] jwks", file_watch::CHECK_EVERY, shutdown, check).await;
            return;
        }
        let mut ticks = tokio::time::interval(REFRESH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let refresh = async {
            loop {
                ticks.tick().await;
                let mut last_fetch = self.last_fetch.lock().await;
                *last_fetch = Some(self.refresh().await);
            }
        };
        shutdown.run_until_cancelled(refresh).await;
    }

    /// The key with this id for `algorithm`, or the only one if a token names none.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, Denied> {
        if let Some(key) = self.cached(id, algorithm) {
            return Ok(key);
        }
        // Without an answer of the provider, the key may still be valid.
        let missing = if self.fetch_again().await { Denied::Invalid } else { Denied::Unavailable };
        self.cached(id, algorithm).ok_or(missing)
    }

    fn cached(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let set = self.set.load_full()?;
        let mut keys = set.keys.iter().filter(|key| can_verify(key, algorithm));
        let key = match id {
            Some(id) => keys.find(|key| key.common.key_id.as_deref() == Some(id)),
            None => keys.next().filter(|_| keys.next().is_none()),
        };
        DecodingKey::from_jwk(key?).ok()
    }

    /// Fetches the keys, unless that was just done. Returns whether the last fetch succeeded.
    async fn fetch_again(&self) -> bool {
        // Concurrent callers wait for the same fetch.
        let mut last_fetch = self.last_fetch.lock().await;
        let last = match last_fetch.filter(|last_fetch| last_fetch.at.elapsed() < RETRY_PAUSE) {
            Some(last) => last,
            None => self.refresh().await,
        };
        *last_fetch = Some(last);
        last.succeeded
    }

    async fn refresh(&self) -> Fetched {
        self.store(self.fetch().await)
    }

    fn store(&self, fetched: Result<JwkSet, FetchError>) -> Fetched {
        let succeeded = fetched.is_ok();
        match fetched {
            Ok(set) => self.set.store(Some(set.into())),
            Err(error) => {
                let consequence = if self.set.load().is_some() {
                    "the last keys stay in use"
                } else {
                    "its tokens cannot be checked"
                };
                let from = match &self.source {
                    Jwks::Url(url) => url.to_string(),
                    Jwks::File(path) => path.display().to_string(),
                };
                tracing::error!(
                    from,
                    error = with_causes(&error),
                    "cannot get the keys of the identity provider; {consequence}"
                );
            }
        }
        Fetched { at: Instant::now(), succeeded }
    }

    async fn fetch(&self) -> Result<JwkSet, FetchError> {
        match (&self.source, &self.http) {
            (Jwks::Url(url), Some(http)) => parse(&fetch_url(http, url).await?),
            (Jwks::File(path), _) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read(&path)).await;
                read.unwrap_or_else(|error| Err(io::Error::other(error).into()))
            }
            (Jwks::Url(_), None) => Err(io::Error::other("no HTTP client").into()),
        }
    }
}

fn parse(bytes: &[u8]) -> Result<JwkSet, FetchError> {
    if bytes.len() > BYTES_MAX {
        return Err(FetchError::TooLarge);
    }
    Ok(serde_json::from_slice(bytes)?)
}

async fn fetch_url(http: &Client, url: &Url) -> Result<Vec<u8>, FetchError> {
    let response = http.get(url.clone()).send().await?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status()));
    }
    Ok(read_up_to(response, BYTES_MAX).await?)
}

fn read(path: &Path) -> Result<JwkSet, FetchError> {
    read_of(path, Some(nix::unistd::geteuid().as_raw()))
}

/// Reads the file at `path`, which must belong to root or `reader`, if there is one, a user id.
pub(super) fn read_of(path: &Path, reader: Option<u32>) -> Result<JwkSet, FetchError> {
    let mut bytes = Vec::new();
    // Whoever can write the keys can sign the token of an admin.
    let (file, metadata) = plain_file::open(path)?;
    plain_file::check_writers(&metadata, reader).map_err(FetchError::Unsafe)?;
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    parse(&bytes)
}

/// Whether `key` can verify signatures of `algorithm`. The algorithm that a token names counts only if the key fits
/// it.
fn can_verify(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_for_signatures = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let algorithm_matches =
        key.common.key_algorithm.is_none_or(|own| format!("{own:?}") == format!("{algorithm:?}"));
    let fits = match (&key.algorithm, algorithm) {
        (
            AlgorithmParameters::RSA(_),
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512,
        ) => true,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES256) => key.curve == EllipticCurve::P256,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES384) => key.curve == EllipticCurve::P384,
        (AlgorithmParameters::OctetKeyPair(key), Algorithm::EdDSA) => key.curve == EllipticCurve::Ed25519,
        _ => false,
    };
    is_for_signatures && algorithm_matches && fits
}
