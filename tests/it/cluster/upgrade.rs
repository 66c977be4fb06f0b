//! A site of two instances is rolled back and upgraded while a run goes on. `OLD_PROGRAM` names an `os-upgrade` of an older
//! version, as `make test-upgrade` does; without it the present program takes its part.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use harness::orchestrator::Orchestrator;
use harness::programs;
use harness::site::{Site, assert_one_by_one};
use harness::streams;
use harness::wait::eventually;
use nix::sys::signal::Signal;
use os_upgrade_kernel::format::NEWEST;
use serde_json::Value;

/// Waits until `orchestrator` warns, or no longer warns, that instances read different formats.
async fn await_warning(orchestrator: &Orchestrator, warns: bool) {
    eventually("the status to compare formats", async || {
        let status = orchestrator.cluster_status().await?;
        let warnings = status["warnings"].as_array().cloned().unwrap_or_default();
        let differ = "instances read the journal up to different formats: upgrade ";
        let is_warned = warnings.iter().filter_map(Value::as_str).any(|warning| warning.starts_with(differ));
        (status["instances"].as_array()?.len() >= 2 && is_warned == warns).then_some(())
    })
    .await;
}

/// What `orchestrator` shows of the instance `name`.
async fn shown(orchestrator: &Orchestrator, name: &str) -> Option<Value> {
    let status = orchestrator.cluster_status().await?;
    status["instances"].as_array()?.iter().find(|it| it["instance"] == name).cloned()
}

/// The newest format of the journal that the instance `name` reads, as `orchestrator` shows it.
async fn reads_format(orchestrator: &Orchestrator, name: &str) -> u64 {
    eventually("the status to show what it reads", async || {
        shown(orchestrator, name).await?["reads-format"].as_u64()
    })
    .await
}

#[tokio::test]
async fn site_of_two_is_upgraded_during_a_run() {
    let old = std::env::var_os("OLD_PROGRAM").map(PathBuf::from);
    let is_older = old.is_some();
    let present = || programs::path(programs::ORCHESTRATOR);
    let old = old.unwrap_or_else(present);

    // A rollback: what the present version has written so far, the old one reads. Only the history may be of a newer schema.
    let mut site = Site::start().await;
    let hosts = site.hosts(4).await;
    site.orchestrator.terminate().await;
    site.orchestrator.set_program(old.clone());
    if is_older {
        fs::rename(site.orchestrator.store_file(), site.orchestrator.directory().join("newer.db")).unwrap();
    }
    site.orchestrator.start_ready().await;
    let first = site.rest().start_run().await;
    assert_eq!(site.rest().await_end(&first).await.result(), Some("completed"));
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.set_program(old.clone());
    other.start_ready().await;
    other.await_following(&site.orchestrator).await;
    let formats_differ = reads_format(&other, &other.instance()).await != u64::from(NEWEST);

    for host in &hosts {
        host.hold("upgrade");
    }
    let id = site.rest().start_run().await;
    eventually("the first host to begin", async || {
        (hosts[0].script_log().last()? == "upgrade-begins").then_some(())
    })
    .await;
    // First the follower.
    other.terminate().await;
    other.set_program(present());
    other.start_ready().await;
    other.await_following(&site.orchestrator).await;
    await_warning(&other, formats_differ).await;
    advance(&hosts, 0).await;

    // The old leader is replaced while it does not notice: it goes on as a follower, and has lost nothing.
    site.orchestrator.signal(Signal::SIGSTOP);
    other.await_leading().await;
    advance(&hosts, 1).await;
    site.orchestrator.signal(Signal::SIGCONT);
    site.orchestrator.await_following(&other).await;
    advance(&hosts, 2).await;

    // Then the former leader.
    site.orchestrator.terminate().await;
    site.orchestrator.set_program(present());
    site.orchestrator.start_ready().await;
    site.orchestrator.await_following(&other).await;
    await_warning(&other, false).await;
    hosts[3].release("upgrade");

    let run = other.rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"), "{}", run.0);
    assert_eq!(site.rest().await_end(&id).await, run);
    let upgraded: BTreeMap<_, _> = hosts.iter().map(|host| (host.name(), "upgraded")).collect();
    assert_eq!(run.statuses(), upgraded);
    for host in &hosts {
        // In each of the two runs.
        assert_eq!(host.script_log(), ["prepare", "upgrade-begins", "upgrade-ends"].repeat(2));
    }
    // Each command once, in each run.
    let mut commands = site.commands().await;
    commands.sort_unstable();
    let once =
        hosts.iter().flat_map(|host| ["prepare", "upgrade"].map(|what| format!("{} {what}", host.name())));
    assert_eq!(commands, once.flat_map(|command| [command.clone(), command]).collect::<Vec<_>>());
    assert_one_by_one(&site.script_log());

    if formats_differ {
        older_instance_stops(&site, &other, old).await;
    }
}

/// An instance of an older version stops at the first record that needs a newer one, and says so; the others go on.
async fn older_instance_stops(site: &Site, leader: &Orchestrator, old: PathBuf) {
    let mut late = Orchestrator::new(&site.nats.url(), "");
    late.set_program(old);
    late.start_ready().await;
    late.await_following(leader).await;
    let name = late.instance();
    let read = reads_format(leader, &name).await;
    let barrier = r#"{"at":"2026-11-21T01:00:00Z","control":0,"facts":[]}"#;
    let (_, last) = site.records().await.into_iter().last().unwrap();
    let barrier = barrier.replace(r#""control":0"#, &format!(r#""control":{}"#, last["control"]));
    let sequence = streams::append_record(site.jetstream(), &(read + 1).to_string(), &barrier).await;
    let unreadable = format!("journal message {sequence} ");
    let reason = eventually("the older instance to stop", async || {
        late.readiness().await.filter(|reason| reason.starts_with(&unreadable))
    })
    .await;
    assert!(reason.contains("format"), "{reason}");
    eventually("the status to show why", async || {
        let shown = shown(leader, &name).await?;
        (shown["not-ready-reason"] == reason && shown["reads-format"] == read).then_some(())
    })
    .await;
    eventually("the others to go on", async || {
        let (status, _) = site.rest().trigger("").await;
        (status == 204).then_some(())
    })
    .await;
    late.terminate().await;
    late.set_program(programs::path(programs::ORCHESTRATOR));
    late.start_ready().await;
    eventually("the upgraded one to show the same runs", async || {
        let (runs, same) = (late.rest.runs().await, site.rest().runs().await);
        (runs == same && runs.iter().all(|run| run["result"] == "completed") && runs.len() == 3).then_some(())
    })
    .await;
}

/// Releases the next host, and waits until the one after it begins.
async fn advance(hosts: &[harness::host::Host], next: usize) {
    hosts[next].release("upgrade");
    eventually("the next host to begin", async || {
        (hosts[next + 1].script_log().last()? == "upgrade-begins").then_some(())
    })
    .await;
}
