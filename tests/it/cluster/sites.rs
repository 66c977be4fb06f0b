//! Two sites, each with its own nats-server in its own JetStream domain. A leaf node connection joins the servers; it
//! passes requests between sites, and no other messages of theirs.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::SelectAll;
use harness::host::{APPLICATION, Host};
use harness::http;
use harness::nats_server::NatsServer;
use harness::orchestrator::{Orchestrator, own_address};
use harness::random::Random;
use harness::rest::Rest;
use harness::streams;
use harness::wait::eventually;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

const STATE: &str = "/v1/state/os-upgrade";
const SUBJECT: &str = "os-upgrade.site.leaf";
/// The default size limit of a message in nats-server, in bytes.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// As in docs/operations.md.
const DENIED: &str = r#"["os-upgrade:control.>", "os-upgrade:versions.>", "os-upgrade:workers.>", "os-upgrade:output.>", "os-upgrade:desired.>", "os-upgrade:applied.>",
    "os-upgrade:journal.>", "os-upgrade.presence.>", "os-upgrade.hint.>", "os-upgrade.desired.>", "os-upgrade.progress.>", "os-upgrade.request.>",
    "os-upgrade.instance.>", "os-upgrade.consumer.>", "$JS.ACK.os-upgrade:control.>",
    "$JS.ACK.*.*.os-upgrade:control.>"]"#;

struct Sites {
    // First fields: dropped before what they use.
    hub: Orchestrator,
    leaf: Orchestrator,
    hub_nats: NatsServer,
    leaf_nats: NatsServer,
    /// The address of the monitoring endpoint of the leaf's server.
    monitoring: SocketAddr,
    directory: TempDir,
}

impl Sites {
    /// Two ready sites without a configuration, each reachable through the other.
    async fn start() -> Self {
        let joined_at = own_address();
        let listens = format!("server_name: hub\nleafnodes {{ listen: \"{joined_at}\" }}");
        let mut hub_nats = NatsServer::stopped(&listens).in_domain("hub");
        hub_nats.start_again().await;
        let monitoring = own_address();
        let joins = format!(
            "server_name: leaf\nhttp: \"{monitoring}\"\nleafnodes {{ reconnect: 1, remotes: [{{ url: \"nats-leaf://{joined_at}\", \
             deny_imports: {DENIED}, deny_exports: {DENIED} }}] }}"
        );
        let mut leaf_nats = NatsServer::stopped(&joins).in_domain("leaf");
        leaf_nats.start_again().await;
        let [mut hub, mut leaf] =
            [(&hub_nats, "hub"), (&leaf_nats, "leaf")].map(|(nats, name)| instance(nats, name));
        hub.start_ready().await;
        leaf.start_ready().await;
        for (from, to) in [(&hub, "leaf"), (&leaf, "hub")] {
            await_answer_from(&from.rest, to).await;
        }
        Self { hub, leaf, hub_nats, leaf_nats, monitoring, directory: tempfile::tempdir().unwrap() }
    }

    fn host(&self, name: &str) -> Host {
        Host::new(&self.leaf_nats.url(), &self.directory.path().join("said"), name)
    }

    /// How many requests from other sites the leaf's server has delivered to each subscribed connection.
    async fn shares(&self) -> Vec<u64> {
        let url = format!("http://{}/connz?subs=detail", self.monitoring);
        let client = http::builder([]).build().unwrap();
        let answer: Value = client.get(url).send().await.unwrap().json().await.unwrap();
        let connections = answer["connections"].as_array().unwrap().iter();
        let subscriptions =
            connections.filter_map(|connection| connection["subscriptions_list_detail"].as_array());
        let of_sites = subscriptions.flatten().filter(|subscription| subscription["subject"] == SUBJECT);
        of_sites.map(|subscription| subscription["msgs"].as_u64().unwrap()).collect()
    }
}

fn instance(nats: &NatsServer, site: &str) -> Orchestrator {
    Orchestrator::new(&nats.url(), &format!("[site]\nname = \"{site}\""))
}

/// Waits until `site` answers through `rest`.
async fn await_answer_from(rest: &Rest, site: &str) {
    let path = format!("{STATE}?site={site}");
    eventually("the other site to answer", async || (rest.get(&path).await.0 == 200).then_some(())).await;
}

fn message(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["errors"][0]["error-message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn remote_site_is_read_and_upgraded() {
    let sites = Sites::start().await;
    let (hub, leaf) = (&sites.hub.rest, &sites.leaf.rest);
    leaf.configure(APPLICATION).await;
    let mut host = sites.host("h01");
    host.start();
    leaf.await_scheduled(&["h01"]).await;

    let state = leaf.state().await;
    assert_eq!(state["scheduled-workers"][0]["host"], "h01");
    assert_eq!(hub.get(&format!("{STATE}?site=leaf")).await, (200, state.clone()));
    assert_eq!(
        leaf.get(&format!("{STATE}?site=leaf")).await,
        (200, state),
        "a site may be requested of itself"
    );
    let (status, known) = hub.get(&format!("{STATE}/hosts/h01?site=leaf")).await;
    assert_eq!((status, &known["hostname"]), (200, &json!("h01")));
    assert_eq!(hub.get(&format!("{STATE}/hosts/h01")).await.0, 404);
    let queue = "/v1/state/reboot-queue";
    let add = format!("{queue}/add");
    let answer = hub.call(Method::POST, &add, r#"{"nodes":["h01"]}"#).await;
    let expected = "h01 has announced no worker at this site; nothing is queued";
    assert_eq!(message(&answer), (404, expected));
    assert_eq!(hub.get(queue).await, (200, json!([])));

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
    let run = leaf.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    let actor = run.0["actor"].as_str().unwrap();
    assert!(actor.starts_with("api 127.") && actor.ends_with(" at hub"), "{actor}");
    assert_eq!(hub.get(&format!("{STATE}/runs/{id}?site=leaf&events-limit=10000")).await, (200, run.0));
    assert_eq!(hub.runs().await, [Value::Null; 0]);

    // In the other direction, to a site that cannot start a run.
    let answer = leaf.call(Method::POST, &format!("{trigger}?site=hub"), "").await;
    assert_eq!(answer, hub.trigger("").await);
    assert_eq!(answer.0, 404, "{answer:?}");

    // Each site's own messages have stayed with it.
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

/// Hosts of two sites may have the same name, and then their consumers have too.
#[tokio::test]
async fn hosts_are_not_heard_at_other_sites() {
    let sites = Sites::start().await;
    let (hub, leaf) = (sites.hub_nats.client().await, sites.leaf_nats.client().await);
    let mut heard = SelectAll::new();
    for subject in ["os-upgrade.consumer.>", "$JS.ACK.>", "first", "last"] {
        heard.push(hub.subscribe(subject).await.unwrap());
    }
    hub.flush().await.unwrap();
    eventually("the leaf to know that the hub listens", async || {
        leaf.publish("first", "".into()).await.unwrap();
        tokio::time::timeout(Duration::from_millis(100), heard.next()).await.ok()
    })
    .await;
    for subject in [
        "os-upgrade.consumer.h01",
        "$JS.ACK.os-upgrade:control.worker-h01.1.1.1.1.0",
        "$JS.ACK.leaf.bgPM0v7Z.os-upgrade:control.worker-h01.1.1.1.1.0",
        "last",
    ] {
        leaf.publish(subject, "+ACK".into()).await.unwrap();
    }
    loop {
        match heard.next().await.unwrap().subject.as_str() {
            "first" => {}
            "last" => return,
            other => panic!("{other} was heard"),
        }
    }
}

#[tokio::test]
async fn unserved_site_404_silent_site_503() {
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
    assert!(text.starts_with("the site \"leaf\" did not answer: no answer within 8 s"), "{text}");
    await_answer_from(hub, "leaf").await;

    let mut sites = sites;
    sites.leaf.terminate().await;
    assert_eq!(sites.hub.rest.get(&format!("{STATE}?site=leaf")).await.0, 404);
}

#[tokio::test]
async fn any_instance_serves_any_site() {
    let mut sites = Sites::start().await;
    let [mut hub_follower, mut leaf_follower] =
        [instance(&sites.hub_nats, "hub"), instance(&sites.leaf_nats, "leaf")];
    hub_follower.start();
    leaf_follower.start();
    hub_follower.await_following(&sites.hub).await;
    leaf_follower.await_following(&sites.leaf).await;
    sites.leaf.rest.configure(APPLICATION).await;
    let mut host = sites.host("h01");
    host.start();
    for instance in [&sites.leaf, &leaf_follower] {
        instance.rest.await_scheduled(&["h01"]).await;
    }
    eventually("both to subscribe to requests", async || (sites.shares().await.len() == 2).then_some(()))
        .await;

    // Reads, and writes that a follower there forwards to its leader.
    let rest = &hub_follower.rest;
    let trigger = format!("{STATE}/trigger-upgrade-site?site=leaf");
    let validate = format!("{trigger}&validate=true");
    let state = sites.leaf.rest.state().await;
    let asked = (0..20).map(async |_| {
        assert_eq!(rest.get(&format!("{STATE}?site=leaf")).await, (200, state.clone()));
        assert_eq!(rest.call(Method::POST, &validate, "").await, (204, Value::Null));
    });
    join_all(asked).await;
    let shares = sites.shares().await;
    assert!(shares.iter().sum::<u64>() >= 40 && shares.iter().all(|share| *share > 0), "{shares:?}");

    // In YAML, both request and answer.
    let answer = rest.try_send(Method::POST, &trigger, "application/yaml", "timeout: soon\n").await.unwrap();
    let (status, text) = message(&answer);
    assert!(status == 400 && text.contains("timeout"), "{answer:?}");
    let begun = rest.try_send(Method::POST, &trigger, "application/yaml", "timeout: 90m\n").await.unwrap();
    assert_eq!(begun, (204, Value::Null));
    let id = sites.leaf.rest.newest_run().await;
    assert_eq!(sites.leaf.rest.await_end(&id).await.result(), Some("completed"));
    let runs = format!("{STATE}/runs");
    let there = sites.leaf.rest.get_as(&runs, "application/yaml").await;
    assert_eq!(rest.get_as(&format!("{runs}?site=leaf"), "application/yaml").await, there);
    assert!(
        there.starts_with("200 application/yaml\n") && there.contains("\n    result: completed\n"),
        "{there}"
    );

    sites.leaf.terminate().await;
    leaf_follower.await_leading().await;
    await_answer_from(rest, "leaf").await;
    assert_eq!(rest.get(&format!("{runs}?site=leaf&count=true")).await, (200, json!({ "count": 1 })));
}

#[tokio::test]
async fn oversized_answers_are_compressed_or_refused() {
    let sites = Sites::start().await;
    let (hub, leaf) = (&sites.hub.rest, &sites.leaf.rest);
    let jetstream = async_nats::jetstream::new(sites.leaf_nats.client().await);
    let mut random = Random::from_environment();
    // Random hexadecimal digits, which do not compress below half their size.
    let mut grow = async |hosts: std::ops::Range<usize>| {
        for host in hosts {
            let mut digits = String::new();
            while digits.len() < 200_000 {
                write!(digits, "{:08x}", random.below(1 << 32)).unwrap();
            }
            let versions = json!({ "image": digits }).to_string();
            let published =
                jetstream.publish(format!("os-upgrade:versions.h{host:02}"), versions.into()).await;
            published.unwrap().await.unwrap();
        }
    };
    let known = async |count: usize| {
        let path = format!("{STATE}/hosts?count=true");
        let counted = async || (leaf.get(&path).await.1 == json!({ "count": count })).then_some(());
        eventually("the hosts to be known", counted).await;
    };
    grow(0..7).await;
    known(7).await;
    let path = format!("{STATE}/hosts?site=leaf");
    let (status, hosts) = hub.get(&path).await;
    assert!(hosts.to_string().len() > MESSAGE_BYTES_MAX);
    assert_eq!((status, &hosts), (200, &leaf.get(&format!("{STATE}/hosts")).await.1));

    grow(7..14).await;
    known(14).await;
    let answer = hub.get(&path).await;
    let (status, text) = message(&answer);
    assert!(
        status == 502 && text.contains("bytes, compressed, and the bus takes 1048576: request less"),
        "{text}"
    );
    // A smaller page succeeds.
    let (status, names) = hub.get(&format!("{path}&keys=true")).await;
    assert_eq!((status, names.as_array().map(Vec::len)), (200, Some(14)), "{names}");
    let (status, page) = hub.get(&format!("{path}&limit=7")).await;
    assert_eq!((status, &page["next"]), (200, &names[6]), "{names}");
    let (status, rest) = hub.get(&format!("{path}&limit=7&after={}", names[6].as_str().unwrap())).await;
    assert_eq!((status, rest["items"].as_array().map(Vec::len)), (200, Some(7)));
    assert_eq!(rest.get("next"), None);
    assert_eq!(hub.get(&format!("{STATE}/hosts/h13?site=leaf")).await.0, 200);

    let padded = format!("{}{{}}", " ".repeat(MESSAGE_BYTES_MAX - 2));
    let trigger = format!("{STATE}/trigger-upgrade-site");
    assert_eq!(hub.call(Method::POST, &trigger, &padded).await.0, 404, "this site accepts its size");
    let answer = hub.call(Method::POST, &format!("{trigger}?site=leaf"), &padded).await;
    assert_eq!(message(&answer), (413, "the body is too large to be sent to the site \"leaf\""));
}
