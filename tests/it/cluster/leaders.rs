//! Several orchestrators for a site: one leads; the others follow, and take over when it fails.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::client::{Request, RequestErrorKind};
use harness::host::APPLICATION;
use harness::orchestrator::Orchestrator;
use harness::site::{Site, assert_one_by_one};
use harness::wait::{Stopwatch, eventually};
use nix::sys::signal::Signal;
use os_upgrade_protocol::subject;
use os_upgrade_shell::forward::not_forwarded;
use os_upgrade_shell::lease::LeaseHolder;
use os_upgrade_shell::not_done::NotDone;
use reqwest::Method;
use serde_json::{Value, json};

const CONFIG: &str = "/v1/config/os-upgrade";
/// How long a take-over may take: the lease must expire, and a follower must notice.
const TAKE_OVER: Duration = Duration::from_secs(12);

/// A site with a leader, and a second instance as follower.
async fn leader_and_follower() -> (Site, Orchestrator) {
    let site = Site::start().await;
    let mut second = Orchestrator::new(&site.nats.url(), "");
    second.start();
    second.await_following(&site.orchestrator).await;
    (site, second)
}

#[tokio::test]
async fn follower_serves_reads_and_forwards_writes() {
    let (site, second) = leader_and_follower().await;
    let hosts = site.hosts(2).await;
    let rest = &second.rest;
    rest.await_scheduled(&["h01", "h02"]).await;
    // A follower shows a write as soon as it has answered it, although the leader carried it out.
    for number in 1..=20 {
        let config = json!({
            "worker-applications": [{ "name": APPLICATION }],
            "rollout": { "max-concurrent": number },
        });
        assert_eq!(rest.call(Method::PUT, CONFIG, &config.to_string()).await, (204, Value::Null));
        let (_, shown) = rest.get(CONFIG).await;
        assert_eq!(shown["rollout"].get("max-concurrent").unwrap_or(&json!(1)), &json!(number));
    }
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    let (status, refusal) = rest.trigger("").await;
    assert_eq!((status, &refusal), (409, &site.rest().trigger("").await.1));
    hosts[0].release("upgrade");
    let run = site.rest().await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(rest.await_end(&id).await, run);
    let (status, _) = rest.cancel().await;
    assert_eq!(status, 409);
    assert_eq!(site.rest().runs().await.len(), 1);
    assert_eq!(hosts[0].script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
}

/// The subject on which the leader reads forwarded requests.
async fn requests_to_leader(site: &Site) -> String {
    let leases = site.jetstream().get_key_value("os-upgrade-lease").await.unwrap();
    let lease = leases.get("leader").await.unwrap().expect("somebody leads");
    let LeaseHolder { instance, nonce, .. } = serde_json::from_slice(&lease).unwrap();
    subject::request(&instance, &nonce)
}

#[tokio::test]
async fn follower_explains_failed_forwarding() {
    let (mut site, second) = leader_and_follower().await;
    let error = |(status, body): (u16, Value)| {
        assert_eq!(status, 503, "{body}");
        let info = body["errors"][0]["error-info"].clone();
        serde_json::from_value::<NotDone>(info).expect("what became of the change")
    };
    let leader = site.orchestrator.instance();
    let requests = requests_to_leader(&site).await;
    site.orchestrator.kill().await;
    // Until the server notices that the connection is closed, a request is lost rather than refused.
    let client = site.nats.client().await;
    eventually("NATS to know that nobody reads the requests", async || {
        let request = Request::new().timeout(Some(Duration::from_millis(100)));
        let answer = client.send_request(requests.clone(), request).await;
        answer.is_err_and(|error| error.kind() == RequestErrorKind::NoResponders).then_some(())
    })
    .await;
    let gone = not_forwarded(format_args!("instance {leader}, which led last, is gone"));
    assert_eq!(error(second.rest.trigger("").await), gone);
    second.await_leading().await;
    site.orchestrator.start();
    site.orchestrator.await_following(&second).await;
    // A body of 600 KiB is accepted by the API, but too large to be forwarded.
    let applications: Vec<_> = (0..2_300).map(|n| json!({ "name": format!("{n:0>255}") })).collect();
    let large = json!({ "worker-applications": applications }).to_string();
    let too_large = error(site.rest().call(Method::PUT, CONFIG, &large).await);
    assert!(matches!(too_large, NotDone::Unchanged { .. }), "{too_large}");
    assert_eq!(second.rest.call(Method::PUT, CONFIG, &large).await.0, 204);
    // The paused leader does not respond, but may carry out the request when it resumes.
    second.signal(Signal::SIGSTOP);
    let silent = format!("instance {}, which led last, has not answered within 3 s", second.instance());
    assert_eq!(error(site.rest().trigger("").await), NotDone::unknown(silent));
    second.signal(Signal::SIGCONT);
}

#[tokio::test]
async fn follower_finishes_run_of_killed_leader() {
    let (mut site, second) = leader_and_follower().await;
    let mut hosts = vec![site.host("h01"), site.host("h02").reboots()];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    let id = site.rest().start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    site.orchestrator.kill().await;
    let killed = Stopwatch::start();
    second.await_leading().await;
    killed.assert_below(TAKE_OVER);
    hosts[0].release("upgrade");
    let run = second.rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "upgraded")]));
    assert_eq!(hosts[0].script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    assert_eq!(hosts[1].script_log(), ["prepare", "upgrade-begins", "upgrade-ends", "reboot"]);
    // The first comes back as a follower, with the whole history.
    site.orchestrator.start();
    assert_eq!(site.rest().await_end(&id).await, run);
    site.orchestrator.await_following(&second).await;
}

#[tokio::test]
async fn resumed_stale_leader_changes_nothing() {
    let (site, second) = leader_and_follower().await;
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    let id = site.rest().start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    site.orchestrator.signal(Signal::SIGSTOP);
    second.await_leading().await;
    hosts[1].hold("upgrade");
    hosts[0].release("upgrade");
    hosts[1].await_script("upgrade-begins").await;
    site.orchestrator.signal(Signal::SIGCONT);
    site.orchestrator.await_following(&second).await;
    hosts[1].release("upgrade");
    let run = second.rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(site.rest().await_end(&id).await, run);
    assert_eq!(site.commands_to("upgrade").await, ["h01", "h02", "h03"]);
    for host in &hosts {
        assert_eq!(host.script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    }
    assert_one_by_one(&site.script_log());
}

#[tokio::test]
async fn every_instance_shows_leader_and_progress() {
    let (mut site, second) = leader_and_follower().await;
    let (first, other) = (site.orchestrator.instance(), second.instance());
    let expected = |leader: &str, roles: [&str; 2], reachable: [bool; 2]| {
        let mut instances =
            vec![(first.clone(), roles[0], reachable[0]), (other.clone(), roles[1], reachable[1])];
        instances.sort();
        let instances: Vec<_> = instances
            .into_iter()
            .map(|(instance, role, reachable)| json!([instance, role, reachable, reachable.then_some(0)]))
            .collect();
        json!({ "leader": leader, "instances": instances })
    };
    let shown = async |orchestrator: &Orchestrator| {
        let status = orchestrator.cluster_status().await?;
        let instances = status["instances"].as_array()?.iter().map(|instance| {
            let reachable = instance["reachable"].as_bool().unwrap();
            let lag = if reachable { &instance["lag"] } else { &Value::Null };
            json!([instance["instance"], instance["role"], reachable, lag])
        });
        Some(json!({ "leader": status["leader"], "instances": instances.collect::<Vec<_>>() }))
    };
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let machine: String = machine.trim().chars().take_while(char::is_ascii_alphanumeric).take(20).collect();
    for name in [&first, &other] {
        assert!(name.starts_with(&machine), "{name}");
    }
    let both = expected(&first, ["leader", "follower"], [true, true]);
    for orchestrator in [&site.orchestrator, &second] {
        eventually("both to be shown", async || (shown(orchestrator).await? == both).then_some(())).await;
    }
    let Some(status) = second.cluster_status().await else { panic!("no status") };
    let streams: Vec<_> = status["streams"].as_array().unwrap().iter().map(|s| s["stream"].clone()).collect();
    let kept = [
        "os-upgrade:journal",
        "os-upgrade:control",
        "os-upgrade:versions",
        "os-upgrade:workers",
        "KV_os-upgrade-lease",
    ];
    assert_eq!(streams, kept);
    assert!(
        status["streams"].as_array().unwrap().iter().all(|stream| stream.get("problem").is_none()),
        "{status}"
    );
    site.orchestrator.kill().await;
    let one = expected(&other, ["follower", "leader"], [false, true]);
    eventually("one to be shown as gone", async || (shown(&second).await? == one).then_some(())).await;
    assert_eq!(site.orchestrator.cluster_status().await, None);
}

/// A cloned machine: two processes with one instance's name would take the lease from each other for ever.
#[tokio::test]
async fn copied_data_directory_is_noticed() {
    let mut site = Site::start().await;
    site.orchestrator.terminate().await;
    let mut copy = Orchestrator::new(&site.nats.url(), "");
    let data = |orchestrator: &Orchestrator| orchestrator.directory().join("data");
    std::fs::create_dir(data(&copy)).unwrap();
    for file in ["instance", "os-upgrade.db"] {
        std::fs::copy(data(&site.orchestrator).join(file), data(&copy).join(file)).unwrap();
    }
    site.orchestrator.start_ready().await;
    copy.start();
    let said = format!("another process of instance {} leads: ", site.orchestrator.instance());
    let is_halted = async |orchestrator: &Orchestrator| {
        orchestrator.readiness().await.is_some_and(|reason| reason.starts_with(&said))
    };
    let first_halted = eventually("one of the two to stop", async || {
        let halted = (is_halted(&site.orchestrator).await, is_halted(&copy).await);
        (halted.0 || halted.1).then_some(halted.0)
    })
    .await;
    let (halted, other) =
        if first_halted { (&mut site.orchestrator, &mut copy) } else { (&mut copy, &mut site.orchestrator) };
    // The other one goes on alone.
    other.ready().await;
    other.await_leading().await;
    let config = json!({ "worker-applications": [{ "name": APPLICATION }] }).to_string();
    for _ in 0..20 {
        assert_eq!(other.rest.call(Method::PUT, CONFIG, &config).await.0, 204);
    }
    assert!(is_halted(halted).await);
    // An ordinary restart halts nobody.
    other.kill_and_start().await;
    other.ready().await;
    other.await_leading().await;
    // As it says.
    halted.kill().await;
    std::fs::remove_file(data(halted).join("instance")).unwrap();
    halted.start();
    halted.await_following(other).await;
}
