//! Chaos with real parts: runs of many hosts on a cluster of nats-servers with several orchestrators, any part of which
//! is killed, paused or cut off while operators and lock clients keep sending requests.
//!
//! - [`faults`]: the faults, and how each is repaired;
//! - [`clients`]: operators and lock clients, and the answers they got;
//! - [`roles`]: which instance leads, seen from outside, and how long take-overs take;
//! - [`checks`]: the invariants of a run, read from the workers' logs and the streams;
//! - [`report`]: the results.

pub mod checks;
pub mod clients;
pub mod faults;
pub mod report;
pub mod roles;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::checks::{Checker, SLOTS};
use self::clients::{Clients, Leftovers, OUTSIDE};
use self::faults::{Fault, Faults};
use self::report::Report;
use self::roles::Roles;
use crate::cluster::ClusterSite;
use crate::host::Host;
use crate::library_host::LibraryHost;
use crate::random::Random;
use crate::rest::Rest;

/// Timeout of an API request.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a run may take after the last fault.
const QUIET_WITHIN: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The size of a chaos test.
#[derive(Debug, Clone)]
pub struct Options {
    /// Runs, one after the other.
    pub runs: usize,
    /// Hosts of each.
    pub hosts: usize,
    /// How many of them have a worker process, at least one. The workers of the others run in this process.
    pub processes: usize,
    /// Orchestrators.
    pub orchestrators: usize,
    /// Number of faults in each run.
    pub faults: usize,
    /// The kinds to choose from.
    pub kinds: Vec<Fault>,
    /// Printed before each progress line. Without it there are no progress lines.
    pub progress_prefix: Option<String>,
}

/// A site under test.
struct Chaos {
    options: Options,
    random: Random,
    site: ClusterSite,
    hosts: Vec<Host>,
    _library_hosts: Vec<LibraryHost>,
    rests: Vec<Rest>,
    roles: Roles,
    checker: Checker,
    report: Report,
    leftovers: Arc<Leftovers>,
    last: Option<String>,
}

/// Runs the chaos test. Violations are reported in the result, not as a panic.
pub async fn run(options: Options, random: Random) -> Report {
    let mut chaos = Chaos::start(options, random).await;
    for number in 1..=chaos.options.runs {
        chaos.run_once(number).await;
    }
    chaos.roles.stop();
    chaos.report
}

impl Chaos {
    async fn start(options: Options, random: Random) -> Self {
        let groups = format!("[fleet-lock.groups]\ndefault = {SLOTS}\n{OUTSIDE} = 1\n");
        let site = ClusterSite::start(options.orchestrators, &groups).await;
        let names: Vec<String> = (1..=options.hosts).map(|number| format!("h{number:02}")).collect();
        let (mut hosts, mut library_hosts) = (Vec::new(), Vec::new());
        for (place, name) in (1..).zip(&names) {
            // Spread evenly; the last host always has a process.
            if place * options.processes % options.hosts < options.processes {
                let host = site.host(name);
                hosts.push(if hosts.len() % 2 == 0 { host.reboots().with_health_script() } else { host });
            } else {
                library_hosts.push(LibraryHost::start(&site.nats.urls(), &site.log(), name));
            }
        }
        hosts.iter_mut().for_each(Host::start);
        let expected: Vec<&str> = names.iter().map(String::as_str).collect();
        for member in &site.members {
            member.orchestrator.rest.await_scheduled(&expected).await;
        }
        let clients = |within| -> Vec<Rest> {
            let addresses = site.members.iter().map(|member| member.orchestrator.address());
            addresses.map(|address| Rest::with_timeout(address, within)).collect()
        };
        Self {
            rests: clients(ANSWER_WITHIN),
            roles: Roles::watch(clients(roles::ANSWER_WITHIN)),
            checker: Checker::new(&site.log(), names),
            report: Report::default(),
            leftovers: Arc::default(),
            last: None,
            hosts,
            _library_hosts: library_hosts,
            site,
            options,
            random,
        }
    }

    fn last_host(&self) -> &Host {
        self.hosts.last().expect("at least one worker is a process")
    }

    /// Executes one run with its faults, and checks the invariants afterwards.
    async fn run_once(&mut self, number: usize) {
        let begun = Instant::now();
        let rollout = 1 + self.random.below(3);
        let random = Random::new(self.random.below(u64::MAX));
        let clients = Clients::new(self.rests.clone(), Arc::clone(&self.leftovers), random, rollout);
        let clients = Arc::new(clients);
        // Keeps the run from ending before all faults have been injected.
        self.last_host().hold("upgrade");
        let id = clients.start_run(self.last.as_deref()).await;
        self.last = Some(id.clone());
        let operators = Clients::spawn(&clients);
        let faults = self.inject_faults(&id).await;
        operators.abort();
        drop(operators.await);
        self.leftovers.all_idle();
        self.report.record_faults(&faults, &self.roles);
        let ended = self.settle(&id).await;
        let mut wrong = match &ended {
            Ok(runs) => {
                let outcomes = clients.outcomes();
                self.report.record_outcomes(&outcomes);
                self.checker.check(self.site.jetstream(), &self.rests, &id, runs, &outcomes).await
            }
            Err(why) => vec![why.clone()],
        };
        wrong.extend(clients.violations());
        let wrong: Vec<String> =
            wrong.into_iter().map(|what| format!("run {number} ({id}): {what}")).collect();
        self.print_progress(number, begun, &faults, &wrong);
        if !wrong.is_empty() {
            self.save_logs();
        }
        self.report.record_run(wrong);
    }

    /// Injects faults until the run has ended and all faults are repaired.
    async fn inject_faults(&mut self, id: &str) -> Faults {
        let options = &self.options;
        let plan = faults::plan(&mut self.random, &options.kinds, options.faults, options.hosts);
        let mut faults = Faults::new(plan);
        let watch = clients::watch_end(self.rests.clone(), id.to_owned());
        let (begun, mut held) = (Instant::now(), true);
        loop {
            let ended = watch.is_finished();
            let late = begun.elapsed() > QUIET_WITHIN;
            faults.repair(&mut self.site, &mut self.random, ended || late).await;
            if (late || faults.all_injected()) && std::mem::take(&mut held) {
                self.last_host().release("upgrade");
            }
            if (ended || late) && !held && faults.all_repaired() {
                break;
            }
            if !ended && !late {
                let done = self.checker.begun(id);
                faults.inject(&mut self.site, &self.hosts, &self.roles, &mut self.random, done).await;
            }
            for (index, member) in self.site.members.iter_mut().enumerate() {
                if !faults.is_down(index) {
                    member.orchestrator.restart_if_ended();
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        watch.abort();
        faults
    }

    /// Waits until every orchestrator accepts writes and shows the end of the run. Returns the run as each shows it.
    async fn settle(&mut self, id: &str) -> Result<Vec<Value>, String> {
        let begun = Instant::now();
        loop {
            let mut runs = Vec::new();
            for (rest, member) in self.rests.iter().zip(&mut self.site.members) {
                member.orchestrator.restart_if_ended();
                let ready = member.orchestrator.role().await.is_some();
                let run = rest.run(id).await;
                if ready && run.result().is_some() {
                    runs.push(run.0);
                }
            }
            if runs.len() == self.rests.len() && runs.iter().all(|run| *run == runs[0]) {
                return Ok(runs);
            }
            if begun.elapsed() > QUIET_WITHIN {
                let shown: Vec<_> = runs.iter().map(|run| run["result"].clone()).collect();
                return Err(format!("it has not ended on every orchestrator: {shown:?}"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    #[expect(clippy::print_stdout, reason = "the progress of a program that takes long")]
    fn print_progress(&self, number: usize, begun: Instant, faults: &Faults, wrong: &[String]) {
        if let Some(prefix) = &self.options.progress_prefix {
            let seconds = begun.elapsed().as_secs_f64();
            let all = self.options.runs;
            println!(
                "{prefix}run {number}/{all} {seconds:5.1} s, {} violations: {}",
                wrong.len(),
                faults.summary()
            );
            for what in wrong {
                println!("{prefix}VIOLATION {what}");
            }
        }
    }

    /// Copies the logs to a directory that outlives the test.
    #[expect(clippy::print_stdout, reason = "the progress of a program that takes long")]
    fn save_logs(&self) {
        let directory = std::env::temp_dir().join(format!("os-upgrade-chaos-{}", std::process::id()));
        let kept = std::fs::create_dir_all(&directory).and_then(|()| {
            for (index, member) in self.site.members.iter().enumerate() {
                std::fs::write(
                    directory.join(format!("orchestrator-{index}.log")),
                    member.orchestrator.log(),
                )?;
            }
            for host in &self.hosts {
                std::fs::write(directory.join(format!("{}.log", host.name())), host.log())?;
            }
            std::fs::copy(crate::host::runs_log(&self.site.log()), directory.join("done")).map(drop)
        });
        println!("logs are in {}: {kept:?}", directory.display());
    }
}
