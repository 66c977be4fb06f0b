//! JSON web tokens of an identity provider, with the whole program.

use std::fs;

use harness::host::APPLICATION;
use harness::identity_provider::{IdentityProvider, SigningKey, encode};
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::rest::Rest;
use harness::wait::eventually;
use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};

const STATE: &str = "/v1/state/os-upgrade";
const TRIGGER: &str = "/v1/state/os-upgrade/trigger-upgrade-site";
const CONFIG: &str = "/v1/config/os-upgrade";
const ISSUER: &str = "https://login.example/realms/site";

/// The provider's settings for every instance, with the URL of its keys.
fn settings(jwks: &str) -> String {
    format!(
        "[api.oidc]\nissuer = \"{ISSUER}\"\naudience = \"os-upgrade\"\njwks = \"{jwks}\"\n\
         role-claim = \"realm_access.roles\"\nadmins = \"site-admin, root\""
    )
}

/// Valid claims of a subject with these roles, with `changes`; null removes a claim.
fn claims(subject: &str, roles: &[&str], changes: &Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": ["account", "os-upgrade"], "sub": subject, "realm_access": { "roles": roles },
        "exp": chrono::Utc::now().timestamp() + 300,
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn message(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["errors"][0]["error-message"].as_str().unwrap_or_default())
}

async fn state(rest: &Rest) -> (u16, Value) {
    rest.get(STATE).await
}

#[tokio::test]
async fn roles_grant_and_deny_access() {
    let key = SigningKey::new("k1");
    let provider = IdentityProvider::start(Some(key.jwks())).await;
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), &settings(&provider.url));
    orchestrator.start_ready().await;
    let of = |subject: &str, roles: &[&str]| {
        orchestrator.rest.with_token(&key.token(&claims(subject, roles, &json!({}))))
    };
    let config = json!({ "worker-applications": [{ "name": APPLICATION }] }).to_string();
    let requests = [(Method::GET, STATE, ""), (Method::POST, TRIGGER, ""), (Method::PUT, CONFIG, &config)];
    // An allowed trigger finds no configuration, and later no host.
    for (subject, roles, expected) in [
        ("nobody", &["admin", "offline_access"][..], [403, 403, 403]),
        ("vera", &["viewer"], [200, 403, 403]),
        ("oscar", &["something", "operator"], [200, 404, 403]),
        ("ada", &["viewer", "site-admin"], [200, 404, 201]),
        ("rut", &["root"], [200, 409, 204]),
    ] {
        let rest = of(subject, roles);
        for ((method, path, body), expected) in requests.iter().zip(expected) {
            let answer = rest.call(method.clone(), path, body).await;
            assert_eq!(answer.0, expected, "{subject}: {method} {path}: {answer:?}");
        }
    }
    assert_eq!(state(&orchestrator.rest).await.0, 401, "no token was sent");
    let history = eventually("the history to have it", async || {
        let (_, history) = of("vera", &["viewer"]).get(&format!("{STATE}/config-history")).await;
        (!history["items"].as_array()?.is_empty()).then_some(history)
    });
    assert_eq!(history.await["items"][0]["actor"], "oidc ada");

    // The commands accept it like any token.
    let file = orchestrator.directory().join("token");
    fs::write(file, key.token(&claims("vera", &["viewer"], &json!({})))).unwrap();
    let list = orchestrator.ask(&["lock", "list", "--token-file", "token"], "").await;
    assert_eq!(list.0, Some(0), "{list:?}");
}

#[tokio::test]
async fn invalid_tokens_are_refused() {
    let key = SigningKey::new("k1");
    let provider = IdentityProvider::start(Some(key.jwks())).await;
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), &settings(&provider.url));
    orchestrator.start_ready().await;
    let of = |token: &str| orchestrator.rest.with_token(token);
    let admin = |changes: Value| claims("ada", &["root"], &changes);
    let right = admin(json!({}));
    assert_eq!(state(&of(&key.token(&right))).await.0, 200);

    let now = chrono::Utc::now().timestamp();
    let unsigned = |algorithm: &str| key.unsigned(algorithm, &right);
    // Signed with the public key as secret, which a library that trusts the token's algorithm would accept.
    let hmac = |secret: &[u8]| {
        let message = unsigned("HS256");
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
        format!("{message}.{}", encode(tag))
    };
    let of_viewer = key.token(&claims("ada", &["viewer"], &json!({})));
    let signature = of_viewer.rsplit('.').next().unwrap();
    for (what, token, expected) in [
        ("expired", key.token(&admin(json!({ "exp": now - 60 }))), "the token has expired"),
        ("without an expiry", key.token(&admin(json!({ "exp": null }))), ""),
        ("not valid before tomorrow", key.token(&admin(json!({ "nbf": now + 86_400 }))), ""),
        ("for another audience", key.token(&admin(json!({ "aud": ["account"] }))), ""),
        ("without an audience", key.token(&admin(json!({ "aud": null }))), ""),
        ("of another issuer", key.token(&admin(json!({ "iss": "https://login.example/realms/other" }))), ""),
        ("without a subject", key.token(&admin(json!({ "sub": null }))), ""),
        ("unsigned", format!("{}.", unsigned("none")), ""),
        ("not signed", format!("{}.", unsigned("ES256")), ""),
        ("signed with the public key", hmac(key.public()), ""),
        ("signed with the key set", hmac(key.jwks().to_string().as_bytes()), ""),
        ("signed by another key of this name", SigningKey::new("k1").token(&right), ""),
        ("with another's signature", format!("{}.{signature}", unsigned("ES256")), ""),
        ("no token", "a.b.c".to_owned(), ""),
    ] {
        let answer = state(&of(&token)).await;
        let expected = if expected.is_empty() { "the token is not valid" } else { expected };
        assert_eq!(message(&answer), (401, expected), "{what}");
    }
    assert_eq!(state(&of(&key.token(&right))).await.0, 200);
}

#[tokio::test]
async fn signing_keys_rotate_without_restart() {
    let [first, second] = ["k1", "k2"].map(SigningKey::new);
    let provider = IdentityProvider::start(Some(first.jwks())).await;
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), &settings(&provider.url));
    orchestrator.start_ready().await;
    let viewer = claims("vera", &["viewer"], &json!({}));
    let [first_rest, second_rest] =
        [&first, &second].map(|key| orchestrator.rest.with_token(&key.token(&viewer)));
    assert_eq!(state(&first_rest).await.0, 200);
    assert_eq!(state(&second_rest).await.0, 401, "its key is unknown");

    provider.serve(Some(second.jwks()));
    // Tokens with made-up keys do not delay it.
    let made_up = orchestrator.rest.with_token(&SigningKey::new("k3").token(&viewer));
    eventually("the new key to be known", async || {
        assert_eq!(state(&made_up).await.0, 401);
        (state(&second_rest).await.0 == 200).then_some(())
    })
    .await;
    assert_eq!(state(&first_rest).await.0, 401, "its key was removed");
    provider.serve(None);
    assert_eq!(state(&second_rest).await.0, 200, "the last known keys stay valid");
}

#[tokio::test]
async fn unreachable_provider_denies_all_tokens() {
    let key = SigningKey::new("k1");
    let provider = IdentityProvider::start(None).await;
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), &settings(&provider.url));
    orchestrator.start_ready().await;
    let rest = orchestrator.rest.with_token(&key.token(&claims("vera", &["viewer"], &json!({}))));
    let answer = state(&rest).await;
    assert_eq!(answer.0, 503, "{answer:?}");
    provider.serve(Some(key.jwks()));
    eventually("the keys to be fetched again", async || (state(&rest).await.0 == 200).then_some(())).await;
}
