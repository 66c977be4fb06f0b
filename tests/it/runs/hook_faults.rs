//! Providers of kind `hooks` that lie, are away or call back at the wrong moment, and of which events they are told.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::hook_server::{Given, HookServer, Lie, Script, device};
use harness::host::{APPLICATION, Host};
use harness::orchestrator::{AUTO_APPROVE, Orchestrator};
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

const PROVIDER: &str = "app";
const HOST: &str = "h01";
const JOIN: &str = "ON_FLEET_JOIN";
const SPEC_UPDATE: &str = "ON_DEVICE_SPEC_UPDATE";
const POLL: &str = "ON_DEVICE_POLL";
const ENROLLMENT: &str = "ON_ENROLLMENT_REQUEST";

/// A site with a host that gives configurations to a script, and a provider that calls that of the host `first`.
struct Hooked {
    site: Site,
    hosts: Vec<Host>,
    server: HookServer,
}

impl Hooked {
    /// The provider is configured with `more`; the hosts run, and wait for approval.
    async fn start(names: &[&str], more: Value) -> Self {
        let (mut site, server) = (Site::start().await, HookServer::start().await);
        site.orchestrator.remove_environment(AUTO_APPROVE);
        site.orchestrator.terminate().await;
        site.orchestrator.start_ready().await;
        let hosts = names.iter().map(|name| site.host(name).with_configuration_scripts()).collect();
        let mut hooked = Self { site, hosts, server };
        hooked.configure(more).await;
        for host in &mut hooked.hosts {
            host.start();
        }
        for name in names {
            hooked.await_enrolment(name, "pending").await;
        }
        hooked
    }

    /// The same with approved hosts, each of which has the configuration `first`.
    async fn joined(names: &[&str], more: Value) -> Self {
        let hooked = Self::start(names, more).await;
        hooked.server.usually(Script::of(Given::text("first")));
        hooked.approve(names).await;
        for host in &hooked.hosts {
            host.await_script("configure app first").await;
        }
        hooked
    }

    async fn configure(&self, more: Value) {
        let mut provider = json!({
            "name": PROVIDER, "kind": "hooks", "url": self.server.url(), "timeout": "10s", "poll-interval": "1h",
        });
        let Value::Object(more) = more else { panic!("{more}") };
        provider.as_object_mut().unwrap().extend(more);
        let config =
            json!({ "worker-applications": [{ "name": APPLICATION }], "config-providers": [provider] });
        let (status, answer) =
            self.site.rest().call(Method::PUT, "/v1/config/os-upgrade", &config.to_string()).await;
        assert!(status < 300, "{answer}");
    }

    async fn await_enrolment(&self, host: &str, word: &str) {
        eventually(&format!("{host} to be {word}"), async || {
            (self.site.rest().try_host(host).await?["enrolment"] == word).then_some(())
        })
        .await;
    }

    async fn approve(&self, names: &[&str]) {
        self.site.orchestrator.done(&[&["hosts", "approve"][..], names].concat()).await;
    }

    async fn poll(&self) {
        self.site.orchestrator.done(&["providers", "poll", PROVIDER, "--host", HOST]).await;
    }

    /// Waits until the provider has failed for the host, and this says how.
    async fn await_failure(&self, failure: &str) {
        eventually(&format!("the failure {failure:?}"), async || {
            let shown = self.site.orchestrator.done(&["providers", "show", PROVIDER, "-o", "json"]).await;
            let shown: Value = serde_json::from_str(&shown).unwrap();
            let mut details = shown["on"].as_array()?.iter().filter_map(|on| on["detail"].as_str());
            details.any(|detail| detail.contains(failure)).then_some(())
        })
        .await;
    }

    /// Waits until the provider has said something of every host, and nothing fails.
    async fn await_confirmed(&self) {
        eventually("the provider to answer", async || {
            let (_, list) = self.site.rest().get("/v1/state/config-providers").await;
            let provider = &list["providers"][0];
            (provider["failing"] == 0 && provider["confirmed"] == provider["hosts"]).then_some(())
        })
        .await;
    }

    /// Waits until every host has reported that it has what it is to have.
    async fn await_applied(&self) {
        eventually("the reports of the hosts", async || {
            let (_, list) = self.site.rest().get("/v1/state/config-providers").await;
            let provider = &list["providers"][0];
            (provider["applied"] == provider["hosts"]).then_some(())
        })
        .await;
    }

    /// The configurations that the host has been given, in order.
    fn configured(&self, host: usize) -> Vec<String> {
        let log = self.hosts[host].script_log().into_iter();
        log.filter_map(|line| line.strip_prefix("configure app ").map(str::to_owned)).collect()
    }

    /// The newest token of the provider, once it has one that is none of `known`.
    async fn new_token(&self, known: &[String]) -> String {
        eventually("another token", async || {
            self.server.tokens().into_iter().find(|token| !known.contains(token))
        })
        .await
    }

    /// Calls back at the site's own instance.
    async fn call_back(&self, token: &str, devices: &[&str]) -> (u16, Value) {
        self.server.call_back(&self.server.callback_endpoint(), token, PROVIDER, devices).await
    }
}

/// Each lie with the failure that it is told as.
fn lies() -> Vec<(Lie, &'static str)> {
    let status = |status| Lie::Status { status, retry_after: None };
    vec![
        (status(401), "it refuses the request with status 401"),
        (status(404), "it refuses the request with status 404"),
        (status(503), "it is out of order: status 503"),
        (status(429), "it wants to be asked less often (status 429)"),
        (status(206), "status 206 has no meaning here"),
        (Lie::Redirect, "it redirects with status 302, which is not followed: give the final URL"),
        (Lie::Page, "the answer is no JSON array"),
        (Lie::Body("{}"), "the answer is no JSON array"),
        (Lie::Body("[{}"), "the answer is no JSON array"),
        (Lie::Body("[]"), "the answer says nothing about this host"),
        (Lie::Cut, "the connection was lost before the answer was complete"),
        (Lie::Huge, "the answer has more than 8388608 bytes"),
        (Lie::Missing, "the answer says nothing about this host"),
        (Lie::OtherUuid, "the answer says nothing about this host"),
        (Lie::OtherDevice("h02"), "its `device_name` is not that of the call"),
        (Lie::Doubled(json!("second")), "the provider answers the same call twice"),
        (Lie::OtherName, "its `config_name` is that of another provider"),
        (Lie::OtherEvent, "its `event` is not that of the call"),
        (Lie::Silence, "it did not answer in time"),
    ]
}

/// Configurations that cannot be used, each with the failure that it is told as.
fn bad_configurations() -> Vec<(Value, &'static str)> {
    let ignition = |more: Value| {
        let mut configuration = json!({ "ignition": { "version": "3.3.0" } });
        configuration.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        configuration
    };
    let file = |path: &str, mode: u32, content: &str| json!({ "path": path, "mode": mode, "content": content, "contentEncoding": "base64" });
    vec![
        (file("/etc/../passwd", 0o600, "eA=="), "the path of file 1 must be absolute"),
        (file("/etc/app", 0o4755, "eA=="), "the mode of file 1 must be from 0 to 511"),
        (file("/etc/app", 0o600, "%"), "is not base64"),
        (ignition(json!({ "passwd": { "users": [{ "name": "core" }] } })), "it uses passwd"),
        (
            ignition(json!({ "systemd": { "units": [{ "name": "a.service", "enabled": true }] } })),
            "it uses systemd",
        ),
    ]
}

/// Whatever a provider answers instead of what it should, its hosts keep what they have, and operators see why.
#[tokio::test]
async fn lies_change_nothing() {
    let hooked = Hooked::joined(&[HOST], json!({})).await;
    let (server, second) = (&hooked.server, Given::text("second"));
    for (lie, failure) in lies() {
        server.script(HOST, Script::lying(second.clone(), lie.clone()));
        hooked.poll().await;
        hooked.await_failure(failure).await;
        assert_eq!(hooked.configured(0), ["first"], "{lie:?}");
    }
    for (configuration, failure) in bad_configurations() {
        server.script(HOST, Script::of(Given::Configuration(configuration.clone())));
        hooked.poll().await;
        hooked.await_failure(failure).await;
        assert_eq!(hooked.configured(0), ["first"], "{configuration}");
    }
    let nonsense = Script { poll_interval: Some(json!("often")), ..Script::of(second.clone()) };
    server.script(HOST, nonsense);
    hooked.poll().await;
    hooked.await_failure("poll_interval").await;
    assert_eq!(hooked.configured(0), ["first"]);
    // What is asked for is held within bounds.
    server.script(HOST, Script { poll_interval: Some(json!(0)), ..Script::of(second) });
    hooked.poll().await;
    hooked.hosts[0].await_script("configure app second").await;
    eventually("the shortest poll interval", async || {
        let facts = hooked.site.journal().await;
        facts.iter().any(|fact| fact["type"] == "hook-answered" && fact["poll-interval"] == 60).then_some(())
    })
    .await;
    assert_eq!(server.most_at_once(), 1);
}

/// After `Retry-After` a provider is left alone for as long as it wants, also by operators.
#[tokio::test]
async fn pauses_are_kept() {
    let hooked = Hooked::joined(&[HOST], json!({})).await;
    let status = Lie::Status { status: 503, retry_after: Some(3) };
    hooked.server.script(HOST, Script::lying(Given::text("second"), status));
    hooked.poll().await;
    hooked.await_failure("it is out of order: status 503").await;
    hooked.server.script(HOST, Script::of(Given::text("second")));
    hooked.poll().await;
    hooked.hosts[0].await_script("configure app second").await;
    let arrivals: Vec<_> = hooked.server.calls().iter().map(|call| call.arrived).collect();
    let [.., failed, answered] = arrivals[..] else { panic!("{arrivals:?}") };
    // The pause counts from the answer, which is a moment after the call.
    let pause = answered - failed;
    assert!(pause >= Duration::from_secs(3), "{pause:?}");
}

/// What is about nobody who was asked about, or comes after a 304 in its connection, reaches no host.
#[tokio::test]
async fn answers_reach_nobody_else() {
    let hooked = Hooked::joined(&["h01", "h02"], json!({ "batch-size": 10 })).await;
    let server = &hooked.server;
    let foreign = Lie::Foreign { device: "h02", configuration: json!("stolen") };
    server.script(HOST, Script::lying(Given::text("second"), foreign));
    hooked.poll().await;
    hooked.hosts[0].await_script("configure app second").await;
    let before = server.calls().len();
    server.script(HOST, Script::lying(Given::Unchanged, Lie::Pipelined(json!("stolen"))));
    hooked.poll().await;
    eventually("a call", async || (server.calls().len() > before).then_some(())).await;
    hooked.await_confirmed().await;
    server.script(HOST, Script::of(Given::Unchanged));
    hooked.poll().await;
    let calls = eventually("another call", async || {
        let calls = server.calls();
        (calls.len() > before + 1).then_some(calls)
    })
    .await;
    assert_ne!(calls[before].connection, calls[before + 1].connection, "what follows a 304 is not read");
    server.script(HOST, Script::of(Given::text("third")));
    hooked.poll().await;
    hooked.hosts[0].await_script("configure app third").await;
    // A batch of which one member is wrong is right about the others.
    server.script(HOST, Script::lying(Given::text("fourth"), Lie::OtherDevice("h02")));
    server.script("h02", Script::of(Given::text("fourth")));
    hooked.site.orchestrator.done(&["providers", "poll", PROVIDER]).await;
    hooked.hosts[1].await_script("configure app fourth").await;
    hooked.await_failure("its `device_name` is not that of the call").await;
    assert_eq!(hooked.configured(0), ["first", "second", "third"]);
    assert_eq!(hooked.configured(1), ["first", "fourth"]);
    assert_eq!(server.most_at_once(), 1);
}

/// What a provider is told of a device, and what it says of itself, when it is told.
#[tokio::test]
async fn providers_are_told_of_events() {
    let hooked = Hooked::start(&[HOST], json!({ "poll-interval": "10s" })).await;
    let server = &hooked.server;
    server.usually(Script::of(Given::text("early")));
    // It may prepare what a device will need; the device gets nothing before it is approved.
    server.await_told(ENROLLMENT, HOST, 0).await;
    server.usually(Script::of(Given::text("first")));
    hooked.approve(&[HOST]).await;
    let joined = server.await_told(JOIN, HOST, 0).await;
    hooked.hosts[0].await_script("configure app first").await;
    assert_eq!(joined["last_config_hash"], "");
    server.usually(Script::of(Given::Unchanged));
    let polled = server.await_told(POLL, HOST, 0).await;
    assert_ne!(polled["event_uuid"], joined["event_uuid"]);
    let rest = hooked.site.rest();
    rest.await_scheduled(&[HOST]).await;
    let before = server.told(SPEC_UPDATE, HOST).len();
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!(run.statuses(), [(HOST, "upgraded")].into());
    server.await_told(SPEC_UPDATE, HOST, before).await;
    assert_eq!(hooked.configured(0), ["first"], "nobody has got what was said early");
    assert_eq!(server.told(JOIN, HOST).len(), 1);
    let members =
        ["name", "labels", "owner", "annotations", "generation", "resourceVersion", "creationTimestamp"];
    let expected: BTreeSet<&str> = members.into();
    for call in server.calls() {
        assert_eq!(call.line, "POST /flightctl-hooks/ HTTP/1.1");
        assert_eq!(call.headers["accept"], "application/json");
        for member in &call.members {
            let metadata = member["device_metadata"].as_object().unwrap();
            let keys: BTreeSet<&str> = metadata.keys().map(String::as_str).collect();
            assert_eq!(keys, expected);
            assert_eq!((device(member), &metadata["owner"]), (HOST, &json!("Fleet/app")));
            assert_eq!(member["config_name"], PROVIDER);
        }
    }
    // An approval after a withdrawal is another one.
    hooked.site.orchestrator.done(&["hosts", "withdraw", HOST, "--reason", "moved"]).await;
    server.usually(Script::of(Given::text("again")));
    hooked.approve(&[HOST]).await;
    let again = server.await_told(JOIN, HOST, 1).await;
    assert_ne!(again["event_uuid"], joined["event_uuid"]);
    hooked.hosts[0].await_script("configure app again").await;
}

/// Call-backs count once each, wherever they arrive, and only with a token that is the provider's and about its devices.
#[tokio::test]
async fn call_backs_are_checked() {
    let hooked = Hooked::joined(&[HOST], json!({})).await;
    let mut follower = Orchestrator::new(&hooked.site.nats.url(), "");
    follower.start_ready().await;
    let server = &hooked.server;
    let token = hooked.new_token(&[]).await;
    let endpoint = format!("http://{}/v1/hooks/callback", hooked.site.orchestrator.address());
    assert_eq!(server.callback_endpoint(), endpoint);

    // Without need it changes nothing, however often it comes.
    hooked.await_applied().await;
    server.usually(Script::of(Given::Unchanged));
    for _ in 0..2 {
        let (status, answer) = hooked.call_back(&token, &[HOST, HOST]).await;
        let accepted = json!([{ "config-name": PROVIDER, "device-names": [HOST] }]);
        assert_eq!((status, &answer["accepted"]), (202, &accepted), "{answer}");
    }
    let told = server.await_told(SPEC_UPDATE, HOST, 0).await;
    assert_ne!(told["last_config_hash"], "", "the device has applied something");
    hooked.await_confirmed().await;
    assert_eq!(hooked.configured(0), ["first"]);

    // A device that is not its own is named, and spoils nothing.
    server.usually(Script::of(Given::text("second")));
    let (status, answer) = hooked.call_back(&token, &["h99", HOST]).await;
    assert_eq!((status, &answer["refused"][0]["device-name"]), (202, &json!("h99")), "{answer}");
    hooked.hosts[0].await_script("configure app second").await;
    // So is another configuration's.
    let (status, answer) = server.call_back(&endpoint, &token, "other", &[HOST]).await;
    assert_eq!((status, &answer["accepted"]), (202, &json!([])), "{answer}");

    // Another instance passes it on.
    server.usually(Script::of(Given::text("third")));
    let elsewhere = format!("http://{}/v1/hooks/callback", follower.address());
    assert_eq!(server.call_back(&elsewhere, &token, PROVIDER, &[HOST]).await.0, 202);
    hooked.hosts[0].await_script("configure app third").await;

    for wrong in ["", "wrong", &token.to_uppercase(), &format!("{token}x")] {
        assert_eq!(hooked.call_back(wrong, &[HOST]).await.0, 401, "{wrong:?}");
    }

    // A device that has left is as unknown as one that never came.
    hooked.site.orchestrator.done(&["hosts", "withdraw", HOST, "--reason", "moved"]).await;
    let (status, answer) = hooked.call_back(&token, &[HOST]).await;
    let reason = &answer["refused"][0]["reason"];
    assert_eq!(
        (status, &answer["accepted"], reason),
        (202, &json!([]), &json!("unknown-device")),
        "{answer}"
    );
}

/// Providers are sent the URL by which they reach the site, wherever its API listens.
#[tokio::test]
async fn call_backs_go_to_the_public_url() {
    let mut hooked = Hooked::joined(&[HOST], json!({})).await;
    let orchestrator = &mut hooked.site.orchestrator;
    orchestrator.terminate().await;
    orchestrator.set_environment("OS_UPGRADE_API__PUBLIC_URL", "https://upgrade.example/site/");
    let before = hooked.server.told(SPEC_UPDATE, HOST).len();
    orchestrator.start_ready().await;
    orchestrator.await_leading().await;
    hooked.poll().await;
    hooked.server.await_told(SPEC_UPDATE, HOST, before).await;
    assert_eq!(hooked.server.callback_endpoint(), "https://upgrade.example/site/v1/hooks/callback");
}

/// Tokens outlive their leader, until an operator draws others.
#[tokio::test]
async fn old_tokens_count_until_they_are_rotated() {
    let mut hooked = Hooked::joined(&[HOST], json!({})).await;
    let first = hooked.new_token(&[]).await;
    hooked.site.orchestrator.kill_and_start().await;
    hooked.site.orchestrator.ready().await;
    hooked.site.orchestrator.await_leading().await;
    hooked.server.usually(Script::of(Given::text("second")));
    assert_eq!(hooked.call_back(&first, &[HOST]).await.0, 202);
    hooked.hosts[0].await_script("configure app second").await;
    assert_eq!(hooked.server.told(JOIN, HOST).len(), 1, "once for each approval");
    let second = hooked.new_token(std::slice::from_ref(&first)).await;

    hooked.site.orchestrator.done(&["providers", "rotate-token", PROVIDER]).await;
    for old in [&first, &second] {
        assert_eq!(hooked.call_back(old, &[HOST]).await.0, 401);
    }
    hooked.poll().await;
    let third = hooked.new_token(&[first, second]).await;
    hooked.server.usually(Script::of(Given::text("third")));
    assert_eq!(hooked.call_back(&third, &[HOST]).await.0, 202);
    hooked.hosts[0].await_script("configure app third").await;
    let log = hooked.site.orchestrator.log();
    assert!(hooked.server.tokens().iter().all(|token| !log.contains(token)));
}

/// Too slow for `make test`: `make test-at-length` runs these, and so does `make soak`.
mod at_length {
    use std::time::Instant;

    use harness::wait::within;

    use super::*;

    const METADATA_UPDATE: &str = "ON_DEVICE_METADATA_UPDATE";

    impl Hooked {
        /// Starts the worker of the host again, with one more label, and waits until the site knows of it.
        async fn add_label(&mut self, key: &str, value: &str) {
            let mut host = self.hosts.remove(0);
            host.stop().await;
            let label = format!("{key}={value}");
            let mut host = host.with_arguments(&["--label", label.as_str()]);
            host.start();
            self.hosts.insert(0, host);
            eventually(&format!("the label {key}"), async || {
                (self.site.rest().try_host(HOST).await?["labels"][key] == value).then_some(())
            })
            .await;
        }

        /// When the provider was told of each such event of the host, in order.
        fn arrivals(&self, event: &str) -> Vec<Instant> {
            let is_of = |member: &Value| member["event"] == event && device(member) == HOST;
            let calls = self.server.calls().into_iter();
            calls.filter(|call| call.members.iter().any(is_of)).map(|call| call.arrived).collect()
        }
    }

    /// Ten minutes count from when the provider was told the metadata last. That a host joins tells them too, so its first change has to wait as
    /// well. What changes meanwhile is told together.
    #[tokio::test]
    async fn changed_labels_are_told_ten_minutes_later() {
        // The site counts from the answer, by its clock, which may be adjusted a little.
        let pause = Duration::from_mins(10) - Duration::from_secs(5);
        let mut hooked = Hooked::joined(&[HOST], json!({ "timeout": "10s" })).await;
        let joined = hooked.arrivals(JOIN)[0];
        let labels = |member: &Value| member["device_metadata"]["labels"].clone();
        assert_eq!(labels(&hooked.server.told(JOIN, HOST)[0]), json!({}));
        hooked.add_label("hall", "1").await;
        hooked.add_label("rack", "r9").await;
        let told = within(Duration::from_mins(12), "the provider to be told of the labels", async || {
            hooked.arrivals(METADATA_UPDATE).first().copied()
        })
        .await;
        assert!(told - joined >= pause, "{:?} after it has joined", told - joined);
        let members = hooked.server.told(METADATA_UPDATE, HOST);
        let told: Vec<Value> = members.iter().map(labels).collect();
        assert_eq!(told, [json!({ "hall": "1", "rack": "r9" })]);
        eventually("the answer to count", async || {
            let facts = hooked.site.journal().await;
            let is_answered =
                |fact: &Value| fact["type"] == "hook-answered" && fact["event"] == METADATA_UPDATE;
            facts.iter().any(is_answered).then_some(())
        })
        .await;
        assert_eq!(hooked.server.told(JOIN, HOST).len(), 1, "another label is no other host");
    }

    /// The provider is configured to be polled each hour. It asks to be polled each second, and is each minute, as no host is more often.
    #[tokio::test]
    async fn hosts_are_polled_as_often_as_the_provider_says() {
        let hooked = Hooked::joined(&[HOST], json!({ "poll-interval": "1h", "timeout": "10s" })).await;
        let often = Script { poll_interval: Some(json!(1)), ..Script::of(Given::text("first")) };
        hooked.server.usually(often);
        hooked.poll().await;
        eventually("the shortest poll interval", async || {
            let facts = hooked.site.journal().await;
            let is_named = |fact: &Value| fact["type"] == "hook-answered" && fact["poll-interval"] == 60;
            facts.iter().any(is_named).then_some(())
        })
        .await;
        let before = hooked.arrivals(POLL).len();
        // The first one may be due at any moment of the minute.
        let polls = within(Duration::from_mins(3), "two polls", async || {
            let polls = hooked.arrivals(POLL).split_off(before);
            (polls.len() >= 2).then_some(polls)
        })
        .await;
        // One that is late does not delay the next.
        let pause = polls[1] - polls[0];
        assert!(pause >= Duration::from_secs(45), "{pause:?}");
        let members = hooked.server.told(POLL, HOST);
        let uuids: BTreeSet<String> = members.iter().map(|member| member["event_uuid"].to_string()).collect();
        assert_eq!(uuids.len(), members.len(), "no poll is repeated");
    }
}
