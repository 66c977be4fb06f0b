//! Calls to real servers on loopback that answer in every way.

use std::future::pending;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_kernel::{Config, PinnedKey, Secret};
use os_upgrade_protocol::{Content, HostKey, ItemId, Revision};
use os_upgrade_provider_rules::hooks::{CallbackToken, DeviceMetadata};
use os_upgrade_provider_rules::{ANSWER_BYTES_MAX, MemberProblem};
use os_upgrade_sealing::PrivateKey;
use os_upgrade_shell::delivery::AppliedHash;
use os_upgrade_site::strongbox::key::Key;
use serde_json::{Value, json};

use super::*;
use crate::test_server::{Server, serve, serve_bytes, serve_held};

const ENDPOINT: &str = "https://upgrade.example/v1/hooks/callback";
/// The SHA-256 of `level=3`.
const HASH: &str = "5304735f158dd06a846179ee46f5691538b351a6b451ceefd1a8b6f4e9e79592";

type Answers = dyn Fn(&[Value]) -> Response + Send + Sync;

/// What a server got, and how it answers to the calls of a request.
#[derive(Clone)]
struct Hook {
    seen: Arc<Mutex<Vec<(HeaderMap, String)>>>,
    answer: Arc<Answers>,
}

impl Hook {
    fn new(answer: impl Fn(&[Value]) -> Response + Send + Sync + 'static) -> Self {
        Self { seen: Arc::default(), answer: Arc::new(answer) }
    }

    /// One that answers to each call with what `element` adds to its UUID.
    fn each(element: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::new(move |calls| {
            let element = |call: &Value| {
                let mut element = element(call);
                element["event_uuid"] = call["event_uuid"].clone();
                element
            };
            let elements: Vec<Value> = calls.iter().map(element).collect();
            Value::from(elements).to_string().into_response()
        })
    }

    async fn serve(&self) -> Server {
        serve(Router::new().fallback(handle).with_state(self.clone())).await
    }

    /// The bodies of the requests since this was last called.
    fn take(&self) -> Vec<Value> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.iter().map(|(_, body)| serde_json::from_str(body).unwrap()).collect()
    }
}

async fn handle(Shared(hook): Shared<Hook>, method: Method, headers: HeaderMap, body: String) -> Response {
    assert_eq!(method, Method::POST);
    let calls: Vec<Value> = serde_json::from_str(&body).unwrap();
    hook.seen.lock().unwrap().push((headers, body));
    (hook.answer)(&calls)
}

fn provider(server: &Server, more: &str) -> Arc<ConfigProvider> {
    let url = format!("http://{}/hooks/?site=hall-1", server.address);
    let json = format!(r#"{{"name":"app","kind":"hooks","url":"{url}"{more}}}"#);
    Arc::new(serde_json::from_str(&json).unwrap())
}

/// Providers of a site that has configured `app`.
fn providers(strongbox: Strongbox) -> Providers {
    let published = PublishedState { state: configured(), ..PublishedState::default() };
    Providers::new(strongbox, Arc::new(ArcSwap::from_pointee(published)), ENDPOINT.to_owned())
}

/// The state of a site that has configured `app`.
fn configured() -> State {
    let app = r#"{"name":"app","kind":"hooks","url":"https://hooks.example/"}"#;
    let config_providers = vec![serde_json::from_str(app).unwrap()];
    State { config: Some(Arc::new(Config { config_providers, ..Config::default() })), ..State::default() }
}

fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

/// About each of the hosts, to the same provider, which may call back with a token that is drawn.
fn questions(providers: &Providers, provider: &Arc<ConfigProvider>, hosts: &[&str]) -> Vec<ProviderQuestion> {
    let token = providers.draw_token(&provider.name).unwrap();
    let question = |name: &&str| {
        let (host, event) = (host(name), HookEvent::DeviceSpecUpdate);
        let metadata = DeviceMetadata {
            name: host.clone(),
            labels: BTreeMap::from([("rack".to_owned(), "7".to_owned())]),
            owner: DeviceMetadata::owner_of(&provider.name),
            annotations: BTreeMap::new(),
            generation: 3,
            resource_version: "3".to_owned(),
            creation_timestamp: "2026-03-01T12:00:00Z".parse().unwrap(),
        };
        let uuid = event_uuid(&provider.name, &host, event, 0, 3);
        let hook =
            HookQuestion { event, cause: 3, uuid, metadata, digest: 9, token: token.clone(), applied: None };
        ProviderQuestion {
            ticket: 1,
            provider: Arc::clone(provider),
            host,
            key: key().public(),
            sealed: Revision { epoch: 0, sequence: 4711 },
            validator: None,
            fingerprint: None,
            hook: Some(hook),
        }
    };
    hosts.iter().map(question).collect()
}

/// The key of every host.
fn key() -> &'static PrivateKey {
    static KEY: std::sync::OnceLock<PrivateKey> = std::sync::OnceLock::new();
    KEY.get_or_init(PrivateKey::generate)
}

/// A call about h1, with its one reply.
async fn call_with(providers: &Providers, question: &ProviderQuestion) -> Reply<Option<Made>> {
    let mut replies = providers.call(std::slice::from_ref(question)).await;
    assert_eq!(replies.len(), 1);
    replies.remove(0)
}

/// A call about h1 by providers of its own.
async fn call(server: &Server, more: &str) -> Reply<Option<Made>> {
    let providers = providers(Strongbox::default());
    let question = questions(&providers, &provider(server, more), &["h1"]).remove(0);
    call_with(&providers, &question).await
}

fn failure(reply: &Reply<Option<Made>>) -> &Failure {
    let Outcome::Failed(failure) = &reply.outcome else { panic!("{reply:?}") };
    failure
}

/// What the reply gives, which is something new.
fn made(reply: Reply<Option<Made>>) -> Made {
    let Outcome::Content { content: Some(made), .. } = reply.outcome else { panic!("{reply:?}") };
    made
}

/// That of a reply that gives nothing new.
fn validator_of(reply: &Reply<Option<Made>>) -> &Validator {
    let Outcome::Unchanged { validator } = &reply.outcome else { panic!("{reply:?}") };
    validator
}

/// The content of an item for `question`.
fn opened(question: &ProviderQuestion, made: &Made) -> Content {
    let (kind, name) = (ItemKind::Configuration, question.provider.name.as_str());
    let sealed_for = SealedFor { host: &question.host, kind, name, revision: question.sealed };
    Content::parse(&key().open(&sealed_for, &made.item.bytes).unwrap()).unwrap()
}

#[tokio::test]
async fn batches_are_one_request_with_every_member() {
    let hook = Hook::each(|_| json!({}));
    let server = hook.serve().await;
    let providers = providers(Strongbox::default());
    let questions = questions(&providers, &provider(&server, r#","batch-size":2"#), &["h1", "h2"]);
    let replies = providers.call(&questions).await;
    assert!(replies.iter().all(|reply| matches!(reply.outcome, Outcome::Unchanged { .. })), "{replies:?}");
    let (headers, body) = hook.seen.lock().unwrap()[0].clone();
    let requests = hook.take();
    let [calls] = &requests[..] else { panic!("{requests:?}") };
    let token = calls[0]["callback_token"].as_str().unwrap();
    let digest = &questions[0].hook.as_ref().unwrap().token;
    assert!(CallbackToken::digest_of(token).as_deref() == Some(digest), "{digest}");
    let expected = |question: &ProviderQuestion| {
        json!({
            "event": "ON_DEVICE_SPEC_UPDATE",
            "event_uuid": question.hook.as_ref().unwrap().uuid.to_string(),
            "config_name": "app",
            "device_metadata": {
                "name": question.host.as_str(),
                "labels": { "rack": "7" },
                "owner": "Fleet/app",
                "annotations": {},
                "generation": 3,
                "resourceVersion": "3",
                "creationTimestamp": "2026-03-01T12:00:00Z",
            },
            "callback_endpoint": ENDPOINT,
            "callback_token": token,
            "last_config_hash": "",
        })
    };
    assert_eq!(*calls, Value::from(questions.iter().map(expected).collect::<Vec<_>>()));
    let named = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(named("content-type"), Some("application/json"));
    assert_eq!((named("accept"), named("accept-encoding")), (Some("application/json"), Some("identity")));
    assert_eq!(named("content-length"), Some(body.len().to_string().as_str()));
    assert_eq!((named("authorization"), named("cookie"), named("referer")), (None, None, None));
    // A token is nowhere but in the request.
    let shown = format!("{providers:?} {questions:?} {replies:?}");
    assert!(!shown.contains(token), "{shown}");
    let nobody: Vec<ProviderQuestion> = Vec::new();
    assert!(providers.call(&nobody).await.is_empty() && hook.take().is_empty());
}

#[tokio::test]
async fn what_is_given_is_sealed() {
    let file = json!({
        "content": "bGV2ZWw9Mw==",
        "contentEncoding": "base64",
        "path": "/etc/other.conf",
        "mode": 0o640,
        "user": "root",
    });
    let text = json!("level=3");
    let entry = |path: &str, mode, user: Option<&str>| FileEntry {
        path: path.to_owned(),
        mode,
        user: user.map(str::to_owned),
        group: None,
        bytes: 7,
    };
    for (configuration, more, files) in [
        (&text, "", vec![]),
        (&text, r#","path":"/etc/app.conf","mode":"0600""#, vec![entry("/etc/app.conf", Some(0o600), None)]),
        (
            &file,
            r#","path":"/etc/app.conf","mode":"0600""#,
            vec![entry("/etc/other.conf", Some(0o640), Some("root"))],
        ),
    ] {
        let configuration = configuration.clone();
        let hook = Hook::each(move |_| json!({ "configuration": configuration, "poll_interval": 120 }));
        let server = hook.serve().await;
        let providers = providers(Strongbox::default());
        let question = questions(&providers, &provider(&server, more), &["h1"]).remove(0);
        let reply = call_with(&providers, &question).await;
        assert_eq!((reply.poll_interval, reply.retry_after), (Some(Duration::from_mins(2)), None));
        let Outcome::Content { validator, .. } = &reply.outcome else { panic!("{reply:?}") };
        let again = ProviderQuestion { validator: Some(validator.clone()), ..question.clone() };
        let made = made(reply);
        assert_eq!(opened(&question, &made), Content { files, bytes: b"level=3".to_vec() });
        assert_eq!((&made.fingerprint, &made.hash), (&None, &None), "there is no key");
        // Even so, it is known that the same is given again.
        let reply = call_with(&providers, &again).await;
        assert_eq!(Some(validator_of(&reply)), again.validator.as_ref());
    }
}

/// The hash of what the host has is told, whether or not it can be sealed.
#[tokio::test]
async fn the_hash_of_what_is_applied_is_told() {
    let sealing = Strongbox::default();
    assert!(sealing.unseal(&os_upgrade_kernel::Strongbox::default(), Key::random().unwrap()));
    for strongbox in [Strongbox::default(), sealing] {
        let hook = Hook::each(|_| json!({ "configuration": "level=3" }));
        let server = hook.serve().await;
        let providers = providers(strongbox);
        let mut question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
        let first = made(call_with(&providers, &question).await);
        assert!(first.hash.as_ref().is_none_or(|sealed| !sealed.contains(HASH)));
        let applied =
            |item: &ItemId, made: &Made| Some(AppliedHash { item: item.clone(), hash: made.hash.clone() });
        let other = ItemId::new("other").unwrap();
        for (item, expected) in [(&first.item.id, HASH), (&other, "")] {
            question.hook.as_mut().unwrap().applied = applied(item, &first);
            question.fingerprint.clone_from(&first.fingerprint);
            hook.take();
            let reply = call_with(&providers, &question).await;
            assert_eq!(hook.take()[0][0]["last_config_hash"], expected);
            // With a key it is known that the host is to have this anyway.
            let Outcome::Content { content, .. } = reply.outcome else { panic!("{reply:?}") };
            assert_eq!(content.is_none(), first.fingerprint.is_some());
            if let Some(again) = content {
                // In memory, it is kept beside the first one.
                question.hook.as_mut().unwrap().applied = applied(&again.item.id, &again);
                call_with(&providers, &question).await;
                assert_eq!(hook_hash(&hook), HASH);
            }
        }
    }
}

/// Other JSON that gives the same files is another configuration: its hash is told once the host has it.
#[tokio::test]
async fn other_json_with_the_same_files_is_given_anew() {
    let sealing = Strongbox::default();
    assert!(sealing.unseal(&os_upgrade_kernel::Strongbox::default(), Key::random().unwrap()));
    for strongbox in [Strongbox::default(), sealing] {
        let version = Arc::new(Mutex::new("3.3.0"));
        let given = Arc::clone(&version);
        let hook = Hook::each(move |_| {
            let file = json!({ "path": "/etc/app.conf", "contents": { "source": "data:,level%3D3" } });
            let ignition = json!({ "version": *given.lock().unwrap() });
            json!({ "configuration": { "ignition": ignition, "storage": { "files": [file] } } })
        });
        let server = hook.serve().await;
        let providers = providers(strongbox);
        let mut question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
        for again in [false, true] {
            let reply = call_with(&providers, &question).await;
            let Outcome::Content { validator, .. } = &reply.outcome else { panic!("{again}: {reply:?}") };
            question.validator = Some(validator.clone());
            let made = made(reply);
            question.fingerprint.clone_from(&made.fingerprint);
            question.hook.as_mut().unwrap().applied =
                Some(AppliedHash { item: made.item.id.clone(), hash: made.hash.clone() });
            assert_eq!(opened(&question, &made).bytes, b"level=3");
            // The same JSON is not given again, with and without the validator of this process.
            let reply = call_with(&providers, &question).await;
            assert_eq!(Some(validator_of(&reply)), question.validator.as_ref());
            if question.fingerprint.is_some() {
                let asked = ProviderQuestion { validator: None, ..question.clone() };
                let reply = call_with(&providers, &asked).await;
                assert!(matches!(reply.outcome, Outcome::Content { content: None, .. }), "{reply:?}");
            }
            *version.lock().unwrap() = "3.4.0";
        }
        let told: Vec<Value> = hook.take().iter().map(|calls| calls[0]["last_config_hash"].clone()).collect();
        let (first, last) = (&told[1], &told[told.len() - 1]);
        assert!(first != last && [first, last].iter().all(|hash| **hash != ""), "{told:?}");
    }
}

/// A publish that fails leaves the host with what it had, however often that happens.
#[tokio::test]
async fn hashes_outlive_failed_publishes() {
    let hook = Hook::each(|_| json!({ "configuration": "level=3" }));
    let server = hook.serve().await;
    let providers = providers(Strongbox::default());
    let mut question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
    let first = made(call_with(&providers, &question).await);
    question.hook.as_mut().unwrap().applied = Some(AppliedHash { item: first.item.id, hash: None });
    for attempt in 0..4 {
        // Nobody stores what is made.
        made(call_with(&providers, &question).await);
        assert_eq!(hook_hash(&hook), HASH, "{attempt}");
    }
}

#[tokio::test]
async fn hashes_are_kept_of_hosts_with_a_key() {
    let providers = providers(Strongbox::default());
    let server = Hook::each(|_| json!({})).serve().await;
    let provider = provider(&server, "");
    let (name, item) = (&provider.name, ItemId::new("1").unwrap());
    let mut state = configured();
    let pinned = PinnedKey { key: key().public(), actor: None, since: Utc::now() };
    state.enrolment.keys.insert(host("h1"), pinned);
    for host in ["h1", "h2"].map(host) {
        providers.hooks.keep_hash(name, &host, &item, HASH);
    }
    providers.retain_configured(&state);
    let is_kept = |name_of_host| providers.hooks.hash(name, &host(name_of_host), &item).is_some();
    assert_eq!(["h1", "h2"].map(is_kept), [true, false]);
}

/// A provider may be removed while it is told of something: nothing is kept of it once it has answered.
#[tokio::test]
async fn nothing_is_kept_of_providers_that_are_removed_meanwhile() {
    let shared: Arc<ArcSwap<PublishedState>> = providers(Strongbox::default()).published;
    let providers = Providers::new(Strongbox::default(), Arc::clone(&shared), ENDPOINT.to_owned());
    let (memory, http) = (providers.hooks.clone(), providers.http.clone());
    let hook = Hook::each(move |_| {
        let before = shared.swap(Arc::default());
        let followed = Providers { hooks: memory.clone(), http: http.clone(), ..Providers::default() };
        followed.follow(&before.state, &State::default());
        json!({ "configuration": "level=3" })
    });
    let server = hook.serve().await;
    let question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
    let item = made(call_with(&providers, &question).await).item.id;
    let name = &question.provider.name;
    assert!(providers.hooks.hash(name, &question.host, &item).is_none());
    assert!(providers.http.clients.lock().unwrap().is_empty());
}

/// The first answer with foreign elements is worth a warning, the next ones are not, until one has none.
#[tokio::test]
async fn foreign_elements_are_warned_of_once() {
    let is_foreign = Arc::new(Mutex::new(true));
    let adds = Arc::clone(&is_foreign);
    let hook = Hook::new(move |calls| {
        let own = json!({ "event_uuid": calls[0]["event_uuid"] });
        let foreign = json!({ "event_uuid": "4711" });
        let elements = if *adds.lock().unwrap() { vec![own, foreign] } else { vec![own] };
        Value::from(elements).to_string().into_response()
    });
    let server = hook.serve().await;
    let providers = providers(Strongbox::default());
    let question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
    let foreign = || HookReply { members: Vec::new(), foreign: 1, retry_after: None };
    let failed = HookReply { members: vec![Failure::TimedOut.into()], foreign: 0, retry_after: None };
    call_with(&providers, &question).await;
    let name = &question.provider.name;
    assert!(!providers.hooks.has_begun_foreign(name, &foreign()), "the call has been warned of");
    assert!(!providers.hooks.has_begun_foreign(name, &failed));
    assert!(!providers.hooks.has_begun_foreign(name, &foreign()), "a failure says nothing of that");
    *is_foreign.lock().unwrap() = false;
    call_with(&providers, &question).await;
    assert!(providers.hooks.has_begun_foreign(name, &foreign()));
}

/// The hash that was told last.
fn hook_hash(hook: &Hook) -> String {
    hook.take().last().unwrap()[0]["last_config_hash"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn members_are_answered_each_on_its_own() {
    let hook = Hook::new(|calls| {
        let uuid = |index: usize| calls[index]["event_uuid"].clone();
        let elements = json!([
            { "event_uuid": uuid(3), "configuration": null },
            { "event_uuid": uuid(0), "configuration": "level=3" },
            { "event_uuid": uuid(1), "device_name": "h9" },
            { "event_uuid": "4711" },
        ]);
        elements.to_string().into_response()
    });
    let server = hook.serve().await;
    let providers = providers(Strongbox::default());
    let questions = questions(&providers, &provider(&server, ""), &["h1", "h2", "h3", "h4"]);
    let replies = providers.call(&questions).await;
    let [first, second, third, fourth] = &replies[..] else { panic!("{replies:?}") };
    assert!(matches!(first.outcome, Outcome::Content { content: Some(_), .. }));
    assert_eq!(*failure(second), Failure::BadMember { why: MemberProblem::OtherDevice });
    assert_eq!(*failure(third), Failure::NotAnswered);
    assert!(matches!(fourth.outcome, Outcome::Removed));
    assert_eq!(hook.take().len(), 1);
}

/// The body of a 304, which HTTP does not know of, is not taken for the answer to the next call.
#[tokio::test]
async fn connections_are_not_used_after_a_304() {
    let body = r#"[{"event":"ON_DEVICE_SPEC_UPDATE"}]"#;
    let answer = format!("HTTP/1.1 304 Not Modified\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let server = serve_held(answer).await;
    let providers = providers(Strongbox::default());
    let question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
    for _ in 0..3 {
        let reply = call_with(&providers, &question).await;
        assert!(matches!(reply.outcome, Outcome::Unchanged { .. }), "{reply:?}");
    }
}

#[tokio::test]
async fn answers_without_members_fail_every_call() {
    let seen = Hook::each(|_| json!({}));
    let elsewhere = seen.serve().await;
    let location = format!("http://{}/", elsewhere.address);
    for (status, expected) in [
        (StatusCode::TEMPORARY_REDIRECT, Failure::Redirected { status: 307 }),
        (StatusCode::SEE_OTHER, Failure::Redirected { status: 303 }),
        (StatusCode::UNAUTHORIZED, Failure::Refused { status: 401 }),
        (StatusCode::NOT_FOUND, Failure::Refused { status: 404 }),
        (StatusCode::TOO_MANY_REQUESTS, Failure::Throttled),
        (StatusCode::SERVICE_UNAVAILABLE, Failure::Unavailable { status: 503 }),
    ] {
        let location = location.clone();
        let hook = Hook::new(move |_| {
            (status, [(header::LOCATION, location.as_str()), (header::RETRY_AFTER, "7")]).into_response()
        });
        let server = hook.serve().await;
        let providers = providers(Strongbox::default());
        let questions = questions(&providers, &provider(&server, ""), &["h1", "h2"]);
        let replies = providers.call(&questions).await;
        let may_pause = matches!(status.as_u16(), 429 | 503);
        assert_eq!(replies.len(), 2);
        for reply in &replies {
            assert_eq!(*failure(reply), expected);
            assert_eq!(reply.retry_after, may_pause.then_some(Duration::from_secs(7)), "{status}");
        }
        assert_eq!(hook.take().len(), 1, "it is sent once");
    }
    assert_eq!(seen.take(), [] as [Value; 0], "redirects are not followed");
}

#[tokio::test]
async fn huge_slow_and_cut_answers_are_not_taken() {
    let huge = Hook::new(|_| vec![b' '; ANSWER_BYTES_MAX + 1].into_response()).serve().await;
    assert_eq!(*failure(&call(&huge, "").await), Failure::TooLarge { limit: ANSWER_BYTES_MAX });
    let slow = serve(Router::new().fallback(pending::<Response>)).await;
    assert_eq!(*failure(&call(&slow, r#","timeout":"1s""#).await), Failure::TimedOut);
    let dripping = serve_held("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[").await;
    assert_eq!(*failure(&call(&dripping, r#","timeout":"1s""#).await), Failure::TimedOut);
    let cut = serve_bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[").await;
    assert_eq!(*failure(&call(&cut, "").await), Failure::Cut);
    let encoded = Hook::new(|_| ([(header::CONTENT_ENCODING, "gzip")], "[]").into_response()).serve().await;
    assert_eq!(*failure(&call(&encoded, "").await), Failure::Encoded);
    let page = Hook::new(|_| "<html>log in</html>".into_response()).serve().await;
    assert!(matches!(failure(&call(&page, "").await), Failure::NotAnArray { .. }));
}

#[tokio::test]
async fn nothing_is_sent_without_token_or_credentials() {
    let hook = Hook::each(|_| json!({}));
    let server = hook.serve().await;
    let providers = providers(Strongbox::default());
    let mut question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
    question.hook.as_mut().unwrap().token = CallbackToken::from_bytes(&[0; 32]).digest();
    assert_eq!(*failure(&call_with(&providers, &question).await), Failure::NotSealed);
    let unusable = |problem| Failure::Credentials { problem, secret: Some("files".to_owned()) };
    let provider = provider(&server, r#","credentials":"files""#);
    let question = questions(&providers, &provider, &["h1"]).remove(0);
    let missing = unusable(CredentialsProblem::Missing);
    assert_eq!(*failure(&call_with(&providers, &question).await), missing);
    let since = "2026-03-01T12:00:00Z".parse().unwrap();
    let secret = Secret { sealed: "x".to_owned(), origin: None, actor: "eve".to_owned(), since };
    let mut published = PublishedState::default();
    published.state.strongbox.secrets.insert(SecretName::new("files").unwrap(), secret);
    providers.published.store(Arc::new(published));
    let sealed = unusable(CredentialsProblem::Sealed);
    assert_eq!(*failure(&call_with(&providers, &question).await), sealed);
    assert_eq!(hook.take(), [] as [Value; 0]);
    // Nor is it in the clear, but to this machine.
    let plain = r#"{"name":"app","kind":"hooks","url":"http://hooks.example/"}"#;
    assert!(serde_json::from_str::<ConfigProvider>(plain).unwrap_err().to_string().contains("use https://"));
}

#[tokio::test]
async fn few_tokens_are_kept_of_configured_providers() {
    let providers = providers(Strongbox::default());
    let name = ProviderName::new("app").unwrap();
    let digests: Vec<String> = (0..17).map(|_| providers.draw_token(&name).unwrap()).collect();
    let is_kept =
        |digest: &String| providers.hooks.token(&name, digest).is_some_and(|it| it.digest() == *digest);
    assert_eq!(digests.iter().map(is_kept).collect::<Vec<_>>(), [[false].as_slice(), &[true; 16]].concat());
    providers.retain_configured(&State::default());
    assert!(providers.hooks.token(&name, &digests[16]).is_none());
}

/// What is given for a host that waits for approval is not delivered: it has no key yet.
#[tokio::test]
async fn early_answers_are_not_sealed() {
    let server = Hook::each(|_| json!({ "configuration": "level=3" })).serve().await;
    let providers = providers(Strongbox::default());
    let mut question = questions(&providers, &provider(&server, ""), &["h1"]).remove(0);
    question.hook.as_mut().unwrap().event = HookEvent::EnrollmentRequest;
    question.key = HostKey::new([0; 32]);
    let reply = call_with(&providers, &question).await;
    assert!(matches!(reply.outcome, Outcome::Content { content: None, .. }), "{reply:?}");
}

#[tokio::test]
async fn tests_leave_nothing_behind() {
    let hook = Hook::each(|_| json!({ "configuration": "level=3" }));
    let server = hook.serve().await;
    let (providers, provider) = (providers(Strongbox::default()), provider(&server, ""));
    providers.draw_token(&provider.name).unwrap();
    let mut uuids = Vec::new();
    for _ in 0..2 {
        let outcome = providers.apart().poll_once(&provider, &host("h1")).await;
        let HookOutcome::Content(Given { bytes, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(bytes.as_slice(), b"level=3");
        let calls = hook.take().remove(0);
        assert_eq!(
            (&calls[0]["event"], &calls[0]["last_config_hash"]),
            (&json!("ON_DEVICE_POLL"), &json!(""))
        );
        assert_eq!(calls[0]["device_metadata"]["name"], "h1");
        let token = calls[0]["callback_token"].as_str().unwrap();
        assert_eq!(token, "", "the one that was drawn does not count yet");
        uuids.push(calls[0]["event_uuid"].clone());
    }
    assert_ne!(uuids[0], uuids[1]);
}
