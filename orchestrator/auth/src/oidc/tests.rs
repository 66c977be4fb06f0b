//! Tokens of a provider that is a real HTTP server, with generated keys.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use os_upgrade_settings as settings;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::*;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> i64 {
    chrono::Utc::now().timestamp()
}

/// A key of the provider.
enum Signer {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    fn ecdsa() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::Ecdsa(EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap())
    }

    fn ed25519() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Ecdsa(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "alg": "ES256", "x": encode(x), "y": encode(y) })
            }
            Self::Ed25519(key) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(key.public_key()) })
            }
        }
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ecdsa(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Ecdsa(key) => key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.sign(message.as_bytes());
        format!("{message}.{}", encode(signature))
    }

    fn token(&self, id: &str, claims: &Value) -> String {
        self.token_with(&json!({ "alg": self.algorithm(), "typ": "JWT", "kid": id }), claims)
    }
}

/// Valid claims, with `changes`; null removes one.
fn claims(changes: &Value) -> Value {
    let mut claims = json!({
        "iss": "https://login.example/", "aud": ["other", "os-upgrade"], "sub": "alice", "exp": now() + 300,
        "roles": ["somebody", "operator"],
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

/// A provider, running until dropped. Its answer can be changed, and requests are counted.
struct Provider {
    url: String,
    keys: Arc<Mutex<Option<Value>>>,
    requests: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl Provider {
    async fn start(keys: Option<Value>) -> Self {
        let (keys, requests) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::default()));
        let shared = (Arc::clone(&keys), Arc::clone(&requests));
        let answer = move || {
            shared.1.fetch_add(1, Ordering::Relaxed);
            let keys = shared.0.lock().unwrap().clone();
            async move {
                keys.map_or_else(
                    || StatusCode::BAD_GATEWAY.into_response(),
                    |keys| axum::Json(keys).into_response(),
                )
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, keys, requests, _task: AbortOnDropHandle::new(task) }
    }

    fn set(&self, keys: Option<Value>) {
        *self.keys.lock().unwrap() = keys;
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn oidc(&self) -> Oidc {
        oidc(&self.url, "")
    }
}

fn oidc(jwks: &str, more: &str) -> Oidc {
    try_oidc(jwks, more).unwrap()
}

fn try_oidc(jwks: &str, more: &str) -> Result<Oidc, OidcError> {
    let text = format!(
        "[api.oidc]\nissuer = \"https://login.example/\"\naudience = \"os-upgrade\"\njwks = \"{jwks}\"\n{more}"
    );
    let settings = settings::parse(None, &text, []).unwrap();
    Oidc::from_settings(&settings.api_oidc).map(Option::unwrap)
}

fn set(keys: &[Value]) -> Value {
    json!({ "keys": keys })
}

fn alice(rights: Rights) -> Caller {
    Caller { actor: "oidc alice".to_owned(), rights }
}

#[tokio::test]
async fn claims_are_validated() {
    let signer = Signer::ecdsa();
    let provider = Provider::start(Some(set(&[signer.jwk("k1")]))).await;
    let oidc = provider.oidc();
    let as_operator = Ok(alice(Rights::Role(Role::Operator)));
    for (changes, expected) in [
        (json!({}), as_operator.clone()),
        (json!({ "aud": "os-upgrade" }), as_operator.clone()),
        (json!({ "exp": now() - 10 }), as_operator.clone()),
        (json!({ "nbf": now() + 10 }), as_operator.clone()),
        (json!({ "roles": "viewer admin" }), Ok(alice(Rights::Role(Role::Admin)))),
        (json!({ "roles": ["Admin", 7, "viewer"] }), Ok(alice(Rights::Role(Role::Viewer)))),
        (json!({ "roles": ["somebody"] }), Ok(alice(Rights::Nothing))),
        (json!({ "roles": null }), Ok(alice(Rights::Nothing))),
        (json!({ "roles": { "admin": true } }), Ok(alice(Rights::Nothing))),
        (json!({ "iss": "https://login.example" }), Err(Denied::Invalid)),
        (json!({ "iss": "https://LOGIN.example/" }), Err(Denied::Invalid)),
        (json!({ "iss": ["https://login.example/"] }), Err(Denied::Invalid)),
        (json!({ "iss": null }), Err(Denied::Invalid)),
        (json!({ "aud": "other" }), Err(Denied::Invalid)),
        (json!({ "aud": null }), Err(Denied::Invalid)),
        (json!({ "sub": null }), Err(Denied::Invalid)),
        (json!({ "sub": 7 }), Err(Denied::Invalid)),
        (json!({ "exp": now() - 60 }), Err(Denied::Expired)),
        (json!({ "exp": null }), Err(Denied::Invalid)),
        (json!({ "nbf": now() + 60 }), Err(Denied::Invalid)),
    ] {
        let token = signer.token("k1", &claims(&changes));
        assert_eq!(oidc.caller(&token).await, expected, "{changes}");
    }
    // A caller is in the history under its subject to the letter, or is none.
    for (subject, is_caller) in [
        ("häst-馬 (7)", true),
        (&"a".repeat(255), true),
        (&"a".repeat(256), false),
        ("", false),
        ("a\nb", false),
        ("a b\u{202e}", false),
        ("a\u{200b}b", false),
        ("a  b", false),
        (" a", false),
    ] {
        let token = signer.token("k1", &claims(&json!({ "sub": subject })));
        let expected = if is_caller { Ok(format!("oidc {subject}")) } else { Err(Denied::Invalid) };
        assert_eq!(oidc.caller(&token).await.map(|caller| caller.actor), expected, "{subject:?}");
    }
    assert_eq!(provider.requests(), 1);
}

#[tokio::test]
async fn forged_signatures_are_refused() {
    let (signer, other) = (Signer::ecdsa(), Signer::ecdsa());
    let provider = Provider::start(Some(set(&[signer.jwk("k1")]))).await;
    let oidc = provider.oidc();
    let right = claims(&json!({}));
    let good = signer.token("k1", &right);
    assert!(oidc.caller(&good).await.is_ok());

    // Known attacks on libraries: no signature, or an HMAC with the public key as its secret.
    let unsigned = |algorithm: &str| {
        let header = json!({ "alg": algorithm, "kid": "k1" });
        format!("{}.{}.", encode(header.to_string()), encode(right.to_string()))
    };
    let Signer::Ecdsa(key) = &signer else { unreachable!() };
    let hmac = |secret: &[u8]| {
        let message = unsigned("HS256");
        let message = message.trim_end_matches('.');
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes())))
    };
    let jwk = signer.jwk("k1").to_string();
    let (head, signature) = good.rsplit_once('.').unwrap();
    let critical = json!({ "alg": "ES256", "kid": "k1", "crit": ["x"], "x": 1 });
    for token in [
        unsigned("none"),
        unsigned("None"),
        unsigned("ES256"),
        hmac(key.public_key().as_ref()),
        hmac(jwk.as_bytes()),
        other.token("k1", &right),
        signer.token_with(&json!({ "alg": "EdDSA", "kid": "k1" }), &right),
        signer.token_with(&json!({ "alg": "RS256", "kid": "k1" }), &right),
        signer.token_with(&critical, &right),
        format!("{head}.{}", signature.replacen(&signature[..2], "AA", 1)),
        format!("{good}.x"),
        head.to_owned(),
        String::new(),
        "a.b.c".to_owned(),
    ] {
        assert_eq!(oidc.caller(&token).await, Err(Denied::Invalid), "{token}");
    }
    // Symmetric keys are refused, even if the key set contains one.
    let secret = json!({ "kty": "oct", "kid": "k2", "k": encode("secret"), "alg": "HS256" });
    provider.set(Some(set(&[signer.jwk("k1"), secret])));
    let oidc = provider.oidc();
    let header = json!({ "alg": "HS256", "kid": "k2" });
    let message = format!("{}.{}", encode(header.to_string()), encode(right.to_string()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"secret");
    let token = format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes())));
    assert_eq!(oidc.caller(&token).await, Err(Denied::Invalid));
}

/// Advances the clock by the pause between two fetches.
async fn pause() {
    tokio::time::pause();
    tokio::time::advance(keys::RETRY_PAUSE).await;
    tokio::time::resume();
}

#[tokio::test]
async fn unknown_keys_are_fetched_with_pauses() {
    let (first, second) = (Signer::ecdsa(), Signer::ed25519());
    let provider = Provider::start(Some(set(&[first.jwk("k1")]))).await;
    let [of_first, of_second] =
        [first.token("k1", &claims(&json!({}))), second.token("k2", &claims(&json!({})))];
    let oidc = provider.oidc();
    assert!(oidc.caller(&of_first).await.is_ok());
    assert_eq!(oidc.caller(&of_second).await, Err(Denied::Invalid), "the key is not published yet");
    provider.set(Some(set(&[second.jwk("k2")])));
    for made_up in 0..10 {
        let made_up = first.token(&format!("x{made_up}"), &claims(&json!({})));
        assert_eq!(oidc.caller(&made_up).await, Err(Denied::Invalid));
    }
    assert_eq!(provider.requests(), 1, "made-up keys cause no fetches");

    pause().await;
    assert!(oidc.caller(&of_second).await.is_ok());
    assert_eq!(oidc.caller(&of_first).await, Err(Denied::Invalid), "the key was revoked");
    let nameless = second.token_with(&json!({ "alg": "EdDSA" }), &claims(&json!({})));
    assert!(oidc.caller(&nameless).await.is_ok(), "there is only one key");
    assert_eq!((provider.requests(), keys::RETRY_PAUSE), (2, std::time::Duration::from_secs(5)));
}

#[tokio::test]
async fn unreachable_provider() {
    let signer = Signer::ed25519();
    let provider = Provider::start(None).await;
    let token = signer.token("k1", &claims(&json!({})));
    let oidc = provider.oidc();
    assert_eq!(oidc.caller(&token).await, Err(Denied::Unavailable), "without keys no token can be checked");

    provider.set(Some(set(&[signer.jwk("k1")])));
    pause().await;
    assert!(oidc.caller(&token).await.is_ok());
    provider.set(None);
    pause().await;
    let unknown = signer.token("k2", &claims(&json!({})));
    for _ in 0..2 {
        assert_eq!(oidc.caller(&unknown).await, Err(Denied::Unavailable), "it may have a new key");
    }
    assert!(oidc.caller(&token).await.is_ok(), "the last keys stay in use");
}

#[tokio::test]
async fn key_file_and_nested_role_claim() {
    let signer = Signer::ecdsa();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    std::fs::write(&path, json!({ "keys": [signer.jwk("k1")] }).to_string()).unwrap();
    let more = "role-claim = \"realm.roles\"\nadmins = \"site admins, root\"\n";
    let oidc = oidc(path.to_str().unwrap(), more);
    for (role, rights) in [
        ("site admins", Rights::Role(Role::Admin)),
        ("root", Rights::Role(Role::Admin)),
        ("operator", Rights::Role(Role::Operator)),
        ("admin", Rights::Nothing),
    ] {
        let token = signer.token("k1", &claims(&json!({ "realm": { "roles": [role] } })));
        assert_eq!(oidc.caller(&token).await, Ok(alice(rights)), "{role}");
    }
}

/// Whoever can write the keys can sign the token of an admin.
#[tokio::test]
async fn key_file_writable_by_others_is_not_used() {
    let signer = Signer::ecdsa();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    std::fs::write(&path, json!({ "keys": [signer.jwk("k1")] }).to_string()).unwrap();
    let token = signer.token("k1", &claims(&json!({ "roles": "viewer" })));
    let set_mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o644);
    let started = oidc(path.to_str().unwrap(), "");
    for mode in [0o666, 0o664] {
        set_mode(mode);
        let refused = try_oidc(path.to_str().unwrap(), "").unwrap_err().to_string();
        let expected = format!("can be written by others (mode {mode:o})");
        assert!(refused.contains(&expected), "{refused}");
        assert!(check_keys(&path, None).unwrap_err().to_string().contains(&expected));
    }
    // As the file was found when it was first needed.
    assert_eq!(started.caller(&token).await, Err(Denied::Unavailable));
    set_mode(0o644);
    assert_eq!(check_keys(&path, None).unwrap(), 1);
    let accepted = oidc(path.to_str().unwrap(), "").caller(&token).await;
    assert_eq!(accepted, Ok(alice(Rights::Role(Role::Viewer))));
    // One that is not there yet may come later.
    std::fs::remove_file(&path).unwrap();
    assert!(try_oidc(path.to_str().unwrap(), "").is_ok());
    assert!(check_keys(&path, None).is_err());
}

/// ring cannot generate RSA keys, so this is a fixed key, with signatures made by another program.
#[test]
fn rsa_signatures_are_verified() {
    crypto::install();
    let modulus = "vlz3vDD3rpOJS5PT-ca-F3RdMyWrKosr-bU1daElMzZrChGK289rk3wExdKq854zOKZpg_tD9jqVGqlkXZJx4VNk6btkVhJh\
                   xW-seVbYgcxj0Tvtf-cCormhGKejdBsDwYIfkUn9KqvZ3n_PFEoerIJMT9flge4UYKmUpVTBF_3T4fXkkU7w6KMfbUgwnrxD\
                   BYI2qGWiw0t55E9rfx3LWWHtaVkTV4u73zjAAZK8H-mggdxx5qa0spGFJv9qwuYMG1uRGsDv-qHU9S7U97VuJxpvmiHhqe-k\
                   CqKV0K1P0yF-NQkfTw1tOnYJ5vOCX-e5mYGvrPjTdmyzQZhvEoc-Hw";
    let message = b"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9";
    let pkcs1 = "YKn3Qh4abj-AcoOAKWwz-GEZinkCAY2aPSbeocrqLnb7eL0-DqaOegcpr8OP-08hg8n6Ea3GJpdOR7pUAN60mE2QKnsdNIEU\
                   ORK-I5Rc-qcSNnKGyWgzZvF3l6nsDf8c8r1008R_TAWASLEdZeOcQGKSBxfnZgTUcO9f_lwlv5W5bxINhnYhIQLv3zsarF0L\
                   V1rWDMBXyAOwuremc0nB_1JeCMWdRe4wX_yUy0dAeW4RR4xDOj4lJWK364yY8jhtlEOP_b8d-Tygx7I3Gobk-ct7U0PuOq6A\
                   kHYtqZKzg8FoK1nA1SK60awSKX-H9Th-DGPdn30Fj_VuO8W3L7pWOQ";
    let pss = "oofZHDh5UDoqz6ovWRK6mzJSSrmsM5K_Qsy7d5T-kPe7CSXlumhN1bdtZh1Ls0-UZNwVgCdHcDhXJu1ym8cmQbKOaZhebX24\
                   sKy79Wxf8kcJxKLzwppyFbWytk3Fe02J1va1BBrwLc6tGiRjHOqvbC2hMu04HVIbdCW_OIerZbQp9Vck37X1QN3JcbKZyea3\
                   nwtYdtNoudXK9st7a6I419o0JnMKvU4WYGyQ2wMEXnLyrVVtKtFfWmrEGsc7NdabXGao2D6Mv1p5XgwZFgFhUyVm8JQxtZME\
                   KRlmuRZlH3n2wpgw2lCbrPIiw2GT969M6ayKRfuRTmQSRPgkf-tD1w";
    // Some providers write a leading zero.
    let with_zero = URL_SAFE_NO_PAD.decode(modulus).map(|bytes| encode([&[0], &bytes[..]].concat())).unwrap();
    for modulus in [modulus, &with_zero] {
        let key = jsonwebtoken::DecodingKey::from_rsa_components(modulus, "AQAB").unwrap();
        let verify = |signature: &str, message: &[u8], algorithm| {
            jsonwebtoken::crypto::verify(signature, message, &key, algorithm).unwrap()
        };
        assert!(verify(pkcs1, message, Algorithm::RS256));
        assert!(verify(pss, message, Algorithm::PS256));
        assert!(!verify(pkcs1, message, Algorithm::PS256));
        assert!(!verify(pkcs1, message, Algorithm::RS384));
        assert!(!verify(pkcs1, b"x", Algorithm::RS256));
    }
}
