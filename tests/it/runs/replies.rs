//! Unexpected replies and commands are recorded, and cause neither a crash nor a wrong state.

use std::collections::BTreeMap;

use async_nats::HeaderMap;
use harness::raw_worker::RawWorker;
use harness::rest::{Rest, Run};
use harness::site::Site;
use harness::streams::stored;
use os_upgrade_protocol::subject;
use serde_json::{Value, json};

/// A site with one raw worker on `h01`, and a run whose `prepare` is in the stream.
async fn site_with_a_run() -> (Site, Rest, RawWorker, String) {
    let site = Site::start().await;
    let rest = site.rest();
    let worker = RawWorker::start(site.nats.client().await, "h01").await;
    rest.await_scheduled(&["h01"]).await;
    let id = rest.start_run().await;
    rest.await_status("h01", "preparing").await;
    (site, rest, worker, id)
}

/// Completes the run and returns it.
async fn complete_run(rest: &Rest, worker: &RawWorker, id: &str) -> Run {
    worker.answer("prepare", "done").await;
    worker.answer("upgrade", "done").await;
    let run = rest.await_end(id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded")]));
    run
}

fn ignored(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|(host, why)| ((*host).to_owned(), (*why).to_owned())).collect()
}

#[tokio::test]
async fn malformed_replies_are_only_recorded() {
    let (site, rest, worker, id) = site_with_a_run().await;
    // A message of the largest size, whose error message fills all of it.
    let mut huge = br#"{"action":"prepare","result":""#.to_vec();
    huge.resize(1024 * 1024 - 1024, b'x');
    huge.extend_from_slice(br#""}"#);
    let unreadable: [&[u8]; 7] = [
        b"",
        b"done",
        b"\xff\xfe",
        b"[]",
        br#"{"action":"dance","result":"done"}"#,
        br#"{"action":"prepare","result":"done","host":"h02"}"#,
        &huge,
    ];
    for payload in unreadable {
        worker.publish_reply(payload).await;
    }
    let run = complete_run(&rest, &worker, &id).await;
    // The first of each minute is recorded.
    let recorded = site.ignored().await;
    assert!(
        recorded == ignored(&[("h01", "malformed"); 1]) || recorded == ignored(&[("h01", "malformed"); 2])
    );
    let journal = Value::from(site.journal().await).to_string();
    assert!(journal.contains("payload is not a valid message"), "{journal}");
    assert!(journal.len() < 16 * 1024, "a fact is bounded");
    assert_eq!(run.result(), Some("completed"));
    let metrics = rest.get_as("/metrics", "*/*").await;
    let unused = 7 - recorded.len();
    let counted = format!("os_upgrade_worker_messages_unused_total{{kind=\"reply\"}} {unused}\n");
    assert!(metrics.contains(&counted), "{metrics}");
}

/// "Any other value is interpreted as the error message", one that is missing or no text too: nobody waits for another
/// reply until the end of the run.
#[tokio::test]
async fn result_that_is_no_text_is_an_error() {
    let (site, rest, worker, id) = site_with_a_run().await;
    worker.expect("prepare").await.ack().await;
    worker.publish_reply(br#"{"action":"prepare"}"#).await;
    let run = rest.await_end(&id).await;
    assert_eq!((run.result(), site.ignored().await), (Some("failed"), Vec::new()));
    assert_eq!(run.reasons()["h01"], "prepare failed: the reply has no result");
    let id = rest.start_run().await;
    worker.answer("prepare", "done").await;
    worker.expect("upgrade").await.ack().await;
    worker.publish_reply(br#"{"action":"upgrade","result":{"code":1}}"#).await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.reasons()["h01"], r#"upgrade failed: the reply's result is not a text: {"code":1}"#);
}

/// The specification's workers share one topic. One that reads all of it, and looks in each message for an action and for
/// its host, as a command has them, finds nothing for it in the orchestrators' own.
#[tokio::test]
async fn worker_may_read_the_whole_stream() {
    let (site, rest, worker, id) = site_with_a_run().await;
    complete_run(&rest, &worker, &id).await;
    let jetstream = async_nats::jetstream::new(site.nats.client().await);
    let all = stored(&jetstream, subject::CONTROL_STREAM, ">").await;
    let of_leader = all.iter().filter(|message| message.subject.as_str() == subject::LEADER);
    assert!(of_leader.count() > 0);
    for message in &all {
        let read: Value = serde_json::from_slice(&message.payload).unwrap();
        let action = read["action"].as_str().unwrap();
        let is_reply = read.get("result").is_some();
        let names_host = match action {
            "prepare" if !is_reply => read["hosts"].as_array().unwrap().contains(&json!("h01")),
            _ if is_reply => false,
            _ => read["host"].as_str().unwrap() == "h01",
        };
        let is_command = message.subject.as_str() == "os-upgrade:control.command.h01";
        assert_eq!(names_host, is_command, "{read}");
    }
}

#[tokio::test]
async fn unknown_reply_fields_are_ignored() {
    let (site, rest, worker, id) = site_with_a_run().await;
    let payload = br#"{"x":[{}],"result":"done","host":"h01","action":"prepare","not-after":7}"#;
    worker.expect("prepare").await.ack().await;
    worker.publish_reply(payload).await;
    worker.answer("upgrade", "done").await;
    let run = rest.await_end(&id).await;
    assert_eq!((run.result(), site.ignored().await), (Some("completed"), Vec::new()));
}

#[tokio::test]
async fn duplicate_reply_counts_once() {
    let (_site, rest, worker, id) = site_with_a_run().await;
    let command = worker.expect("prepare").await;
    worker.reply("prepare", "done").await;
    worker.reply("prepare", "done").await;
    command.ack().await;
    let command = worker.expect("upgrade").await;
    worker.reply("upgrade", "reboot-required").await;
    worker.reply("upgrade", "reboot-required").await;
    worker.reply("upgrade", "done").await;
    command.ack().await;
    let command = worker.expect("reboot").await;
    worker.reply("reboot", "done").await;
    worker.reply("reboot", "it did not come up").await;
    command.ack().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded")]));
    let events = run.events_of("h01");
    let expected = [
        "command-sent prepare",
        "prepared",
        "slot-granted",
        "command-sent upgrade",
        "reboot-required",
        "command-sent reboot",
        "upgraded",
        "slot-released",
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn unsolicited_replies_are_only_recorded() {
    let (site, rest, worker, id) = site_with_a_run().await;
    // The host's own replies, before their commands.
    worker.reply("upgrade", "done").await;
    worker.reply("reboot", "done").await;
    // Replies of an unknown host, and of an impossible one.
    let publish = async |subject: &str| {
        let payload = r#"{"action":"prepare","result":"it exploded"}"#;
        let sent = site.jetstream().publish(subject.to_owned(), payload.into()).await;
        sent.expect("sent").await.expect("stored");
    };
    publish("os-upgrade:control.reply.h99").await;
    publish("os-upgrade:control.reply.%zz").await;
    let run = complete_run(&rest, &worker, &id).await;
    // The first of each minute is recorded, without the error.
    assert!(
        site.ignored().await.starts_with(&ignored(&[("h01", "nothing-outstanding")])),
        "{:?}",
        site.ignored().await
    );
    assert!(!run.0.to_string().contains("it exploded"), "{}", run.0);
    // The others belong to no run, and are in the journal only.
    let facts = site.journal().await;
    let has = |host: Value, why: Value| {
        let ignored = facts.iter().filter(|fact| fact["type"] == "ignored");
        ignored.filter(|fact| fact["host"] == host && fact["why"] == why).count()
    };
    assert_eq!(has(json!("h99"), json!({ "kind": "nothing-outstanding" })), 1);
    let subject = "os-upgrade:control.reply.%zz";
    assert_eq!(has(Value::Null, json!({ "kind": "unknown-subject", "subject": subject })), 1);
}

#[tokio::test]
async fn earlier_runs_reply_is_ignored() {
    let (site, rest, worker, first) = site_with_a_run().await;
    let command = worker.expect("prepare").await;
    command.ack().await;
    let commands = site.control("os-upgrade:control.command.h01").await;
    let late = commands.first().expect("the command").sequence.to_string();
    assert_eq!(rest.cancel().await.0, 204);
    assert_eq!(rest.await_end(&first).await.result(), Some("cancelled"));

    let second = rest.start_run().await;
    rest.await_status("h01", "preparing").await;
    let commands = site.control("os-upgrade:control.command.h01").await;
    let current = commands.last().expect("the command").sequence.to_string();
    // The second one is of a site that was rolled back, and has used the sequence again.
    for (command, run) in [(&late, None), (&current, Some(&first))] {
        let mut headers = HeaderMap::new();
        headers.insert("Os-Upgrade-In-Reply-To", command.as_str());
        if let Some(run) = run {
            headers.insert("Os-Upgrade-Run", run.as_str());
        }
        let payload = r#"{"action":"prepare","result":"no space"}"#;
        let subject = "os-upgrade:control.reply.h01";
        let sent = site.jetstream().publish_with_headers(subject, headers, payload.into()).await;
        sent.expect("sent").await.expect("stored");
    }
    complete_run(&rest, &worker, &second).await;
    assert_eq!(site.ignored().await, ignored(&[("h01", "nothing-outstanding")]));
}

#[tokio::test]
async fn error_after_done_prevents_upgrade() {
    let site = Site::start().await;
    let rest = site.rest();
    let first = RawWorker::start(site.nats.client().await, "h01").await;
    let second = RawWorker::start(site.nats.client().await, "h02").await;
    rest.await_scheduled(&["h01", "h02"]).await;
    let id = rest.start_run().await;
    first.answer("prepare", "done").await;
    rest.await_status("h01", "prepared").await;
    // Nothing more is sent once the run is to end.
    let received = second.expect("prepare").await;
    first.reply("prepare", "the disk is full after all").await;
    second.reply("prepare", "done").await;
    received.ack().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("failed"));
    assert_eq!(run.reasons()["h01"], "prepare failed: the disk is full after all");
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
}

#[tokio::test]
async fn undecided_commands_are_only_recorded() {
    let (site, rest, worker, id) = site_with_a_run().await;
    worker.answer("prepare", "done").await;
    let received = worker.expect("upgrade").await;
    // As an intruder might, or an operator with a NATS client.
    let publish = async |payload: &str| {
        let sent =
            site.jetstream().publish("os-upgrade:control.command.h01", payload.to_owned().into()).await;
        sent.expect("sent").await.expect("stored");
    };
    publish(r#"{"action":"reboot","host":"h01"}"#).await;
    publish("not JSON").await;
    worker.reply("upgrade", "done").await;
    received.ack().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(site.ignored().await, ignored(&[("h01", "foreign-command"); 2]));
}
