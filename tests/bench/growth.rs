//! Growth: what a site stores after many runs, and how long its instances then take to start and to take over. The floor is
//! the same site so many runs earlier, after its streams were trimmed for the first time.
//!
//! Of two instances the first one leads all the time, but for two takeovers at each sample: paused, it loses the lease to the
//! second one, which is then killed and started again. Clients wait all the time for a slot that they do not get.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use async_nats::jetstream;
use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::subject;
use serde_json::Value;

use crate::instance::Instance;
use crate::locks::{self, Waiting};
use crate::report::{Pairs, Report, Target, Unit, mebibytes, progress};
use crate::site::Site;
use crate::workers::context;

/// Number of hosts in a run.
const HOSTS: usize = 50;
/// Number of clients that wait for a slot, and how often each asks for it.
const WAITING: usize = 100;
const ASK_INTERVAL: Duration = Duration::from_secs(5);
/// Number of samples. Three of the first half, but not the first one, are compared with those so many later.
const SAMPLES: usize = 8;
/// The streams are trimmed as soon as possible. The history is kept for a day at least, so all of it is there.
const CUT: &str = "sync-interval = \"0s\"\n[fleet-lock.groups]\ndefault = 25\ncrowded = 1\n";
/// Nothing is deleted from the streams while the measurement lasts.
const KEPT: &str = "sync-interval = \"1d\"\n[fleet-lock.groups]\ndefault = 25\ncrowded = 1\n";
/// How many runs there are between two looks at what is stored.
const LOOK_EVERY: u32 = 5;

/// Limit of what is stored, relative to the floor.
const STORED_MAX: f64 = 1.3;
/// Limit of the leader's memory, relative to the floor.
const MEMORY_MAX: f64 = 1.3;
/// Limit of times, relative to the floor. They vary with the position in the journal, and with that of the lease in its term.
const TIME_MAX: f64 = 1.5;
/// Limit of the time until an instance that has lost its store is ready, relative to one that has it.
const LOST_READY_MAX: f64 = 1.5;
/// Limit of its memory until its history is filled, relative to one that has its store.
const LOST_MEMORY_MAX: f64 = 2.0;
/// Limit of the time until its history is filled, relative to the time of the runs in it.
const LOST_FILLED_MAX: f64 = 0.5;

/// The measurements of growth.
#[derive(Debug)]
pub(crate) struct Growth<'a> {
    /// The orchestrator's program.
    pub(crate) program: &'a Path,
    /// Directory for all data.
    pub(crate) directory: &'a Path,
}

/// What was found after some runs.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    /// The number of runs until then.
    runs: u32,
    /// The mean time of a run.
    run: Duration,
    largest: Stored,
    /// The leader's memory in mebibytes.
    memory: f64,
    /// The mean time from the pause or the end of a leader until the other instance leads.
    takeover: Duration,
    /// The time of a start until the instance is ready.
    start: Duration,
}

/// What is stored, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    journal: u64,
    control: u64,
    /// The history of the second instance.
    history: u64,
}

impl Growth<'_> {
    /// `runs` runs, while everything that nobody needs is deleted.
    pub(crate) async fn measure(&self, runs: u32, report: &mut Report) -> anyhow::Result<()> {
        let samples = u32::try_from(SAMPLES)?;
        ensure!(runs.is_multiple_of(samples), "{runs} runs cannot be divided by {samples}");
        let mut cluster = Cluster::start(self.program, &self.directory.join("cut"), CUT).await?;
        let server = cluster.site.instance.address();
        locks::hold(server, locks::CROWDED).await?;
        let mut waiting = Waiting::start(server, WAITING, ASK_INTERVAL);
        let mut found = Vec::with_capacity(SAMPLES);
        for number in 1..=samples {
            let sample = Sample { runs: runs / samples * number, ..cluster.sample(runs / samples).await? };
            waiting.check()?;
            cluster.await_waiting().await?;
            progress(format!("of {runs} runs: {sample:?}"));
            found.push(sample);
        }
        let apart = runs / 2;
        let mut push = |what: &str, unit, most, value: fn(&Sample) -> f64| {
            let mut pairs = Pairs::default();
            for (floor, ours) in found[1..].iter().zip(&found[1 + SAMPLES / 2..]) {
                pairs.push(value(floor), value(ours));
            }
            report.push(format!("{what}, {apart} runs later"), unit, pairs, Target::AtMost(most));
        };
        push("the journal", Unit::Mebibytes, STORED_MAX, |sample| mebibytes(sample.largest.journal));
        push("the control stream", Unit::Mebibytes, STORED_MAX, |sample| mebibytes(sample.largest.control));
        push("the history, each run", Unit::Mebibytes, STORED_MAX, |sample| {
            mebibytes(sample.largest.history) / f64::from(sample.runs)
        });
        push("the leader's memory", Unit::Mebibytes, MEMORY_MAX, |sample| sample.memory);
        push(&format!("a run of {HOSTS} hosts"), Unit::Millis, TIME_MAX, |sample| millis(sample.run));
        push("a takeover", Unit::Millis, TIME_MAX, |sample| millis(sample.takeover));
        push("start until it is ready", Unit::Millis, TIME_MAX, |sample| millis(sample.start));
        Ok(())
    }

    /// An instance that has lost its store, when `runs` runs are in the journal.
    pub(crate) async fn measure_lost_store(&self, runs: u32, report: &mut Report) -> anyhow::Result<()> {
        let mut cluster = Cluster::start(self.program, &self.directory.join("kept"), KEPT).await?;
        let Sample { run, largest, .. } = cluster.drive(runs).await?;
        let upgrades = u64::from(runs) * HOSTS as u64;
        progress(format!("{upgrades} host-upgrades: {largest:?}"));
        let newest = cluster.newest_run().await?;

        let second = &mut cluster.second;
        second.kill().await;
        let with_store = second.start_again().await?;
        until_filled(second, &newest).await?;
        let memory_with_store = second.highest_memory()?;

        second.kill().await;
        for file in second.history_files()? {
            fs::remove_file(file)?;
        }
        let begun = Instant::now();
        let ready = second.start_again().await?;
        until_filled(second, &newest).await?;
        let filled = begun.elapsed();
        let count = second.get("/v1/state/os-upgrade/runs?count=true").await?;
        ensure!(count["count"] == runs, "the history was filled with {count}");

        let mut times = Pairs::default();
        times.push_times(with_store, ready);
        let what = format!("start without a store, {upgrades} host-upgrades in the journal");
        report.push(what, Unit::Millis, times, Target::AtMost(LOST_READY_MAX));
        let memory = Pairs::once(memory_with_store, second.highest_memory()?);
        let what = "its memory at its highest, until its history is filled";
        report.push(what, Unit::Mebibytes, memory, Target::AtMost(LOST_MEMORY_MAX));
        let mut times = Pairs::default();
        times.push_times(run * runs, filled);
        report.push("until its history is filled", Unit::Millis, times, Target::AtMost(LOST_FILLED_MAX));
        Ok(())
    }
}

/// Two instances with a nats-server. Dropping it stops its processes.
#[derive(Debug)]
struct Cluster {
    /// The hosts, and the instance that leads.
    site: Site,
    second: Instance,
    jetstream: jetstream::Context,
    /// Dropped last.
    _nats: ManagedNats,
}

impl Cluster {
    async fn start(program: &Path, directory: &Path, more: &str) -> anyhow::Result<Self> {
        progress(format!("a site of {HOSTS} hosts with two instances"));
        let server = nats_server::find().await?;
        let options = managed_nats::Options { directory: directory.join("nats"), port: None };
        let nats = ManagedNats::start(server, &options).await?;
        let url = nats.url();
        let mut site = Site::start(program.to_owned(), directory.join("first"), &url, more).await?;
        let second = Instance::start(program.to_owned(), directory.join("second"), &url, more).await?;
        site.grow(&url, HOSTS).await?;
        let jetstream = context(managed_nats::connect(&url).await?);
        Ok(Self { site, second, jetstream, _nats: nats })
    }

    /// `runs` runs, then two takeovers and a start.
    async fn sample(&mut self, runs: u32) -> anyhow::Result<Sample> {
        let driven = self.drive(runs).await?;
        let (first, second) = (&self.site.instance, &mut self.second);
        let memory = first.memory()?;
        let begun = Instant::now();
        first.pause();
        second.until_role("leader").await?;
        let taken = begun.elapsed();
        first.resume();
        first.until_role("follower").await?;
        let begun = Instant::now();
        second.kill().await;
        first.until_role("leader").await?;
        let takeover = (taken + begun.elapsed()) / 2;
        let start = second.start_again().await?;
        Ok(Sample { memory, takeover, start, ..driven })
    }

    /// `runs` runs.
    async fn drive(&mut self, runs: u32) -> anyhow::Result<Sample> {
        let (mut took, mut largest) = (Duration::ZERO, Stored::default());
        for run in 0..runs {
            took += self.site.run().await?;
            if run % LOOK_EVERY == 0 || run + 1 == runs {
                largest = largest.max(self.stored().await?);
            }
        }
        Ok(Sample { run: took / runs, largest, ..Sample::default() })
    }

    async fn stored(&self) -> anyhow::Result<Stored> {
        let bytes = async |stream: &str| {
            let mut stream = self.jetstream.get_stream(stream).await?;
            anyhow::Ok(stream.info().await?.state.bytes)
        };
        let (journal, control) =
            (bytes(subject::JOURNAL_STREAM).await?, bytes(subject::CONTROL_STREAM).await?);
        let mut history = 0;
        for file in self.second.history_files()? {
            history += fs::metadata(file)?.len();
        }
        Ok(Stored { journal, control, history })
    }

    /// Waits until every client is known to wait.
    async fn await_waiting(&self) -> anyhow::Result<()> {
        let all = |slots: &Value| {
            let groups = slots["groups"].as_array().into_iter().flatten();
            let waiters = |group: &Value| group["waiters"].as_array().map_or(0, Vec::len);
            groups.filter(|group| group["group"] == locks::CROWDED).map(waiters).sum::<usize>() == WAITING
        };
        self.site.instance.until("/v1/state/fleet-lock", "all clients wait", all).await
    }

    async fn newest_run(&self) -> anyhow::Result<String> {
        let state = self.site.instance.get("/v1/state/os-upgrade?fields=last-upgrade-info").await?;
        let last = &state["last-upgrade-info"];
        ensure!(last["result"] == "completed", "the last run: {last}");
        Ok(last["id"].as_str().context("a run without an id")?.to_owned())
    }
}

impl Stored {
    fn max(self, other: Self) -> Self {
        Self {
            journal: self.journal.max(other.journal),
            control: self.control.max(other.control),
            history: self.history.max(other.history),
        }
    }
}

/// Waits until the history of `instance` has the end of this run.
async fn until_filled(instance: &Instance, run: &str) -> anyhow::Result<()> {
    let path = format!("/v1/state/os-upgrade/runs/{run}?events-limit=1");
    instance.until(&path, "the history is filled", |run| run["result"].is_string()).await
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
