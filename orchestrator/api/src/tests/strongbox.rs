//! The strongbox: secrets can be written, listed and removed, and never read.

use os_upgrade_api_types::routes::health::Ready;
use os_upgrade_api_types::routes::strongbox::Strongbox as Shown;
use os_upgrade_settings::Settings;
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_site::strongbox::key::Key;

use super::*;

const SECRET: &str = "PUT /v1/config/strongbox/secrets/lock-server";
const UNSEAL: &str = "POST /v1/state/strongbox/unseal";
const STATUS: &str = "GET /v1/state/strongbox";
const TRIGGER: &str = "POST /v1/state/os-upgrade/trigger-upgrade-site";
const CLEAR: &str = "user:not-in-the-clear";
const NO_KEY: &str = "the strongbox is sealed: `os-upgrade strongbox unseal` gives the instance its key, as does [strongbox] key-file";
const NO_KEY_YET: &str = "the strongbox is sealed: it is empty and has no key yet; make one with `os-upgrade strongbox key` \
                          and keep it, then `os-upgrade strongbox unseal` gives it to the instance, as does [strongbox] key-file";

/// The strongbox of an instance with these environment variables.
fn strongbox_of(variables: &[(&str, &str)]) -> Strongbox {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let settings: Settings = os_upgrade_settings::load(None, variables).unwrap();
    Strongbox::from_settings(&settings).unwrap()
}

/// Gives the instance under test `strongbox`.
fn restart_with(api: &mut TestApi, strongbox: Strongbox) {
    let options = Options { strongbox, ..Options::default() };
    api.router = router(api.site.clone(), api.history.clone(), Authenticator::default(), &options);
}

/// Gives the leader and the instance under test a new strongbox, as after a restart.
fn with_strongbox(api: &mut TestApi, variables: &[(&str, &str)]) {
    let strongbox = strongbox_of(variables);
    let mut shown = PublishedState::clone(&api.shown.load());
    shown.view.sealed = strongbox.blocks_slots(&shown.state.strongbox);
    api.shown.store(Arc::new(shown));
    api.strongbox.store(Arc::new(strongbox.clone()));
    restart_with(api, strongbox);
}

/// Writes a key file that only its owner can read.
fn write_key(file: &std::path::Path, key: &Key) {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::write(file, format!("{}\n", *key.reveal())).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn key_body(key: &Key) -> String {
    json!({ "key": *key.reveal() }).to_string()
}

#[tokio::test]
async fn secrets_need_the_key() {
    let mut api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let (key, other) = (Key::random().unwrap(), Key::random().unwrap());
    let value = json!({ "value": CLEAR }).to_string();
    let open = json!({ "sealed": false, "secrets": 0 });
    assert_eq!(api.call(STATUS, "").await, (200, open), "without secrets nothing is sealed");
    assert_eq!(
        api.call(SECRET, &value).await,
        (503, error_with(NO_KEY_YET, &json!({"kind": "strongbox-sealed", "why": {"kind": "no-key-yet"}})))
    );
    assert_eq!(api.call(UNSEAL, &key_body(&key)).await, (204, Value::Null));
    assert_eq!(api.call(SECRET, &value).await, (201, Value::Null));
    assert_eq!(api.call(SECRET, &value).await, (204, Value::Null));

    let (status, list) = api.call("GET /v1/config/strongbox/secrets", "").await;
    assert_eq!((status, &list["secrets"][0]["name"]), (200, &json!("lock-server")));
    assert_eq!(list["secrets"][0].as_object().unwrap().len(), 3, "{list}");
    for (query, expected) in [
        ("?keys=true", json!({"secrets": ["lock-server"]})),
        ("?keys=true&limit=1&after=lock", json!({"secrets": ["lock-server"]})),
        ("?after=lock-server", json!({"secrets": []})),
        ("?count=true", json!({"count": 1})),
    ] {
        let found = api.call(&format!("GET /v1/config/strongbox/secrets{query}"), "").await;
        assert_eq!(found, (200, expected), "{query}");
    }
    let state = serde_json::to_string(&api.site.published().state).unwrap();
    assert!(state.contains("lock-server") && !state.contains("clear"), "{state}");
    // The history and its write-ahead log.
    let mut stored = Vec::new();
    for file in std::fs::read_dir(api.directory.path()).unwrap() {
        stored.extend(std::fs::read(file.unwrap().path()).unwrap());
    }
    let holds = |text: &str| stored.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("secret-kept") && holds("lock-server") && !holds("in-the-clear"));

    // A new process has no key, and accepts only the key of the secrets.
    with_strongbox(&mut api, &[]);
    let sealed = json!({ "sealed": true, "reason": NO_KEY, "secrets": 1 });
    assert_eq!(api.call(STATUS, "").await, (200, sealed));
    assert!(api.read::<Ready<'_>>("GET /readyz").await.sealed);
    assert_eq!(
        api.call(SECRET, &value).await,
        (503, error_with(NO_KEY, &json!({"kind": "strongbox-sealed", "why": {"kind": "no-key"}})))
    );
    let wrong = api.call(UNSEAL, &key_body(&other)).await;
    assert_eq!(wrong, (403, error("this is not the key of the strongbox")));
    assert_eq!(api.call(UNSEAL, &key_body(&key)).await.0, 204);
    assert!(!api.read::<Shown>(STATUS).await.sealed);

    // If the key is lost, removing all secrets permits a new one.
    with_strongbox(&mut api, &[]);
    let remove = "DELETE /v1/config/strongbox/secrets/lock-server";
    assert_eq!(api.call(remove, "").await, (204, Value::Null));
    assert_eq!(api.call(remove, "").await.0, 404);
    assert_eq!(api.call(UNSEAL, &key_body(&other)).await.0, 204);
    assert_eq!(api.call(SECRET, &value).await.0, 201);
}

/// The history has actors and names, and nothing of the sealed values.
#[tokio::test]
async fn strongbox_history_is_listed() {
    const HISTORY: &str = "GET /v1/state/strongbox/history";
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    assert_eq!(api.call(HISTORY, "").await, (200, json!({"items": []})));
    assert_eq!(api.call(UNSEAL, &key_body(&Key::random().unwrap())).await.0, 204);
    assert_eq!(api.call(SECRET, &json!({ "value": CLEAR }).to_string()).await.0, 201);
    assert_eq!(api.call("DELETE /v1/config/strongbox/secrets/lock-server", "").await.0, 204);
    let (status, mut page) = api.call(HISTORY, "").await;
    for item in page["items"].as_array_mut().unwrap() {
        assert!(item.as_object_mut().unwrap().remove("time").is_some(), "{item}");
    }
    let of = |sequence: u64, place: u64, kind: &str| json!({"sequence": sequence, "place": place, "type": kind, "actor": "api", "name": "lock-server"});
    let made = json!({"sequence": 1, "place": 0, "type": "strongbox-made"});
    let expected = json!({"items": [of(2, 0, "secret-removed"), of(1, 1, "secret-kept"), made]});
    assert_eq!((status, page), (200, expected));
    for (query, expected) in [
        ("?count=true", json!({"count": 3})),
        ("?keys=true&limit=1", json!({"items": ["2.0"], "next": "2.0"})),
        ("?keys=true&after=2.0", json!({"items": ["1.1", "1.0"]})),
    ] {
        assert_eq!(api.call(&format!("{HISTORY}{query}"), "").await, (200, expected), "{query}");
    }
    assert_eq!(api.call(&format!("{HISTORY}?limit=0"), "").await.0, 400);
}

#[tokio::test]
async fn missing_lock_credentials_block_runs() {
    let records = [os_upgrade_test_site::put_config()];
    let mut site = TestSite::new(["h01"]);
    let records = [site.decide_record(&records)];
    let mut api = TestApi::new(site, &records).await;
    let directory = tempfile::tempdir().unwrap();
    let key = Key::random().unwrap();
    let file = directory.path().join("key");
    write_key(&file, &key);
    let path = file.to_str().unwrap();
    let needs = [
        ("OS_UPGRADE_FLEET_LOCK__URL", "https://lock.example.com"),
        ("OS_UPGRADE_FLEET_LOCK__CREDENTIALS_SECRET", "lock-server"),
    ];
    with_strongbox(&mut api, &needs);
    assert_eq!(api.call("GET /readyz", "").await, (503, error(NO_KEY_YET)));
    let (status, refused) = api.call(TRIGGER, "").await;
    let leader_message =
        format!("{NO_KEY_YET}; the instance that leads needs it, which `os-upgrade cluster status` shows");
    assert_eq!(
        (status, refused["errors"][0]["error-message"].as_str()),
        (503, Some(leader_message.as_str()))
    );
    assert_eq!(
        refused["errors"][0]["error-info"],
        json!({"kind": "strongbox-sealed", "why": {"kind": "no-key-yet"}})
    );
    assert_eq!(api.call(&format!("{TRIGGER}?validate=true"), "").await.0, 503);
    let with_key = [needs[0], needs[1], ("OS_UPGRADE_STRONGBOX__KEY_FILE", path)];
    with_strongbox(&mut api, &with_key);
    let missing = "the strongbox has no secret lock-server: `os-upgrade strongbox put lock-server` stores it";
    assert_eq!(api.call(TRIGGER, "").await.1["errors"][0]["error-message"], missing);
    assert_eq!(api.call(SECRET, &json!({ "value": CLEAR }).to_string()).await.0, 201);
    assert_eq!(api.call("GET /readyz", "").await.0, 200);
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
    // Restarted with another key.
    write_key(&file, &Key::random().unwrap());
    with_strongbox(&mut api, &with_key);
    assert!(api.read::<Shown>(STATUS).await.sealed);
    assert_eq!(api.call("GET /readyz", "").await.0, 503);
}

/// Only the leader needs the key; the follower that takes the request does not.
#[tokio::test]
async fn sealed_follower_forwards_triggers() {
    let mut site = TestSite::new(["h01"]);
    let records = [site.decide_record(&[os_upgrade_test_site::put_config()])];
    let mut api = TestApi::new(site, &records).await;
    let settings = [
        ("OS_UPGRADE_FLEET_LOCK__URL", "https://lock.example.com"),
        ("OS_UPGRADE_FLEET_LOCK__CREDENTIALS_SECRET", "lock-server"),
    ];
    restart_with(&mut api, strongbox_of(&settings));
    assert!(api.read::<Ready<'_>>("GET /readyz").await.sealed);
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
}

#[tokio::test]
async fn errors_do_not_echo_secrets() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let value =
        "expected an object with the string \"value\", perhaps the string \"origin\", and nothing else";
    let key = "expected an object with the string \"key\" and nothing else";
    for (request, body, message) in [
        (SECRET, r#""s3cret""#, value),
        (SECRET, r#"{"value":["s3cret"]}"#, value),
        (SECRET, r#"{"value":"s3cret","x":1}"#, value),
        (SECRET, r#"{"value":"s3cret","origin":7}"#, value),
        (
            SECRET,
            r#"{"value":"s3cret","origin":"http://files.example"}"#,
            "origin: http:// is only for this machine (localhost, 127.0.0.0/8, [::1]): use https://",
        ),
        (UNSEAL, r#"{"value":"s3cret"}"#, key),
    ] {
        assert_eq!(api.call(request, body).await, (400, error(message)), "{body}");
    }
    let no_key =
        "key: it is not a key: 32 bytes in base64 are expected, as `os-upgrade strongbox key` prints them";
    assert_eq!(api.call(UNSEAL, r#"{"key":"s3cret"}"#).await, (400, error(no_key)));
    let empty = "value: expected 1 to 8192 bytes";
    assert_eq!(api.call(SECRET, r#"{"value":""}"#).await, (400, error(empty)));
    assert_eq!(api.call("PUT /v1/config/strongbox/secrets/.x", r#"{"value":"a"}"#).await.0, 400);
}
