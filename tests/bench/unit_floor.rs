//! The floor of units: a bare loop that publishes once more what the orchestrator has stored for them, byte for byte and under the same
//! kinds of conditions, in streams of its own on the same nats-server, to machines that do the same.
//!
//! As the orchestrator, it appends to its journal one message after another, and has as many manifests on their way at once. It delivers
//! once it has what the orchestrator's journal had when it recorded its first manifest as stored, and appends the rest meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{self, stream};
use async_nats::{Client, HeaderMap, Subscriber};
use futures::{StreamExt as _, TryStreamExt as _};
use harness::streams;
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{HostName, header, subject};
use serde_json::Value;

use crate::bare_provider::MANIFESTS_AT_ONCE;
use crate::instance::PATIENCE;
use crate::unit_machines::{Machines, Names};
use crate::workers::context;

/// What the orchestrator has stored for units.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The journal until a manifest was recorded as stored.
    placed: Vec<StreamMessage>,
    /// The rest of the journal.
    delivered: Vec<StreamMessage>,
    /// Items and then the manifest of each host, by its token.
    desired: BTreeMap<String, Vec<StreamMessage>>,
}

impl Stored {
    /// Reads the journal after the sequence `last`, and what each host is to have.
    pub(crate) async fn read(jetstream: &jetstream::Context, last: u64) -> anyhow::Result<Self> {
        let is_stored = |record: &Value| {
            let mut facts = record["facts"].as_array().into_iter().flatten();
            facts.any(|fact| fact["type"] == "manifest-stored")
        };
        let records = streams::records(jetstream, &mut (last + 1)).await;
        let first = records.iter().find(|(_, record)| is_stored(record)).map(|(sequence, _)| *sequence);
        let first = first.context("no manifest is recorded as stored")?;
        let (journal, facts) = (subject::JOURNAL_STREAM, subject::JOURNAL_FACT);
        let journal = streams::stored_from(jetstream, journal, facts, &mut (last + 1)).await;
        let (placed, delivered) = journal.into_iter().partition(|message| message.sequence < first);
        let mut desired = BTreeMap::<String, Vec<StreamMessage>>::new();
        for message in streams::stored(jetstream, subject::DESIRED_STREAM, subject::DESIRED).await {
            if message.subject.as_str() == subject::DESIRED_LEADER {
                continue;
            }
            let token = message.subject.split('.').nth(1).context("a subject without a host")?.to_owned();
            desired.entry(token).or_default().push(message);
        }
        Ok(Self { placed, delivered, desired })
    }
}

/// The bare loop, with machines of its own.
#[derive(Debug)]
pub(crate) struct UnitFloor {
    publisher: Publisher,
    machines: Machines,
    /// The machines' reports, which the orchestrator reads too.
    reports: Subscriber,
}

#[derive(Debug)]
struct Publisher {
    client: Client,
    jetstream: jetstream::Context,
    /// The sequence of the fence under which items and manifests are published.
    fence: u64,
}

impl UnitFloor {
    /// Creates its streams on the nats-server at `url`.
    pub(crate) async fn start(url: &str) -> anyhow::Result<Self> {
        let client = managed_nats::connect(url).await.context("the floor cannot connect")?;
        let jetstream = context(client.clone());
        for config in [
            os_upgrade_jetstream::stream(subject::JOURNAL_STREAM, &[subject::JOURNAL_FACT]),
            os_upgrade_jetstream::desired_stream(),
            os_upgrade_jetstream::applied_stream(),
        ] {
            let name = Names::Floor.name(&config.name);
            let subjects = config.subjects.iter().map(|subject| Names::Floor.name(subject)).collect();
            let config = stream::Config { name, subjects, ..config };
            jetstream.create_stream(config).await.context("a stream of the floor cannot be created")?;
        }
        let leader = Names::Floor.name(subject::DESIRED_LEADER);
        let fence = jetstream.publish(leader, "fence".into()).await?.await?.sequence;
        let reports = client.subscribe(Names::Floor.name(subject::APPLIED)).await?;
        client.flush().await?;
        let machines = Machines::start(url, Names::Floor).await?;
        Ok(Self { publisher: Publisher { client, jetstream, fence }, machines, reports })
    }

    /// Publishes all of `stored`. Returns how long it took until `units` units were reported.
    pub(crate) async fn replay(&mut self, stored: &Stored, units: usize) -> anyhow::Result<Duration> {
        let Self { publisher, machines, reports } = self;
        let begun = Instant::now();
        let last = publisher.append(0, &stored.placed).await?;
        let reported = async {
            publisher.deliver(stored).await?;
            machines.await_launched(units).await?;
            // One of each machine.
            for _ in 0..stored.desired.len() {
                let report = tokio::time::timeout(PATIENCE, reports.next()).await;
                report.context("a report is missing")?.context("the floor's connection is closed")?;
            }
            anyhow::Ok(begun.elapsed())
        };
        let (took, appended) = tokio::join!(reported, publisher.append(last, &stored.delivered));
        appended?;
        took
    }
}

impl Publisher {
    /// Appends to the journal, whose last sequence is `last`. Returns its last sequence.
    async fn append(&self, mut last: u64, messages: &[StreamMessage]) -> anyhow::Result<u64> {
        for message in messages {
            let mut headers = message.headers.clone();
            headers.insert(header::EXPECTED_LAST_SEQUENCE, last.to_string());
            last = self.publish(message, headers).await?;
        }
        Ok(last)
    }

    /// Publishes what hosts are to have, and tells them.
    async fn deliver(&self, stored: &Stored) -> anyhow::Result<()> {
        futures::stream::iter(&stored.desired)
            .map(async |(token, messages)| {
                for message in messages {
                    let mut headers = message.headers.clone();
                    let leader = Names::Floor.name(subject::DESIRED_LEADER);
                    headers.insert(header::EXPECTED_LAST_SUBJECT_SEQUENCE, self.fence.to_string());
                    headers.insert(header::EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT, leader);
                    self.publish(message, headers).await?;
                }
                let hint = subject::desired_hint(&HostName::from_token(token)?);
                self.client.publish(Names::Floor.name(&hint), "".into()).await?;
                anyhow::Ok(())
            })
            .buffer_unordered(MANIFESTS_AT_ONCE)
            .try_collect::<()>()
            .await
    }

    /// Publishes the message under the floor's name of its subject. Returns its sequence.
    async fn publish(&self, message: &StreamMessage, headers: HeaderMap) -> anyhow::Result<u64> {
        let subject = Names::Floor.name(message.subject.as_str());
        let sent = self.jetstream.publish_with_headers(subject, headers, message.payload.clone()).await?;
        Ok(sent.await?.sequence)
    }
}
