//! Worker processes with scripts against a real nats-server: ordinary commands, and unusual but legal ones.

use std::time::Duration;

use futures::StreamExt;
use harness::host::APPLICATION;
use harness::nats_server::{NatsServer, create_streams};
use harness::wait::{PATIENCE, eventually};
use harness::worker::{FIRST_BOOT, WorkerHost, in_reply_to};
use os_upgrade_protocol::{Announcement, ApplicationName, Reply, Versions, subject};
use serde_json::json;

fn versions(text: &str) -> Versions {
    Versions::parse(text.as_bytes()).unwrap()
}

#[tokio::test]
async fn all_three_commands_succeed() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1.example.com").await.with_options(&[
        "--group",
        "web",
        "--label",
        "rack=r1",
        "--address",
        "10.0.0.1",
    ]);
    // No script inherits the bus's password.
    host = host.with_environment("OS_UPGRADE_NATS_URL", "nats://user:secret@127.0.0.1:1");
    let mut heartbeats = host.client().subscribe(subject::presence(&host.host)).await.unwrap();
    host.client().flush().await.unwrap();
    host.script("prepare", "env | grep ^OS_UPGRADE_ | sed 's|=/.*/|=|' | sort > ../environment");
    host.script("upgrade", r#"echo '{"linux":"2"}' > ../versions; echo not an error >&2; exit 194"#);
    host.script("versions", r#"cat ../versions 2>/dev/null || echo '{"linux":"1"}'"#);
    host.script("health", "cat ../boot-id > ../healthy-in");
    host.script("reboot", "touch ../rebooting");
    host.start();

    // It announces its host, and publishes its versions.
    let heartbeat = tokio::time::timeout(PATIENCE, heartbeats.next()).await.unwrap();
    assert!(heartbeat.is_some());
    let worker = subject::worker(&ApplicationName::new(APPLICATION).unwrap(), &host.host);
    let announcement = eventually("an announcement", async || {
        let messages = host.messages(subject::WORKERS_STREAM, &worker).await;
        messages.first().map(|message| Announcement::parse(&message.payload).unwrap())
    })
    .await;
    assert_eq!(announcement.host, host.host);
    assert_eq!(announcement.group.unwrap().as_str(), "web");
    assert_eq!(announcement.labels["rack"], "r1");
    assert_eq!(announcement.addresses, ["10.0.0.1"]);
    assert_eq!(announcement.boot_id.as_deref(), Some(FIRST_BOOT));
    assert!(announcement.time.is_some());
    let first = versions(r#"{"linux":"1"}"#);
    let published = async || Some(host.versions().await).filter(|all| *all == [first.clone()]);
    eventually("versions", published).await;

    let prepare = host.send("run-1", &host.prepare("2099-01-01T00:00:00Z")).await;
    assert_eq!(host.result_of(prepare).await, "done");
    assert_eq!(
        host.lines("environment"),
        [
            "OS_UPGRADE_HOST=h1.example.com",
            "OS_UPGRADE_NOT_AFTER=2099-01-01T00:00:00Z",
            "OS_UPGRADE_PROGRESS=h1%2Eexample%2Ecom.progress",
            "OS_UPGRADE_RUN=run-1",
        ]
    );
    let upgrade = host.send("run-1", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "reboot-required");
    host.await_acked(upgrade).await;
    let command = format!(r#"command{{host=h1.example.com run=run-1 action="upgrade" sequence={upgrade}}}"#);
    host.await_log(&format!("{command}: not an error script=\"upgrade\"")).await;
    let both = [first.clone(), versions(r#"{"linux":"2"}"#)];
    eventually("new versions", async || Some(host.versions().await).filter(|all| *all == both)).await;

    // The reboot begins at once, and is answered afterwards.
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    assert_eq!(host.replies_to(reboot).await, 0);
    host.kill();
    host.boot("boot-2");
    host.start();
    assert_eq!(host.result_of(reboot).await, "done");
    assert_eq!(host.lines("healthy-in"), ["boot-2"]);
    host.await_acked(reboot).await;
    assert_eq!(host.replies().await.len(), 3);
    // No versions are published without a change.
    host.await_log("versions are as last published").await;
    assert_eq!(host.versions().await, both);
}

#[tokio::test]
async fn specification_only_sender_is_understood() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "häst").await;
    host.script("upgrade", "exit 194");
    host.script("reboot", "touch ../rebooting");
    host.start();
    host.send_plain(r#"{"action": "prepare", "hosts": ["a", "häst"], "not-after": ""}"#).await;
    let replies = async |count| {
        let replies = async || Some(host.replies().await).filter(|replies| replies.len() == count);
        eventually("replies", replies).await
    };
    replies(1).await;
    host.send_plain(r#"{"action": "upgrade", "host": "häst"}"#).await;
    replies(2).await;
    let reboot = host.send_plain(r#"{"action": "reboot", "host": "häst"}"#).await;
    host.await_file("rebooting").await;
    host.kill();
    host.boot("boot-2");
    host.start();
    host.await_acked(reboot).await;
    let replies = host.replies().await;
    let payloads: Vec<_> =
        replies.iter().map(|reply| String::from_utf8(reply.payload.to_vec()).unwrap()).collect();
    assert_eq!(
        payloads,
        [
            r#"{"action":"prepare","result":"done"}"#,
            r#"{"action":"upgrade","result":"reboot-required"}"#,
            r#"{"action":"reboot","result":"done"}"#,
        ]
    );
}

#[tokio::test]
async fn invalid_commands_are_not_executed() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("prepare", "echo prepare >> ../calls");
    host.script("upgrade", "echo upgrade >> ../calls");
    host.script("reboot", "echo reboot >> ../calls");
    // A valid command first: a consumer without a state file starts at the last message of its subject.
    host.start();
    host.prepared("r1").await;
    for payload in [
        &host.prepare("2020-01-01T00:00:00Z"),
        r#"{"action":"prepare","hosts":["h2"],"not-after":""}"#,
        r#"{"action":"upgrade","host":"h2"}"#,
        r#"{"action":"upgrade","host":"h1","not-after":"2020-01-01T00:00:00Z"}"#,
        r#"{"action":"reboot","host":"h1","not-after":"2020-01-01T00:00:00Z"}"#,
        r#"{"action":"explode","host":"h1"}"#,
        "no JSON",
        "",
    ] {
        host.send("r0", payload).await;
    }
    // Commands of runs that were not prepared.
    let large = format!(r#"{{"action":"upgrade","host":"h1","x":"{}"}}"#, "x".repeat(900_000));
    let others = [host.send("r0", &large).await, host.send("r2", &host.upgrade()).await];
    let upgrade = host.send("r1", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "done");
    // A second upgrade, and a reboot that the upgrade did not require: the latter counts as done.
    let second = host.send("r1", &host.upgrade()).await;
    let reboot = host.send("r1", &host.reboot()).await;
    assert_eq!(host.result_of(reboot).await, "done");
    host.await_acked(reboot).await;
    assert_eq!(host.lines("calls"), ["prepare", "upgrade"]);
    let answered: Vec<_> = host.replies().await.iter().filter_map(in_reply_to).collect();
    assert_eq!(answered, [1, others[0], others[1], upgrade, second, reboot]);
    let [of_another, unprepared] =
        ["the last prepare belongs to run r1; ", "no prepare was executed since the last upgrade; "];
    for (sequence, expected) in [(others[0], of_another), (others[1], of_another), (second, unprepared)] {
        let result = host.result_of(sequence).await;
        assert!(result.starts_with(expected), "{result}");
    }
}

#[tokio::test]
async fn errors_never_look_like_success() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.start();
    let result = async |script: &str| {
        host.script("prepare", script);
        let sequence = host.send("r1", &host.prepare("")).await;
        host.result_of(sequence).await
    };
    assert_eq!(result("echo done >&2; exit 1").await, "error: done");
    assert_eq!(result("echo reboot-required >&2; exit 3").await, "error: reboot-required");
    assert_eq!(result("echo one >&2; echo two >&2; echo >&2; exit 1").await, "two");
    assert_eq!(result("exit 7").await, "prepare exited with status 7");
    assert_eq!(result("kill -9 $$").await, "prepare was killed by signal 9");
    let long = result("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1").await;
    assert_eq!(long.len(), 4096);
    assert!(long.starts_with("xxx"));
    assert_eq!(result("head -c 3000000 /dev/zero; exit 0").await, "done");
    // A background process of a script does not delay the answer.
    assert_eq!(result("sleep 600 & echo $! > ../sleeper").await, "done");
    let sleeper = host.lines("sleeper").remove(0);
    assert!(std::process::Command::new("kill").arg(&sleeper).status().unwrap().success());

    // A missing script.
    std::fs::remove_file(host.scripts().join("prepare")).unwrap();
    host.prepared("r2").await;
    let upgrade = host.send("r2", &host.upgrade()).await;
    let missing = format!("there is no script {}", host.scripts().join("upgrade").display());
    assert_eq!(host.result_of(upgrade).await, missing);
}

#[tokio::test]
async fn missing_reboot_is_an_error() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await.with_options(&["--reboot-wait", "1s"]);
    host.script("upgrade", "exit 194");
    host.script("reboot", r#"echo "resume=$OS_UPGRADE_RESUME" >> ../reboots"#);
    host.start();
    host.prepared("r1").await;
    let upgrade = host.send("r1", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "reboot-required");
    let reboot = host.send("r1", &host.reboot()).await;
    assert_eq!(
        host.result_of(reboot).await,
        "the host did not reboot: its boot id is unchanged after 3 attempts"
    );
    assert_eq!(host.lines("reboots"), ["resume=", "resume=1", "resume=1"]);
    host.await_acked(reboot).await;

    // A script that cannot be started is an error at once.
    host.script("reboot", "echo no power >&2; exit 1");
    let reboot = host.send("r1", &host.reboot()).await;
    assert_eq!(host.result_of(reboot).await, "no power");
}

#[tokio::test]
async fn surviving_worker_notices_reboot() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("upgrade", "exit 194");
    host.script("reboot", "echo boot-2 > ../boot-id.2; mv ../boot-id.2 ../boot-id");
    host.start();
    host.prepared("r1").await;
    host.send("r1", &host.upgrade()).await;
    let reboot = host.send("r1", &host.reboot()).await;
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn hints_stop_only_prepare() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    let wait = |name: &str| format!("touch ../{name}; while [ ! -e ../go ]; do sleep 0.05; done");
    host.script("prepare", &wait("preparing"));
    host.script("upgrade", &wait("upgrading"));
    host.start();
    let prepare = host.send("r1", &host.prepare("")).await;
    host.await_file("preparing").await;
    let hint = async || {
        let subject = subject::hint(&host.host);
        host.client().publish(subject, "".into()).await.unwrap();
        host.client().flush().await.unwrap();
    };
    hint().await;
    assert_eq!(host.result_of(prepare).await, "prepare was stopped");

    host.script("prepare", "");
    host.prepared("r2").await;
    let upgrade = host.send("r2", &host.upgrade()).await;
    host.await_file("upgrading").await;
    hint().await;
    eventually("both hints", async || {
        let hints = host.log().matches("asked to stop what is under way").count();
        (hints == 2).then_some(())
    })
    .await;
    host.touch("go");
    assert_eq!(host.result_of(upgrade).await, "done");
}

#[tokio::test]
async fn worker_waits_for_server_and_streams() {
    let mut server = NatsServer::start().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    server.kill();
    host.start();
    host.await_log("NATS: ").await;
    server.start_again().await;
    host.await_log("waiting for the stream").await;
    create_streams(host.jetstream()).await;
    host.prepared("r1").await;
}

#[tokio::test]
async fn url_may_contain_user() {
    let users = r#"authorization { users: [{user: "me", password: "s@fe"}, {user: "test", password: "t"}] }
        no_auth_user: "test""#;
    let server = NatsServer::start_with(users).await;
    let url = server.url().replace("nats://", "nats://me:s%40fe@");
    let mut host = WorkerHost::new(&server, "h1").await.with_url(url);
    create_streams(host.jetstream()).await;
    host.start();
    host.prepared("r1").await;
    assert!(!host.log().contains("s%40fe") && !host.log().contains("s@fe"));
}

#[tokio::test]
async fn startup_errors_are_one_line() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.start();
    host.prepared("r1").await;
    let ended = |host: &WorkerHost| {
        let output = host.run_to_end();
        let text = String::from_utf8(output.stderr).unwrap();
        let line = text.lines().last().unwrap_or_default().to_owned();
        (output.status.code().unwrap(), line)
    };
    let (code, line) = ended(&host);
    assert_eq!(code, 1);
    assert!(line.ends_with("h1.lock; one host has one worker"), "{line}");

    let other = WorkerHost::new(&server, "h2").await.with_options(&["--rebot-wait", "1s"]);
    assert_eq!(ended(&other).0, 2);

    let other = WorkerHost::new(&server, "h2").await;
    std::fs::remove_file(other.path("boot-id")).unwrap();
    let (code, line) = ended(&other);
    assert_eq!(code, 1);
    assert!(line.starts_with("os-upgrade-worker: cannot read the boot id from"), "{line}");

    std::fs::remove_dir(other.scripts()).unwrap();
    let (code, line) = ended(&other);
    assert_eq!(code, 1);
    assert!(line.starts_with("os-upgrade-worker: cannot use the scripts in"), "{line}");
}

#[tokio::test]
async fn deleted_consumer_is_recreated_without_gaps() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("upgrade", "echo upgrade >> ../calls");
    host.start();
    host.prepared("r1").await;
    host.await_acked(1).await;
    let created = host.consumer().await.unwrap().created;
    // The reply is the last message of the stream, so the new consumer starts at its end.
    let stream = host.jetstream().get_stream(subject::CONTROL_STREAM).await.unwrap();
    let name = subject::consumer(&host.host);
    stream.delete_consumer(&name).await.unwrap();
    eventually("a new consumer", async || host.consumer().await.filter(|info| info.created != created)).await;
    let upgrade = host.send("r1", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "done");
    host.await_acked(upgrade).await;
    assert_eq!(host.lines("calls"), ["upgrade"]);
}

#[tokio::test]
async fn long_handler_is_not_redelivered() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    // Longer than the five seconds after which a silent consumer is taken for dead.
    host.script("upgrade", "echo upgrade >> ../calls; sleep 8");
    host.start();
    host.prepared("r1").await;
    let created = host.consumer().await.unwrap().created;
    let upgrade = host.send("r1", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "done");
    let reply = host.replies().await.pop().unwrap();
    assert_eq!(Reply::parse(&reply.payload).unwrap().result.as_str(), "done");
    let info = host.consumer().await.unwrap();
    assert_eq!(info.created, created);
    assert_eq!(info.config.num_replicas, 1);
    assert_eq!(info.config.ack_wait, Duration::from_secs(30));
    assert_eq!(host.lines("calls"), ["upgrade"]);
}

/// A worker that does not run on its host lives through the host's reboots, also through those that nobody asked it for.
#[tokio::test]
async fn reboots_on_request_of_a_remote_worker() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("reboot", "echo reboot >>../calls");
    host.start();
    let announced = async |boot: &str| {
        eventually(boot, async || {
            let stored = host.messages(subject::WORKERS_STREAM, &subject::workers_of(&host.host)).await;
            let last = Announcement::parse(&stored.last()?.payload).unwrap();
            (last.reboots_on_request && last.boot_id.as_deref() == Some(boot)).then_some(())
        })
        .await;
    };
    host.boot("boot-2");
    announced("boot-2").await;
    let leave = |boot: &str| json!({ "action": "reboot", "host": "h1", "boot-id": boot }).to_string();
    let earlier = host.send("rq-1", &leave("boot-1")).await;
    assert_eq!(host.result_of(earlier).await, "done");
    assert_eq!(host.lines("calls"), Vec::<String>::new());
    let present = host.send("rq-2", &leave("boot-2")).await;
    eventually("the reboot", async || (host.lines("calls") == ["reboot"]).then_some(())).await;
    assert_eq!(host.replies_to(present).await, 0);
    host.boot("boot-3");
    assert_eq!(host.result_of(present).await, "done");
    announced("boot-3").await;
    assert_eq!(host.lines("calls"), ["reboot"]);
}
