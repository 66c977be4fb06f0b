//! Providers of configuration: how they are tested, and how far hosts are.

use chrono::TimeDelta;
use os_upgrade_kernel::fact::{ConfigFact, DesiredFact, EnrolmentFact};
use os_upgrade_kernel::{ConfigProvider, Configures, Fact, Poll, Settings};
use os_upgrade_protocol::{ApplicationName, Applied, AppliedItem, HostKey, ItemId, ItemKind, Revision};
use os_upgrade_provider_rules::{Failure, ProviderName};
use os_upgrade_site::provider_tests::{ProviderTests, Test, TestOutcome, Tested, TestsProviders};

use super::*;

const KEY: HostKey = HostKey::new([1; 32]);
const REFUSED: &str = "it refuses the request with status 403: check `url` and `credentials`";

fn app() -> ProviderName {
    ProviderName::new("app").unwrap()
}

fn apply(site: &mut TestSite, fact: impl Into<Fact>) {
    site.state.apply(site.now, &fact.into()).unwrap();
}

/// A site with h01, which has applied what `app` gave, and h02, which has not said so yet.
fn site() -> TestSite {
    let mut site = TestSite::new(["h01", "h02"]);
    let provider = json!({ "name": "app", "kind": "http", "url": "https://files.example/{host}" });
    let config = Some(serde_json::from_value(json!({ "config-providers": [provider] })).unwrap());
    apply(&mut site, ConfigFact::Replaced { config, actor: "eve".to_owned(), difference: Vec::new() });
    let (item, sealed) = (ItemId::new("Zm9v").unwrap(), Revision { epoch: 0, sequence: 1 });
    for name in ["h01", "h02"] {
        let application = ApplicationName::new("os-upgrade-test").unwrap();
        site.view.hosts.get_mut(&host(name)).unwrap().configures = Some(Configures { application, key: KEY });
        apply(&mut site, EnrolmentFact::KeyPinned { host: host(name), key: KEY, actor: None });
        let (item, fingerprint) = (item.clone(), None);
        let stored = DesiredFact::ItemStored {
            host: host(name),
            provider: app(),
            item,
            bytes: 600,
            sealed,
            fingerprint,
            hash: None,
        };
        apply(&mut site, stored);
    }
    let (kind, name) = (ItemKind::Configuration, "app".to_owned());
    let told = AppliedItem { kind, name, id: Some(item), error: None, unit: None };
    let applied = Applied {
        site: site.state.settings.site.clone(),
        revision: sealed,
        items: vec![told],
        refused: None,
    };
    site.view.applied.insert(host("h01"), Arc::new(applied));
    site
}

/// Nothing of `app` but a failure about h01, and that for ten minutes.
fn failed(site: &mut TestSite) {
    let failure = Failure::Refused { status: 403 };
    let fact = DesiredFact::ProviderFailed { provider: app(), host: host("h01"), failure: failure.clone() };
    apply(site, fact);
    let poll =
        Poll { confirmed_at: Some(site.now - TimeDelta::minutes(10)), failures: 3, failure: Some(failure) };
    site.view.polls.get_or_insert_default().entry(app()).or_default().insert(host("h01"), poll);
}

#[derive(Debug)]
struct Says(TestOutcome);

impl TestsProviders for Says {
    fn test<'a>(&'a self, provider: &'a ConfigProvider, host: &'a HostName) -> Test<'a> {
        assert_eq!((provider.name.as_str(), host.as_str()), ("app", "h01"));
        Box::pin(std::future::ready(Tested { outcome: self.0.clone(), took: Duration::from_millis(7) }))
    }
}

#[tokio::test]
async fn providers_are_tested() {
    let api = TestApi::new(site(), &[]).await;
    let test = async |says: Option<TestOutcome>, request: &str, body: &str| {
        let provider_tests = says.map(|says| ProviderTests::new(Says(says))).unwrap_or_default();
        let options = Options { provider_tests, ..Options::default() };
        let router = router(api.site.clone(), api.history.clone(), Authenticator::default(), &options);
        let response = router.oneshot(build(request, "application/json", body)).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let h01 = r#"{"host":"h01"}"#;
    let path = "POST /v1/state/config-providers/app/test";
    for (says, expected) in [
        (TestOutcome::Content { bytes: 412 }, json!({ "outcome": "content", "bytes": 412, "millis": 7 })),
        (TestOutcome::Nothing, json!({ "outcome": "nothing", "millis": 7 })),
        (TestOutcome::Unchanged, json!({ "outcome": "unchanged", "millis": 7 })),
        (
            TestOutcome::Failed(Failure::Refused { status: 403 }),
            json!({ "outcome": "failed", "failure": REFUSED, "millis": 7 }),
        ),
    ] {
        assert_eq!(test(Some(says), path, h01).await, (200, expected));
    }
    assert_eq!(test(None, path, h01).await.0, 503);
    let unknown = test(Some(TestOutcome::Nothing), path, r#"{"host":"h99"}"#).await;
    assert_eq!(unknown, (404, error("there is no host \"h99\"")));
    let unknown = test(Some(TestOutcome::Nothing), "POST /v1/state/config-providers/net/test", h01).await;
    let message = "there is no provider net: `os-upgrade providers list` shows those that there are";
    assert_eq!(unknown, (404, error(message)));
}

#[tokio::test]
async fn hosts_have_configurations() {
    let api = TestApi::new(site(), &[]).await;
    for (name, state) in [("h01", "applied"), ("h02", "pending")] {
        let (_, shown) = api.call(&format!("GET /v1/state/os-upgrade/hosts/{name}"), "").await;
        let expected = json!([{ "provider": "app", "state": state, "since": "2026-11-21T05:00:00Z" }]);
        assert_eq!(shown["configurations"], expected, "{shown}");
    }
}

/// h01 could not apply what it is to have since 2020.
fn failing_on_host(site: &mut TestSite) {
    let items = &mut site.state.desired.hosts.get_mut(&host("h01")).unwrap().items;
    items.get_mut(&app()).unwrap().since = "2020-01-01T00:00:00Z".parse().unwrap();
    let mut applied = Applied::clone(&site.view.applied[&host("h01")]);
    applied.items[0].id = None;
    applied.items[0].error = Some("no such\ndirectory".to_owned());
    site.view.applied.insert(host("h01"), Arc::new(applied));
}

#[tokio::test]
async fn state_has_what_hosts_fail_to_apply() {
    let mut site = site();
    failing_on_host(&mut site);
    let api = TestApi::new(site, &[]).await;
    let failed = json!({
        "provider": "app", "host": "h01", "error": "no such directory", "since": "2020-01-01T00:00:00Z", "count": 1,
    });
    let expected = json!({ "delivery": { "failed-configurations": [failed] } });
    assert_eq!(api.call("GET /v1/state/os-upgrade?fields=delivery", "").await, (200, expected));
}

#[tokio::test]
async fn what_gone_providers_gave_is_shown() {
    let mut site = site();
    let config = Some(serde_json::from_value(json!({ "config-providers": [] })).unwrap());
    apply(&mut site, ConfigFact::Replaced { config, actor: "eve".to_owned(), difference: Vec::new() });
    let api = TestApi::new(site, &[]).await;
    let (_, list) = api.call("GET /v1/state/config-providers", "").await;
    assert_eq!(
        list,
        json!({ "providers": [], "left-over": [{ "name": "app", "hosts": 2, "first": "h01" }] })
    );
    let (_, shown) = api.call("GET /v1/state/os-upgrade/hosts/h01", "").await;
    let [left_over] = shown["configurations"].as_array().unwrap().as_slice() else { panic!("{shown}") };
    assert_eq!((&left_over["left-over"], &left_over["state"]), (&json!(true), &json!("applied")));
    let detail = left_over["detail"].as_str().unwrap();
    assert!(detail.starts_with("no provider gives it any more, and the host keeps it"), "{detail}");
}

/// Hosts may report any names of configurations, and anybody who can publish reports any names of hosts.
#[tokio::test]
async fn made_up_names_crowd_nothing_out() {
    let mut site = site();
    let config = Some(serde_json::from_value(json!({ "config-providers": [] })).unwrap());
    apply(&mut site, ConfigFact::Replaced { config, actor: "eve".to_owned(), difference: Vec::new() });
    apply(&mut site, ConfigFact::SettingsAdopted { settings: Settings::default() });
    let mut applied = Applied::clone(&site.view.applied[&host("h01")]);
    let reported = applied.items[0].clone();
    applied.items.extend((10..50).map(|n| AppliedItem { name: format!("a{n}"), ..reported.clone() }));
    for name in ["h01", "made-up"] {
        site.view.applied.insert(host(name), Arc::new(applied.clone()));
    }
    let api = TestApi::new(site, &[]).await;
    let (_, list) = api.call("GET /v1/state/config-providers", "").await;
    let listed = list["left-over"].as_array().unwrap();
    let expected = [
        json!({ "name": "app", "hosts": 2, "first": "h01" }),
        json!({ "name": "a10", "hosts": 1, "first": "h01" }),
    ];
    assert_eq!((listed.len(), &listed[..2]), (32, &expected[..]));
    let (_, shown) = api.call("GET /v1/state/os-upgrade/hosts/h01", "").await;
    let shown = shown["configurations"].as_array().unwrap();
    assert_eq!((shown.len(), &shown[0]["provider"]), (32, &json!("app")));
}

/// What a host has applied is for another file than the provider names by now.
#[tokio::test]
async fn another_file_is_told() {
    let mut site = site();
    let provider = json!({
        "name": "app", "kind": "http", "url": "https://files.example/{host}", "path": "/etc/app.conf",
    });
    let config = Some(serde_json::from_value(json!({ "config-providers": [provider] })).unwrap());
    apply(&mut site, ConfigFact::Replaced { config, actor: "eve".to_owned(), difference: Vec::new() });
    let api = TestApi::new(site, &[]).await;
    let (_, shown) = api.call("GET /v1/state/os-upgrade/hosts/h01", "").await;
    let expected = json!([{
        "provider": "app",
        "state": "pending",
        "detail": "it is for the file that the provider named before, until the provider gives it again",
        "since": "2026-11-21T05:00:00Z",
    }]);
    assert_eq!(shown["configurations"], expected, "{shown}");
}

#[tokio::test]
async fn state_has_what_keeps_configuration_from_hosts() {
    let request = "GET /v1/state/os-upgrade?fields=delivery";
    let fine = TestApi::new(site(), &[]).await;
    assert_eq!(fine.call(request, "").await, (200, json!({})));
    let mut site = site();
    failed(&mut site);
    site.state.restored = 1_790_000_000;
    let ahead = Applied {
        revision: Revision { epoch: u64::MAX, sequence: 1 },
        ..Applied::clone(&site.view.applied[&host("h01")])
    };
    site.view.applied.insert(host("h01"), Arc::new(ahead));
    let api = TestApi::new(site, &[]).await;
    let crossed_site = Some("hall-2".to_owned());
    api.shown.store(Arc::new(PublishedState { crossed_site, ..PublishedState::clone(&api.shown.load()) }));
    let provider = json!({
        "name": "app", "host": "h01", "failure": REFUSED, "since": "2026-11-21T05:00:00Z",
    });
    let expected = json!({ "delivery": {
        "failed-providers": [provider], "withheld": 1, "ahead": { "hosts": 1, "first": "h01" }, "crossed-site": "hall-2",
    } });
    assert_eq!(api.call(request, "").await, (200, expected));
}

#[tokio::test]
async fn providers_have_metrics() {
    let prefixes =
        ["os_upgrade_provider", "os_upgrade_withheld", "os_upgrade_crossed", "os_upgrade_failed_conf"];
    let some = async |site: TestSite| {
        let api = TestApi::new(site, &[]).await;
        let mut found = metrics::samples(&api, &Options::default(), &prefixes).await;
        found.retain(|line| !line.ends_with(" 0"));
        found
    };
    let hosts = [
        r#"os_upgrade_provider_hosts{provider="app",state="applied"} 1"#,
        r#"os_upgrade_provider_hosts{provider="app",state="pending"} 1"#,
    ];
    assert_eq!(some(site()).await, hosts);
    let mut failing = site();
    failed(&mut failing);
    let expected = [
        r#"os_upgrade_provider_failed{provider="app"} 1"#,
        r#"os_upgrade_provider_failing_hosts{provider="app"} 1"#,
        hosts[0],
        hosts[1],
        // The samples are of an hour later.
        r#"os_upgrade_provider_oldest_confirmation_seconds{provider="app"} 4200"#,
    ];
    assert_eq!(some(failing).await, expected);
    let mut failing = site();
    failing_on_host(&mut failing);
    let expected = [
        "os_upgrade_failed_configurations 1",
        r#"os_upgrade_provider_hosts{provider="app",state="failed"} 1"#,
        hosts[1],
    ];
    assert_eq!(some(failing).await, expected);
}
