//! Call-backs of providers of kind `hooks`, and what is shown of such providers.

use std::collections::BTreeSet;

use os_upgrade_kernel::fact::{ConfigFact, DesiredFact, EnrolmentFact};
use os_upgrade_kernel::{Configures, Fact};
use os_upgrade_protocol::{ApplicationName, HostKey};
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::{CALLBACK_BYTES_MAX, CALLBACK_MEMBERS_MAX, CallbackToken, HookEvent};

use super::*;
use crate::http::call_back_rate::BURST;

const KEY: HostKey = HostKey::new([1; 32]);
const PATH: &str = "/v1/hooks/callback";

/// The call-back token of this number: `app` has the first two, `net` the third.
pub(super) fn token(number: u8) -> CallbackToken {
    CallbackToken::from_bytes(&[number; 32])
}

fn provider(name: &str) -> ProviderName {
    ProviderName::new(name).unwrap()
}

/// A site whose provider `app` is asked about h01 and h02, and about h04 once it has a key, and `net` about h03.
pub(super) fn site() -> TestSite {
    let mut site = TestSite::new(["h01", "h02", "h03", "h04"]);
    let of = |name: &str, hosts: &[&str]| {
        json!({
            "name": name, "kind": "hooks", "url": "https://hooks.example/", "selector": { "names": hosts },
        })
    };
    let files = json!({ "name": "files", "kind": "http", "url": "https://files.example/{host}" });
    let providers = [of("app", &["h01", "h02", "h04"]), of("net", &["h03"]), files];
    let config = Some(serde_json::from_value(json!({ "config-providers": providers })).unwrap());
    let replaced = ConfigFact::Replaced { config, actor: "eve".to_owned(), difference: Vec::new() };
    let mut facts: Vec<Fact> = vec![replaced.into()];
    for name in ["h01", "h02", "h03"] {
        let application = ApplicationName::new("os-upgrade-test").unwrap();
        site.view.hosts.get_mut(&host(name)).unwrap().configures = Some(Configures { application, key: KEY });
        facts.push(EnrolmentFact::KeyPinned { host: host(name), key: KEY, actor: None }.into());
    }
    for (name, number) in [("app", 1), ("app", 2), ("net", 3)] {
        let digest = token(number).digest();
        facts.push(DesiredFact::HookTokenDrawn { provider: provider(name), digest }.into());
    }
    for fact in facts {
        site.state.apply(site.now, &fact).unwrap();
    }
    site
}

async fn call_back(api: &TestApi, token: &str, body: &str) -> (u16, HeaderMap, Value) {
    let request = Request::post(PATH).header("authorization", format!("Bearer {token}"));
    let (status, headers, body) = api.send(request.body(Body::from(body.to_owned())).unwrap()).await;
    (status, headers, serde_json::from_str(&body).unwrap())
}

/// A member of a call-back.
fn update(provider: &str, hosts: &[&str]) -> Value {
    json!({ "event": "ON_CONFIG_UPDATE", "event_uuid": "e-1", "config_name": provider, "device_names": hosts })
}

/// The hosts of which `app` is to be told a new spec.
fn told_of_specs(api: &TestApi) -> BTreeSet<String> {
    let published = api.site.published();
    let devices = &published.state.desired.hooks[&provider("app")].devices;
    let is_told = |host: &&HostName| devices[*host].pending.contains_key(&HookEvent::DeviceSpecUpdate);
    devices.keys().filter(is_told).map(ToString::to_string).collect()
}

fn invalid(member: usize, detail: &str) -> Value {
    json!({ "member": member, "reason": "invalid", "detail": detail })
}

fn unknown(member: usize, host: &str) -> Value {
    let detail = "provider app has no such device";
    json!({ "member": member, "device-name": host, "reason": "unknown-device", "detail": detail })
}

#[tokio::test]
async fn call_backs_name_hosts_of_their_provider() {
    let no_key = json!({
        "member": 0, "device-name": "h04", "reason": "no-key",
        "detail": "no key of the device is approved yet: the provider is asked once one is",
    });
    let not_its_own =
        json!({ "member": 0, "reason": "not-its-own", "detail": "the token is that of provider app" });
    let hyphen =
        json!({ "event": "ON_CONFIG_UPDATE", "config-name": "app", "device_names": ["h01"], "more": 1 });
    let event = "`event` must be ON_CONFIG_UPDATE";
    let cases = [
        (json!([update("app", &["h01"])]), vec!["h01"], vec![]),
        (json!([hyphen]), vec!["h01"], vec![]),
        (json!([update("app", &["h02", "h01", "h02"])]), vec!["h01", "h02"], vec![]),
        (json!([update("app", &["h01"]), update("app", &["h01"])]), vec!["h01"], vec![]),
        (json!([]), vec![], vec![]),
        (json!([update("net", &["h03"])]), vec![], vec![not_its_own.clone()]),
        (json!([update("none", &["h01"]), update("app", &["h02"])]), vec!["h02"], vec![not_its_own]),
        (
            json!([update("app", &["h03", "h04", "h99", "h01"])]),
            vec!["h01"],
            vec![unknown(0, "h03"), no_key, unknown(0, "h99")],
        ),
        (
            json!([7, { "event": "ON_DEVICE_POLL" }, update("app", &[]), update("app", &["h01"])]),
            vec!["h01"],
            vec![
                invalid(0, "it is not an object with each key once"),
                invalid(1, event),
                invalid(2, "`device_names` must be an array with at least one name"),
            ],
        ),
        (
            json!([update("app", &["h01", ""])]),
            vec![],
            vec![invalid(0, "`device_names` has something at index 1 that is not the name of a device")],
        ),
    ];
    for (body, hosts, refused) in cases {
        let api = TestApi::new(site(), &[]).await;
        let accepted = if hosts.is_empty() {
            json!([])
        } else {
            json!([{ "config-name": "app", "device-names": hosts }])
        };
        let (status, _, answer) = call_back(&api, token(1).as_str(), &body.to_string()).await;
        assert_eq!((status, answer), (202, json!({ "accepted": accepted, "refused": refused })), "{body}");
        let expected: BTreeSet<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        assert_eq!(told_of_specs(&api), expected, "{body}");
    }
}

/// A provider may learn late that a host has left, or that it is no longer asked about it.
#[tokio::test]
async fn late_call_backs_name_hosts_that_have_left() {
    let actor = || "eve".to_owned();
    let withdrawn = EnrolmentFact::HostWithdrawn {
        host: host("h01"),
        actor: actor(),
        reason: "sold".to_owned(),
        forgotten: false,
    };
    let removed = EnrolmentFact::HostRemoved {
        host: host("h01"),
        actor: actor(),
        reason: "scrapped".to_owned(),
        announced: 0,
    };
    let mut config = site().state.config.as_deref().cloned().unwrap();
    let app = config.config_providers.iter_mut().find(|it| it.name == provider("app")).unwrap();
    app.selector = Some(serde_json::from_value(json!({ "names": ["h02"] })).unwrap());
    let unselected = ConfigFact::Replaced { config: Some(config), actor: actor(), difference: Vec::new() };
    for fact in [Fact::from(withdrawn), removed.into(), unselected.into()] {
        let mut site = site();
        site.state.apply(site.now, &fact).unwrap();
        let api = TestApi::new(site, &[]).await;
        let body = json!([update("app", &["h01", "h02"])]).to_string();
        let (status, _, answer) = call_back(&api, token(1).as_str(), &body).await;
        let accepted = json!([{ "config-name": "app", "device-names": ["h02"] }]);
        let expected = json!({ "accepted": accepted, "refused": [unknown(0, "h01")] });
        assert_eq!((status, answer), (202, expected), "{fact:?}");
        assert_eq!(told_of_specs(&api), BTreeSet::from(["h02".to_owned()]), "{fact:?}");
    }
}

#[tokio::test]
async fn call_backs_need_a_token_of_a_provider() {
    let api = TestApi::new(site(), &[]).await;
    let body = json!([update("app", &["h01"])]).to_string();
    for number in [1, 2] {
        assert_eq!(call_back(&api, token(number).as_str(), &body).await.0, 202, "each of the last counts");
    }
    let (_, _, answer) = call_back(&api, token(3).as_str(), &body).await;
    assert_eq!((&answer["accepted"], &answer["refused"][0]["reason"]), (&json!([]), &json!("not-its-own")));
    for presented in ["osup_AAAA", token(4).as_str(), &token(1).digest(), "", "x y"] {
        let (status, headers, answer) = call_back(&api, presented, &body).await;
        assert_eq!((status, answer), (401, error("the token is not valid")), "{presented:?}");
        assert!(headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"), "{presented:?}");
    }
    let missing = error("this needs a token: send it as Authorization: Bearer <token>");
    assert_eq!(api.call(&format!("POST {PATH}"), &body).await, (401, missing));
    let (_, _, metrics) = api.send(build("GET /metrics", "", "")).await;
    for line in [
        r#"os_upgrade_provider_call_backs_total{provider="app",outcome="accepted"} 2"#,
        r#"os_upgrade_provider_call_backs_total{provider="net",outcome="refused"} 1"#,
        r#"os_upgrade_api_denied_total{reason="invalid"} 5"#,
        r#"os_upgrade_api_denied_total{reason="missing"} 1"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
}

#[tokio::test]
async fn unreadable_call_backs_are_refused() {
    let api = TestApi::new(site(), &[]).await;
    let many = format!("[{}0]", "0,".repeat(CALLBACK_MEMBERS_MAX));
    let large = " ".repeat(CALLBACK_BYTES_MAX + 1);
    for (body, status, message) in [
        ("", 400, "a call-back is a JSON array: "),
        ("{}", 400, "a call-back is a JSON array: "),
        ("[", 400, "a call-back is a JSON array: "),
        ("[] []", 400, "a call-back is a JSON array: "),
        (many.as_str(), 400, "a call-back has at most 1000 elements"),
        (large.as_str(), 413, "the body exceeds 1048576 bytes"),
    ] {
        let (found, _, answer) = call_back(&api, token(1).as_str(), body).await;
        let found_message = answer["errors"][0]["error-message"].as_str().unwrap();
        assert_eq!((found, found_message.starts_with(message)), (status, true), "{answer}");
    }
    let with = async |method: &str, path: &str, content_type: &str| {
        let mut request = build(&format!("{method} {path}"), content_type, "[]");
        let authorization = format!("Bearer {}", token(1).as_str());
        request.headers_mut().insert("authorization", authorization.parse().unwrap());
        api.send(request).await
    };
    for content_type in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
        assert_eq!(with("POST", PATH, content_type).await.0, 202, "{content_type}");
    }
    assert_eq!(with("POST", "/v1/hooks/callback?validate=true", "application/json").await.0, 400);
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        let (status, headers, _) = with(method, PATH, "application/json").await;
        assert_eq!((status, &headers["allow"]), (405, &"POST".parse().unwrap()), "{method}");
    }
    let nothing = "nothing exists at /v1/hooks/other";
    let (status, _, body) = with("POST", "/v1/hooks/other", "application/json").await;
    assert_eq!((status, body), (404, error(nothing).to_string()));
}

#[tokio::test]
async fn call_backs_are_limited_by_provider() {
    let api = TestApi::new(site(), &[]).await;
    let (app, net) = (token(1), token(3));
    let mut answers = Vec::new();
    // On a busy machine seconds may pass.
    while answers.len() < 1_000
        && answers.last().is_none_or(|(status, ..): &(u16, HeaderMap, Value)| *status == 202)
    {
        answers.push(call_back(&api, app.as_str(), "[]").await);
    }
    assert!(answers.len() > BURST.get() as usize, "{}", answers.len());
    let (status, headers, answer) = answers.last().unwrap();
    let expected =
        error("provider app calls back too often: about fewer hosts, or with more of them in one call-back");
    assert_eq!((*status, answer), (429, &expected));
    assert_eq!(headers["retry-after"], "1");
    assert_eq!(call_back(&api, net.as_str(), "[]").await.0, 202);
}

/// Nothing is compared with tokens of a state that is not read yet, and what is not journaled is not accepted.
#[tokio::test]
async fn call_backs_wait_for_the_site() {
    let (starting, _calls) = TestApi::silent(Readiness::NotReady("starting".to_owned())).await;
    let (status, _, answer) = call_back(&starting, token(1).as_str(), "[]").await;
    assert_eq!((status, answer), (503, not_done(&NotDone::unchanged("starting"))));
    let (directory, projector) = store().await;
    let shown = Arc::new(ArcSwap::from_pointee(published(&site())));
    let (sender, _calls) = mpsc::channel(8);
    let handle = SiteHandle::new(shown, sender).with_timeout(Duration::from_millis(20));
    let silent = TestApi::over(handle, projector.history().await.unwrap(), directory);
    let body = json!([update("app", &["h01"])]).to_string();
    let (status, _, answer) = call_back(&silent, token(1).as_str(), &body).await;
    assert_eq!((status, &answer["errors"][0]["error-info"]["outcome"]), (503, &json!("unknown")));
}

#[tokio::test]
async fn tokens_are_rotated() {
    let api = TestApi::new(site(), &[]).await;
    let rotate = async |name: &str| {
        api.call(&format!("POST /v1/state/config-providers/{name}/rotate-token"), "").await
    };
    let (status, _) = api.call("POST /v1/state/config-providers/app/rotate-token?validate=true", "").await;
    assert_eq!(status, 204);
    assert_eq!(call_back(&api, token(2).as_str(), "[]").await.0, 202);
    assert_eq!(rotate("app").await.0, 204);
    for number in [1, 2] {
        assert_eq!(call_back(&api, token(number).as_str(), "[]").await.0, 401);
    }
    assert_eq!(call_back(&api, token(3).as_str(), "[]").await.0, 202);
    assert_eq!(rotate("files").await.0, 409);
    assert_eq!(rotate("none").await.0, 404);
}

#[tokio::test]
async fn hooks_are_shown() {
    let api = TestApi::new(site(), &[]).await;
    let events = HookEvent::ALL.map(HookEvent::as_str);
    assert_eq!(events, os_upgrade_api_types::text::HOOK_EVENTS);
    let (_, list) = api.call("GET /v1/state/config-providers", "").await;
    let shown = |name: &str| {
        let providers = list["providers"].as_array().unwrap();
        providers.iter().find(|provider| provider["name"] == name).unwrap()
    };
    let hooks = json!({ "events": events, "batch-size": 1, "tokens": 2, "pending": 2 });
    assert_eq!((&shown("app")["kind"], &shown("app")["hooks"]), (&json!("hooks"), &hooks));
    assert_eq!((&shown("files")["kind"], &shown("files")["hooks"]), (&json!("http"), &Value::Null));
    let (_, one) = api.call("GET /v1/state/config-providers/app", "").await;
    let pending: Vec<_> =
        one["on"].as_array().unwrap().iter().map(|on| (&on["host"], &on["pending-events"])).collect();
    let join = json!(["ON_FLEET_JOIN"]);
    assert_eq!(pending, [(&json!("h01"), &join), (&json!("h02"), &join), (&json!("h04"), &Value::Null),]);
    assert!(!list.to_string().contains(&token(1).digest()), "{list}");
    let mut found = metrics::samples(&api, &Options::default(), &["os_upgrade_provider_pending"]).await;
    found.retain(|line| !line.ends_with(" 0"));
    assert_eq!(
        found,
        [
            r#"os_upgrade_provider_pending_events{provider="app",event="ON_FLEET_JOIN"} 2"#,
            r#"os_upgrade_provider_pending_events{provider="net",event="ON_FLEET_JOIN"} 1"#,
        ]
    );
}
