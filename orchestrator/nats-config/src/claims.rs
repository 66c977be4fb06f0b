//! The JWTs that nats-server reads: claims of operators, accounts and users, signed with nkeys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chrono::{DateTime, Utc};
use nkeys::KeyPair;
use os_upgrade_protocol::HostName;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::rights::{Kind, RIGHTS, RIGHTS_SUBJECT, rights_mark};

/// The most connections of a host: its worker's, one being replaced, and some for debugging.
const HOST_CONNECTIONS_MAX: i64 = 16;
/// The most subscriptions of a host.
const HOST_SUBSCRIPTIONS_MAX: i64 = 256;
/// No limit.
const UNLIMITED: i64 = -1;

/// A key cannot sign. A key that was read from a seed always can.
pub(super) type SignError = nkeys::error::Error;

/// The claims of an operator whose system account is `system`.
pub(super) fn operator(key: &KeyPair, system: &str, now: DateTime<Utc>) -> Result<String, SignError> {
    let nats = json!({ "system_account": system, "type": "operator", "version": 2 });
    sign("os-upgrade", &key.public_key(), &nats, key, now)
}

/// The system account, in which servers are administered.
pub(super) fn system_account(
    key: &KeyPair,
    operator: &KeyPair,
    now: DateTime<Utc>,
) -> Result<String, SignError> {
    let nats = account(&limits(UNLIMITED, UNLIMITED), &Map::new());
    sign("system", &key.public_key(), &nats, operator, now)
}

/// The orchestrators' account, which has the streams and exports what workers need.
pub(super) fn site_account(
    key: &KeyPair,
    operator: &KeyPair,
    now: DateTime<Utc>,
) -> Result<String, SignError> {
    let mut limits = limits(UNLIMITED, UNLIMITED);
    for limit in ["mem_storage", "disk_storage", "streams", "consumer"] {
        limits[limit] = json!(UNLIMITED);
    }
    let exports = RIGHTS.iter().map(|right| {
        let mut export = json!({ "name": right.name, "subject": right.exported(&key.public_key()) });
        let (kind, response) = match right.kind {
            Kind::Request => ("service", Some("Singleton")),
            Kind::Pull => ("service", Some("Stream")),
            Kind::Listen => ("stream", None),
        };
        export["type"] = json!(kind);
        if let Some(response) = response {
            export["response_type"] = json!(response);
        }
        export
    });
    let rights = json!([{ "subject": rights_mark(), "weight": 100 }]);
    let more = Map::from_iter([
        ("exports".to_owned(), exports.collect()),
        ("mappings".to_owned(), json!({ RIGHTS_SUBJECT: rights })),
    ]);
    sign("site", &key.public_key(), &account(&limits, &more), operator, now)
}

/// The account of one host, which imports from the account `site` what is for this host, and nothing else. Credentials
/// issued up to `revoked`, in seconds since 1970, are no longer valid.
pub(super) fn host_account(
    key: &KeyPair,
    host: &HostName,
    site: &str,
    revoked: Option<i64>,
    operator: &KeyPair,
    now: DateTime<Utc>,
) -> Result<String, SignError> {
    let imports = RIGHTS.iter().map(|right| {
        let kind = match right.kind {
            Kind::Request | Kind::Pull => "service",
            Kind::Listen => "stream",
        };
        let mut import =
            json!({ "name": right.name, "subject": right.of_host(site, host), "account": site, "type": kind });
        if let Some(local) = right.local_of_host(host) {
            import["local_subject"] = json!(local);
        }
        import
    });
    let mut more = Map::from_iter([("imports".to_owned(), imports.collect())]);
    if let Some(revoked) = revoked {
        more.insert("revocations".to_owned(), json!({ "*": revoked }));
    }
    let mut limits = limits(HOST_CONNECTIONS_MAX, HOST_SUBSCRIPTIONS_MAX);
    limits["leaf"] = json!(0);
    limits["exports"] = json!(0);
    let nats = account(&limits, &more);
    sign(host.as_str(), &key.public_key(), &nats, operator, now)
}

/// A user of the account of `issuer`.
pub(super) fn user(
    key: &KeyPair,
    name: &str,
    issuer: &KeyPair,
    now: DateTime<Utc>,
) -> Result<String, SignError> {
    let nats = json!({
        "pub": {}, "sub": {}, "subs": UNLIMITED, "data": UNLIMITED, "payload": UNLIMITED, "type": "user", "version": 2,
    });
    sign(name, &key.public_key(), &nats, issuer, now)
}

/// The time up to which credentials of the account with this JWT are revoked, in seconds since 1970; `None` if none are.
pub(super) fn revoked(jwt: &str) -> Option<i64> {
    read(jwt)?["nats"]["revocations"]["*"].as_i64()
}

/// The name in an account's JWT: that of its host.
pub(super) fn account_name(jwt: &str) -> Option<String> {
    Some(read(jwt)?["name"].as_str()?.to_owned())
}

/// The claims of a JWT. The signature is not checked: the JWT is from our own file.
pub(super) fn read(jwt: &str) -> Option<Value> {
    let claims = BASE64.decode(jwt.trim().split('.').nth(1)?).ok()?;
    serde_json::from_slice(&claims).ok()
}

/// All limits. nats-server takes a limit that is left out for zero.
fn limits(connections: i64, subscriptions: i64) -> Value {
    json!({
        "subs": subscriptions, "data": UNLIMITED, "payload": UNLIMITED, "imports": UNLIMITED, "exports": UNLIMITED,
        "wildcards": true, "conn": connections, "leaf": UNLIMITED,
    })
}

fn account(limits: &Value, more: &Map<String, Value>) -> Value {
    let mut nats = json!({
        "limits": limits, "default_permissions": { "pub": {}, "sub": {} }, "authorization": {}, "type": "account",
        "version": 2,
    });
    for (name, value) in more {
        nats[name] = value.clone();
    }
    nats
}

fn sign(
    name: &str,
    subject: &str,
    nats: &Value,
    issuer: &KeyPair,
    now: DateTime<Utc>,
) -> Result<String, SignError> {
    let mut claims = json!({
        "iat": now.timestamp(), "iss": issuer.public_key(), "name": name, "sub": subject, "nats": nats,
    });
    claims["jti"] = json!(BASE64.encode(Sha256::digest(claims.to_string())));
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
    let signature = issuer.sign(text.as_bytes())?;
    Ok(format!("{text}.{}", BASE64.encode(signature)))
}
