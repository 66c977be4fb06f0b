//! What is measured, and how: floor and orchestrator in turns, so that whatever else the machine does meets both.
//! Of several measurements the median counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use hdrhistogram::Histogram;
use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::Action;
use tokio::task::JoinHandle;

use crate::floor::Floor;
use crate::locks;
use crate::progress;
use crate::report::{Quantity, Report, Row, Target};
use crate::site::Site;
use crate::windows;
use crate::worker_process;
use crate::workers::Step;
use crate::{Options, RowKind};

/// Turns of floor and orchestrator when hosts are upgraded one by one.
const TURNS: usize = 20;
/// Pairs of segments, without and with readers, of the run that is read.
const READ_PAIRS: usize = 8;
/// What the orchestrator may cost more than the floor.
const RATIO_MAX: f64 = 1.5;
/// What a host of the large site may cost more than one of the small site.
const FLAT_MAX: f64 = 1.25;
/// What reading may slow down a run.
const SLOWED_MAX: f64 = 1.1;
/// The orchestrator's memory, in MiB.
const MEMORY_MAX: f64 = 150.0;
/// A restart, in milliseconds.
const RESTART_MAX: f64 = 2_000.0;
/// The slowest of 100 reads, in milliseconds.
const READ_MAX: f64 = 50.0;
/// FleetLock clients, and how many requests a second they are to make together.
const LOCK_RATES: [(usize, f64); 3] = [(1, 1_000.0), (8, 6_000.0), (32, 15_000.0)];
/// The slowest of 100 FleetLock requests, in milliseconds.
const LOCK_MAX: f64 = 20.0;
/// How often those who wait ask again.
const CROWD_ROUNDS: usize = 10;
/// What the memory may become of what it was after the first round.
const CROWD_MEMORY_MAX: f64 = 1.2;

/// Everything that takes part.
#[derive(Debug)]
pub(crate) struct Rows {
    options: Options,
    /// Where everything is stored meanwhile.
    directory: PathBuf,
    nats: ManagedNats,
    floor: Floor,
    site: Site,
}

impl Rows {
    pub(crate) async fn new(options: Options, program: PathBuf, directory: &Path) -> anyhow::Result<Self> {
        let server = nats_server::find().await?;
        let at = managed_nats::Options { directory: directory.join("nats"), port: None };
        let nats = ManagedNats::start(server, &at).await?;
        let floor = Floor::new(&nats.url()).await?;
        let site = Site::start(program, directory.join("site"), &nats.url()).await?;
        Ok(Self { options, directory: directory.to_owned(), nats, floor, site })
    }

    pub(crate) async fn measure(mut self, report: &mut Report) -> anyhow::Result<()> {
        if self.wants(&[RowKind::Windows]) {
            progress("the next occurrence of windows");
            windows::measure(report)?;
        }
        if self.wants(&[RowKind::Worker]) {
            progress("a worker with nothing to do");
            let program = self.options.worker_program()?;
            worker_process::measure(&program, &self.directory, &self.nats.url(), report).await?;
        }
        // First, while there is nothing else in the orchestrator's memory.
        if self.wants(&[RowKind::Locks]) {
            self.locks(report).await?;
        }
        if self.wants(&[RowKind::Waiters]) {
            self.waiters(report).await?;
        }
        let (hosts, many) = (self.options.hosts as usize, self.options.many_hosts as usize);
        let mut small = None;
        if self.wants(&[RowKind::OneByOne, RowKind::Prepare]) {
            self.grow(hosts).await?;
        }
        if self.wants(&[RowKind::OneByOne]) {
            self.one_by_one(hosts, report).await?;
        }
        if self.wants(&[RowKind::Prepare]) {
            let per_host = self.prepare(hosts, self.options.rounds, report).await?;
            small = Some(per_host);
        }
        if self.wants(&[RowKind::Prepare, RowKind::Memory, RowKind::Reads, RowKind::Restart]) {
            self.grow(many).await?;
        }
        if let Some(small) = small {
            let large = self.prepare(many, self.options.rounds.div_ceil(2), report).await?;
            report.push(Row {
                what: format!("prepare, a host of {many} against one of {hosts}"),
                floor: Some(Quantity::of(small)),
                ours: Quantity::of(large),
                target: Target::Ratio(FLAT_MAX),
            });
        }
        if self.wants(&[RowKind::Memory, RowKind::Reads, RowKind::Restart]) {
            progress(format!("a run of {many} hosts"));
            self.site.prepare().await?;
            self.in_the_run(many, report).await?;
            self.site.cancel().await?;
        }
        self.nats.stop().await;
        Ok(())
    }

    fn wants(&self, rows: &[RowKind]) -> bool {
        rows.iter().any(|row| self.options.wants(*row))
    }

    async fn grow(&mut self, hosts: usize) -> anyhow::Result<()> {
        progress(format!("{hosts} hosts and their consumers"));
        self.floor.grow(hosts).await?;
        self.site.grow(&self.nats.url(), hosts).await
    }

    /// Slots taken and given back by clients from outside, beside a floor of one journal append for each request.
    async fn locks(&self, report: &mut Report) -> anyhow::Result<()> {
        let time = Duration::from_secs(self.options.lock_secs);
        for (workers, least) in LOCK_RATES {
            progress(format!("slots taken and given back by {workers} clients"));
            let floor = locks::floor(&self.nats.url(), workers, time).await?;
            let load = locks::lock_and_unlock(self.site.address(), workers, time).await?;
            report.push(Row {
                what: format!("lock and unlock, {workers} clients"),
                floor: Some(Quantity::PerSecond(floor)),
                ours: Quantity::PerSecond(load.rate),
                target: Target::AtLeast(Quantity::PerSecond(least)),
            });
            report.push(Row {
                what: format!("lock or unlock, {workers} clients, 99 of 100"),
                floor: None,
                ours: Quantity::of(load.p99),
                target: Target::AtMost(Quantity::Millis(LOCK_MAX)),
            });
        }
        Ok(())
    }

    /// Clients that are refused again and again.
    async fn waiters(&self, report: &mut Report) -> anyhow::Result<()> {
        let waiters = self.options.waiters as usize;
        progress(format!("{waiters} clients wait for one slot"));
        locks::crowd(self.site.address(), waiters).await?;
        let (before, _) = self.site.memory()?;
        let mut slowest = Duration::ZERO;
        for _ in 0..CROWD_ROUNDS {
            slowest = slowest.max(locks::crowd(self.site.address(), waiters).await?.p99);
        }
        let (after, _) = self.site.memory()?;
        report.push(Row {
            what: format!("memory with {waiters} waiters, {CROWD_ROUNDS} rounds later"),
            floor: Some(Quantity::Mebibytes(mebibytes(before))),
            ours: Quantity::Mebibytes(mebibytes(after)),
            target: Target::Ratio(CROWD_MEMORY_MAX),
        });
        report.push(Row {
            what: format!("lock refused, {waiters} waiters, 99 of 100"),
            floor: None,
            ours: Quantity::of(slowest),
            target: Target::AtMost(Quantity::Millis(LOCK_MAX)),
        });
        Ok(())
    }

    /// A run of all hosts, upgraded in segments. At the end of each the next host holds its answer back, and it is
    /// the floor's turn.
    async fn one_by_one(&mut self, hosts: usize, report: &mut Report) -> anyhow::Result<()> {
        let segment = ((hosts - 1) / TURNS).max(1);
        progress(format!("{hosts} hosts one by one, {segment} at a time"));
        self.floor.prepare(hosts).await?;
        self.site.prepare().await?;
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for turn in 0..(hosts - 1) / segment {
            let turn = turn * segment..(turn + 1) * segment;
            floor.push(self.floor.one_by_one(turn).await? / count(segment));
            ours.push(self.upgrade(segment).await? / count(segment));
        }
        // The last one has no successor by which its end would show.
        self.site.workers.allow_upgrades(hosts);
        self.site.idle().await?;
        report.push(Row {
            what: format!("hosts one by one, each of {hosts}"),
            floor: Some(Quantity::of(median(&mut floor)?)),
            ours: Quantity::of(median(&mut ours)?),
            target: Target::Ratio(RATIO_MAX),
        });
        Ok(())
    }

    /// `hosts` steps of the run, from the answer of one host to the answer of the next.
    async fn upgrade(&mut self, hosts: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.site.workers.allow_upgrades(hosts);
        let ended = self.site.workers.wait(Action::Upgrade, Step::Received, hosts).await?;
        Ok(ended.duration_since(started))
    }

    /// Returns what a host costs the orchestrator.
    async fn prepare(&mut self, hosts: usize, rounds: u32, report: &mut Report) -> anyhow::Result<Duration> {
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            progress(format!("prepare to {hosts} hosts, {round} of {rounds}"));
            floor.push(self.floor.prepare(hosts).await?);
            ours.push(self.site.prepare().await?);
            self.site.cancel().await?;
        }
        let (floor, ours) = (median(&mut floor)?, median(&mut ours)?);
        report.push(Row {
            what: format!("prepare to {hosts} hosts"),
            floor: Some(Quantity::of(floor)),
            ours: Quantity::of(ours),
            target: Target::Ratio(RATIO_MAX),
        });
        Ok(ours / count(hosts))
    }

    /// What is measured while a run goes on: hosts are upgraded, the next one waits for permission to answer.
    async fn in_the_run(&mut self, hosts: usize, report: &mut Report) -> anyhow::Result<()> {
        if self.wants(&[RowKind::Reads]) {
            self.reads(hosts, report).await?;
        }
        if self.wants(&[RowKind::Memory]) {
            let (now, highest) = self.site.memory()?;
            progress(format!("memory: {} KiB now, {} KiB at its highest", now / 1_024, highest / 1_024));
            report.push(Row {
                what: format!("memory at its highest, {hosts} hosts in a run"),
                floor: None,
                ours: Quantity::Mebibytes(mebibytes(highest)),
                target: Target::AtMost(Quantity::Mebibytes(MEMORY_MAX)),
            });
        }
        if self.wants(&[RowKind::Restart]) {
            let took = self.site.restart().await?;
            // The run goes on: the next host gets its command.
            self.upgrade(1).await?;
            report.push(Row {
                what: format!("restart in a run of {hosts} hosts until it is ready"),
                floor: None,
                ours: Quantity::of(took),
                target: Target::AtMost(Quantity::Millis(RESTART_MAX)),
            });
        }
        Ok(())
    }

    async fn reads(&mut self, hosts: usize, report: &mut Report) -> anyhow::Result<()> {
        let segment = (hosts / 2 / (2 * READ_PAIRS)).max(1);
        let rate = self.options.reads_per_sec;
        progress(format!("{segment} hosts at a time, without and with {rate} reads a second"));
        let bytes = self.site.read().await?;
        progress(format!("an answer has {bytes} bytes"));
        let readers = Readers::start(&self.site, rate);
        let (mut alone, mut read) = (Vec::new(), Vec::new());
        for _ in 0..READ_PAIRS {
            readers.on.store(false, Ordering::Relaxed);
            alone.push(self.upgrade(segment).await? / count(segment));
            readers.on.store(true, Ordering::Relaxed);
            read.push(self.upgrade(segment).await? / count(segment));
        }
        let times = readers.stop().await?;
        ensure!(!times.is_empty(), "the run was too short to be read");
        progress(format!("{} reads, half of them within {} us", times.len(), times.value_at_quantile(0.5)));
        report.push(Row {
            what: format!("GET state, {hosts} hosts in a run, 99 of 100"),
            floor: None,
            ours: Quantity::of(Duration::from_micros(times.value_at_quantile(0.99))),
            target: Target::AtMost(Quantity::Millis(READ_MAX)),
        });
        report.push(Row {
            what: format!("a host of {hosts}, {rate} such reads a second against none"),
            floor: Some(Quantity::of(median(&mut alone)?)),
            ours: Quantity::of(median(&mut read)?),
            target: Target::Ratio(SLOWED_MAX),
        });
        Ok(())
    }
}

/// Reads the state at a steady rate while it is switched on. A read that begins late counts from when it was due.
struct Readers {
    on: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    reading: JoinHandle<anyhow::Result<Histogram<u64>>>,
}

impl Readers {
    fn start(site: &Site, per_sec: u32) -> Self {
        let (http, url) = site.reader();
        let (on, end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let reading = tokio::spawn({
            let (on, end) = (Arc::clone(&on), Arc::clone(&end));
            async move {
                let mut times = Histogram::new(3)?;
                let mut due = tokio::time::interval(Duration::from_secs(1) / per_sec);
                while !end.load(Ordering::Relaxed) {
                    let due = due.tick().await;
                    if on.load(Ordering::Relaxed) {
                        let answer = http.get(&url).send().await?.error_for_status()?;
                        answer.bytes().await?;
                        times.record(u64::try_from(due.elapsed().as_micros())?)?;
                    }
                }
                Ok(times)
            }
        });
        Self { on, end, reading }
    }

    async fn stop(self) -> anyhow::Result<Histogram<u64>> {
        self.end.store(true, Ordering::Relaxed);
        self.reading.await?
    }
}

fn median(times: &mut [Duration]) -> anyhow::Result<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied().context("nothing was measured")
}

fn count(hosts: usize) -> u32 {
    u32::try_from(hosts).unwrap_or(u32::MAX)
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1_024).unwrap_or(u32::MAX)) / 1_024.0
}
