//! What a worker sends of its scripts' output, before its replies.

use async_nats::jetstream::stream::Config;
use async_nats::{HeaderMap, HeaderValue};
use harness::nats_server::NatsServer;
use harness::wait::eventually;
use harness::worker::WorkerHost;
use os_upgrade_protocol::{Action, CommandId, HostName, Output, RunId, header, subject};

/// Sends a command of `run` with its id, as the orchestrator does, and returns its result.
async fn carry_out(host: &WorkerHost, run: &str, action: Action) -> String {
    let id = CommandId { run: RunId::new(run).unwrap(), host: host.host.clone(), action, attempt: 1 };
    let mut headers = HeaderMap::new();
    headers.insert(header::RUN, run);
    headers.insert(header::COMMAND_ID, id.to_string());
    let payload = match action {
        Action::Prepare => host.prepare(""),
        Action::Upgrade => host.upgrade(),
        Action::Reboot => host.reboot(),
    };
    let to = subject::command(&host.host);
    let sent = host.jetstream().publish_with_headers(to, headers, payload.into()).await.unwrap();
    host.result_of(sent.await.unwrap().sequence).await
}

/// The outputs that the stream has of `host`, each as its run, action and text.
async fn stored(host: &WorkerHost) -> Vec<(String, Action, String)> {
    let messages = host.messages(subject::OUTPUT_STREAM, &subject::output(&host.host)).await;
    let read = messages.iter().map(|message| {
        let id = message.headers.get(header::COMMAND_ID).map(HeaderValue::as_str);
        let Output { command, tail } = Output::parse(&host.host, id, &message.payload).unwrap();
        assert_eq!(message.headers.get(header::RUN).unwrap().as_str(), command.run.as_str());
        assert_eq!(message.payload, tail.to_string(), "it is sent as it may be shown");
        (command.run.to_string(), command.action, tail.to_string())
    });
    read.collect()
}

#[tokio::test]
async fn last_outputs_are_stored_before_their_replies() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h.1").await;
    host.jetstream().create_stream(os_upgrade_jetstream::output_stream()).await.unwrap();
    host.script(
        "prepare",
        "printf '\\033[32mreading\\033[0m lists'; echo; echo 'a\\007b' >&2; sleep 0.1; printf last",
    );
    host.script("upgrade", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line $i; done; sleep 0.1; echo 'no space' >&2; exit 1");
    host.script("versions", "printf '{\"a\":\"1\"}'");
    host.start();
    assert_eq!(carry_out(&host, "r1", Action::Prepare).await, "done");
    let prepared = |run: &str| (run.to_owned(), Action::Prepare);
    let [(run, action, text)] = stored(&host).await.try_into().unwrap();
    assert_eq!((run, action), prepared("r1"));
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.pop(), Some("last"));
    lines.sort_unstable();
    assert_eq!(lines, ["a\u{fffd}b", "reading lists"]);

    assert_eq!(carry_out(&host, "r1", Action::Upgrade).await, "no space");
    let [_, (run, action, text)] = stored(&host).await.try_into().unwrap();
    let last: Vec<String> = (102..=300).map(|number| format!("line {number}")).collect();
    assert_eq!(
        (run.as_str(), action, text),
        ("r1", Action::Upgrade, format!("{}\nno space\n", last.join("\n")))
    );

    for run in ["r2", "r3"] {
        assert_eq!(carry_out(&host, run, Action::Prepare).await, "done");
    }
    // A script that prints nothing sends nothing.
    host.script("prepare", "exit 0");
    assert_eq!(carry_out(&host, "r4", Action::Prepare).await, "done");
    let kept: Vec<_> = stored(&host).await.into_iter().map(|(run, action, _)| (run, action)).collect();
    assert_eq!(kept, [("r1".to_owned(), Action::Upgrade), prepared("r2"), prepared("r3")]);
}

#[tokio::test]
async fn worker_replies_when_output_cannot_be_stored() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("prepare", "echo reading");
    host.start();
    for run in ["r1", "r2"] {
        assert_eq!(carry_out(&host, run, Action::Prepare).await, "done");
    }
    let warnings = host.log().matches("the output of commands cannot be stored").count();
    assert_eq!(warnings, 1, "{}", host.log());
    host.jetstream().create_stream(os_upgrade_jetstream::output_stream()).await.unwrap();
    assert_eq!(carry_out(&host, "r3", Action::Prepare).await, "done");
    assert_eq!(stored(&host).await, [("r3".to_owned(), Action::Prepare, "reading\n".to_owned())]);
}

/// A full stream drops its oldest message, which must not become a way to drop what other hosts have sent.
#[tokio::test]
async fn flood_of_one_host_displaces_only_its_own_output() {
    const SMALL: i64 = 64 * 1024;
    let server = NatsServer::with_streams().await;
    let jetstream = async_nats::jetstream::new(server.client().await);
    let config = Config { max_bytes: SMALL, ..os_upgrade_jetstream::output_stream() };
    let stream = jetstream.create_stream(config).await.unwrap();
    let publish = async |host: &str, bytes: usize| {
        let to = subject::output(&HostName::new(host).unwrap());
        jetstream.publish(to, vec![b'x'; bytes].into()).await.unwrap().await.unwrap();
    };
    for number in 0..10 {
        publish(&format!("h{number}"), 1_000).await;
    }
    // Three of them are most of the stream.
    for _ in 0..200 {
        publish("flood", 15_000).await;
    }
    let kept = eventually("the server's count", async || {
        let state = stream.get_info().await.ok()?.state;
        (state.last_sequence == 210).then_some(state.messages)
    })
    .await;
    assert_eq!(kept, 10 + 3);
}
