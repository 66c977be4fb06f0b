//! Configuration of hosts by a provider: how long a site with many hosts takes until each has a manifest, and what polls cost that bring
//! nothing new.
//!
//! The hosts only announce themselves, each with a key; the provider is a file server in this process. It is polled as often as can be
//! configured, so that the polls of a day pass in minutes. What is promised whatever the machine is checked and not measured: the file
//! server never gets more requests than the provider's token bucket and `max-in-flight` allow, and unchanged polls store nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use async_nats::jetstream;
use harness::file_server::FileServer;
use harness::streams;
use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::subject;
use os_upgrade_sealing::PrivateKey;
use serde_json::json;

use crate::bare_provider::{BareProvider, IN_FLIGHT, NAME, PATH, file_server};
use crate::extent::Extent;
use crate::instance::{KEPT, until};
use crate::report::{Pairs, Report, Target, Unit, progress};
use crate::site::Site;
use crate::workers::context;

/// Turns of the floor and of a new site.
const TURNS: usize = 2;
/// Limit of the time until each host has a manifest, relative to the floor.
const JOIN_MAX: f64 = 1.8;
/// Limit of the CPU time of an unchanged poll, relative to the floor.
const POLL_MAX: f64 = 5.0;
/// The time between two polls of a host, the least that can be configured.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// All hosts are asked about once within this part of the interval at the earliest.
const SPREAD_PARTS: u32 = 4;

/// A site of so many hosts is joined, in turns with the floor; then each host is polled `rounds` times.
pub(crate) async fn measure(
    program: &Path,
    directory: &Path,
    (hosts, rounds): (usize, u32),
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut times = Pairs::default();
    let mut last = None;
    for turn in 1..=TURNS {
        progress(format!("configuration of {hosts} hosts, {turn} of {TURNS}"));
        // It would go on polling.
        drop(last.take());
        let joining = Joining::start(program, &directory.join(turn.to_string()), hosts).await?;
        times.push_times(joining.floor.join(hosts).await?, joining.join().await?);
        joining.check_requests()?;
        last = Some(joining);
    }
    let what = format!("configuration of {hosts} hosts, until each has a manifest");
    report.push(what, Unit::Millis, times, Target::AtMost(JOIN_MAX));
    last.context("there was no turn")?.measure_polls(rounds, report).await
}

/// A site whose hosts announce a key, with a provider that is not configured yet.
#[derive(Debug)]
struct Joining {
    site: Site,
    files: FileServer,
    floor: BareProvider,
    hosts: usize,
    jetstream: jetstream::Context,
    /// The first message of the journal that was not read yet.
    next: u64,
    _nats: ManagedNats,
}

impl Joining {
    /// Starts it, with all data in `directory`, and waits until the key of each host is approved.
    async fn start(program: &Path, directory: &Path, hosts: usize) -> anyhow::Result<Self> {
        let server = nats_server::find().await?;
        let options = managed_nats::Options { directory: directory.join("nats"), port: None };
        let nats = ManagedNats::start(server, &options).await?;
        let mut site = Site::start(program.to_owned(), directory.join("site"), &nats.url(), KEPT).await?;
        // Nobody opens what is sealed, so one key is enough for all.
        let key = PrivateKey::generate().public();
        site.announce(&nats.url(), hosts, Some(key)).await?;
        let jetstream = context(managed_nats::connect(&nats.url()).await?);
        let floor = BareProvider::start(jetstream.clone(), key, hosts).await?;
        let files = file_server(hosts).await;
        let mut joining = Self { site, files, floor, hosts, jetstream, next: 1, _nats: nats };
        joining.await_facts("key-pinned").await?;
        Ok(joining)
    }

    /// Configures the provider, and waits until each host has a manifest. Returns how long that took.
    async fn join(&self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let provider = json!({
            "name": NAME, "kind": "http", "url": self.files.url(PATH), "max-in-flight": IN_FLIGHT,
            "poll-interval": format!("{}s", POLL_INTERVAL.as_secs()),
        });
        self.site.configure(&json!([provider])).await?;
        // An item and a manifest of each host, and the leader's fence.
        let messages = u64::try_from(2 * self.hosts + 1)?;
        until("each host has a manifest", async || {
            anyhow::Ok(Extent::read(&self.jetstream, subject::DESIRED_STREAM).await?.messages == messages)
        })
        .await?;
        Ok(begun.elapsed())
    }

    /// Polls of unchanged files, in turns with the floor, although polls go on during that.
    async fn measure_polls(mut self, rounds: u32, report: &mut Report) -> anyhow::Result<()> {
        let hosts = self.hosts;
        self.await_facts("manifest-stored").await?;
        // What joining has left to do ends in a first round, such as a snapshot of the journal.
        self.await_round().await?;
        let (asked, unchanged) = self.files.count(304);
        let before = self.stored().await?;
        let mut costs = Pairs::default();
        for round in 1..=rounds {
            progress(format!("unchanged polls of {hosts} hosts, {round} of {rounds}"));
            let floor = self.floor.poll(hosts).await?;
            costs.push_times(floor, self.poll().await?);
        }
        let after = self.stored().await?;
        ensure!(
            before == after,
            "unchanged polls are stored: journal and items had {before:?}, now {after:?}"
        );
        let (asked_since, unchanged_since) = self.files.count(304);
        let changed = (asked_since - asked) - (unchanged_since - unchanged);
        ensure!(changed == 0, "{changed} polls of unchanged files were not answered 304");
        self.check_requests()?;
        let polls = hosts * rounds as usize;
        let what = format!("CPU time of each of {polls} unchanged polls");
        report.push(what, Unit::Millis, costs, Target::AtMost(POLL_MAX));
        Ok(())
    }

    /// Waits until each host was polled once more. Returns the orchestrator's CPU time for each poll, with whatever else it does.
    async fn poll(&self) -> anyhow::Result<Duration> {
        let (asked, _) = self.files.count(304);
        let begun = self.site.instance.cpu_time()?;
        self.await_round().await?;
        let spent = self.site.instance.cpu_time()?.saturating_sub(begun);
        let polls = self.files.count(304).0 - asked;
        Ok(spent / u32::try_from(polls)?)
    }

    /// Waits until there were as many further unchanged polls as there are hosts. Each host is polled once within an interval.
    async fn await_round(&self) -> anyhow::Result<()> {
        let enough = self.files.count(304).1 + self.hosts;
        until("each host was polled", async || anyhow::Ok(self.files.count(304).1 >= enough)).await
    }

    /// Waits until the journal has one further fact of this type for each host.
    async fn await_facts(&mut self, kind: &str) -> anyhow::Result<()> {
        let (jetstream, hosts, next) = (&self.jetstream, self.hosts, &mut self.next);
        let mut found = 0;
        until(&format!("the journal has {kind} of each host"), async || {
            for (_, record) in streams::records(jetstream, next).await {
                let facts = record["facts"].as_array().into_iter().flatten();
                found += facts.filter(|fact| fact["type"] == kind).count();
            }
            anyhow::Ok(found >= hosts)
        })
        .await
    }

    /// Journal and items.
    async fn stored(&self) -> anyhow::Result<[Extent; 2]> {
        let extent = |stream| Extent::read(&self.jetstream, stream);
        Ok([extent(subject::JOURNAL_STREAM).await?, extent(subject::DESIRED_STREAM).await?])
    }

    /// Fails if the file server got more requests than `max-in-flight` and the token bucket allow.
    fn check_requests(&self) -> anyhow::Result<()> {
        let at_once = self.files.most_at_once();
        ensure!(at_once <= IN_FLIGHT, "{at_once} requests at once, and {IN_FLIGHT} are allowed");
        let (hosts, in_flight) = (u32::try_from(self.hosts)?, u32::try_from(IN_FLIGHT)?);
        let spread = POLL_INTERVAL / SPREAD_PARTS / hosts;
        let interval = spread.min(Duration::from_secs(1) / in_flight);
        // What a full bucket has, and the requests that are on their way when it is full.
        let surplus = 2 * in_flight;
        ensure!(
            is_allowed(&self.files.arrivals(), interval, surplus),
            "there were more requests than one in {interval:?} and {surplus}"
        );
        Ok(())
    }
}

/// Whether there were never more `arrivals` within a time than it has intervals, and `surplus`.
fn is_allowed(arrivals: &[Instant], interval: Duration, surplus: u32) -> bool {
    let Some(mut paid) = arrivals.first().copied() else { return true };
    arrivals.iter().all(|at| {
        paid = paid.max(*at) + interval;
        paid.duration_since(*at) <= interval * surplus
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus_is_found() {
        let (begun, interval) = (Instant::now(), Duration::from_millis(100));
        let allowed = |millis: &[u64]| {
            let arrivals: Vec<Instant> =
                millis.iter().map(|millis| begun + Duration::from_millis(*millis)).collect();
            is_allowed(&arrivals, interval, 3)
        };
        assert!(allowed(&[]));
        assert!(allowed(&[0, 0, 0]));
        assert!(!allowed(&[0, 0, 0, 0]));
        assert!(allowed(&[0, 0, 0, 100, 200, 700, 700, 700]));
        assert!(!allowed(&[0, 0, 0, 99]));
        assert!(!allowed(&[0, 1_000, 1_000, 1_000, 1_000]));
    }
}
