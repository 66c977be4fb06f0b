//! A worker with at most one fault, which the test kit for workers must find. Without a fault it keeps all rules, and uses
//! none of this project's code but for the sealing of configurations.

mod configurations;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, AckKind};
use async_nats::{Client, HeaderMap};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use os_upgrade_worker_sdk::testing::{Access, Rule};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

use configurations::Configurations;

/// How long an upgrade takes, and other steps that must take some time.
const WORK: Duration = Duration::from_millis(300);
/// The acknowledgement timeout of the consumer.
const ACK_WAIT: Duration = Duration::from_secs(3);
/// How long the first prepare takes: long enough that progress acknowledgements are due.
const LONG_WORK: Duration = Duration::from_millis(1800);
/// The timeout of one request for a command.
const FETCH: Duration = Duration::from_millis(500);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It breaks this rule in the most obvious way.
    Of(Rule),
    /// It publishes replies without asking the stream to confirm them.
    UnconfirmedReplies,
    /// When it recreates its consumer, it skips pending commands.
    SkipsCommands,
    /// It announces another host.
    AnnouncesAnother,
    /// It publishes the same versions once more, not after a start.
    RepeatsVersions,
}

impl Fault {
    /// The rule that it breaks.
    pub const fn breaks(self) -> Rule {
        match self {
            Self::Of(rule) => rule,
            Self::UnconfirmedReplies => Rule::AckAfterReply,
            Self::SkipsCommands => Rule::ConsumerRemade,
            Self::AnnouncesAnother => Rule::Announced,
            Self::RepeatsVersions => Rule::Versions,
        }
    }
}

/// The prepared run.
#[derive(Debug, Clone, Copy, Default)]
struct Prepared {
    not_after: Option<DateTime<Utc>>,
}

/// Its state, which survives restarts.
#[derive(Debug, Default)]
struct Memory {
    boot: u32,
    prepared: Option<Prepared>,
    /// The boot in which the upgrade asked for a reboot.
    reboot_due: Option<u32>,
    reboot_requests: u32,
    /// The sequence of the upgrade that has begun.
    upgrading: Option<u64>,
    /// The last answer, and the sequence up to which commands are settled.
    answer: Option<(u64, String)>,
    settled: u64,
    prepares: u32,
    hinted: bool,
}

impl Memory {
    fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }
}

#[derive(Debug)]
struct Host {
    url: String,
    access: Access,
    name: String,
    fault: Option<Fault>,
    memory: Mutex<Memory>,
    configurations: Arc<Configurations>,
}

/// The worker, in this process.
#[derive(Debug)]
pub struct FaultyWorker {
    host: Arc<Host>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl FaultyWorker {
    /// Starts a worker.
    pub fn start(url: &str, name: &str, fault: Option<Fault>) -> Arc<Self> {
        Self::start_with(url, Access::default(), name, fault)
    }

    /// Starts a worker with this access to NATS. With credentials it may not create its consumer itself.
    pub fn start_with(url: &str, access: Access, name: &str, fault: Option<Fault>) -> Arc<Self> {
        let unprepared = fault == Some(Fault::Of(Rule::UpgradeUnprepared));
        let memory = Memory { prepared: unprepared.then(Prepared::default), ..Memory::default() };
        let (url, name) = (url.to_owned(), name.to_owned());
        let configurations = Configurations::new(&name, api(&access), fault.map(Fault::breaks));
        let host = Host { url, access, name, fault, memory: Mutex::new(memory), configurations };
        let worker = Arc::new(Self { host: Arc::new(host), task: Mutex::new(None) });
        worker.run();
        worker
    }

    fn run(&self) {
        let task = tokio::spawn(Arc::clone(&self.host).serve());
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Kills it and starts it again.
    pub async fn restart(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            drop(task.await);
        }
        if self.host.is(Rule::RestartRemembers) {
            self.host.memory().prepared = None;
        }
        self.run();
    }

    /// Restarts it in another boot of its host.
    pub async fn reboot(&self) {
        self.host.memory().boot += 1;
        self.restart().await;
    }
}

impl Drop for FaultyWorker {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl Host {
    fn is(&self, rule: Rule) -> bool {
        self.fault == Some(Fault::Of(rule))
    }

    fn has_credentials(&self) -> bool {
        self.access.credentials.is_some()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self: Arc<Self>) {
        let address = self.url.parse().unwrap();
        let options = self.access.options(std::slice::from_ref(&address)).unwrap();
        let client = options.connect(address).await.unwrap();
        let jetstream = jetstream::new(client.clone());
        let api = jetstream::with_prefix(client.clone(), api(&self.access));
        let commands = stream(&api, "os-upgrade:control").await;
        for other in ["os-upgrade:versions", "os-upgrade:workers"] {
            stream(&api, other).await;
        }
        self.announce(&jetstream).await;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self.configurations).follow(client.clone(), jetstream.clone()));
        if !self.is(Rule::Heartbeats) {
            tasks.spawn(send_heartbeats(client.clone(), self.name.clone()));
        }
        let mut hints = client.subscribe(format!("os-upgrade.hint.{}", self.name)).await.unwrap();
        let this = Arc::clone(&self);
        tasks.spawn(async move {
            while hints.next().await.is_some() {
                this.memory().hinted = true;
            }
        });
        let mut consumer = self.consumer(&client, &commands, None).await;
        loop {
            let Some(message) = fetch(&consumer).await else {
                let name = &consumer.cached_info().name;
                if commands.consumer_info(name).await.is_err() {
                    if self.fault == Some(Fault::SkipsCommands) {
                        // Commands may be sent in the meantime.
                        tokio::time::sleep(LONG_WORK).await;
                    }
                    let settled = self.memory().settled;
                    consumer = self.consumer(&client, &commands, Some(settled)).await;
                }
                continue;
            };
            let command = Arc::clone(&self).execute(jetstream.clone(), message);
            if self.is(Rule::DeliveredTwice) {
                tasks.spawn(command);
            } else {
                command.await;
            }
        }
    }

    async fn announce(&self, jetstream: &jetstream::Context) {
        let name = if self.fault == Some(Fault::AnnouncesAnother) { "another" } else { &self.name };
        let announcement = json!({
            "host": name,
            "application": "wrong",
            "boot-id": self.memory().boot_id(),
            "heartbeats": true,
            "reboots-on-request": true,
            "configures": self.configurations.key(),
        });
        if !self.is(Rule::Announced) {
            self.publish(jetstream, format!("os-upgrade:workers.wrong.{}", self.name), &announcement).await;
        }
        if self.memory().settled == 0 {
            self.publish_versions(jetstream).await;
        }
    }

    async fn publish_versions(&self, jetstream: &jetstream::Context) {
        let versions = if self.is(Rule::Versions) { json!({ "a": { "b": 1 } }) } else { json!({ "a": "1" }) };
        self.publish(jetstream, format!("os-upgrade:versions.{}", self.name), &versions).await;
    }

    async fn publish(&self, jetstream: &jetstream::Context, subject: String, payload: &Value) {
        let stored = jetstream.publish(subject, payload.to_string().into()).await.unwrap();
        stored.await.unwrap();
    }

    /// The consumer, or a new one that starts after the settled commands.
    async fn consumer(&self, client: &Client, stream: &Stream, remade_after: Option<u64>) -> PullConsumer {
        if self.has_credentials() {
            return self.request_consumer(client, stream, remade_after).await;
        }
        let is_remade = remade_after.is_some();
        let deliver_policy = match remade_after {
            Some(_) if self.is(Rule::ConsumerRemade) => DeliverPolicy::All,
            Some(_) if self.fault == Some(Fault::SkipsCommands) => DeliverPolicy::New,
            Some(settled) if settled > 0 => DeliverPolicy::ByStartSequence { start_sequence: settled + 1 },
            Some(_) | None => DeliverPolicy::LastPerSubject,
        };
        if is_remade && self.is(Rule::ConsumerRemade) {
            *self.memory() = Memory::default();
        }
        let name = format!("wrong-{}", self.name);
        if let (false, Ok(there)) = (is_remade, stream.get_consumer(&name).await) {
            return there;
        }
        let own = format!("os-upgrade:control.command.{}", self.name);
        let config = pull::Config {
            durable_name: (!self.is(Rule::DurableConsumer)).then_some(name),
            deliver_policy,
            ack_policy: if self.is(Rule::ExplicitAcks) { AckPolicy::All } else { AckPolicy::Explicit },
            ack_wait: ACK_WAIT,
            max_ack_pending: if self.is(Rule::OneAtATime) { 1000 } else { 1 },
            filter_subject: if self.is(Rule::OwnSubject) {
                "os-upgrade:control.command.*".to_owned()
            } else {
                own
            },
            ..pull::Config::default()
        };
        stream.create_consumer(config).await.unwrap()
    }

    /// The consumer that the orchestrator creates.
    async fn request_consumer(
        &self,
        client: &Client,
        stream: &Stream,
        remade_after: Option<u64>,
    ) -> PullConsumer {
        let name = format!("worker-{}", self.name);
        if let (None, Ok(there)) = (remade_after, stream.get_consumer(&name).await) {
            return there;
        }
        let mut request = json!({ "ack-wait-secs": ACK_WAIT.as_secs() });
        if let Some(settled) = remade_after.filter(|settled| *settled > 0) {
            request["from"] = json!(settled + 1);
        }
        let to = format!("os-upgrade.consumer.{}", self.name);
        let answer = loop {
            match client.request(to.clone(), request.to_string().into()).await {
                Ok(answer) => break answer,
                // No orchestrator creates consumers yet.
                Err(_) => tokio::time::sleep(FETCH).await,
            }
        };
        let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
        assert_eq!(answer, json!({ "result": "done" }));
        stream.get_consumer(&name).await.unwrap()
    }

    async fn execute(self: Arc<Self>, jetstream: jetstream::Context, message: jetstream::Message) {
        let sequence = message.info().unwrap().stream_sequence;
        let command: Value = serde_json::from_slice(&message.payload).unwrap();
        let action = command["action"].as_str().unwrap();
        let known = self.memory().answer.clone().filter(|(answered, _)| *answered == sequence);
        let result = match known {
            _ if sequence <= self.memory().settled => None,
            Some((_, result)) => Some(result),
            None => match action {
                "prepare" => self.prepare(&command, &message).await,
                "upgrade" => self.upgrade(sequence).await,
                _ => match command["boot-id"].as_str() {
                    Some(leave) => self.reboot_of(leave).await,
                    None => self.reboot(sequence).await,
                },
            },
        };
        let Some(result) = result else {
            return self.settle(&message, sequence).await;
        };
        self.memory().answer = Some((sequence, result.clone()));
        if self.is(Rule::AckAfterReply) {
            self.settle(&message, sequence).await;
        }
        let reply = json!({ "action": action, "result": result });
        let subject = format!("os-upgrade:control.reply.{}", self.name);
        if self.fault == Some(Fault::UnconfirmedReplies) {
            jetstream.client().publish(subject.clone(), reply.to_string().into()).await.unwrap();
        } else {
            let mut headers = HeaderMap::new();
            headers.insert("Os-Upgrade-In-Reply-To", sequence.to_string());
            let stored =
                jetstream.publish_with_headers(subject.clone(), headers, reply.to_string().into()).await;
            stored.unwrap().await.unwrap();
        }
        self.settle(&message, sequence).await;
        if action == "prepare" && self.fault == Some(Fault::RepeatsVersions) && self.memory().prepares < 3 {
            self.publish_versions(&jetstream).await;
        }
        if action == "reboot" && self.is(Rule::Replies) {
            self.publish(&jetstream, subject, &json!({ "state": "idle" })).await;
        }
    }

    async fn settle(&self, message: &jetstream::Message, sequence: u64) {
        message.ack().await.unwrap();
        let mut memory = self.memory();
        memory.settled = memory.settled.max(sequence);
    }

    async fn prepare(&self, command: &Value, message: &jetstream::Message) -> Option<String> {
        let named = command["hosts"].as_array().is_some_and(|hosts| hosts.contains(&json!(self.name)));
        let not_after = command["not-after"].as_str().and_then(|at| at.parse().ok());
        if (!named && !self.is(Rule::PrepareOfOthers)) || (is_past(not_after) && !self.is(Rule::PrepareLate))
        {
            return None;
        }
        if command.get("unknown").is_some() && self.is(Rule::UnknownFields) {
            return Some("what is unknown?".to_owned());
        }
        if self.memory().hinted && self.is(Rule::HintIdle) {
            self.memory().hinted = false;
            return Some("cancelled".to_owned());
        }
        self.memory().prepares += 1;
        if self.memory().prepares == 1 {
            self.work_slowly(message).await;
        }
        self.memory().prepared = Some(Prepared { not_after });
        Some(if self.is(Rule::Prepare) { "ok" } else { "done" }.to_owned())
    }

    async fn work_slowly(&self, message: &jetstream::Message) {
        if self.is(Rule::InProgress) {
            return tokio::time::sleep(ACK_WAIT + WORK).await;
        }
        for _ in 0..6 {
            tokio::time::sleep(LONG_WORK / 6).await;
            message.ack_with(AckKind::Progress).await.unwrap();
        }
    }

    async fn upgrade(&self, sequence: u64) -> Option<String> {
        let resumed = self.memory().upgrading == Some(sequence);
        if resumed && self.is(Rule::UpgradeCut) {
            return None;
        }
        let twice = self.is(Rule::DeliveredTwice);
        if !resumed || twice {
            let mut memory = self.memory();
            let late = memory.prepared.is_some_and(|prepared| is_past(prepared.not_after))
                && !self.is(Rule::UpgradeLate);
            if memory.prepared.is_none() || late {
                return None;
            }
            memory.upgrading = Some(sequence);
            if !self.is(Rule::UpgradeTwice) && !twice {
                memory.prepared = None;
            }
        }
        tokio::time::sleep(WORK).await;
        let mut memory = self.memory();
        if twice {
            memory.prepared = None;
        }
        memory.reboot_due = Some(memory.boot);
        Some(if self.is(Rule::Upgrade) { "ok" } else { "reboot-required" }.to_owned())
    }

    /// A reboot that names the boot to leave.
    async fn reboot_of(&self, leave: &str) -> Option<String> {
        let is_here = leave == self.memory().boot_id();
        let waits = if is_here { !self.is(Rule::RebootOnRequest) } else { self.is(Rule::RebootOfOtherBoot) };
        if waits {
            return std::future::pending().await;
        }
        Some("done".to_owned())
    }

    async fn reboot(&self, sequence: u64) -> Option<String> {
        let (due, boot, requests) = {
            let memory = self.memory();
            (memory.reboot_due, memory.boot, memory.reboot_requests)
        };
        let again = self.is(Rule::RebootTwice) && requests > 0 && due.is_none();
        let begun = self.memory().upgrading == Some(sequence);
        if (due == Some(boot) || again) && !self.is(Rule::RebootPending) {
            self.memory().reboot_requests += 1;
            // Saved as begun, for the faults that depend on it.
            self.memory().upgrading = Some(sequence);
            if !(begun && self.is(Rule::RestartIsNoReboot)) {
                return std::future::pending().await;
            }
        }
        self.memory().reboot_due = None;
        if due.is_none() && self.is(Rule::RebootNotDue) {
            return None;
        }
        let lost = begun && self.is(Rule::Rebooted);
        Some(if lost { "the disk is gone" } else { "done" }.to_owned())
    }
}

/// The prefix of the `JetStream` API.
const fn api(access: &Access) -> &'static str {
    if access.credentials.is_some() { "os-upgrade.js" } else { "$JS.API" }
}

/// Waits for the stream.
async fn stream(jetstream: &jetstream::Context, name: &str) -> Stream {
    loop {
        match jetstream.get_stream(name).await {
            Ok(stream) => return stream,
            Err(_) => tokio::time::sleep(FETCH).await,
        }
    }
}

fn is_past(not_after: Option<DateTime<Utc>>) -> bool {
    not_after.is_some_and(|at| at < Utc::now())
}

async fn send_heartbeats(client: Client, name: String) {
    loop {
        client.publish(format!("os-upgrade.presence.{name}"), "".into()).await.unwrap();
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}

async fn fetch(consumer: &PullConsumer) -> Option<jetstream::Message> {
    let mut batch = consumer.fetch().max_messages(1).expires(FETCH).messages().await.ok()?;
    batch.next().await?.ok()
}
