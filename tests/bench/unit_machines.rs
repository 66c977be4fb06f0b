//! Machines that run units, all in this process over one connection. A hint makes a machine read its manifest and the units that it names,
//! and report them as launched: there is no systemd, so that the orchestrator is measured and not an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use async_nats::{Client, Subscriber, jetstream};
use chrono::Utc;
use futures::{StreamExt as _, TryStreamExt as _};
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{
    Announcement, ApplicationName, Applied, AppliedItem, Heartbeat, HostName, Item, ItemKind, Manifest,
    ReportedState, UnitItem, UnitReport, WantedState, subject,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::instance::PATIENCE;
use crate::workers::{context, host};

/// Between two heartbeats of a machine, as of agents.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Number of concurrent announcements.
const ANNOUNCE_AT_ONCE: usize = 256;
/// Matches the hint to every machine.
const HINTS: &str = "os-upgrade.desired.*";

/// Whose streams and subjects are used.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names {
    /// The orchestrator's.
    Orchestrator,
    /// The floor's, which are like them.
    Floor,
}

impl Names {
    /// The stream or subject that the orchestrator calls `name`.
    pub(crate) fn name(self, name: &str) -> String {
        match self {
            Self::Orchestrator => name.to_owned(),
            Self::Floor => name.replacen("os-upgrade", "floor", 1),
        }
    }
}

/// The machines. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Machines {
    shared: Arc<Shared>,
    reports: mpsc::UnboundedReceiver<anyhow::Result<(HostName, usize)>>,
    /// How many launched units each machine has reported last.
    launched: BTreeMap<HostName, usize>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    jetstream: jetstream::Context,
    names: Names,
    /// Each stored report: the machine, and the number of units in it.
    sender: mpsc::UnboundedSender<anyhow::Result<(HostName, usize)>>,
}

impl Machines {
    /// Machines that answer hints on the nats-server at `url`.
    pub(crate) async fn start(url: &str, names: Names) -> anyhow::Result<Self> {
        let client = managed_nats::connect(url).await.context("the machines cannot connect")?;
        let hints = client.subscribe(names.name(HINTS)).await?;
        client.flush().await?;
        let (sender, reports) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { jetstream: context(client.clone()), client, names, sender });
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).follow_hints(hints));
        Ok(Self { shared, reports, launched: BTreeMap::new(), tasks })
    }

    /// Announces `hosts` hosts, each another machine, and sends their heartbeats from now on.
    pub(crate) async fn announce(&mut self, application: &str, hosts: usize) -> anyhow::Result<()> {
        let application = ApplicationName::new(application)?;
        let (jetstream, application) = (&self.shared.jetstream, &application);
        futures::stream::iter(0..hosts)
            .map(async |number| {
                let announcement = Announcement {
                    machine_id: Some(machine_id(number)),
                    heartbeats: true,
                    runs_units: true,
                    ..Announcement::new(host(number), application.clone())
                };
                let subject = subject::worker(application, &announcement.host);
                jetstream.publish(subject, announcement.to_payload().into()).await?.await?;
                anyhow::Ok(())
            })
            .buffer_unordered(ANNOUNCE_AT_ONCE)
            .try_collect::<()>()
            .await?;
        let interval = HEARTBEAT_INTERVAL / u32::try_from(hosts)?;
        self.tasks.spawn(Arc::clone(&self.shared).send_heartbeats(hosts, interval));
        Ok(())
    }

    /// Waits until the machines' stored reports have `units` launched units.
    pub(crate) async fn await_launched(&mut self, units: usize) -> anyhow::Result<()> {
        while self.launched.values().sum::<usize>() < units {
            let report = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
            let report = report.context("a machine has not reported its unit")?;
            let (host, launched) = report.ok_or_else(|| anyhow!("the machines have ended"))??;
            self.launched.insert(host, launched);
        }
        Ok(())
    }
}

/// The id of the machine of this number.
fn machine_id(number: usize) -> String {
    format!("{:032x}", number + 1)
}

impl Shared {
    /// The heartbeats of all hosts, spread over the time between two of one.
    async fn send_heartbeats(self: Arc<Self>, hosts: usize, interval: Duration) {
        let mut due = tokio::time::interval(interval);
        for number in (0..hosts).cycle() {
            due.tick().await;
            let heartbeat = Heartbeat { time: Some(Utc::now()), units: true };
            let subject = self.names.name(&subject::presence(&host(number)));
            // An error means that the connection is closed for good.
            if self.client.publish(subject, heartbeat.to_payload().into()).await.is_err() {
                return;
            }
        }
    }

    async fn follow_hints(self: Arc<Self>, mut hints: Subscriber) {
        while let Some(hint) = hints.next().await {
            let shared = Arc::clone(&self);
            tokio::spawn(async move {
                let reported = shared.run_units(hint.subject.as_str()).await;
                // The receiver is dropped first when the benchmark ends.
                let _ = shared.sender.send(reported);
            });
        }
    }

    /// What the host of a hint does. Returns it, and how many units it has reported.
    async fn run_units(&self, hint: &str) -> anyhow::Result<(HostName, usize)> {
        let host = HostName::from_token(hint.rsplit('.').next().unwrap_or_default())?;
        let manifest = Manifest::parse(&self.desired(&subject::desired_manifest(&host)).await?)?;
        let mut items = Vec::new();
        for item in manifest.items.into_iter().filter(|item| item.kind == ItemKind::Unit) {
            let unit = UnitItem::parse(&self.desired(&subject::desired_item(&host, &item.id)).await?)?;
            let is_wanted = unit.name == item.name && unit.state == WantedState::Launched;
            ensure!(is_wanted, "{} of {host} is {unit:?}", item.name);
            items.push(launched(item));
        }
        let units = items.len();
        let report = Applied { site: manifest.site, revision: manifest.revision, items, refused: None };
        let subject = self.names.name(&subject::applied(&host));
        self.jetstream.publish(subject, report.to_payload().into()).await?.await?;
        Ok((host, units))
    }

    /// What is stored at this subject, read as agents do.
    async fn desired(&self, subject: &str) -> anyhow::Result<Vec<u8>> {
        let (stream, subject) = (self.names.name(subject::DESIRED_STREAM), self.names.name(subject));
        let request = format!("$JS.API.DIRECT.GET.{stream}.{subject}");
        let answer = self.client.request(request, "".into()).await?;
        let is_found = answer.headers.is_some_and(|headers| headers.get("Nats-Subject").is_some());
        ensure!(is_found, "nothing is stored at {subject}");
        Ok(answer.payload.to_vec())
    }
}

/// The report of a unit that was started.
fn launched(item: Item) -> AppliedItem {
    let unit = UnitReport {
        state: ReportedState::Launched,
        load: "loaded".to_owned(),
        active: "active".to_owned(),
        sub: "running".to_owned(),
    };
    AppliedItem { kind: item.kind, name: item.name, id: Some(item.id), error: None, unit: Some(unit) }
}
