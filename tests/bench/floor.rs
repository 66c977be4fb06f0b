//! The floor: the cost of the least possible work. A bare loop publishes the same commands as the orchestrator, with the
//! same window, and keeps no records.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use async_nats::HeaderMap;
use async_nats::jetstream::{self, stream};
use chrono::{TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _};
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{Action, Command, CommandId, RunId, header};

use crate::workers::{Step, Subjects, Workers, context, host};

const STREAM: &str = "floor:control";
const COMMAND: &str = "floor:control.command.";
const REPLY: &str = "floor:control.reply.";
/// As the orchestrator's stream: one consumer for each host.
const CONSUMERS_MAX: i32 = 100_000;
/// As the orchestrator's bound for unacknowledged commands.
const WINDOW: usize = 256;
/// As a run of the orchestrator: longer than any measurement.
const RUN_TIME: TimeDelta = TimeDelta::hours(4);

/// The bare loop, with its own workers.
#[derive(Debug)]
pub(crate) struct Floor {
    jetstream: jetstream::Context,
    workers: Workers,
    rounds: u32,
}

impl Floor {
    pub(crate) async fn new(url: &str) -> anyhow::Result<Self> {
        let client = managed_nats::connect(url).await.context("the floor cannot connect")?;
        let jetstream = context(client);
        jetstream
            .create_stream(stream::Config {
                name: STREAM.to_owned(),
                subjects: vec![format!("{COMMAND}*"), format!("{REPLY}*")],
                storage: stream::StorageType::File,
                max_consumers: CONSUMERS_MAX,
                ..stream::Config::default()
            })
            .await
            .context("the floor's stream cannot be created")?;
        let subjects =
            Subjects { stream: STREAM.to_owned(), command: COMMAND.to_owned(), reply: REPLY.to_owned() };
        let workers = Workers::new(url, "floor", subjects, None).await?;
        Ok(Self { jetstream, workers, rounds: 0 })
    }

    pub(crate) async fn grow(&mut self, hosts: usize) -> anyhow::Result<()> {
        self.workers.grow(hosts).await
    }

    /// Upgrades `hosts`, one by one. They must be prepared, like the orchestrator's: the server's search for a host's second
    /// command passes the messages since its first.
    pub(crate) async fn one_by_one(&mut self, hosts: Range<usize>) -> anyhow::Result<Duration> {
        let run = self.round()?;
        self.workers.allow_upgrades(hosts.len());
        let started = Instant::now();
        for number in hosts {
            publish(&self.jetstream, &run, Action::Upgrade, number).await?;
            self.workers.wait(Action::Upgrade, Step::Settled, 1).await?;
        }
        Ok(started.elapsed())
    }

    /// Prepares `hosts` hosts, with a window of unacknowledged commands.
    pub(crate) async fn prepare(&mut self, hosts: usize) -> anyhow::Result<Duration> {
        let run = self.round()?;
        let (jetstream, workers) = (&self.jetstream, &mut self.workers);
        let started = Instant::now();
        let publishing = futures::stream::iter(0..hosts)
            .map(|number| publish(jetstream, &run, Action::Prepare, number))
            .buffer_unordered(WINDOW)
            .try_collect::<()>();
        let (published, settled) =
            tokio::join!(publishing, workers.wait(Action::Prepare, Step::Settled, hosts));
        published?;
        Ok(settled?.duration_since(started))
    }

    fn round(&mut self) -> anyhow::Result<RunId> {
        self.rounds += 1;
        self.workers.forget();
        Ok(RunId::new(&format!("00000000-0000-7000-8000-{:012}", self.rounds))?)
    }
}

async fn publish(
    jetstream: &jetstream::Context,
    run: &RunId,
    action: Action,
    number: usize,
) -> anyhow::Result<()> {
    let host = host(number);
    let id = CommandId { run: run.clone(), host: host.clone(), action, attempt: 1 };
    let mut headers = HeaderMap::new();
    headers.insert(header::PRODUCER_NAME, header::CONTROLLER);
    headers.insert(header::RUN, run.as_str());
    headers.insert(header::COMMAND_ID, id.to_string());
    let subject = format!("{COMMAND}{}", host.token());
    let command = Command::for_host(action, host, Some(Utc::now() + RUN_TIME)).to_payload();
    jetstream.publish_with_headers(subject, headers, command.into()).await?.await?;
    Ok(())
}
