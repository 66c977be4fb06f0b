//! The bus loses what it had acknowledged: it is noticed, named exactly, and nothing is sent.

use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use serde_json::json;

const WAY_ON: &str = "nothing is sent until an operator has stopped this and decided: bring the lost data back, or go on \
                      from the store with `os-upgrade restore --from-store`";

/// Waits until an instance has stopped because of a loss, and looked up what is missing: what it says of that.
async fn halted(orchestrator: &Orchestrator) -> String {
    let reason = eventually("it to say what is lost", async || {
        orchestrator.readiness().await.filter(|reason| reason.ends_with(WAY_ON))
    })
    .await;
    // Whoever asks for a change is told the same.
    let (status, body) = orchestrator.rest.trigger("").await;
    let info = json!({ "outcome": "unchanged", "why": reason });
    assert_eq!((status, &body["errors"][0]["error-info"]), (503, &info));
    assert_eq!(orchestrator.rest.get("/healthz").await.0, 200);
    reason.trim_end_matches(WAY_ON).trim_end_matches("; ").to_owned()
}

/// A whole run of the site's hosts, once the history has its end.
async fn whole_run(site: &Site) -> String {
    let id = site.rest().started().await;
    assert_eq!(site.rest().ended(&id).await.result(), Some("completed"));
    id
}

/// Kills the bus, and starts it again after `change`.
async fn bus_off(site: &mut Site, change: impl FnOnce(&NatsServer)) {
    site.nats.kill();
    change(&site.nats);
    site.nats.start_again().await;
}

#[tokio::test]
async fn everything_lost_is_named_at_the_start_and_no_stream_is_made_anew() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    let id = whole_run(&site).await;
    let run = rest.run(&id).await;
    let known = site.last_sequence(subject::JOURNAL_STREAM).await;
    site.orchestrator.kill().await;
    bus_off(&mut site, NatsServer::lose_everything).await;
    for _ in 0..2 {
        site.orchestrator.start();
        let reason = halted(&site.orchestrator).await;
        let first = format!(
            "NATS has lost data: the journal is not there, messages up to {known} had been acknowledged; the control \
             stream is not there, messages up to "
        );
        assert!(reason.starts_with(&first), "{reason}");
        assert!(reason.contains(&format!(": journal messages 1 to {known} are lost, with ")), "{reason}");
        assert!(reason.contains(&format!(", run {id} started by api ")), "{reason}");
        assert!(reason.contains("h01 upgraded"), "{reason}");
        assert!(reason.contains("with 2 commands: prepare of h01, upgrade of h01"), "{reason}");
        // What is known can still be read.
        assert_eq!(rest.run(&id).await, run);
        site.orchestrator.kill().await;
    }
    for stream in [subject::JOURNAL_STREAM, subject::CONTROL_STREAM] {
        assert!(site.jetstream().get_stream(stream).await.is_err(), "{stream} has not been made anew");
    }
    assert_eq!(hosts[0].said(), ["prepare", "upgrade-begins", "upgrade-ends"]);
}

#[tokio::test]
async fn everything_lost_under_a_running_orchestrator_is_named_too() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    hosts[0].hold("prepare");
    let id = rest.started().await;
    hosts[0].await_said("prepare").await;
    bus_off(&mut site, NatsServer::lose_everything).await;
    let reason = halted(&site.orchestrator).await;
    assert!(reason.starts_with("NATS has lost data: the journal is not there, "), "{reason}");
    assert!(reason.contains(&format!(", run {id} started by api ")), "{reason}");
    hosts[0].let_go("prepare");
    // Nor does it go on when somebody makes the streams anew.
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start_ready().await;
    other.leads().await;
    site.orchestrator.kill_and_start().await;
    let reason = halted(&site.orchestrator).await;
    assert!(reason.starts_with("NATS has lost data: the journal was created at "), "{reason}");
    assert_eq!(rest.run(&id).await.result(), None);
    assert_eq!(hosts[0].said(), ["prepare"]);
}

#[tokio::test]
async fn a_lost_end_is_named_message_by_message() {
    let mut site = Site::start().await;
    let hosts = site.hosts(2).await;
    let first = whole_run(&site).await;
    site.nats.kill();
    let saved = site.nats.save();
    site.nats.start_again().await;
    let kept = site.last_sequence(subject::JOURNAL_STREAM).await;
    let kept_control = site.last_sequence(subject::CONTROL_STREAM).await;
    site.orchestrator.ready().await;
    let second = whole_run(&site).await;
    let known = site.last_sequence(subject::JOURNAL_STREAM).await;
    bus_off(&mut site, |nats| nats.put_back(&saved)).await;
    let reason = halted(&site.orchestrator).await;
    let missing = format!("the journal ends at {kept}: messages {} to ", kept + 1);
    assert!(reason.contains(&missing), "{reason}");
    let control = format!("; the control stream ends at {kept_control}: messages {} to ", kept_control + 1);
    assert!(reason.contains(&control), "{reason}");
    assert!(reason.contains(&format!("run {second} started by api ")), "{reason}");
    assert!(reason.contains(&format!("run {second} ended completed")), "{reason}");
    for command in
        ["with 4 commands: ", "prepare of h01", "prepare of h02", "upgrade of h01", "upgrade of h02"]
    {
        assert!(reason.contains(command), "{reason}");
    }
    assert!(!reason.contains(&first), "what is there is not named: {reason}");
    assert!(site.last_sequence(subject::JOURNAL_STREAM).await < known, "nothing has been appended");
    for host in &hosts {
        assert_eq!(
            host.said().iter().filter(|said| *said == "upgrade-begins").count(),
            2,
            "one for each run"
        );
    }
}

/// The end is lost, and grows again before anybody looks: what stands there now is somebody else's.
#[tokio::test]
async fn a_lost_end_in_whose_place_others_have_written_is_named_too() {
    let mut site = Site::start().await;
    let _hosts = site.hosts(1).await;
    whole_run(&site).await;
    site.nats.kill();
    let saved = site.nats.save();
    site.nats.start_again().await;
    // Records without facts are the same whoever writes them: what is missing begins after the last common fact.
    let records = site.records().await;
    let (common, _) =
        records.iter().rfind(|(_, record)| !record["facts"].as_array().unwrap().is_empty()).unwrap();
    site.orchestrator.ready().await;
    let lost = whole_run(&site).await;
    let known = site.last_sequence(subject::JOURNAL_STREAM).await;
    site.orchestrator.kill().await;
    bus_off(&mut site, |nats| nats.put_back(&saved)).await;
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start_ready().await;
    other.leads().await;
    other.rest.await_scheduled(&["h01"]).await;
    while site.last_sequence(subject::JOURNAL_STREAM).await <= known + 2 {
        let id = other.rest.started().await;
        other.rest.ended(&id).await;
    }
    other.terminate().await;
    let before = site.journal().await;
    site.orchestrator.start();
    let reason = halted(&site.orchestrator).await;
    assert!(reason.starts_with("NATS has lost data: the journal has "), "{reason}");
    let missing = format!(": journal messages {} to {known} are lost, ", common + 1);
    assert!(reason.contains(&missing), "{reason}");
    assert!(reason.contains(&format!("run {lost} started by api")), "{reason}");
    assert_eq!(site.journal().await, before, "nothing has been appended");
}
