//! An identity provider of one test, which serves its keys over HTTP and signs any claims.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// A signing key.
pub struct SigningKey {
    id: String,
    pair: EcdsaKeyPair,
}

/// Encodes bytes as tokens do.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl SigningKey {
    /// A new key with this id.
    pub fn new(id: &str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair }
    }

    /// A key set that contains its public half.
    pub fn jwks(&self) -> Value {
        let (x, y) = self.public().split_at(32);
        let (x, y) = (encode(x), encode(y));
        let key = json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y });
        json!({ "keys": [key] })
    }

    /// Its public half.
    pub fn public(&self) -> &[u8] {
        // The first byte says that both coordinates follow.
        &self.pair.public_key().as_ref()[1..]
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        let message = self.unsigned("ES256", claims);
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", encode(signature))
    }

    /// The signed part of a token, with this algorithm in its header.
    pub fn unsigned(&self, algorithm: &str, claims: &Value) -> String {
        let header = json!({ "alg": algorithm, "typ": "JWT", "kid": self.id });
        format!("{}.{}", encode(header.to_string()), encode(claims.to_string()))
    }
}

/// An identity provider. It stops when dropped.
pub struct IdentityProvider {
    /// The URL of its keys.
    pub url: String,
    keys: Arc<Mutex<Option<Value>>>,
    _task: AbortOnDropHandle<()>,
}

impl IdentityProvider {
    /// Starts a provider that serves these keys; without any it answers 502.
    pub async fn start(keys: Option<Value>) -> Self {
        let keys = Arc::new(Mutex::new(keys));
        let shared = Arc::clone(&keys);
        let answer = async move || {
            let keys = shared.lock().unwrap().clone();
            keys.map_or(StatusCode::BAD_GATEWAY.into_response(), |keys| axum::Json(keys).into_response())
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/certs", listener.local_addr().unwrap());
        let router = Router::new().route("/certs", axum::routing::get(answer));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, keys, _task: AbortOnDropHandle::new(task) }
    }

    /// Replaces the keys; without any it answers 502.
    pub fn serve(&self, keys: Option<Value>) {
        *self.keys.lock().unwrap() = keys;
    }
}
