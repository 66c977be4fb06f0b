//! Chaos with real parts: runs of many hosts on a cluster of nats-servers with several orchestrators, any part of which
//! is killed, paused or cut off while operators and lock clients go on asking.
//!
//! - [`faults`]: what goes wrong, and how it is mended;
//! - [`asking`]: operators and lock clients, and what they were answered;
//! - [`roles`]: who leads, as an outsider sees it, and how long take-overs take;
//! - [`checks`]: what must hold of a run, read from what workers did and what stands in the streams;
//! - [`report`]: the figures.

pub mod asking;
pub mod checks;
pub mod faults;
pub mod report;
pub mod roles;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::asking::{Asking, Leftovers, OUTSIDE};
use self::checks::{Checker, SLOTS};
use self::faults::{Fault, Faults};
use self::report::Report;
use self::roles::Roles;
use crate::cluster::ClusterSite;
use crate::host::Host;
use crate::library_host::LibraryHost;
use crate::random::Random;
use crate::rest::Rest;

/// How long an answer of the API may take before its asker gives up.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a run may take once nothing goes wrong any more.
const QUIET_WITHIN: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much chaos there is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// Runs, one after the other.
    pub runs: usize,
    /// Hosts of each.
    pub hosts: usize,
    /// How many of them, at least one, have worker processes; the others' workers live in this process.
    pub processes: usize,
    /// Orchestrators.
    pub orchestrators: usize,
    /// Faults in each run.
    pub faults: usize,
    /// Which faults.
    pub kinds: Vec<Fault>,
    /// Said before each line about a run; nothing is said without it.
    pub say: Option<String>,
}

/// One site in chaos.
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

/// Makes chaos, and says what came of it. It returns normally whatever is found.
pub async fn run(options: Options, random: Random) -> Report {
    let mut chaos = Chaos::start(options, random).await;
    for number in 1..=chaos.options.runs {
        chaos.one_run(number).await;
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
            // Evenly spread; the last is one of them.
            if place * options.processes % options.hosts < options.processes {
                let host = site.host(name);
                hosts.push(if hosts.len() % 2 == 0 { host.reboots().says_healthy() } else { host });
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

    /// A run with everything that goes wrong in it, and what must hold after it.
    async fn one_run(&mut self, number: usize) {
        let begun = Instant::now();
        let rollout = 1 + self.random.below(3);
        let random = Random::new(self.random.below(u64::MAX));
        let asking = Asking::new(self.rests.clone(), Arc::clone(&self.leftovers), random, rollout);
        let asking = Arc::new(asking);
        // The run does not end before everything that is to go wrong has.
        self.last_host().hold("upgrade");
        let id = asking.start_a_run(self.last.as_deref()).await;
        self.last = Some(id.clone());
        let operators = Asking::go_on(&asking);
        let faults = self.make_trouble(&id).await;
        operators.abort();
        drop(operators.await);
        self.leftovers.all_idle();
        self.report.trouble(&faults, &self.roles);
        let ended = self.settle(&id).await;
        let mut wrong = match &ended {
            Ok(runs) => {
                let asked = asking.what_was_answered();
                self.report.answered(&asked);
                self.checker.check(self.site.jetstream(), &self.rests, &id, runs, &asked).await
            }
            Err(why) => vec![why.clone()],
        };
        wrong.extend(asking.violations());
        let wrong: Vec<String> =
            wrong.into_iter().map(|what| format!("run {number} ({id}): {what}")).collect();
        self.say(number, begun, &faults, &wrong);
        if !wrong.is_empty() {
            self.keep_evidence();
        }
        self.report.run_ended(wrong);
    }

    /// Lets things go wrong until the run has ended and everything is mended.
    async fn make_trouble(&mut self, id: &str) -> Faults {
        let options = &self.options;
        let plan = faults::plan(&mut self.random, &options.kinds, options.faults, options.hosts);
        let mut faults = Faults::new(plan);
        let watch = asking::watch_end(self.rests.clone(), id.to_owned());
        let (begun, mut held) = (Instant::now(), true);
        loop {
            let ended = watch.is_finished();
            let late = begun.elapsed() > QUIET_WITHIN;
            faults.mend(&mut self.site, &mut self.random, ended || late).await;
            if (late || faults.all_have_struck()) && std::mem::take(&mut held) {
                self.last_host().let_go("upgrade");
            }
            if (ended || late) && !held && faults.all_mended() {
                break;
            }
            if !ended && !late {
                let done = self.checker.begun(id);
                faults.strike(&mut self.site, &self.hosts, &self.roles, &mut self.random, done).await;
            }
            for (index, member) in self.site.members.iter_mut().enumerate() {
                if !faults.is_down(index) {
                    member.orchestrator.keep_up();
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        watch.abort();
        faults
    }

    /// Waits until every orchestrator takes writes and shows the end of the run; what each of them shows of it.
    async fn settle(&mut self, id: &str) -> Result<Vec<Value>, String> {
        let begun = Instant::now();
        loop {
            let mut runs = Vec::new();
            for (rest, member) in self.rests.iter().zip(&mut self.site.members) {
                member.orchestrator.keep_up();
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
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    #[expect(clippy::print_stdout, reason = "the progress of a program that takes long")]
    fn say(&self, number: usize, begun: Instant, faults: &Faults, wrong: &[String]) {
        if let Some(prefix) = &self.options.say {
            let seconds = begun.elapsed().as_secs_f64();
            let all = self.options.runs;
            println!(
                "{prefix}run {number}/{all} {seconds:5.1} s, {} violations: {}",
                wrong.len(),
                faults.words()
            );
            for what in wrong {
                println!("{prefix}VIOLATION {what}");
            }
        }
    }

    /// Leaves what was logged where it can be looked at.
    #[expect(clippy::print_stdout, reason = "the progress of a program that takes long")]
    fn keep_evidence(&self) {
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
