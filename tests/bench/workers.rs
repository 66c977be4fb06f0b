//! The hosts: raw NATS clients that answer every command at once, all in this process.
//!
//! As in the protocol, each host has a durable pull consumer with one filter, acknowledges explicitly, and acknowledges a
//! command only after its reply is stored. The consumers are created in advance, each with one pull request that is never
//! used up; all deliver to one subscription.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{self, Message};
use async_nats::{Client, HeaderMap};
use futures::{StreamExt as _, TryStreamExt as _};
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{
    Action, Announcement, ApplicationName, Command, HostName, Outcome, Reply, header, subject,
};
use tokio::sync::{Semaphore, mpsc};

/// Number of consumers created concurrently.
const CREATE_AT_ONCE: usize = 64;
/// Limit of unacknowledged publishes, more than there can be commands at once.
const UNANSWERED_MAX: usize = 65_536;
/// The acknowledgement timeout, longer than any measurement.
const ACK_WAIT: Duration = Duration::from_mins(10);
/// Number of messages requested by a pull request, more than there will be.
const PULL_BATCH: usize = 1_000_000;

/// The subjects of the workers: the orchestrator's, or the floor's.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    /// The stream of commands and replies.
    pub(crate) stream: String,
    /// Prefix of the subjects of commands, before the host's token.
    pub(crate) command: String,
    /// Prefix of the subjects of replies, before the host's token.
    pub(crate) reply: String,
}

/// A step of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A command has arrived.
    Received,
    /// Its reply is stored, and the command is acknowledged.
    Settled,
}

/// A step of a worker, with its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// The action of the command.
    pub(crate) action: Action,
    /// The step.
    pub(crate) step: Step,
    /// Its time.
    pub(crate) at: Instant,
}

/// The machines under the workers, where there are any: only such hosts take a `reboot` that names the boot to leave.
pub(crate) trait Machines: std::fmt::Debug + Send + Sync {
    /// The boot in which the machine of this host is.
    fn boot_id(&self, host: &HostName) -> String;

    /// Reboots the machine of this host, which takes no time.
    fn reboot(&self, host: &HostName);
}

/// The workers of one stream.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    seen: mpsc::UnboundedReceiver<anyhow::Result<Seen>>,
    hosts: usize,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    jetstream: jetstream::Context,
    subjects: Subjects,
    inbox: String,
    application: ApplicationName,
    machines: Option<Arc<dyn Machines>>,
    sender: mpsc::UnboundedSender<anyhow::Result<Seen>>,
    /// The permitted replies to `upgrade`.
    upgrades: Semaphore,
}

/// The name of the host of this number.
pub(crate) fn host(number: usize) -> HostName {
    HostName::new(&format!("h{number:05}")).expect("a valid name")
}

/// A JetStream context for many publishes at once.
pub(crate) fn context(client: Client) -> jetstream::Context {
    jetstream::ContextBuilder::new().max_ack_inflight(UNANSWERED_MAX).build(client)
}

impl Workers {
    /// Workers of `subjects` that have no hosts yet.
    pub(crate) async fn new(
        url: &str,
        application: &str,
        subjects: Subjects,
        machines: Option<Arc<dyn Machines>>,
    ) -> anyhow::Result<Self> {
        let (options, address) = managed_nats::options(url)?;
        let client = options
            .subscription_capacity(UNANSWERED_MAX)
            .connect(address)
            .await
            .context("the workers cannot connect")?;
        let (sender, seen) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            jetstream: context(client.clone()),
            inbox: client.new_inbox(),
            client,
            subjects,
            application: ApplicationName::new(application)?,
            machines,
            sender,
            upgrades: Semaphore::new(0),
        });
        let mut messages = shared.client.subscribe(format!("{}.*", shared.inbox)).await?;
        tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Some(message) = messages.next().await {
                    tokio::spawn(Arc::clone(&shared).take(message));
                }
            }
        });
        Ok(Self { shared, seen, hosts: 0 })
    }

    /// Adds hosts until there are `hosts`.
    pub(crate) async fn grow(&mut self, hosts: usize) -> anyhow::Result<()> {
        let shared = &self.shared;
        let stream = shared.jetstream.get_stream(&shared.subjects.stream).await?;
        futures::stream::iter(self.hosts..hosts)
            .map(|number| shared.consume(&stream, number))
            .buffer_unordered(CREATE_AT_ONCE)
            .try_collect::<()>()
            .await?;
        shared.client.flush().await?;
        self.hosts = self.hosts.max(hosts);
        Ok(())
    }

    /// What the worker of this host announces.
    pub(crate) fn announcement(&self, host: HostName) -> Announcement {
        self.shared.announcement(host)
    }

    /// Permits `count` further replies to `upgrade`.
    pub(crate) fn allow_upgrades(&self, count: usize) {
        self.shared.upgrades.add_permits(count);
    }

    /// Waits for the `count`th further `step` of `action`, skipping all others. Returns its time.
    pub(crate) async fn wait(&mut self, action: Action, step: Step, count: usize) -> anyhow::Result<Instant> {
        let mut last = Instant::now();
        for counted in 0..count {
            last = tokio::time::timeout(ACK_WAIT, self.next(action, step))
                .await
                .with_context(|| format!("{counted} of {count} workers came to {step:?} {action}"))??;
        }
        Ok(last)
    }

    async fn next(&mut self, action: Action, step: Step) -> anyhow::Result<Instant> {
        loop {
            let seen = self.seen.recv().await.ok_or_else(|| anyhow!("the workers have ended"))??;
            if seen.action == action && seen.step == step {
                return Ok(seen.at);
            }
        }
    }

    /// Discards the steps so far.
    pub(crate) fn forget(&mut self) {
        while self.seen.try_recv().is_ok() {}
    }
}

impl Shared {
    async fn consume(&self, stream: &jetstream::stream::Stream, number: usize) -> anyhow::Result<()> {
        let host = host(number);
        let name = subject::consumer(&host);
        stream
            .create_consumer(pull::Config {
                durable_name: Some(name.clone()),
                filter_subject: format!("{}{}", self.subjects.command, host.token()),
                ack_policy: AckPolicy::Explicit,
                ack_wait: ACK_WAIT,
                max_ack_pending: 1,
                num_replicas: 1,
                ..pull::Config::default()
            })
            .await
            .context("a worker's consumer cannot be created")?;
        // Without a timeout it is valid until the end of the subscription.
        let pull = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{name}", self.subjects.stream);
        let inbox = format!("{}.{}", self.inbox, host.token());
        let request = serde_json::json!({ "batch": PULL_BATCH }).to_string();
        self.client.publish_with_reply(pull, inbox, request.into()).await?;
        Ok(())
    }

    async fn take(self: Arc<Self>, message: async_nats::Message) {
        let message = Message { message, context: self.jetstream.clone() };
        if let Err(error) = self.work(&message).await {
            // The receiver is dropped first when the benchmark ends.
            let _ = self.sender.send(Err(error));
        }
    }

    async fn work(&self, message: &Message) -> anyhow::Result<()> {
        let command = Command::parse(&message.payload).with_context(|| {
            format!(
                "a worker received a message that is no command: {:?} {:?}",
                message.status, message.payload
            )
        })?;
        let action = command.action();
        self.report_step(action, Step::Received);
        if action == Action::Upgrade {
            self.upgrades.acquire().await?.forget();
        }
        let sequence = message.info().map_err(|error| anyhow!(error))?.stream_sequence;
        let token = message.subject.rsplit('.').next().unwrap_or_default();
        let host = HostName::from_token(token)?;
        if action == Action::Reboot
            && let Some(machines) = &self.machines
        {
            machines.reboot(&host);
            let payload = self.announcement(host.clone()).to_payload();
            let subject = subject::worker(&self.application, &host);
            self.jetstream.publish(subject, payload.into()).await?.await?;
        }
        let mut headers = HeaderMap::new();
        let producer = header::worker_producer(&self.application, &host);
        headers.insert(header::PRODUCER_NAME, producer);
        headers.insert(header::IN_REPLY_TO, sequence.to_string());
        let reply = Reply { action, result: Outcome::Done }.to_payload();
        let subject = format!("{}{token}", self.subjects.reply);
        self.jetstream.publish_with_headers(subject, headers, reply.into()).await?.await?;
        message.double_ack().await.map_err(|error| anyhow!(error))?;
        self.report_step(action, Step::Settled);
        Ok(())
    }

    fn announcement(&self, host: HostName) -> Announcement {
        let boot_id = self.machines.as_ref().map(|machines| machines.boot_id(&host));
        let reboots_on_request = boot_id.is_some();
        Announcement { boot_id, reboots_on_request, ..Announcement::new(host, self.application.clone()) }
    }

    fn report_step(&self, action: Action, step: Step) {
        let _ = self.sender.send(Ok(Seen { action, step, at: Instant::now() }));
    }
}
