//! NATS as `os-upgrade nats-config` sets it up: hosts are upgraded over TLS with their own credentials, which do not let
//! them act as another host or as the orchestrator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::{self, Context};
use async_nats::{Client, HeaderMap, HeaderName, Request, StatusCode};
use futures::StreamExt;
use harness::host::{APPLICATION, Host};
use harness::nats_server::{NatsServer, create_streams};
use harness::orchestrator::Orchestrator;
use harness::secured_nats::{SecuredNats, Settings};
use harness::streams;
use harness::wait::eventually;
use os_upgrade_jetstream::consumer;
use os_upgrade_protocol::{ConsumerRequest, HostName, subject};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::desired;

/// With the domain of [`allowed`].
const IN_DOMAIN: Settings = Settings { long_acks: false, domain: Some("hub") };

/// A site whose orchestrator is ready.
struct Secured {
    // First field: dropped before what it uses.
    orchestrator: Orchestrator,
    nats: SecuredNats,
    directory: TempDir,
}

impl Secured {
    async fn start(servers: usize) -> Self {
        Self::start_with(servers, Settings::default()).await
    }

    async fn start_with(servers: usize, settings: Settings) -> Self {
        let nats = SecuredNats::start_with(servers, settings).await;
        let mut orchestrator = nats.orchestrator();
        orchestrator.start_ready().await;
        orchestrator.rest.configure(APPLICATION).await;
        let site = Self { orchestrator, nats, directory: tempfile::tempdir().unwrap() };
        site.desire(servers).await;
        site
    }

    /// Puts what `h01` and `h02` are to have into the stream of that.
    async fn desire(&self, replicas: usize) {
        let jetstream = jetstream::new(self.orchestrator_client().await);
        for stream in [subject::DESIRED_STREAM, subject::APPLIED_STREAM] {
            let has_replicas = async || {
                let stream = jetstream.get_stream(stream).await.ok()?;
                (stream.cached_info().config.num_replicas == replicas).then_some(())
            };
            eventually("the stream", has_replicas).await;
        }
        for name in ["h01", "h02"] {
            let host = HostName::new(name).unwrap();
            for subject in
                [subject::desired_manifest(&host), subject::desired_item(&host, &desired::item("1"))]
            {
                jetstream.publish(subject, format!("for {name}").into()).await.unwrap().await.unwrap();
            }
        }
    }

    /// A host with its own credentials file, whose worker does not run yet.
    async fn host(&self, name: &str) -> Host {
        let made = self.nats.admit(name).await;
        std::fs::copy(made, self.credentials(name)).unwrap();
        let log = self.directory.path().join("said");
        let [credentials, ca] =
            [self.credentials(name), self.nats.issued().ca()].map(|path| path.display().to_string());
        Host::new(&self.nats.urls(), &log, name).with_arguments(&[
            "--credentials",
            &credentials,
            "--tls-ca",
            &ca,
        ])
    }

    /// Where the worker of a host has its credentials.
    fn credentials(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.creds"))
    }

    /// A client with the orchestrator's credentials.
    async fn orchestrator_client(&self) -> Client {
        self.nats.client(&self.nats.issued().orchestrator_credentials()).await
    }

    async fn run(&self, hosts: &mut [Host]) {
        for host in hosts.iter_mut() {
            host.start();
        }
        let names: Vec<&str> = hosts.iter().map(Host::name).collect();
        self.orchestrator.rest.await_scheduled(&names).await;
    }
}

#[tokio::test]
async fn hosts_upgrade_with_own_credentials() {
    let site = Secured::start(1).await;
    let mut hosts = [site.host("h01").await.reboots(), site.host("h2.example.com").await];
    site.run(&mut hosts).await;
    let rest = &site.orchestrator.rest;
    for _ in 0..2 {
        let run = rest.await_end(&rest.start_run().await).await;
        let upgraded = ["h01", "h2.example.com"].map(|host| (host, "upgraded"));
        assert_eq!((run.result(), run.statuses()), (Some("completed"), BTreeMap::from(upgraded)));
    }
    // Nothing was delivered again because of a lost acknowledgement.
    let begins = hosts[1].script_log().into_iter().filter(|line| line == "upgrade-begins").count();
    assert_eq!(begins, 2);
    let state = rest.try_host("h2.example.com").await.unwrap();
    assert_eq!(state["versions"], json!({ "linux": "2" }));
    let (code, printed, _) = site.orchestrator.command(&["doctor", "--output", "json"]).await;
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("clients with credentials, over TLS"), "{printed}");
}

#[tokio::test]
async fn three_servers_accept_the_same_credentials() {
    let site = Secured::start(3).await;
    let mut hosts = [site.host("h01").await];
    site.run(&mut hosts).await;
    let rest = &site.orchestrator.rest;
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!(run.result(), Some("completed"));
    let jetstream = jetstream::new(site.orchestrator_client().await);
    let journal = jetstream.get_stream(subject::JOURNAL_STREAM).await.unwrap();
    assert_eq!(journal.cached_info().config.num_replicas, 3);
}

/// In a cluster, the server of a consumer does not notice that nobody listens any more in the account of the host: the
/// request of a connection that is gone waits, and would get the next command.
#[tokio::test]
async fn requests_of_dead_connections_get_no_command() {
    let site = Secured::start(3).await;
    let mut hosts = [site.host("h01").await];
    site.run(&mut hosts).await;
    hosts[0].stop().await;
    let jetstream = jetstream::new(site.orchestrator_client().await);
    let control = jetstream.get_stream(subject::CONTROL_STREAM).await.unwrap();
    let name = subject::consumer(&HostName::new("h01").unwrap());
    let server = control.consumer_info(&name).await.unwrap().cluster.unwrap().leader.unwrap();
    let another = (site.nats.index_of(&server).unwrap() + 1) % 3;
    {
        let client = site.nats.client_of(another, &site.credentials("h01")).await;
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(inbox.clone()).await.unwrap();
        let next =
            format!("{}.CONSUMER.MSG.NEXT.{}.{name}", subject::JETSTREAM_PREFIX, subject::CONTROL_STREAM);
        let hour = Duration::from_hours(1).as_nanos();
        let request =
            json!({ "batch": 1, "expires": u64::try_from(hour).unwrap(), "idle_heartbeat": 100_000_000 });
        client.publish_with_reply(next, inbox, request.to_string().into()).await.unwrap();
        let heartbeat = answers.next().await.unwrap();
        assert_eq!(heartbeat.status, Some(StatusCode::IDLE_HEARTBEAT));
    }
    hosts[0].start();
    eventually("a consumer at which only the worker's own request waits", async || {
        let info = control.consumer_info(&name).await.ok()?;
        (info.num_waiting == 1 && info.delivered.consumer_sequence == 0).then_some(())
    })
    .await;
    let rest = &site.orchestrator.rest;
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!(run.result(), Some("completed"));
    // `prepare` and `upgrade`, each delivered once.
    assert_eq!(control.consumer_info(&name).await.unwrap().delivered.consumer_sequence, 2);
}

/// A deletion of which nobody knows the outcome, such as one without an answer, does not end with the old consumer and the
/// requests that wait at it.
#[tokio::test]
async fn undeleted_consumers_are_not_taken_for_new_ones() {
    let users = r#"
        authorization { users: [
            { user: any, password: x },
            { user: keeps, password: x, permissions: { publish: { deny: "$JS.API.CONSUMER.DELETE.>" } } },
        ] }
        no_auth_user: any"#;
    let server = NatsServer::start_with(users).await;
    let jetstream = jetstream::new(server.client().await);
    create_streams(&jetstream).await;
    let keeps = async_nats::ConnectOptions::with_user_and_password("keeps".into(), "x".into());
    let keeps = jetstream::new(keeps.connect(server.url()).await.unwrap());
    let host = HostName::new("h01").unwrap();
    let request = ConsumerRequest { from: None, ack_wait_secs: None };
    let create = async |jetstream: &Context| {
        let control = jetstream.get_stream(subject::CONTROL_STREAM).await.unwrap();
        consumer::create(&control, &host, &request).await.map(|consumer| consumer.cached_info().created)
    };
    let first = create(&jetstream).await.unwrap();
    assert_eq!(create(&keeps).await, Err("consumer already exists".to_owned()));
    assert_ne!(create(&jetstream).await.unwrap(), first);
}

#[tokio::test]
async fn missing_credentials_or_tls_are_rejected() {
    let nats = SecuredNats::start(1).await;
    let plain = nats.urls().replace("tls://", "nats://");
    assert!(async_nats::connect(plain).await.is_err());
    let options = async_nats::ConnectOptions::new().add_root_certificates(nats.issued().ca());
    assert!(options.require_tls(true).connect(nats.urls()).await.is_err());
    // An account that was not pushed to the servers.
    let output = nats.nats_config(&["host".to_owned(), "h01".to_owned()]).await;
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stderr).contains("push"),
        "{output:?}"
    );
    let credentials = nats.issued().host_credentials("h01");
    assert!(nats.try_client(&credentials).await.is_none());
    let push = ["push", "--nats", &nats.urls()].map(str::to_owned);
    assert!(nats.nats_config(&push).await.status.success());
    nats.client(&credentials).await;
}

#[tokio::test]
async fn wrong_account_credentials_are_named() {
    let nats = SecuredNats::start(1).await;
    let host = nats.admit("h01").await;
    let system = nats.issued().system_credentials();
    for (credentials, user) in [(host, "h01"), (system, "system")] {
        let mut orchestrator = nats.orchestrator_with(&credentials);
        orchestrator.start();
        let message = eventually("it to report why it waits", async || {
            orchestrator.readiness().await.filter(|message| message.contains("JetStream"))
        })
        .await;
        let expected =
            format!("JetStream is not enabled for {user}, whose [nats] credentials these are: give those");
        assert!(message.contains(&expected), "{message}");
        let (_, printed, _) = orchestrator.command(&["doctor", "--output", "json"]).await;
        assert!(printed.contains("set [nats] credentials to an orchestrator's"), "{printed}");
        assert!(!printed.contains("disk"), "{printed}");
    }
}

/// Credentials are revoked while the host upgrades: its worker reports it, the host is unreachable, and continues with new
/// credentials.
#[tokio::test]
async fn revoked_host_resumes_with_new_credentials() {
    let site = Secured::start(1).await;
    let mut hosts = [site.host("h01").await];
    site.run(&mut hosts).await;
    let rest = &site.orchestrator.rest;
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    site.nats.change("revoke", "h01").await;
    eventually("the worker to report the error", async || {
        let log = hosts[0].log();
        (log.contains("NATS does not accept the credentials in") && log.contains("have been revoked"))
            .then_some(())
    })
    .await;
    hosts[0].release("upgrade");
    hosts[0].await_script("upgrade-ends").await;
    assert!(site.nats.try_client(&site.credentials("h01")).await.is_none());
    eventually("the host to be unreachable", async || {
        (rest.try_host("h01").await?["reachability"] == "unreachable").then_some(())
    })
    .await;
    let made = site.nats.admit("h01").await;
    std::fs::copy(made, site.credentials("h01")).unwrap();
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    let begins = hosts[0].script_log().into_iter().filter(|line| line.starts_with("upgrade-")).count();
    assert_eq!(begins, 2, "{:?}", hosts[0].script_log());
    // The host works as before.
    rest.await_scheduled(&["h01"]).await;
    assert_eq!(rest.await_end(&rest.start_run().await).await.result(), Some("completed"));
}

/// The host gets no new credentials before the run ends: the run times out, the upgrading host keeps its slot, and with
/// new credentials it finishes and can be retried.
#[tokio::test]
async fn revoked_host_ends_run_and_recovers() {
    let site = Secured::start(1).await;
    let mut hosts = [site.host("h01").await];
    site.run(&mut hosts).await;
    let rest = &site.orchestrator.rest;
    hosts[0].hold("upgrade");
    let id = rest.start_run_timing_out(&hosts[0]).await;
    site.nats.change("revoke", "h01").await;
    hosts[0].release("upgrade");
    hosts[0].await_script("upgrade-ends").await;
    let run = rest.await_end(&id).await;
    assert_eq!((run.result(), run.statuses()), (Some("timed-out"), BTreeMap::from([("h01", "timed-out")])));
    let holders = async || {
        let (_, state) = rest.get("/v1/state/fleet-lock").await;
        state["groups"][0]["holders"].as_array().map(Vec::len)
    };
    assert_eq!(holders().await, Some(1));

    let made = site.nats.admit("h01").await;
    std::fs::copy(made, site.credentials("h01")).unwrap();
    // Its late answer still frees the slot.
    eventually("the slot to be free", async || holders().await.filter(|count| *count == 0)).await;
    rest.await_scheduled(&["h01"]).await;
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!((run.result(), run.statuses()), (Some("completed"), BTreeMap::from([("h01", "upgraded")])));
}

/// A server that has lost its accounts admits no host until they are pushed again. Revoked hosts stay rejected.
#[tokio::test]
async fn push_restores_lost_accounts() {
    let mut site = Secured::start(1).await;
    let mut hosts = [site.host("h01").await];
    site.run(&mut hosts).await;
    let revoked = site.directory.path().join("revoked.creds");
    std::fs::copy(site.nats.admit("h02").await, &revoked).unwrap();
    site.nats.change("revoke", "h02").await;
    site.nats.lose_accounts(0).await;
    assert!(site.nats.try_client(&site.credentials("h01")).await.is_none());
    eventually("the worker to report that it was rejected", async || {
        hosts[0].log().contains("NATS does not accept the credentials in").then_some(())
    })
    .await;

    let push = ["push", "--nats", &site.nats.urls()].map(str::to_owned);
    assert!(site.nats.nats_config(&push).await.status.success());
    let rest = &site.orchestrator.rest;
    rest.await_scheduled(&["h01"]).await;
    assert_eq!(rest.await_end(&rest.start_run().await).await.result(), Some("completed"));
    assert!(site.nats.try_client(&revoked).await.is_none());
}

/// JetStream drops a message whose `Nats-Msg-Id` was used before, by any client on any subject.
#[tokio::test]
async fn host_cannot_consume_anothers_message_id() {
    let site = Secured::start(1).await;
    let mut hosts = [site.host("h01").await.reboots(), site.host("h02").await];
    site.run(&mut hosts).await;
    hosts[1].hold("prepare");
    let rest = &site.orchestrator.rest;
    let id = rest.start_run().await;
    hosts[1].await_script("prepare").await;
    let other = HostName::new("h02").unwrap();
    let client = site.nats.client(&site.credentials("h02")).await;
    for action in ["upgrade", "reboot"] {
        let guessed = format!("{id}/h01/{action}/1");
        let headers = HeaderMap::from_iter([(HeaderName::from_static("Nats-Msg-Id"), guessed.into())]);
        let request = Request::new().headers(headers).payload("{}".into());
        let stored = client.send_request(subject::reply(&other), request).await.unwrap();
        let stored: Value = serde_json::from_slice(&stored.payload).unwrap();
        assert!(stored["seq"].is_number() && stored["duplicate"].is_null(), "{stored}");
    }
    hosts[1].release("prepare");
    let run = rest.await_end(&id).await;
    let upgraded = ["h01", "h02"].map(|host| (host, "upgraded"));
    assert_eq!((run.result(), run.statuses()), (Some("completed"), BTreeMap::from(upgraded)));
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// No answer.
    Refused,
    Answered,
}

async fn request(client: &Client, subject: &str, payload: &str) -> Outcome {
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.unwrap();
    client.publish_with_reply(subject.to_owned(), inbox, payload.to_owned().into()).await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), answers.next()).await;
    let Ok(Some(answer)) = answer else { return Outcome::Refused };
    if answer.status == Some(StatusCode::NO_RESPONDERS) {
        return Outcome::Refused;
    }
    let body: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
    // The answer for the host's own account, which has no JetStream.
    if body["error"]["err_code"] == 10039 { Outcome::Refused } else { Outcome::Answered }
}

/// The requests that a host may send, all of which must be answered: subject and payload. The orchestrators' account has
/// the hash `account`.
fn allowed(account: &str) -> Vec<(String, String)> {
    let host = HostName::new("h01").unwrap();
    let application = os_upgrade_protocol::ApplicationName::new("another").unwrap();
    let announcement = json!({ "host": "h01", "application": "another" }).to_string();
    let api = |rest: &str| (format!("{}.{rest}", subject::JETSTREAM_PREFIX), String::new());
    vec![
        (subject::reply(&host), json!({ "action": "prepare", "result": "done" }).to_string()),
        (subject::versions(&host), json!({ "linux": "3" }).to_string()),
        (subject::output(&host), "unpacking".to_owned()),
        (subject::applied(&host), "{}".to_owned()),
        (subject::worker(&application, &host), announcement),
        (subject::consumer_request(&host), "{}".to_owned()),
        ("$JS.ACK.os-upgrade:control.worker-h01.1.1.1.1.0".to_owned(), "+WPI".to_owned()),
        (format!("$JS.ACK.hub.{account}.os-upgrade:control.worker-h01.1.1.1.1.0"), "+WPI".to_owned()),
        api("CONSUMER.INFO.os-upgrade:control.worker-h01"),
        (
            format!("{}.CONSUMER.MSG.NEXT.os-upgrade:control.worker-h01", subject::JETSTREAM_PREFIX),
            json!({ "batch": 1, "no_wait": true }).to_string(),
        ),
        api(&desired::get(&subject::desired_manifest(&host))),
        // The answer that there is none has no body, as an acknowledgement has none.
        api(&desired::get(&subject::desired_item(&host, &desired::item("none")))),
        api("STREAM.INFO.os-upgrade:control"),
        api("STREAM.INFO.os-upgrade:versions"),
        api("STREAM.INFO.os-upgrade:workers"),
    ]
}

/// The requests that the credentials of `h01` must not allow, with the hash of the orchestrators' account.
fn forbidden(account: &str) -> Vec<(String, String)> {
    // An acknowledgement with a request for the next command.
    const NEXT: &str = r#"+NXT {"batch":1,"no_wait":true}"#;
    let other = HostName::new("h02").unwrap();
    let own = HostName::new("h01").unwrap();
    let application = os_upgrade_protocol::ApplicationName::new(APPLICATION).unwrap();
    let text = |subject: &str, payload: &str| (subject.to_owned(), payload.to_owned());
    let mut found = vec![
        (subject::reply(&other), json!({ "action": "upgrade", "result": "done" }).to_string()),
        (subject::versions(&other), json!({ "linux": "666" }).to_string()),
        (subject::output(&other), "all is well".to_owned()),
        (subject::applied(&other), "{}".to_owned()),
        (
            subject::worker(&application, &other),
            json!({ "host": "h02", "application": APPLICATION, "group": "x" }).to_string(),
        ),
        (subject::worker(&application, &other), String::new()),
        (subject::presence(&other), String::new()),
        text("os-upgrade.progress.h02", "{}"),
        (subject::hint(&other), String::new()),
        (subject::hint(&own), String::new()),
        (subject::command(&own), json!({ "action": "upgrade", "host": "h01" }).to_string()),
        (subject::command(&other), json!({ "action": "upgrade", "host": "h02" }).to_string()),
        (subject::consumer_request(&other), "{}".to_owned()),
        text(subject::LEADER, "{}"),
        text(subject::JOURNAL_FACT, "{}"),
        text(subject::JOURNAL_SNAPSHOT, "{}"),
        (subject::request("a", "b"), "{}".to_owned()),
        (subject::instance("a"), "{}".to_owned()),
        (subject::site("site").unwrap(), "{}".to_owned()),
        text("$KV.os-upgrade-lease.leader", "{}"),
        text("$JS.ACK.os-upgrade:control.worker-h02.1.1.1.1.0", "+ACK"),
        text("$JS.ACK.os-upgrade:control.worker-h02.1.1.1.1.0", NEXT),
        // In the long form, and in the short one with what the right to the long one names.
        text(&format!("$JS.ACK.hub.{account}.os-upgrade:control.worker-h02.1.1.1.1.0"), "+ACK"),
        text("$JS.ACK.os-upgrade:control.worker-h02.os-upgrade:control.worker-h01.1.1.0", NEXT),
        text("$JS.ACK._.os-upgrade:control.worker-h01.1.1.1.1.0", NEXT),
        text("$SYS.REQ.SERVER.PING", ""),
        text("$SYS.REQ.CLAIMS.UPDATE", "x"),
    ];
    let consumer = |name: &str, config: Value| {
        let mut whole = json!({ "durable_name": name, "name": name, "ack_policy": "explicit" });
        whole.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        json!({ "stream_name": "os-upgrade:control", "config": whole, "action": "" }).to_string()
    };
    let filtered = |filter: &str| json!({ "filter_subject": filter });
    let h01 = "os-upgrade:control.command.h01";
    let h02 = "os-upgrade:control.command.h02";
    let create = |rest: &str| format!("CONSUMER.CREATE.os-upgrade:control.{rest}");
    let mut api = vec![
        (create(&format!("worker-h02.{h02}")), consumer("worker-h02", filtered(h02))),
        (create(&format!("worker-h01.{h02}")), consumer("worker-h01", filtered(h02))),
        (create(&format!("worker-h01.{h01}")), consumer("worker-h01", filtered(h02))),
        // The host's own consumer, but its delivery would delete the journal.
        (
            create(&format!("worker-h01.{h01}")),
            consumer(
                "worker-h01",
                json!({
                    "filter_subject": h01, "deliver_subject": "$JS.API.STREAM.DELETE.os-upgrade:journal",
                    "idle_heartbeat": 200_000_000,
                }),
            ),
        ),
        (create("any"), consumer("any", json!({}))),
        ("CONSUMER.DURABLE.CREATE.os-upgrade:control.any".to_owned(), consumer("any", json!({}))),
        ("STREAM.MSG.GET.os-upgrade:control".to_owned(), json!({ "seq": 1 }).to_string()),
        ("STREAM.MSG.GET.os-upgrade:journal".to_owned(), json!({ "seq": 1 }).to_string()),
        ("STREAM.MSG.DELETE.os-upgrade:control".to_owned(), json!({ "seq": 1 }).to_string()),
        ("DIRECT.GET.KV_os-upgrade-lease".to_owned(), json!({ "seq": 1 }).to_string()),
        ("DIRECT.GET.os-upgrade:versions.os-upgrade:versions.h02".to_owned(), String::new()),
        ("CONSUMER.MSG.NEXT.os-upgrade:control.worker-h02".to_owned(), "1".to_owned()),
        ("STREAM.CREATE.mine".to_owned(), json!({ "name": "mine", "subjects": ["mine"] }).to_string()),
        (
            "STREAM.UPDATE.os-upgrade:journal".to_owned(),
            json!({ "name": "os-upgrade:journal", "subjects": ["mine"] }).to_string(),
        ),
        ("STREAM.SNAPSHOT.os-upgrade:journal".to_owned(), json!({ "deliver_subject": "mine" }).to_string()),
    ];
    let plain = [
        "CONSUMER.DELETE.os-upgrade:control.worker-h01",
        "CONSUMER.DELETE.os-upgrade:control.worker-h02",
        "CONSUMER.INFO.os-upgrade:control.worker-h02",
        "CONSUMER.LIST.os-upgrade:control",
        "CONSUMER.NAMES.os-upgrade:control",
        "STREAM.INFO.os-upgrade:journal",
        "STREAM.INFO.KV_os-upgrade-lease",
        "STREAM.LIST",
        "STREAM.NAMES",
        "STREAM.PURGE.os-upgrade:control",
        "STREAM.PURGE.os-upgrade:journal",
        "STREAM.PURGE.os-upgrade:versions",
        "STREAM.PURGE.os-upgrade:output",
        "STREAM.DELETE.os-upgrade:control",
        "STREAM.DELETE.os-upgrade:journal",
        "STREAM.DELETE.KV_os-upgrade-lease",
    ];
    api.extend(plain.map(|rest| (rest.to_owned(), String::new())));
    api.extend(desired::forbidden(&own, &other));
    found.extend(desired::publishes(&own, &other));
    for prefix in ["$JS.API", subject::JETSTREAM_PREFIX] {
        found.extend(api.iter().map(|(rest, payload)| (format!("{prefix}.{rest}"), payload.clone())));
    }
    found
}

/// The state that no host may change.
async fn protected_state(jetstream: &Context) -> Value {
    let mut found = json!({});
    for name in [
        subject::CONTROL_STREAM,
        subject::VERSIONS_STREAM,
        subject::WORKERS_STREAM,
        subject::OUTPUT_STREAM,
        subject::DESIRED_STREAM,
    ] {
        let filter = ">";
        let messages = streams::stored(jetstream, name, filter).await;
        let messages = messages.iter().filter(|message| !message.subject.ends_with(".h01"));
        found[name] = messages.map(|message| format!("{} {:?}", message.subject, message.payload)).collect();
    }
    let control = jetstream.get_stream(subject::CONTROL_STREAM).await.unwrap();
    let consumer: Result<jetstream::consumer::PullConsumer, _> = control.get_consumer("worker-h02").await;
    found["consumer"] = json!(consumer.unwrap().cached_info().created.to_string());
    // The orchestrator keeps writing to it; all messages must be its own.
    let journal = jetstream.get_stream(subject::JOURNAL_STREAM).await.unwrap();
    let info = journal.cached_info();
    assert_eq!(info.state.messages, info.state.last_sequence, "the journal has lost something");
    found["journal"] = json!(info.created.to_string());
    for message in streams::stored(jetstream, subject::JOURNAL_STREAM, ">").await {
        assert!(message.headers.get("Os-Upgrade-Append-Id").is_some(), "{message:?}");
    }
    found
}

#[tokio::test]
async fn host_credentials_allow_only_own_messages() {
    let site = Secured::start_with(1, IN_DOMAIN).await;
    let mut hosts = [site.host("h02").await];
    site.run(&mut hosts).await;
    let credentials = site.nats.admit("h01").await;
    let client = site.nats.client(&credentials).await;
    let orchestrator = site.orchestrator_client().await;
    let jetstream = jetstream::new(orchestrator.clone());
    let account = site.nats.issued().account_hash("h01");
    for (subject, payload) in allowed(&account) {
        assert_eq!(request(&client, &subject, &payload).await, Outcome::Answered, "{subject}");
    }
    let before = protected_state(&jetstream).await;

    // Messages to and from others, as the orchestrator's account receives them.
    let watched =
        ["os-upgrade.presence.h01", "os-upgrade.hint.*", "os-upgrade.request.>", "os-upgrade.site.>"];
    let mut received = futures::stream::SelectAll::new();
    for subject in watched.into_iter().chain(["os-upgrade.desired.*"]) {
        received.push(orchestrator.subscribe(subject).await.unwrap());
    }
    // A host may subscribe to everything in its own account, which has no messages of others.
    let mut own = client.subscribe(">").await.unwrap();
    let others = site.nats.client(&site.credentials("h02")).await;
    orchestrator.flush().await.unwrap();
    client.flush().await.unwrap();

    let listener = site.nats.client(&credentials).await;
    // All at once: each refusal takes the whole timeout.
    futures::future::join_all(forbidden(&account).into_iter().map(async |(subject, payload)| {
        assert_eq!(request(&listener, &subject, &payload).await, Outcome::Refused, "{subject} {payload}");
    }))
    .await;
    // Reply subjects, which are not checked against permissions, that would do harm.
    for (request, payload) in allowed(&account) {
        for (reply, _) in forbidden(&account) {
            client.publish_with_reply(request.clone(), reply, payload.clone().into()).await.unwrap();
        }
    }
    others.publish("os-upgrade.anything", "of h02".into()).await.unwrap();
    for name in ["h02", "h01"] {
        let host = HostName::new(name).unwrap();
        for subject in [subject::hint(&host), subject::desired_hint(&host)] {
            orchestrator.publish(subject, format!("to {name}").into()).await.unwrap();
        }
    }
    client.publish("os-upgrade.presence.h01", "last".into()).await.unwrap();
    client.flush().await.unwrap();
    loop {
        let message = tokio::time::timeout(Duration::from_secs(20), received.next()).await.unwrap().unwrap();
        assert!(!message.subject.starts_with("os-upgrade.request."), "{message:?}");
        assert!(!message.subject.starts_with("os-upgrade.site."), "{message:?}");
        if ["os-upgrade.hint.", "os-upgrade.desired."].iter().any(|hint| message.subject.starts_with(hint)) {
            assert!(message.payload.starts_with(b"to h0"), "{message:?}");
        }
        if message.payload == "last" {
            break;
        }
    }
    let mut hints = 0;
    while let Ok(Some(message)) = tokio::time::timeout(Duration::from_millis(500), own.next()).await {
        assert_ne!(message.payload, "of h02");
        assert_ne!(message.payload, "to h02");
        hints += usize::from(message.payload == "to h01");
    }
    assert_eq!(hints, 2, "a host receives its own hints");

    assert_eq!(protected_state(&jetstream).await, before);
    assert_eq!(site.orchestrator.readiness().await.as_deref(), Some(""));
    let rest = &site.orchestrator.rest;
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!(run.statuses(), BTreeMap::from([("h02", "upgraded")]));
}

/// A host gets what is at its own subjects, and no request there brings it another host's, nor another message of the stream. So it is in a
/// domain or not, with one server or three, and with both forms of acknowledgements.
#[tokio::test]
async fn hosts_read_only_what_they_are_to_have() {
    for (servers, settings) in
        [(3, Settings::default()), (1, IN_DOMAIN), (1, Settings { long_acks: true, ..IN_DOMAIN })]
    {
        let site = Secured::start_with(servers, settings).await;
        let client = site.nats.client(&site.nats.admit("h01").await).await;
        let own = HostName::new("h01").unwrap();
        for subject in [subject::desired_manifest(&own), subject::desired_item(&own, &desired::item("1"))] {
            let request = format!("{}.{}", subject::JETSTREAM_PREFIX, desired::get(&subject));
            let answer = client.request(request.clone(), "".into()).await.unwrap();
            assert_eq!(answer.payload, "for h01");
            for payload in [
                json!({ "seq": 4 }),
                json!({ "last_by_subj": "os-upgrade:desired.h02.manifest" }),
                json!({ "multi_last": ["os-upgrade:desired.>"] }),
                json!({ "seq": 1, "batch": 10, "next_by_subj": "os-upgrade:desired.>" }),
            ] {
                let answer = client.request(request.clone(), payload.to_string().into()).await.unwrap();
                assert_eq!(
                    (answer.status, answer.payload.len()),
                    (Some(StatusCode::from_u16(408).unwrap()), 0),
                    "{payload}"
                );
            }
        }
        let none = format!(
            "{}.{}",
            subject::JETSTREAM_PREFIX,
            desired::get(&subject::desired_item(&own, &desired::item("2")))
        );
        let answer = client.request(none, "".into()).await.unwrap();
        assert_eq!((answer.status, answer.payload.len()), (Some(StatusCode::NOT_FOUND), 0));
    }
}

/// The server passes reply subjects that begin like those of acknowledgements on as they are, also from another account.
#[tokio::test]
async fn host_cannot_acknowledge_for_another() {
    let site = Secured::start_with(1, IN_DOMAIN).await;
    let mut hosts = [site.host("h02").await];
    site.run(&mut hosts).await;
    hosts[0].hold("prepare");
    let rest = &site.orchestrator.rest;
    let id = rest.start_run().await;
    hosts[0].await_script("prepare").await;
    let jetstream = jetstream::new(site.orchestrator_client().await);
    let control = jetstream.get_stream(subject::CONTROL_STREAM).await.unwrap();
    let consumer = subject::consumer(&HostName::new("h02").unwrap());
    let before = control.consumer_info(&consumer).await.unwrap();
    let (sequence, of_consumer) = (before.delivered.stream_sequence, before.delivered.consumer_sequence);
    let client = site.nats.client(&site.nats.admit("h01").await).await;
    let account = site.nats.issued().account_hash("h01");
    let acks = ["$JS.ACK.", &format!("$JS.ACK.hub.{account}.")]
        .map(|prefix| format!("{prefix}os-upgrade:control.worker-h02.1.{sequence}.{of_consumer}.1.0"));
    for reply in &acks {
        for (request, payload) in allowed(&account) {
            client.publish_with_reply(request, reply.clone(), payload.into()).await.unwrap();
        }
    }
    client.flush().await.unwrap();
    for (request_subject, payload) in allowed(&account) {
        assert_eq!(request(&client, &request_subject, &payload).await, Outcome::Answered);
    }
    let after = control.consumer_info(&consumer).await.unwrap();
    assert_eq!((after.num_ack_pending, after.ack_floor), (1, before.ack_floor));
    // In the orchestrators' account, an answer to one of these subjects is an acknowledgement.
    site.orchestrator_client().await.request(acks[1].clone(), "".into()).await.unwrap();
    assert_eq!(control.consumer_info(&consumer).await.unwrap().num_ack_pending, 0);
    hosts[0].release("prepare");
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
}
