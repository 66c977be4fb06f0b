//! Violations of the rules.
//!
//! | rule | | in |
//! |---|---|---|
//! | S1 | no group has more hosts under upgrade than slots, but for up to `failed` whose worker answered an error | `steps` |
//! | S2 | no command is sent after `not-after` or the run's end, and no worker starts one | `commands`, `workers` |
//! | S3 | no host executes `upgrade` twice in a run | `workers` |
//! | S4 | no `upgrade` or `reboot` without a slot held | `steps` |
//! | S5 | an answer 2xx is never forgotten, a refusal has a reason, and "nothing was changed" is true | `answers` |
//! | shown | a caller that the leader tells that a change is durable finds it there; what is shown is on its way to the store | `answers`, `journal` |
//! | log | each decision is logged by one instance at most | `journal` |
//! | hint | workers are told that a run is stopping only when it is | `runs` |
//! | S6 | a slot is never freed by a timeout alone, nor by an operator while its host is at work | `steps` |
//! | window | a run starts automatically in an open window only, once in each occurrence, and ends with it | `runs` |
//! | semaphore | the history of all calls about slots is linearisable | `semaphore` |
//! | fair | a host leaves a free slot to each client that was refused before the host's turn came and may still ask again; no client waits for long | `semaphore`, `turns` |
//! | turn | of the hosts of a group that could start, the one whose last turn lies most runs back goes first, and is prepared first | `order`, `rollout` |
//! | fits | nothing begins for which less is left of its run than a host takes | `runs` |
//! | paused | on a paused site nothing begins, and a pause ends when its end has come, or by an operator | `pause` |
//! | preparing | no more hosts are told to prepare than the rollout says, but for one of each group and those that hold a slot | `rollout` |
//! | retries | no host is prepared more often than the rollout says | `rollout` |
//! | early | no host is overdue or times out before its time | `rollout` |
//! | starved | while one host goes wrong in each run, every other one to which a slot is open is upgraded within three runs | `world/nights` |
//! | result | a run is completed only if somebody is upgraded and nobody was not reached | `rollout` |
//! | target | a run of chosen hosts has those alone | `runs` |
//! | deferred | on a deferred host nothing begins, and a deferral ends when its end has come, or by an operator | `pause` |
//! | lease | only the process that holds the lease sends requests to the lock server | `lock_server` |
//! | rate | requests do not exceed the lock server's limits, and respect `Retry-After` | `lock_server` |
//! | once | no command is in the stream twice | `commands` |
//! | enrol | no command goes to a host that was not approved when its run began, or was withdrawn before it began there | `enrolment` |
//! | secret | all stored secrets are under one key | `secrets` |
//! | worker | an executed command is acknowledged after its reply; a reboot follows its `reboot-required` | `commands`, `workers` |
//! | journal | it can be followed, and no instance stops permanently | `journal` |
//! | store | the projection misses nothing | `journal` |
//! | trim | the journal begins with a snapshot, and what is deleted is in every live store, or read and answered | `retention` |
//! | loss | an instance that knows that the bus has lost acknowledged data stops, and writes nothing | `loss` |
//! | copy | of two processes with copies of one data directory, the one that has lost the lease to the other stops | `checker` |
//! | missed | a run that was due, did not start and no longer can is recorded once, and no other is | `missed` |
//! | clock | while a clock is wrong and another shows it, no run starts automatically or counts as missed, and nothing times out; no run starts automatically before the newest record | `clock` |
//! | queue | the reboot queue keeps its limits and windows, holds slots, stays away from hosts of runs, and undoes only what was cancelled before its host was told to reboot | `queue` |
//! | doubled | no host reboots twice for an entry of the queue; by the operator's command once more for each unknown outcome | `queue`, `attempts` |
//! | lost | an entry counts as rebooted once its host has left the boot that it was to leave, and said so | `queue` |
//! | servers | no API server of the cluster is under way beside another node | `nodes` |
//! | drain | no `upgrade` or `reboot` before the node is cordoned and drained, as this leader has seen | `nodes` |
//! | cordon | no node is uncordoned while its host is at work, and no slot released while the node is cordoned for it | `nodes` |
//! | admin | an administrator's cordon that was there before ours is there after it, and no other is left | `nodes` |
//! | evict | pods are evicted from nodes under way only, and never those of the site or of running jobs | `nodes` |
//! | fence | a deposed leader changes nothing on a node whose mark has a later fence | `nodes` |
//! | unreachable | no entry of the reboot queue starts while too many nodes are not ready | `nodes` |
//! | backoff | pauses after drains that were given up grow as configured | `nodes` |
//! | given | a host applies only what its provider had for it | `desired` |
//! | older | within an epoch no manifest follows a newer one, and no host applies what its provider said before what it has | `desired` |
//! | named | what the journal says that a host is to have, and what its manifest names, is in the stream | `desired` |
//! | sealed | what a host is to have is sealed to the key that is approved when that is journaled | `desired` |
//! | succession | nothing is stored in the stream of what hosts are to have by an earlier leader after a later one's fence | `desired` |
//! | resumed | after a restoration no host is told anything before an operator says so | `desired` |
//! | delivered | in the end each host has what its providers say, and one that is withdrawn or removed nothing; but a worker that has lost its state does not revoke what it does not know | `world/act_on_delivery` |
//! | told | a provider of kind `hooks` is told of each approval of its hosts, each event under a UUID of its own, and nothing counts as told that has not reached it; in the end of every event and of the metadata that its hosts have | `hooks`, `world/act_on_delivery` |
//! | asked | a provider of kind `hooks` is told of a host's events one by one, in order and not without a cause: once in each leadership unless something calls for more, and not again by who knows its answer; polls are those of the interval in force, and a takeover repeats none | `hooks`, `hooks/repeats` |
//! | apart | a unit that is not global runs on one machine at a time, but on one that is lost, or was and has not caught up; where it counts as stopped it has | `units/apart` |
//! | placed | a unit is placed on open machines only, that are what its file asks for, with its peer and without what it conflicts with | `units` |
//! | silent | a machine is lost only after its agent has been silent to the leader for 30 s | `units/silence` |
//! | mass | no machine is lost if most of those that could be reached fell silent with it | `units/silence` |
//! | launched | a unit that is shown as launched was started on its host by the item that the host is to have | `units` |
//! | settled | in the end every unit that somebody wants runs where it can, and no other does | `world/act_on_units` |
//! | still | as long as nothing changes, nothing about units is appended | `units`, `world/act_on_units` |
//! | live | runs end, slots are freed, the next run succeeds | `end`, `steps` |

use std::collections::BTreeMap;
use std::fmt;

/// A broken rule.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The rule's short name.
    pub rule: &'static str,
    /// What was seen.
    pub text: String,
}

impl Violation {
    pub(super) fn new(rule: &'static str, text: String) -> Self {
        Self { rule, text }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)
    }
}

/// The first of all violations.
#[derive(Debug, Default)]
pub(super) struct Violations {
    first: Option<Violation>,
    /// The rules that count; `None` for all.
    only: Option<Vec<&'static str>>,
    /// How often each check was made.
    asked: BTreeMap<&'static str, u64>,
}

impl Violations {
    /// From now on only these rules count.
    pub(super) fn only(&mut self, rules: Vec<&'static str>) {
        self.only = Some(rules);
    }

    /// Records what the check of this name has found.
    pub(super) fn record(&mut self, check: &'static str, found: Result<(), Violation>) {
        *self.asked.entry(check).or_default() += 1;
        if let Err(violation) = found {
            self.add(violation);
        }
    }

    pub(super) fn add(&mut self, violation: Violation) {
        if self.only.as_ref().is_none_or(|rules| rules.contains(&violation.rule)) {
            self.first.get_or_insert(violation);
        }
    }

    pub(super) const fn asked(&self) -> &BTreeMap<&'static str, u64> {
        &self.asked
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn into_first(self) -> Option<Violation> {
        self.first
    }
}
