//! The measurements: floor and ours in turns, so that other load on the machine affects both.

use std::path::PathBuf;
use std::time::Duration;

use crate::growth::Growth;
use crate::locks::{self, Journal};
use crate::options::{Options, RowKind};
use crate::providers;
use crate::reboot_queue::{Hall, Size};
use crate::report::{Pairs, Report, Target, Unit, progress};
use crate::subscribers::Subscribers;
use crate::testbed::Testbed;
use crate::units;
use crate::windows;
use crate::worker_process;

/// Turns of floor and orchestrator when hosts are upgraded one by one.
const TURNS: usize = 20;
/// Turns of a run without reads, during reads of the floor, and during reads of the state.
const READ_TURNS: usize = 9;
/// Limit of the orchestrator's cost, relative to the floor.
const RATIO_MAX: f64 = 1.5;
/// Limit of the growth of a host's cost from the small to the large site, relative to the floor's growth.
const FLAT_MAX: f64 = 1.25;
/// Limit of the time of a run during reads, relative to one without.
const SLOWED_MAX: f64 = 1.05;
/// Limit of the answer time of the slowest reads, relative to the floor's.
const READ_MAX: f64 = 1.5;
/// Turns of a run without subscribers, and with them.
const SUBSCRIBED_TURNS: usize = 9;
/// Limit of the time of a run with subscribers, relative to one without.
const SUBSCRIBED_MAX: f64 = 1.05;
/// Limit of the orchestrator's memory in a run, relative to that without hosts.
const MEMORY_MAX: f64 = 4.2;
/// Limit of the time of a restart in a run, relative to that without hosts.
const RESTART_MAX: f64 = 3.5;
/// Number of restarts of both.
const RESTARTS: usize = 5;
/// Number of FleetLock clients, the least rate of their requests relative to the floor, and the limit of the 99th percentile
/// of their answer times relative to the floor.
const LOCKS: [(usize, f64, f64); 3] = [(1, 0.5, 2.0), (8, 1.15, 1.0), (32, 2.4, 0.55)];
/// Duration of a turn of FleetLock clients, and of the floor.
const LOCK_TURN: Duration = Duration::from_secs(1);
/// How often the waiting clients repeat their request.
const CROWD_ROUNDS: usize = 10;
/// Limit of the memory, relative to that after the first round.
const CROWD_MEMORY_MAX: f64 = 1.2;
/// Number of refused clients without a crowd.
const QUIET_CLIENTS: usize = 4;
/// Limit of the 99th percentile of refusals in a crowd, relative to that without.
const REFUSED_MAX: f64 = 1.4;

/// Measures the selected rows.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) options: Options,
    /// The orchestrator's program.
    pub(crate) program: PathBuf,
    /// Directory for all data.
    pub(crate) directory: PathBuf,
}

impl Rows {
    pub(crate) async fn measure(&self, report: &mut Report) -> anyhow::Result<()> {
        if self.wants(&[RowKind::Windows]) {
            progress("the next occurrence of windows");
            windows::measure(report)?;
        }
        if self.wants(&[RowKind::Growth]) {
            let growth = Growth { program: &self.program, directory: &self.directory.join("growth") };
            growth.measure(self.options.runs, report).await?;
            growth.measure_lost_store(self.options.kept_runs, report).await?;
        }
        if self.wants(&[RowKind::RebootQueue]) {
            let directory = self.directory.join("reboot-queue");
            let size =
                Size { nodes: self.options.nodes as usize, at_once: self.options.nodes_at_once as usize };
            let mut hall = Hall::start(self.program.clone(), &directory, size).await?;
            hall.measure(report).await?;
        }
        if self.wants(&[RowKind::Providers]) {
            let (hosts, rounds) = (self.options.many_hosts as usize, self.options.poll_rounds);
            let directory = self.directory.join("providers");
            providers::measure(&self.program, &directory, (hosts, rounds), report).await?;
        }
        if self.wants(&[RowKind::Units]) {
            let directory = self.directory.join("units");
            units::measure(&self.program, &directory, self.options.hosts as usize, report).await?;
        }
        if !self.wants(&RowKind::ON_TESTBEDS) {
            return Ok(());
        }
        let mut small = self.testbed("small").await?;
        if self.wants(&[RowKind::Worker]) {
            self.worker(&small, report).await?;
        }
        // Before the sites grow: the crowd's memory is compared with what the orchestrator has now.
        if self.wants(&[RowKind::Locks]) {
            self.locks(&small, report).await?;
        }
        if self.wants(&[RowKind::Waiters]) {
            self.waiters(&small, report).await?;
        }
        if self.wants(&[RowKind::OneByOne, RowKind::Prepare, RowKind::Subscribers]) {
            small.grow(self.options.hosts as usize).await?;
        }
        if self.wants(&[RowKind::OneByOne]) {
            one_by_one(&mut small, report).await?;
        }
        if self.wants(&[RowKind::Subscribers]) {
            self.subscribers(&mut small, report).await?;
        }
        if self.wants(&[RowKind::Prepare]) {
            self.prepare(&mut small, report).await?;
        }
        if self.wants(&[RowKind::Prepare, RowKind::Memory, RowKind::Reads, RowKind::Restart]) {
            let mut large = self.testbed("large").await?;
            large.grow(self.options.many_hosts as usize).await?;
            if self.wants(&[RowKind::Prepare]) {
                self.prepare_large(&mut large, &mut small, report).await?;
            }
            if self.wants(&[RowKind::Memory, RowKind::Reads, RowKind::Restart]) {
                self.in_a_run(&mut large, report).await?;
            }
        }
        Ok(())
    }

    fn wants(&self, rows: &[RowKind]) -> bool {
        rows.iter().any(|row| self.options.wants(*row))
    }

    async fn testbed(&self, name: &str) -> anyhow::Result<Testbed> {
        Testbed::start(self.program.clone(), &self.directory.join(name)).await
    }

    async fn worker(&self, testbed: &Testbed, report: &mut Report) -> anyhow::Result<()> {
        progress("workers with nothing to do");
        let programs = worker_process::Programs {
            worker: self.options.worker_program()?,
            smallest: self.options.smallest_program()?,
            directory: &self.directory,
            nats: testbed.nats(),
        };
        programs.measure(report).await
    }

    /// Slots taken and released by external clients, beside a floor of one journal append for each request.
    async fn locks(&self, testbed: &Testbed, report: &mut Report) -> anyhow::Result<()> {
        let journal = Journal::new(&testbed.nats()).await?;
        for (clients, rate_min, p99_max) in LOCKS {
            progress(format!("slots taken and given back by {}", named(clients)));
            let (mut rates, mut times) = (Pairs::default(), Pairs::default());
            for _ in 0..self.options.lock_turns {
                let floor = journal.append(clients, LOCK_TURN).await?;
                let ours =
                    locks::lock_and_unlock(testbed.site.instance.address(), clients, LOCK_TURN).await?;
                rates.push(floor.rate, ours.rate);
                times.push_times(floor.p99, ours.p99);
            }
            let what = format!("lock and unlock, {}", named(clients));
            report.push(what, Unit::PerSecond, rates, Target::AtLeast(rate_min));
            let what = format!("lock or unlock, {}, p99", named(clients));
            report.push(what, Unit::Millis, times, Target::AtMost(p99_max));
        }
        Ok(())
    }

    /// Clients that are refused repeatedly.
    async fn waiters(&self, testbed: &Testbed, report: &mut Report) -> anyhow::Result<()> {
        let waiters = self.options.waiters as usize;
        progress(format!("{waiters} clients wait for one slot"));
        let server = testbed.site.instance.address();
        locks::hold(server, locks::QUIET).await?;
        locks::hold(server, locks::CROWDED).await?;
        let quiet = || locks::refused(server, locks::QUIET, QUIET_CLIENTS, waiters);
        let crowd = || locks::refused(server, locks::CROWDED, waiters, waiters);
        quiet().await?;
        crowd().await?;
        let before = testbed.site.instance.memory()?;
        let mut times = Pairs::default();
        for _ in 0..CROWD_ROUNDS {
            times.push_times(quiet().await?.p99, crowd().await?.p99);
        }
        let memory = Pairs::once(before, testbed.site.instance.memory()?);
        let what = format!("memory with {waiters} waiters, {CROWD_ROUNDS} rounds later");
        report.push(what, Unit::Mebibytes, memory, Target::AtMost(CROWD_MEMORY_MAX));
        let what = format!("lock refused, {waiters} waiters, p99");
        report.push(what, Unit::Millis, times, Target::AtMost(REFUSED_MAX));
        Ok(())
    }

    /// Whole runs while clients follow the events, in turns with runs that nobody follows.
    async fn subscribers(&self, testbed: &mut Testbed, report: &mut Report) -> anyhow::Result<()> {
        let (hosts, count) = (testbed.hosts, self.options.subscribers as usize);
        testbed.site.run().await?;
        let mut times = Pairs::default();
        for turn in 1..=SUBSCRIBED_TURNS {
            progress(format!(
                "a run of {hosts} hosts that {count} clients follow, {turn} of {SUBSCRIBED_TURNS}"
            ));
            let alone = testbed.site.run().await?;
            let mut subscribers = Subscribers::connect(&testbed.site.instance, count).await?;
            let followed = testbed.site.run().await?;
            subscribers.check()?;
            times.push_times(alone, followed);
        }
        let what = format!("a run of {hosts} hosts, {count} subscribers");
        report.push(what, Unit::Millis, times, Target::AtMost(SUBSCRIBED_MAX));
        Ok(())
    }

    async fn prepare(&self, testbed: &mut Testbed, report: &mut Report) -> anyhow::Result<()> {
        let (hosts, rounds) = (testbed.hosts, self.options.rounds);
        let mut times = Pairs::default();
        for round in 1..=rounds {
            progress(format!("prepare to {hosts} hosts, {round} of {rounds}"));
            times.push_times(testbed.floor.prepare(hosts).await?, prepare_and_cancel(testbed).await?);
        }
        let what = format!("prepare to {hosts} hosts");
        report.push(what, Unit::Millis, times, Target::AtMost(RATIO_MAX));
        Ok(())
    }

    /// The same for the large site, in turns with the small one.
    async fn prepare_large(
        &self,
        large: &mut Testbed,
        small: &mut Testbed,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let (hosts, few, rounds) = (large.hosts, small.hosts, self.options.rounds.div_ceil(2));
        let (large_hosts, small_hosts) = (u32::try_from(hosts)?, u32::try_from(few)?);
        let (mut times, mut growth) = (Pairs::default(), Pairs::default());
        let growth_of =
            |large: Duration, small: Duration| (large / large_hosts).div_duration_f64(small / small_hosts);
        for round in 1..=rounds {
            progress(format!("prepare to {hosts} hosts, {round} of {rounds}"));
            let floor = large.floor.prepare(hosts).await?;
            let ours = prepare_and_cancel(large).await?;
            let floor_of_few = small.floor.prepare(few).await?;
            let ours_of_few = prepare_and_cancel(small).await?;
            times.push_times(floor, ours);
            growth.push(growth_of(floor, floor_of_few), growth_of(ours, ours_of_few));
        }
        let what = format!("prepare to {hosts} hosts");
        report.push(what, Unit::Millis, times, Target::AtMost(RATIO_MAX));
        let what = format!("prepare, a host of {hosts} against one of {few}");
        report.push(what, Unit::Times, growth, Target::AtMost(FLAT_MAX));
        Ok(())
    }

    /// The measurements during a run: hosts are upgraded, and the next one waits for permission to answer.
    async fn in_a_run(&self, testbed: &mut Testbed, report: &mut Report) -> anyhow::Result<()> {
        let hosts = testbed.hosts;
        progress(format!("a run of {hosts} hosts"));
        testbed.site.prepare().await?;
        if self.wants(&[RowKind::Reads]) {
            self.reads(testbed, report).await?;
        }
        let mut empty = self.testbed("empty").await?;
        if self.wants(&[RowKind::Memory]) {
            let floor = empty.site.instance.highest_memory()?;
            let memory = Pairs::once(floor, testbed.site.instance.highest_memory()?);
            let what = format!("memory at its highest, {hosts} hosts in a run");
            report.push(what, Unit::Mebibytes, memory, Target::AtMost(MEMORY_MAX));
        }
        if self.wants(&[RowKind::Restart]) {
            let mut times = Pairs::default();
            for _ in 0..RESTARTS {
                times
                    .push_times(empty.site.instance.restart().await?, testbed.site.instance.restart().await?);
                // The run continues: the next host gets its command.
                testbed.site.upgrade(1).await?;
            }
            let what = format!("restart in a run of {hosts} hosts until it is ready");
            report.push(what, Unit::Millis, times, Target::AtMost(RESTART_MAX));
        }
        testbed.site.cancel().await
    }

    /// Reads of the state, in turns with reads of as many bytes from a bare server and with none, and how much they slow
    /// the run down.
    async fn reads(&self, testbed: &mut Testbed, report: &mut Report) -> anyhow::Result<()> {
        let (hosts, rate) = (testbed.hosts, self.options.reads_per_sec);
        let segment = (hosts / 4 / READ_TURNS).max(1);
        let reader = testbed.site.reader();
        let state = reader.read().await?;
        progress(format!("{segment} hosts at a time, with {rate} reads a second of {} bytes", state.len()));
        let bare = reader.bare(state).await?;
        bare.read().await?;
        let (mut answers, mut steps) = (Pairs::default(), Pairs::default());
        for _ in 0..READ_TURNS {
            let undisturbed = testbed.site.upgrade(segment).await?;
            let (_, floor) = bare.read_during(rate, testbed.site.upgrade(segment)).await?;
            let (step, ours) = reader.read_during(rate, testbed.site.upgrade(segment)).await?;
            answers.push_times(floor, ours);
            steps.push_times(undisturbed, step);
        }
        let what = format!("GET state, {hosts} hosts in a run, p99");
        report.push(what, Unit::Millis, answers, Target::AtMost(READ_MAX));
        let what = format!("a host of {hosts} during {rate} such reads a second");
        report.push(what, Unit::Millis, steps, Target::AtMost(SLOWED_MAX));
        Ok(())
    }
}

/// A run of all hosts, upgraded in segments. At the end of each the next host withholds its answer while the floor has its
/// turn.
async fn one_by_one(testbed: &mut Testbed, report: &mut Report) -> anyhow::Result<()> {
    let hosts = testbed.hosts;
    let segment = ((hosts - 1) / TURNS).max(1);
    progress(format!("{hosts} hosts one by one, {segment} at a time"));
    testbed.floor.prepare(hosts).await?;
    testbed.site.prepare().await?;
    let mut steps = Pairs::default();
    for turn in 0..(hosts - 1) / segment {
        let turn = turn * segment..(turn + 1) * segment;
        let floor = testbed.floor.one_by_one(turn).await? / u32::try_from(segment)?;
        steps.push_times(floor, testbed.site.upgrade(segment).await?);
    }
    // The last host has no successor whose command would show its end.
    testbed.site.workers.allow_upgrades(hosts);
    testbed.site.idle().await?;
    let what = format!("hosts one by one, each of {hosts}");
    report.push(what, Unit::Millis, steps, Target::AtMost(RATIO_MAX));
    Ok(())
}

async fn prepare_and_cancel(testbed: &mut Testbed) -> anyhow::Result<Duration> {
    let took = testbed.site.prepare().await?;
    testbed.site.cancel().await?;
    Ok(took)
}

/// `1 client`, `8 clients`.
fn named(clients: usize) -> String {
    if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") }
}
