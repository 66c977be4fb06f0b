//! The invariants of a run, whatever faults it had: checked against the workers' logs, the streams, and what every
//! orchestrator shows, never against the state of a single one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, message::StreamMessage};
use os_upgrade_protocol::{Action, Command, Reply, header, subject};
use reqwest::Method;
use serde_json::Value;

use super::clients::Outcomes;
use crate::host::runs_log;
use crate::rest::Rest;
use crate::streams::{records, stored_from};

/// Slots of the group of all hosts.
pub const SLOTS: usize = 2;
/// How long a server may answer with stale data.
const STALE_FOR: Duration = Duration::from_secs(20);
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

/// A host's upgrade in the control stream: from its `upgrade` to the first answer to its last command.
struct Step {
    from: usize,
    command: u64,
    to: Option<usize>,
}

/// Checks runs one after the other.
#[derive(Debug, Clone)]
pub struct Checker {
    worker_log: PathBuf,
    hosts: Vec<String>,
    /// The next sequence to read of each stream.
    journal: u64,
    control: u64,
    /// The mark of the last configuration in the journal.
    mark: Option<String>,
}

impl Checker {
    /// A checker of a site with these hosts, whose scripts write to `log`.
    pub fn new(log: &Path, hosts: Vec<String>) -> Self {
        Self { worker_log: runs_log(log), hosts, journal: 1, control: 1, mark: None }
    }

    /// The workers' actions in a run, in order: host and action.
    fn actions(&self, run: &str) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(&self.worker_log).unwrap_or_default();
        let prefix = format!("{run} ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix)?.split_once(' '));
        lines.map(|(host, what)| (host.to_owned(), what.to_owned())).collect()
    }

    /// How many hosts have begun their upgrade in a run.
    pub fn begun(&self, run: &str) -> usize {
        self.actions(run).iter().filter(|(_, what)| what == "upgrade-begins").count()
    }

    /// Returns the violations that persist: a nats-server that was cut off may answer for a while as if it led a stream,
    /// with stale data.
    pub async fn check(
        &mut self,
        jetstream: &jetstream::Context,
        rests: &[Rest],
        run: &str,
        shown: &[Value],
        outcomes: &Outcomes,
    ) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let mut checker = self.clone();
            let wrong = checker.check_once(jetstream, rests, run, shown, outcomes).await;
            if wrong.is_empty() || begun.elapsed() > STALE_FOR {
                *self = checker;
                return wrong;
            }
            tokio::time::sleep(RECHECK_INTERVAL).await;
        }
    }

    async fn check_once(
        &mut self,
        jetstream: &jetstream::Context,
        rests: &[Rest],
        run: &str,
        shown: &[Value],
        outcomes: &Outcomes,
    ) -> Vec<String> {
        let mut wrong = self.check_ended(&shown[0]);
        wrong.extend(self.check_workers(run));
        wrong.extend(self.check_control(jetstream, run).await);
        wrong.extend(self.check_configurations(jetstream, rests, outcomes).await);
        wrong
    }

    /// The run completed, with every host.
    fn check_ended(&self, run: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        if run["result"] != "completed" {
            wrong.push(format!("it ended {}: {run}", run["result"]));
        }
        let hosts = run["hosts"].as_array().cloned().unwrap_or_default();
        let upgraded = hosts.iter().filter(|host| host["status"] == "upgraded").count();
        if upgraded != self.hosts.len() {
            wrong.push(format!("{upgraded} of {} hosts are upgraded: {run}", self.hosts.len()));
        }
        wrong
    }

    /// Each host was upgraded exactly once, and never more at once than there are slots.
    fn check_workers(&self, run: &str) -> Vec<String> {
        let actions = self.actions(run);
        let mut wrong = Vec::new();
        let mut spans = Vec::new();
        for host in &self.hosts {
            let of_host = || actions.iter().enumerate().filter(|(_, (name, _))| name == host);
            let begins = of_host().filter(|(_, (_, what))| what == "upgrade-begins").count();
            // A worker killed between saving that it begins and its script's first line shows up only when it resumes.
            let first = of_host().map(|(_, (_, what))| what).find(|what| *what != "prepare");
            let begun = begins + usize::from(first.is_some_and(|what| what == "upgrade-resumed"));
            if begun != 1 {
                wrong.push(format!("{host} was upgraded {begun} times"));
            }
            let upgrade = of_host().filter(|(_, (_, what))| what != "prepare").map(|(place, _)| place);
            let (first, last) = (upgrade.clone().min(), upgrade.max());
            spans.extend(first.zip(last));
        }
        wrong.extend(too_many_at_once("workers did", &spans));
        wrong
    }

    /// Every command of the run is in the stream once, and no more hosts than slots were between their `upgrade` and the
    /// answer that ended it.
    async fn check_control(&mut self, jetstream: &jetstream::Context, run: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        let messages = stored_from(jetstream, subject::CONTROL_STREAM, ">", &mut self.control).await;
        let mut ids = BTreeSet::new();
        let mut steps: BTreeMap<String, Step> = BTreeMap::new();
        for message in &messages {
            let place = usize::try_from(message.sequence).unwrap();
            let host = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
            if message.subject.starts_with("os-upgrade:control.command.") {
                let id = text(message, header::COMMAND_ID);
                if !ids.insert(id.clone()) {
                    wrong.push(format!("{id} is in the control stream twice"));
                }
                let is_prepare =
                    Command::parse(&message.payload).is_ok_and(|c| c.action() == Action::Prepare);
                if text(message, header::RUN) == run && !is_prepare {
                    let step = steps.entry(host).or_insert(Step { from: place, command: 0, to: None });
                    (step.command, step.to) = (message.sequence, None);
                }
            } else if Reply::parse(&message.payload).is_ok() {
                let to: u64 = text(message, header::IN_REPLY_TO).parse().unwrap_or_default();
                if let Some(step) = steps.get_mut(&host).filter(|step| step.command == to) {
                    step.to.get_or_insert(place);
                }
            }
        }
        let spans: Vec<_> = steps.values().map(|step| (step.from, step.to.unwrap_or(usize::MAX))).collect();
        if spans.len() != self.hosts.len() {
            wrong.push(format!("{} hosts were sent an upgrade", spans.len()));
        }
        wrong.extend(too_many_at_once("the control stream says", &spans));
        wrong
    }

    /// Every accepted configuration is in the journal, in order; none that was answered as unchanged is; and every
    /// orchestrator shows the last.
    async fn check_configurations(
        &mut self,
        jetstream: &jetstream::Context,
        rests: &[Rest],
        outcomes: &Outcomes,
    ) -> Vec<String> {
        let records = records(jetstream, &mut self.journal).await.into_iter();
        let facts: Vec<Value> =
            records.flat_map(|(_, record)| record["facts"].as_array().cloned().unwrap_or_default()).collect();
        let marks: Vec<String> = facts.iter().filter_map(mark_of_fact).collect();
        let mut wrong = Vec::new();
        let mut stored = marks.iter();
        for mark in &outcomes.granted {
            if !stored.any(|stored| stored == mark) {
                wrong.push(format!(
                    "the configuration {mark} was accepted, and is not in the journal in its place"
                ));
            }
        }
        for mark in outcomes.unchanged.iter().filter(|mark| marks.contains(mark)) {
            wrong.push(format!("{mark} was answered as not carried out, and is in the journal"));
        }
        let distinct: BTreeSet<&String> = marks.iter().collect();
        if distinct.len() != marks.len() {
            wrong.push("a configuration was carried out twice".to_owned());
        }
        self.mark = marks.last().cloned().or_else(|| self.mark.take());
        for (member, rest) in rests.iter().enumerate() {
            let shown = rest.try_call(Method::GET, "/v1/config/os-upgrade", "").await;
            let shown = shown.and_then(|(_, config)| mark_of_config(&config));
            if shown != self.mark {
                wrong.push(format!("orchestrator {member} shows {shown:?}, the journal has {:?}", self.mark));
            }
        }
        wrong
    }
}

fn mark_of_fact(fact: &Value) -> Option<String> {
    (fact["type"] == "config-replaced").then(|| mark_of_config(&fact["config"])).flatten()
}

fn mark_of_config(config: &Value) -> Option<String> {
    config["worker-applications"][1]["name"].as_str().map(str::to_owned)
}

fn text(message: &StreamMessage, name: &str) -> String {
    message.headers.get_last(name).map(ToString::to_string).unwrap_or_default()
}

/// A violation if more spans than slots overlap.
fn too_many_at_once(who: &str, spans: &[(usize, usize)]) -> Option<String> {
    let at_once = |place: usize| spans.iter().filter(|(from, to)| (*from..=*to).contains(&place)).count();
    let most = spans.iter().map(|(from, _)| at_once(*from)).max().unwrap_or_default();
    (most > SLOTS).then(|| format!("{who}: {most} hosts were under upgrade at once, with {SLOTS} slots"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_are_counted() {
        assert_eq!(too_many_at_once("x", &[(1, 5), (2, 3), (4, 9), (6, 7)]), None);
        let three = too_many_at_once("x", &[(1, 5), (2, 3), (3, 9)]).unwrap();
        assert_eq!(three, "x: 3 hosts were under upgrade at once, with 2 slots");
    }

    fn checker(lines: &[&str]) -> (tempfile::TempDir, Checker) {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("said");
        std::fs::write(runs_log(&log), lines.join("\n")).unwrap();
        let hosts = ["h1", "h2", "h3"].map(str::to_owned).to_vec();
        (directory, Checker::new(&log, hosts))
    }

    #[test]
    fn repeated_or_missing_work_is_found() {
        let each = |host| [format!("r1 {host} upgrade-begins"), format!("r1 {host} upgrade-ends")];
        let fine: Vec<String> = ["h1", "h2", "h3"].into_iter().flat_map(each).collect();
        let found = |lines: &[&str]| {
            let (_directory, checker) = checker(lines);
            checker.check_workers("r1")
        };
        let mut lines: Vec<&str> = fine.iter().map(String::as_str).collect();
        lines.push("r2 h1 upgrade-begins");
        assert_eq!(found(&lines), Vec::<String>::new());
        assert_eq!(found(&lines[2..]), ["h1 was upgraded 0 times"]);
        let unheard = [&["r1 h1 prepare", "r1 h1 upgrade-resumed"], &lines[1..]].concat();
        assert_eq!(found(&unheard), Vec::<String>::new());
        assert_eq!(found(&[&unheard[..], &["r1 h1 upgrade-begins"]].concat()), ["h1 was upgraded 2 times"]);
        lines.push("r1 h2 upgrade-begins");
        assert_eq!(found(&lines), ["h2 was upgraded 2 times"]);
        // A host resumed at the end was under upgrade all the time.
        let late = [&lines[..6], &["r1 h1 upgrade-resumed", "r1 h2 upgrade-resumed"]].concat();
        assert_eq!(found(&late), ["workers did: 3 hosts were under upgrade at once, with 2 slots"]);
    }

    #[test]
    fn too_many_concurrent_hosts_are_found() {
        let lines = |what: &str| ["h1", "h2", "h3"].map(|host| format!("r1 {host} upgrade-{what}"));
        let all = [lines("begins"), lines("ends")].concat();
        let (_directory, checker) = checker(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let found = "workers did: 3 hosts were under upgrade at once, with 2 slots";
        assert_eq!(checker.check_workers("r1"), [found]);
    }

    #[test]
    fn run_with_missing_hosts_is_found() {
        let (_directory, checker) = checker(&[]);
        let host = |status: &str| serde_json::json!({ "status": status });
        let run = |result: &str, third: &str| serde_json::json!({ "result": result, "hosts": [host("upgraded"), host("upgraded"), host(third)] });
        assert_eq!(checker.check_ended(&run("completed", "upgraded")).len(), 0);
        assert_eq!(checker.check_ended(&run("completed", "skipped")).len(), 1);
        assert_eq!(checker.check_ended(&run("failed", "failed")).len(), 2);
    }
}
