//! The bus loses acknowledged messages: the loss is noticed and named exactly, and nothing is sent.

use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use serde_json::json;

const WAY_ON: &str = "nothing is sent until an operator has stopped this and decided: bring the lost data back, or go on \
                      from the store with `os-upgrade restore --from-store`";

/// Waits until an instance has halted because of a loss and has determined what is missing. Returns its message.
async fn await_halt(orchestrator: &Orchestrator) -> String {
    let reason = eventually("it to say what is lost", async || {
        orchestrator.readiness().await.filter(|reason| reason.ends_with(WAY_ON))
    })
    .await;
    // Requests for changes get the same message.
    let (status, body) = orchestrator.rest.trigger("").await;
    let info = json!({ "outcome": "unchanged", "why": reason });
    assert_eq!((status, &body["errors"][0]["error-info"]), (503, &info));
    assert_eq!(orchestrator.rest.get("/healthz").await.0, 200);
    reason.trim_end_matches(WAY_ON).trim_end_matches("; ").to_owned()
}

/// Executes a whole run and waits until the history has its end. Returns its id.
async fn complete_run(site: &Site) -> String {
    let id = site.rest().start_run().await;
    assert_eq!(site.rest().await_end(&id).await.result(), Some("completed"));
    id
}

/// Kills the bus, calls `change`, and starts the bus again.
async fn change_stopped_bus(site: &mut Site, change: impl FnOnce(&NatsServer)) {
    site.nats.kill();
    change(&site.nats);
    site.nats.start_again().await;
}

#[tokio::test]
async fn total_loss_recreates_no_stream() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    let id = complete_run(&site).await;
    let run = rest.run(&id).await;
    let known = site.last_sequence(subject::JOURNAL_STREAM).await;
    site.orchestrator.kill().await;
    change_stopped_bus(&mut site, NatsServer::delete_streams).await;
    for _ in 0..2 {
        site.orchestrator.start();
        let reason = await_halt(&site.orchestrator).await;
        let first = format!(
            "NATS has lost data: the journal is not there, messages up to {known} had been acknowledged; the control \
             stream is not there, messages up to "
        );
        assert!(reason.starts_with(&first), "{reason}");
        assert!(reason.contains(&format!(": journal messages 1 to {known} are lost, with ")), "{reason}");
        assert!(reason.contains(&format!(", run {id} started by api ")), "{reason}");
        assert!(reason.contains("h01 upgraded"), "{reason}");
        assert!(reason.contains("with 2 commands: prepare of h01, upgrade of h01"), "{reason}");
        // The history can still be read.
        assert_eq!(rest.run(&id).await, run);
        site.orchestrator.kill().await;
    }
    for stream in [subject::JOURNAL_STREAM, subject::CONTROL_STREAM] {
        assert!(site.jetstream().get_stream(stream).await.is_err(), "{stream} has not been made anew");
    }
    assert_eq!(hosts[0].script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
}

#[tokio::test]
async fn total_loss_is_reported_while_running() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    hosts[0].hold("prepare");
    let id = rest.start_run().await;
    hosts[0].await_script("prepare").await;
    change_stopped_bus(&mut site, NatsServer::delete_streams).await;
    let reason = await_halt(&site.orchestrator).await;
    assert!(reason.starts_with("NATS has lost data: the journal is not there, "), "{reason}");
    assert!(reason.contains(&format!(", run {id} started by api ")), "{reason}");
    hosts[0].release("prepare");
    // Nor does it continue when somebody recreates the streams.
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start_ready().await;
    other.await_leading().await;
    site.orchestrator.kill_and_start().await;
    let reason = await_halt(&site.orchestrator).await;
    assert!(reason.starts_with("NATS has lost data: the journal was created at "), "{reason}");
    assert_eq!(rest.run(&id).await.result(), None);
    assert_eq!(hosts[0].script_log(), ["prepare"]);
}

/// Deletes from a stream while everybody stays connected.
#[derive(Debug, Clone, Copy)]
enum Deletion {
    Stream,
    AllMessages,
    AllButTheLast,
}

/// Waits until a site whose stream was damaged in the middle of a run says so. Returns what it says.
async fn live_loss(stream: &str, deletion: Deletion) -> String {
    let site = Site::start().await;
    let hosts = site.hosts(1).await;
    hosts[0].hold("prepare");
    site.rest().start_run().await;
    hosts[0].await_script("prepare").await;
    let found = site.jetstream().get_stream(stream).await.unwrap();
    match deletion {
        Deletion::Stream => drop(site.jetstream().delete_stream(stream).await.unwrap()),
        Deletion::AllMessages => drop(found.purge().await.unwrap()),
        Deletion::AllButTheLast => drop(found.purge().keep(1).await.unwrap()),
    }
    let reason = await_halt(&site.orchestrator).await;
    hosts[0].release("prepare");
    assert_eq!(hosts[0].script_log(), ["prepare"]);
    let (code, printed, _) = site.orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1), "{printed}");
    reason
}

#[tokio::test]
async fn streams_deleted_while_connected_are_reported() {
    let journal = live_loss(subject::JOURNAL_STREAM, Deletion::Stream).await;
    assert!(
        journal.starts_with("NATS has lost data: the journal is not there, messages up to "),
        "{journal}"
    );
    let control = live_loss(subject::CONTROL_STREAM, Deletion::Stream).await;
    assert!(control.starts_with("NATS has lost data: the control stream is not there, "), "{control}");
}

#[tokio::test]
async fn streams_purged_while_connected_are_reported() {
    for deletion in [Deletion::AllMessages, Deletion::AllButTheLast] {
        let journal = live_loss(subject::JOURNAL_STREAM, deletion).await;
        assert!(journal.starts_with("NATS has lost data: the journal begins at "), "{journal}");
        assert!(journal.contains(": messages 1 to "), "{journal}");
    }
    let control = live_loss(subject::CONTROL_STREAM, Deletion::AllMessages).await;
    assert!(control.starts_with("NATS has lost data: the control stream begins at "), "{control}");
}

async fn stray_message(site: &Site) {
    let sent = site.jetstream().publish(subject::JOURNAL_FACT, "moin".into()).await.unwrap();
    let stream = site.jetstream().get_stream(subject::JOURNAL_STREAM).await.unwrap();
    assert!(stream.delete_message(sent.await.unwrap().sequence).await.unwrap());
}

/// Somebody publishes to the journal, and an operator deletes that message: nothing of the journal is lost, but the
/// stream's last sequence lies beyond its end.
#[tokio::test]
async fn site_goes_on_after_deleted_stray_message() {
    let mut site = Site::start().await;
    let _hosts = site.hosts(1).await;
    // While it leads, and while nobody does.
    stray_message(&site).await;
    complete_run(&site).await;
    site.orchestrator.terminate().await;
    stray_message(&site).await;
    stray_message(&site).await;
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    site.rest().await_scheduled(&["h01"]).await;
    let id = complete_run(&site).await;
    let (code, printed, _) = site.orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(0), "{printed}");
    // Another instance follows such a journal from its beginning.
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start();
    other.await_following(&site.orchestrator).await;
    assert_eq!(other.rest.await_end(&id).await.result(), Some("completed"));
}

/// Deleting it is enough; a restoration would be advice to take a risk for nothing.
#[tokio::test]
async fn stray_message_halts_until_it_is_deleted() {
    let mut site = Site::start().await;
    let _hosts = site.hosts(1).await;
    let first = complete_run(&site).await;
    let sent = site.jetstream().publish(subject::JOURNAL_FACT, "moin".into()).await.unwrap();
    let stray = sent.await.unwrap().sequence;
    let advice = format!("`nats stream rmm os-upgrade:journal {stray}`");
    let begins = format!("journal message {stray} is not of an orchestrator: ");
    let reason = eventually("it to name the message", async || {
        // A leader reads what others have written when it appends.
        site.rest().trigger("").await;
        site.orchestrator.readiness().await.filter(|reason| reason.starts_with(&begins))
    })
    .await;
    assert!(reason.contains(&advice), "{reason}");
    let (_, answer) = site.rest().get("/readyz").await;
    assert_eq!(answer["errors"][0]["error-info"], json!({ "kind": "stray-message" }));
    let (code, printed, _) = site.orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(&advice), "{printed}");

    let stream = site.jetstream().get_stream(subject::JOURNAL_STREAM).await.unwrap();
    assert!(stream.delete_message(stray).await.unwrap());
    site.orchestrator.terminate().await;
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    site.rest().await_scheduled(&["h01"]).await;
    assert_ne!(complete_run(&site).await, first);
}

#[tokio::test]
async fn lost_journal_tail_is_listed() {
    let mut site = Site::start().await;
    let mut hosts = site.hosts(2).await;
    let first = complete_run(&site).await;
    let kept = site.last_sequence(subject::JOURNAL_STREAM).await;
    let kept_control = site.last_sequence(subject::CONTROL_STREAM).await;
    site.nats.kill();
    let saved = site.nats.save();
    site.nats.start_again().await;
    site.orchestrator.ready().await;
    let second = complete_run(&site).await;
    let known = site.last_sequence(subject::JOURNAL_STREAM).await;
    // A worker repeats an answer whose acknowledgement was lost, which would be a later end of the control stream.
    for host in &mut hosts {
        host.stop().await;
    }
    change_stopped_bus(&mut site, |nats| nats.restore_streams(&saved)).await;
    let reason = await_halt(&site.orchestrator).await;
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
            host.script_log().iter().filter(|line| *line == "upgrade-begins").count(),
            2,
            "one for each run"
        );
    }
}

/// The last messages are lost and others are written in their place before the loss is noticed.
#[tokio::test]
async fn overwritten_journal_tail_is_reported() {
    let mut site = Site::start().await;
    let _hosts = site.hosts(1).await;
    complete_run(&site).await;
    site.nats.kill();
    let saved = site.nats.save();
    site.nats.start_again().await;
    // Records without facts cannot be told apart: the loss begins after the last common fact.
    let records = site.records().await;
    let (common, _) =
        records.iter().rfind(|(_, record)| !record["facts"].as_array().unwrap().is_empty()).unwrap();
    site.orchestrator.ready().await;
    let lost = complete_run(&site).await;
    let known = site.last_sequence(subject::JOURNAL_STREAM).await;
    site.orchestrator.kill().await;
    change_stopped_bus(&mut site, |nats| nats.restore_streams(&saved)).await;
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start_ready().await;
    other.await_leading().await;
    other.rest.await_scheduled(&["h01"]).await;
    while site.last_sequence(subject::JOURNAL_STREAM).await <= known + 2 {
        let id = other.rest.start_run().await;
        other.rest.await_end(&id).await;
    }
    other.terminate().await;
    let before = site.journal().await;
    site.orchestrator.start();
    let reason = await_halt(&site.orchestrator).await;
    assert!(reason.starts_with("NATS has lost data: the journal has "), "{reason}");
    let missing = format!(": journal messages {} to {known} are lost, ", common + 1);
    assert!(reason.contains(&missing), "{reason}");
    assert!(reason.contains(&format!("run {lost} started by api")), "{reason}");
    assert_eq!(site.journal().await, before, "nothing has been appended");
}
