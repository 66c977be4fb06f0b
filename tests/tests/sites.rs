//! Two sites, each with a nats-server of its own in a JetStream domain of its own. The servers are joined by a leaf node
//! connection that lets requests between sites through, and nothing else of the sites'.

#![allow(clippy::unwrap_used, reason = "a test may end like that")]

use nix::sys::signal::Signal;
use os_upgrade_tests::host::{APPLICATION, Host};
use os_upgrade_tests::nats_server::NatsServer;
use os_upgrade_tests::orchestrator::{Orchestrator, own_address};
use os_upgrade_tests::rest::Rest;
use os_upgrade_tests::streams;
use os_upgrade_tests::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

const STATE: &str = "/v1/state/os-upgrade";

/// As in docs/operations.md.
const DENIED: &str = r#"["os-upgrade:control.>", "os-upgrade:versions.>", "os-upgrade:workers.>",
    "os-upgrade:journal.>", "os-upgrade.presence.>", "os-upgrade.hint.>", "os-upgrade.request.>",
    "os-upgrade.instance.>"]"#;

struct Sites {
    // First, so that they are gone before what they use.
    hub: Orchestrator,
    leaf: Orchestrator,
    hub_nats: NatsServer,
    leaf_nats: NatsServer,
    directory: TempDir,
}

impl Sites {
    /// Both ready, without a configuration, and each to be asked through the other.
    async fn start() -> Self {
        let joined_at = own_address();
        let listens = format!("server_name: hub\nleafnodes {{ listen: \"{joined_at}\" }}");
        let mut hub_nats = NatsServer::stopped(&listens).in_domain("hub");
        hub_nats.start_again().await;
        let joins = format!(
            "server_name: leaf\nleafnodes {{ reconnect: 1, remotes: [{{ url: \"nats-leaf://{joined_at}\", \
             deny_imports: {DENIED}, deny_exports: {DENIED} }}] }}"
        );
        let mut leaf_nats = NatsServer::stopped(&joins).in_domain("leaf");
        leaf_nats.start_again().await;
        let mut hub = Orchestrator::new(&hub_nats.url(), "[site]\nname = \"hub\"");
        let mut leaf = Orchestrator::new(&leaf_nats.url(), "[site]\nname = \"leaf\"");
        hub.start_ready().await;
        leaf.start_ready().await;
        for (from, to) in [(&hub, "leaf"), (&leaf, "hub")] {
            is_asked(&from.rest, to).await;
        }
        Self { hub, leaf, hub_nats, leaf_nats, directory: tempfile::tempdir().unwrap() }
    }

    fn host(&self, name: &str) -> Host {
        Host::new(&self.leaf_nats.url(), &self.directory.path().join("said"), name)
    }
}

/// Waits until `site` answers through `rest`.
async fn is_asked(rest: &Rest, site: &str) {
    let path = format!("{STATE}?site={site}");
    eventually("the other site to answer", async || (rest.get(&path).await.0 == 200).then_some(())).await;
}

fn message(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["errors"][0]["error-message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn another_site_is_read_and_upgraded_through_this_one() {
    let sites = Sites::start().await;
    let (hub, leaf) = (&sites.hub.rest, &sites.leaf.rest);
    leaf.configure(APPLICATION).await;
    let mut host = sites.host("h01");
    host.start();
    leaf.await_scheduled(&["h01"]).await;

    let state = leaf.state().await;
    assert_eq!(state["scheduled-workers"][0]["host"], "h01");
    assert_eq!(hub.get(&format!("{STATE}?site=leaf")).await, (200, state.clone()));
    assert_eq!(leaf.get(&format!("{STATE}?site=leaf")).await, (200, state), "a site may be asked for itself");
    let (status, known) = hub.get(&format!("{STATE}/hosts/h01?site=leaf")).await;
    assert_eq!((status, &known["hostname"]), (200, &json!("h01")));
    assert_eq!(hub.get(&format!("{STATE}/hosts/h01")).await.0, 404);

    let trigger = format!("{STATE}/trigger-upgrade-site");
    let validate = format!("{trigger}?validate=true&site=leaf");
    assert_eq!(hub.call(Method::POST, &validate, "").await, (204, Value::Null));
    assert_eq!(leaf.runs().await, [Value::Null; 0]);
    let bad = hub.call(Method::POST, &validate, r#"{"timeout":"soon"}"#).await;
    assert_eq!(
        bad,
        leaf.call(Method::POST, &format!("{trigger}?validate=true"), r#"{"timeout":"soon"}"#).await
    );
    assert_eq!(bad.0, 400, "{bad:?}");
    let there = format!("{trigger}?site=leaf");
    assert_eq!(hub.call(Method::POST, &there, r#"{"timeout":"90m"}"#).await, (204, Value::Null));
    let id = leaf.newest_run().await;
    let run = leaf.ended(&id).await;
    assert_eq!(run.result(), Some("completed"));
    let actor = run.0["actor"].as_str().unwrap();
    assert!(actor.starts_with("api 127.") && actor.ends_with(" at hub"), "{actor}");
    assert_eq!(hub.get(&format!("{STATE}/runs/{id}?site=leaf&facts-limit=10000")).await, (200, run.0));
    assert_eq!(hub.runs().await, [Value::Null; 0]);

    // In the other direction, to a site that cannot.
    let answer = leaf.call(Method::POST, &format!("{trigger}?site=hub"), "").await;
    assert_eq!(answer, hub.trigger("").await);
    assert_eq!(answer.0, 404, "{answer:?}");

    // What is the sites' own has stayed with each.
    for (site, commands) in [(&sites.hub_nats, 0), (&sites.leaf_nats, 2)] {
        let jetstream = async_nats::jetstream::new(site.client().await);
        assert_eq!(streams::commands(&jetstream).await.len(), commands);
    }
    for rest in [hub, leaf] {
        let (_, cluster) = rest.get("/v1/state/cluster").await;
        assert_eq!(cluster["instances"].as_array().unwrap().len(), 1, "{cluster}");
    }
    let state = hub.state().await;
    assert_eq!(state.get("worker-applications"), None, "{state}");
}

#[tokio::test]
async fn a_site_that_nobody_serves_is_not_found_and_a_silent_one_is_unavailable() {
    let sites = Sites::start().await;
    let hub = &sites.hub.rest;
    for path in ["", "/runs", "/hosts"] {
        let answer = hub.get(&format!("{STATE}{path}?site=Nobody%27s")).await;
        let (status, text) = message(&answer);
        assert_eq!(status, 404, "{answer:?}");
        assert!(text.starts_with("no orchestrator serves the site \"Nobody's\""), "{text}");
    }
    let cancel = format!("{STATE}/cancel?site=nobody");
    assert_eq!(hub.call(Method::POST, &cancel, "").await.0, 404);
    for query in ["site=", "site", "site=a%0Ab", "site=leaf&site=leaf", "site=leaf&colour=red"] {
        let answer = hub.get(&format!("{STATE}?{query}")).await;
        assert_eq!(answer.0, 400, "{query}: {answer:?}");
    }
    let (status, text) = hub.get("/v1/config/os-upgrade?site=leaf").await;
    assert_eq!(status, 400, "{text}");

    sites.leaf.signal(Signal::SIGSTOP);
    let answer = hub.get(&format!("{STATE}?site=leaf")).await;
    sites.leaf.signal(Signal::SIGCONT);
    let (status, text) = message(&answer);
    assert_eq!(status, 503, "{answer:?}");
    assert!(text.starts_with("the site \"leaf\" is silent, no answer within 8 s"), "{text}");
    is_asked(hub, "leaf").await;

    let mut sites = sites;
    sites.leaf.terminate().await;
    assert_eq!(sites.hub.rest.get(&format!("{STATE}?site=leaf")).await.0, 404);
}
