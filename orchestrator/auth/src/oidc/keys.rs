//! The provider's public keys: fetched at start and again from time to time, and when a token names one that is not known,
//! but not more often than a pause allows, because anybody can name any. The pause is short, so that one who does holds up
//! no rotation of keys. When the provider is away its last keys stay.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use os_upgrade_platform::file_watch::{self, Version};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::Jwks;
use os_upgrade_tls::http_client::{self, beginning};
use reqwest::{Client, StatusCode, Url};
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::super::Denied;

/// How long the provider may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The largest key set that is read, in bytes.
const BYTES_MAX: usize = 256 * 1024;

/// How often keys are fetched from a provider without being missed, so that those taken back are gone.
const REFRESH: Duration = Duration::from_mins(10);

/// The pause before a key that is not known is looked for again.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Keys {
    source: Jwks,
    /// There is one for a URL.
    http: Option<Client>,
    set: ArcSwapOption<JwkSet>,
    asked: Mutex<Option<Asked>>,
}

/// The last time that they were asked for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Instant,
    /// Whether there was an answer.
    answered: bool,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("it cannot be read")]
    File(#[from] io::Error),
    #[error("there is no answer")]
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
            Jwks::Url(url) => Some(http_client::builder(url).timeout(ANSWER_WITHIN).build()?),
            Jwks::File(_) => None,
        };
        Ok(Self { source, http, set: ArcSwapOption::empty(), asked: Mutex::default() })
    }

    /// Fetches them again and again until `shutdown`, from a file when it is another.
    pub(super) async fn follow(self: Arc<Self>, shutdown: CancellationToken) {
        if let Jwks::File(path) = self.source.clone() {
            let mut last = None;
            let look = move || {
                let version = Some(Version::at(&path));
                if version != last {
                    last = version;
                    *self.asked.blocking_lock() = Some(self.take(read(&path)));
                }
            };
            file_watch::follow("the file of [api.oidc] jwks", shutdown, look).await;
            return;
        }
        let mut ticks = tokio::time::interval(REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let refresh = async {
            loop {
                ticks.tick().await;
                let mut asked = self.asked.lock().await;
                *asked = Some(self.refresh().await);
            }
        };
        shutdown.run_until_cancelled(refresh).await;
    }

    /// The key with this id, or the only one there is for `algorithm` where a token names none.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, Denied> {
        if let Some(key) = self.known(id, algorithm) {
            return Ok(key);
        }
        // What the provider has not said is no reason to refuse anybody.
        let missing = if self.look_again().await { Denied::Invalid } else { Denied::Unavailable };
        self.known(id, algorithm).ok_or(missing)
    }

    fn known(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let set = self.set.load_full()?;
        let mut keys = set.keys.iter().filter(|key| is_for(key, algorithm));
        let key = match id {
            Some(id) => keys.find(|key| key.common.key_id.as_deref() == Some(id)),
            None => keys.next().filter(|_| keys.next().is_none()),
        };
        DecodingKey::from_jwk(key?).ok()
    }

    /// Asks for them, if that was not done just now; whether there was an answer.
    async fn look_again(&self) -> bool {
        // Whoever comes meanwhile waits for the same answer.
        let mut asked = self.asked.lock().await;
        let last = match asked.filter(|asked| asked.at.elapsed() < AGAIN) {
            Some(last) => last,
            None => self.refresh().await,
        };
        *asked = Some(last);
        last.answered
    }

    async fn refresh(&self) -> Asked {
        self.take(self.fetch().await)
    }

    fn take(&self, fetched: Result<JwkSet, FetchError>) -> Asked {
        let answered = fetched.is_ok();
        match fetched {
            Ok(set) => self.set.store(Some(set.into())),
            Err(error) => {
                let consequence = if self.set.load().is_some() {
                    "the keys it had are used on"
                } else {
                    "none of its tokens can be checked"
                };
                let from = match &self.source {
                    Jwks::Url(url) => url.to_string(),
                    Jwks::File(path) => path.display().to_string(),
                };
                tracing::error!(
                    from,
                    error = with_causes(&error),
                    "no keys of the identity provider; {consequence}"
                );
            }
        }
        Asked { at: Instant::now(), answered }
    }

    async fn fetch(&self) -> Result<JwkSet, FetchError> {
        match (&self.source, &self.http) {
            (Jwks::Url(url), Some(http)) => parse(&ask(http, url).await?),
            (Jwks::File(path), _) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read(&path)).await;
                read.unwrap_or_else(|error| Err(io::Error::other(error).into()))
            }
            (Jwks::Url(_), None) => Err(io::Error::other("there is no client").into()),
        }
    }
}

fn parse(bytes: &[u8]) -> Result<JwkSet, FetchError> {
    if bytes.len() > BYTES_MAX {
        return Err(FetchError::TooLarge);
    }
    Ok(serde_json::from_slice(bytes)?)
}

async fn ask(http: &Client, url: &Url) -> Result<Vec<u8>, FetchError> {
    let response = http.get(url.clone()).send().await?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status()));
    }
    Ok(beginning(response, BYTES_MAX).await?)
}

fn read(path: &Path) -> Result<JwkSet, FetchError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    parse(&bytes)
}

/// Whether `key` is one to check signatures of `algorithm` with. What a token says of its algorithm is believed only as far
/// as its key fits.
fn is_for(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_for_signatures = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let says_so = key.common.key_algorithm.is_none_or(|own| format!("{own:?}") == format!("{algorithm:?}"));
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
    is_for_signatures && says_so && fits
}
