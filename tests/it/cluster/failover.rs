//! A site with three nats-servers and three orchestrators, which are killed, paused and cut off.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use harness::chaos::faults::Fault;
use harness::chaos::{self, Options};
use harness::cluster::ClusterSite;
use harness::host::{APPLICATION, Host};
use harness::proxy::Proxy;
use harness::random::Random;
use harness::rest::Rest;
use harness::site::assert_one_by_one;
use harness::streams;
use harness::wait::{Stopwatch, eventually};
use nix::sys::signal::Signal;
use os_upgrade_shell::lease::LEASE_TTL;
use reqwest::Method;
use serde_json::{Value, json};

/// How long a take-over may take after the lease has expired.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(2);
/// Allowance for other tests on the machine.
const NOISE: Duration = Duration::from_secs(2);
const CONFIG: &str = "/v1/config/os-upgrade";

/// The run completes: every host was upgraded once, one by one, and every orchestrator shows the same.
async fn assert_completed(site: &ClusterSite, hosts: &[Host], id: &str) {
    let mut runs = Vec::new();
    for member in &site.members {
        let run = member.orchestrator.rest.await_end(id).await;
        assert_eq!(run.result(), Some("completed"), "{}", run.0);
        let upgraded: BTreeMap<_, _> = hosts.iter().map(|host| (host.name(), "upgraded")).collect();
        assert_eq!(run.statuses(), upgraded);
        runs.push(run);
    }
    assert!(runs.iter().all(|run| *run == runs[0]));
    for host in hosts {
        let lines = host.script_log();
        let count = |what: &str| lines.iter().filter(|line| *line == what).count();
        assert_eq!(["prepare", "upgrade-begins", "upgrade-ends"].map(count), [1, 1, 1], "{lines:?}");
    }
    streams::assert_no_command_twice(site.jetstream()).await;
    assert_one_by_one(&site.script_log());
}

/// Starts a run of four hosts that stops at the first one, which is held.
async fn start_held_run(site: &ClusterSite) -> (Vec<Host>, String) {
    let hosts = site.hosts(4).await;
    for host in &hosts {
        host.hold("upgrade");
    }
    let id = site.members[site.leader().await].orchestrator.rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    (hosts, id)
}

/// Releases the next host, and waits until the one after it begins.
async fn advance_one_host(hosts: &[Host], next: usize) {
    hosts[next].release("upgrade");
    if let Some(following) = hosts.get(next + 1) {
        following.await_script("upgrade-begins").await;
    }
}

/// Waits until an orchestrator other than `leader` leads, within the permitted time since the fault.
async fn await_take_over(site: &ClusterSite, leader: usize, since_fault: Stopwatch) -> usize {
    let next = site.leader_but(leader).await;
    since_fault.assert_below(LEASE_TTL + BEYOND_THE_LEASE + NOISE);
    next
}

fn config(max_failures: u32) -> String {
    let rollout = json!({ "max-failures": max_failures });
    json!({ "worker-applications": [{ "name": APPLICATION }], "rollout": rollout }).to_string()
}

async fn is_accepted(rest: &Rest, max_failures: u32) -> Option<()> {
    let (status, _) = rest.try_call(Method::PUT, CONFIG, &config(max_failures)).await?;
    (status == 204).then_some(())
}

async fn is_shown(rest: &Rest, max_failures: u32) -> Option<()> {
    let (_, shown) = rest.try_call(Method::GET, CONFIG, "").await?;
    (shown["rollout"]["max-failures"] == json!(max_failures)).then_some(())
}

/// Puts a configuration through each of these orchestrators, retrying until it is accepted.
async fn configure_through_each(rests: &[Rest], max_failures: u32) {
    for rest in rests {
        eventually("the configuration to be accepted", async || is_accepted(rest, max_failures).await).await;
        eventually("it to be shown", async || is_shown(rest, max_failures).await).await;
    }
}

/// Puts a configuration through any orchestrator, and waits until all show it.
async fn configure_through_any(rests: &[Rest], max_failures: u32) {
    let granted = async || {
        let requests = rests.iter().map(|rest| Box::pin(is_accepted(rest, max_failures)));
        join_all(requests).await.contains(&Some(())).then_some(())
    };
    eventually("the configuration to be accepted", granted).await;
}

fn rests(site: &ClusterSite, but: usize) -> Vec<Rest> {
    let others = site.members.iter().enumerate().filter(|(member, _)| *member != but);
    others.map(|(_, member)| member.orchestrator.rest.clone()).collect()
}

#[tokio::test]
async fn run_survives_repeated_leader_failures() {
    let mut site = ClusterSite::start(3, "").await;
    let (hosts, id) = start_held_run(&site).await;

    let first = site.leader().await;
    site.members[first].orchestrator.kill().await;
    let second = await_take_over(&site, first, Stopwatch::start()).await;
    configure_through_each(&rests(&site, first), 1).await;
    advance_one_host(&hosts, 0).await;
    site.members[first].orchestrator.start_ready().await;

    let paused = Stopwatch::start();
    site.signal(second, Signal::SIGSTOP);
    let third = await_take_over(&site, second, paused).await;
    configure_through_each(&rests(&site, second), 2).await;
    advance_one_host(&hosts, 1).await;
    site.signal(second, Signal::SIGCONT);
    site.members[second].orchestrator.await_following(&site.members[third].orchestrator).await;

    let cut_off = Stopwatch::start();
    site.members[third].cut_off();
    let fourth = await_take_over(&site, third, cut_off).await;
    configure_through_each(&rests(&site, third), 3).await;
    // Until then its own answers are not 2xx.
    let (status, _) = site.members[third].orchestrator.rest.trigger("").await;
    assert_eq!(status, 503);
    advance_one_host(&hosts, 2).await;
    site.members[third].heal();
    site.members[third].orchestrator.await_following(&site.members[fourth].orchestrator).await;

    advance_one_host(&hosts, 3).await;
    assert_completed(&site, &hosts, &id).await;
    configure_through_each(&rests(&site, usize::MAX), 4).await;
}

async fn journal_leader(site: &ClusterSite) -> usize {
    let leader = async || site.nats.journal_leader(site.jetstream()).await;
    eventually("the journal to have a leader", leader).await
}

/// Waits until `os-upgrade cluster status` shows all replicas of all streams as current.
async fn all_current(site: &ClusterSite) {
    eventually("every replica to be current", async || {
        let status = site.members[0].orchestrator.cluster_status().await?;
        let streams = status["streams"].as_array()?;
        let is_current = |stream: &Value| {
            let copies = stream["replicas"].as_array();
            stream["leader"].is_string()
                && copies.is_some_and(|copies| {
                    copies.len() == 2 && copies.iter().all(|copy| copy["current"] == true)
                })
        };
        (streams.len() == 5 && streams.iter().all(is_current)).then_some(())
    })
    .await;
}

/// Each server is cut off in turn, including the one the orchestrator is connected to. It must move to another.
#[tokio::test]
async fn clients_leave_cut_off_server() {
    let site = ClusterSite::start(1, "").await;
    let all = rests(&site, usize::MAX);
    for (server, max_failures) in (0..3).zip(1..) {
        site.nats.lines(server).for_each(Proxy::cut);
        configure_through_each(&all, max_failures).await;
        site.nats.lines(server).for_each(Proxy::heal);
        all_current(&site).await;
    }
}

/// Too slow for `make test`: `make test-at-length` runs these, and so does `make soak`.
mod at_length {
    use super::*;

    #[tokio::test]
    async fn run_survives_nats_server_failures() {
        let mut site = ClusterSite::start(2, "").await;
        let (hosts, id) = start_held_run(&site).await;
        let all = rests(&site, usize::MAX);

        let killed = journal_leader(&site).await;
        site.nats.kill(killed);
        configure_through_any(&all, 1).await;
        site.nats.start_again(killed).await;
        all_current(&site).await;
        advance_one_host(&hosts, 0).await;

        let paused = journal_leader(&site).await;
        site.nats.signal(paused, Signal::SIGSTOP);
        configure_through_any(&all, 2).await;
        site.nats.signal(paused, Signal::SIGCONT);
        all_current(&site).await;
        advance_one_host(&hosts, 1).await;

        let cut_off = journal_leader(&site).await;
        site.nats.lines(cut_off).for_each(Proxy::cut);
        configure_through_any(&all, 3).await;
        site.nats.lines(cut_off).for_each(Proxy::heal);
        all_current(&site).await;
        advance_one_host(&hosts, 2).await;

        advance_one_host(&hosts, 3).await;
        assert_completed(&site, &hosts, &id).await;
        configure_through_each(&all, 4).await;
    }

    #[tokio::test]
    async fn short_chaos_run_keeps_invariants() {
        let options = Options {
            runs: 1,
            hosts: 8,
            processes: 3,
            orchestrators: 3,
            faults: 4,
            kinds: Fault::ALL.to_vec(),
            progress_prefix: Some(String::new()),
        };
        let report = chaos::run(options, Random::from_environment()).await;
        assert_eq!(report.faults_injected(), 4, "{report}");
        assert!(report.violations.is_empty(), "{report}");
        for take_over in report.take_overs.iter().filter(|take_over| take_over.undisturbed) {
            let most = LEASE_TTL + BEYOND_THE_LEASE + NOISE + take_over.stall;
            assert!(take_over.took < most, "{take_over:?}");
        }
    }
}
