//! Why a host is not progressing, and until when: which blockers apply. `console` has their sentences.

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound as _, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::{Action, GroupName, HostName};

use super::cause::{Cause, Why};
use super::host::HostBlocker;
use crate::clock::CLOCK_SKEW_SECS_MAX;
use crate::node::NodeStage;
use crate::reason::{Denial, LastWait, Reason};
use crate::run::{HostStatus, Phase, Run, RunHost};
use crate::slot::SlotState;
use crate::start::{Forecast, NextRun, StartBlocker, WindowBlocker};
use crate::state::State;
use crate::view::{Reachability, SeenHost, View};

/// Why a host is not progressing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Explanation {
    /// Its status, if it is in an active run.
    pub status: Option<HostStatus>,
    /// When it entered this status.
    pub since: Option<DateTime<Utc>>,
    /// Why it is not progressing, what is decisive first. For a host with a final status: why it did not succeed.
    pub whys: Vec<Why>,
}

/// Explains why hosts are not progressing. Whose turn it is in each group of the active run is worked out once for all of them.
pub struct Explainer<'a> {
    state: &'a State,
    view: &'a View,
    now: DateTime<Utc>,
    turns: BTreeMap<&'a GroupName, Turn>,
}

/// The host of a group whose turn it is.
struct Turn {
    host: HostName,
    /// Why it has no slot; absent if it is about to get one.
    waits_for: Option<Reason>,
    /// Another host that keeps a slot of the group, if one is missing.
    stuck: Option<HostBlocker>,
}

impl<'a> Explainer<'a> {
    /// What is so at `now`.
    pub fn new(state: &'a State, view: &'a View, now: DateTime<Utc>) -> Self {
        let turns = state.run.iter().flat_map(|run| {
            run.ready().keys().filter_map(move |group| {
                let host = state.turn_of(view, run, group, now)?.host;
                let waits_for = state.turn_blocker(view, run, &host, now);
                let stuck = waits_for.as_ref().and_then(|reason| stuck_slot(state, reason));
                Some((group, Turn { host, waits_for, stuck }))
            })
        });
        Self { state, view, now, turns: turns.collect() }
    }

    /// Why `host` is not progressing; `forecast` is the site's.
    pub fn explain(&self, forecast: &Forecast, host: &HostName) -> Explanation {
        match self.state.run.as_ref().and_then(|run| Some((run, run.host(host)?))) {
            Some((run, in_run)) => {
                let in_run = HostInRun { by: self, run, name: host, host: in_run };
                Explanation {
                    status: Some(in_run.host.status),
                    since: Some(in_run.host.since),
                    whys: in_run.blockers(),
                }
            }
            None => Explanation {
                status: None,
                since: None,
                whys: outside_of_runs(self.state, self.view, forecast, host),
            },
        }
    }

    /// Why the host `name` of `run` waits for its slot or its node, was skipped or did not succeed. That others come first, or that its
    /// worker is at work, is no part of it.
    pub fn in_run(&self, run: &Run, name: &HostName) -> Option<Why> {
        HostInRun { by: self, run, name, host: run.host(name)? }.why()
    }

    /// When `host` was upgraded last; absent if it never was.
    pub fn last_upgrade(&self, host: &HostName) -> Option<DateTime<Utc>> {
        self.state.last_upgrades.of(host).copied()
    }

    /// What `host` of the active run, which is prepared or waits for a slot, waits for besides other hosts; absent if its turn was about
    /// to come.
    fn waits_for(&self, run: &Run, name: &HostName, host: &RunHost) -> Option<Reason> {
        let turn = self.turns.get(&host.group);
        if host.status == HostStatus::Waiting && turn.is_none_or(|turn| turn.host != *name) {
            return self.state.turn_blocker(self.view, run, name, self.now);
        }
        turn?.waits_for.clone()
    }
}

/// A host of a run.
#[derive(Clone, Copy)]
struct HostInRun<'a> {
    by: &'a Explainer<'a>,
    run: &'a Run,
    name: &'a HostName,
    host: &'a RunHost,
}

impl HostInRun<'_> {
    fn why(self) -> Option<Why> {
        let first = || self.by_status().into_iter().next();
        if let Some(overdue) = self.overdue() {
            return Some(overdue);
        }
        let is_of_others = |why: &Why| {
            let Cause::Host(by) = &why.cause else { return false };
            matches!(
                by,
                HostBlocker::HostUnderWay { .. } | HostBlocker::HostFirst { .. } | HostBlocker::TurnAwaited
            )
        };
        match self.host.status {
            HostStatus::Pending if self.host.retry_at(self.by.now).is_some() => first(),
            HostStatus::Pending | HostStatus::Preparing | HostStatus::Upgraded => None,
            HostStatus::Waiting => first().filter(|why| !is_of_others(why)),
            HostStatus::Prepared if self.host.is_backed_off(self.by.now) => first(),
            HostStatus::Prepared => {
                let is_its_turn =
                    self.by.turns.get(&self.host.group).is_some_and(|turn| turn.host == *self.name);
                first().filter(|why| is_its_turn && self.run.phase == Phase::Upgrading && !is_of_others(why))
            }
            HostStatus::Draining | HostStatus::Upgrading | HostStatus::Rebooting | HostStatus::Recovering => {
                first().filter(|why| matches!(why.cause, Cause::Host(HostBlocker::NodeUnderWay { .. })))
            }
            HostStatus::Failed
            | HostStatus::TimedOut
            | HostStatus::Skipped
            | HostStatus::Cancelled
            | HostStatus::NotReached => first(),
        }
    }

    fn blockers(self) -> Vec<Why> {
        let mut blockers: Vec<Why> = self.overdue().into_iter().chain(self.by_status()).collect();
        if !self.host.status.is_final() {
            blockers.extend(self.by.view.hosts.get(self.name).into_iter().flat_map(liveness));
        }
        let takes_part = self.by.state.enrolled(self.name).takes_part();
        if self.host.status.is_under_way() && !takes_part {
            blockers.push(Why::until(HostBlocker::LeavesAfterRun, self.deadline()));
        }
        blockers
    }

    /// That the run has gone on without the host, which has not answered `upgrade` in time.
    fn overdue(self) -> Option<Why> {
        let (since, after) = self.host.overdue_since.zip(self.run.rollout.upgrade_timeout)?;
        Some(Why { since: Some(since), ..Reason::UpgradeTimeout { after }.into() })
    }

    /// When the run stops waiting for the host.
    fn deadline(self) -> DateTime<Utc> {
        let Self { run, host, .. } = self;
        let answered = host.pending_reply().and_then(|command| {
            let timeout = run.rollout.timeout(command.action)?;
            Some(command.sent_at? + timeout.to_delta())
        });
        let ends_at = if host.status.is_before_upgrade() { run.begins_until() } else { run.not_after };
        answered.map_or(ends_at, |answered| answered.min(ends_at))
    }

    /// Why it has no slot, with the run's end, unless that cannot end by the clock.
    fn until_deadline(self, reason: Reason) -> Why {
        let is_certain = !matches!(&reason, Reason::Clock(doubt) if !doubt.is_of_windows());
        Why::until(reason, is_certain.then(|| self.deadline()))
    }

    /// The blockers that follow from its status.
    fn by_status(self) -> Vec<Why> {
        let Self { by: Explainer { state, now, .. }, run, name, host } = self;
        let waits_for = |cause: HostBlocker| vec![Why::until(cause, self.deadline())];
        match host.status {
            HostStatus::Pending if host.is_untold() => vec![self.before_prepare()],
            HostStatus::Pending if state.has_unanswered_reboot(name) => {
                reboot_under_way(state, name).map(waits_for).unwrap_or_default()
            }
            HostStatus::Pending => waits_for(HostBlocker::CommandUnsent { action: Action::Prepare }),
            HostStatus::Preparing => waits_for(HostBlocker::ReplyAwaited { action: Action::Prepare }),
            HostStatus::Prepared if host.is_backed_off(*now) => {
                let deadline = self.deadline();
                let until = host.backoff.map_or(deadline, |backoff| backoff.until.min(deadline));
                host.reason.clone().map(|reason| Why::until(reason, until)).into_iter().collect()
            }
            HostStatus::Prepared => match run.phase {
                Phase::Preparing => waits_for(HostBlocker::HostsUnprepared { hosts: run.unprepared().len() }),
                Phase::Upgrading => self.before_turn(),
            },
            HostStatus::Waiting if !state.may_begin(run) || earlier_slot(state, name).is_some() => {
                self.before_turn()
            }
            HostStatus::Skipped if self.is_approved_since() => {
                vec![Why::until(HostBlocker::ApprovedLate, run.not_after)]
            }
            HostStatus::Waiting => {
                let reason = self.by.waits_for(run, name, host);
                let stuck = reason.as_ref().and_then(|reason| stuck_slot(state, reason)).map(Why::from);
                let reason = reason.map(|reason| self.until_deadline(reason));
                reason.into_iter().chain(stuck).collect()
            }
            HostStatus::Failed
            | HostStatus::TimedOut
            | HostStatus::Skipped
            | HostStatus::Cancelled
            | HostStatus::NotReached => host.reason.clone().map(Why::from).into_iter().collect(),
            HostStatus::Draining | HostStatus::Recovering => {
                node_under_way(state, name).map(waits_for).unwrap_or_default()
            }
            HostStatus::Upgrading | HostStatus::Rebooting => match host.command {
                None => Vec::new(),
                Some(unsent) if !state.cordon_allows(name, unsent.action) => {
                    node_under_way(state, name).map(waits_for).unwrap_or_default()
                }
                Some(unsent) if unsent.sequence.is_none() => {
                    waits_for(HostBlocker::CommandUnsent { action: unsent.action })
                }
                Some(sent) => waits_for(HostBlocker::ReplyAwaited { action: sent.action }),
            },
            HostStatus::Upgraded => Vec::new(),
        }
    }

    /// That the site is paused, if it is.
    fn paused(self) -> Option<Why> {
        let pause = self.by.state.pause.as_ref()?;
        let deadline = self.deadline();
        let until = pause.until.map_or(deadline, |until| until.min(deadline));
        Some(Why::until(Reason::Paused(pause.cause.clone()), until))
    }

    /// Why the host has not been told to prepare: its last attempt, or those that are being prepared.
    fn before_prepare(self) -> Why {
        let Self { by: Explainer { state, view, now, .. }, run, name, host } = self;
        let deadline = self.deadline();
        let doubt = || view.clock.doubt.clone().map(|doubt| self.until_deadline(doubt.into()));
        let failed = || {
            let until = host.retry_at(*now)?.min(deadline);
            Some(Why::until(host.reason.clone()?, until))
        };
        let hosts = || state.all_preparing(run, *now);
        let full = || Why::until(HostBlocker::HostsPreparing { hosts: hosts() }, deadline);
        let rebooting = || Some(Why::until(reboot_under_way(state, name)?, deadline));
        let unconfigured = || {
            let (provider, wait) =
                run.rollout.provider_wait.and_then(|_| state.unconfigured(view, name, *now))?;
            let provider = provider.clone();
            Some(Why::until(Reason::ConfigurationMissing { provider, wait }, deadline))
        };
        let own = || failed().or_else(rebooting).or_else(unconfigured);
        self.paused().or_else(doubt).or_else(own).unwrap_or_else(full)
    }

    /// Why it is not the host's turn: its own earlier slot, the hosts in progress, or the first host of its group.
    fn before_turn(self) -> Vec<Why> {
        let run = self.run;
        if let Some(paused) = self.paused() {
            return vec![paused];
        }
        if let Some(blocker) = earlier_slot(self.by.state, self.name) {
            return vec![Why::until(blocker, self.deadline())];
        }
        if run.has_room()
            && let Some(blockers) = self.by_turn()
        {
            return blockers;
        }
        let first = run.counted().next().filter(|_| !run.has_room());
        let under_way = first.and_then(|host| Some((host, run.host(host)?)));
        vec![match under_way {
            None => Why::until(HostBlocker::TurnAwaited, self.deadline()),
            Some((name, host)) => {
                let until = HostInRun { name, host, ..self }.deadline();
                Why::until(HostBlocker::HostUnderWay { host: name.clone() }, until)
            }
        }]
    }

    /// Why the host of its group whose turn it is has no slot, be it this one or another.
    fn by_turn(self) -> Option<Vec<Why>> {
        let Turn { host: first, waits_for, stuck } = self.by.turns.get(&self.host.group)?;
        let by = waits_for.clone()?;
        let why = if first == self.name {
            self.until_deadline(by)
        } else {
            Why::until(HostBlocker::HostFirst { host: first.clone(), by }, self.deadline())
        };
        Some([why].into_iter().chain(stuck.clone().map(Why::from)).collect())
    }

    /// Whether the run skipped the host because it was not approved, and it is approved by now.
    fn is_approved_since(self) -> bool {
        let left_out =
            matches!(self.host.reason, Some(Reason::AwaitsApproval { .. } | Reason::HostWithdrawn { .. }));
        left_out && self.by.state.enrolled(self.name).takes_part()
    }
}

/// What the hosts of the active run wait for whose turn has not come. It is made once for all of them.
pub(crate) struct LastWaits<'a> {
    by: Explainer<'a>,
    run: &'a Run,
    /// What keeps every one of them that is prepared.
    all: Option<LastWait>,
    /// How many hosts are being prepared, or are prepared and have not begun.
    preparing: usize,
}

impl<'a> LastWaits<'a> {
    pub(crate) fn of(state: &'a State, view: &'a View, run: &'a Run, now: DateTime<Utc>) -> Self {
        let first = |hosts: &OrdSet<HostName>| Some((hosts.get_min()?.clone(), hosts.len() - 1));
        let all = match run.phase {
            Phase::Upgrading if let Some(reason) = state.paused() => {
                Some(LastWait::Recorded(Box::new(reason)))
            }
            Phase::Preparing => {
                first(run.unprepared()).map(|(host, others)| LastWait::HostsUnprepared { host, others })
            }
            Phase::Upgrading if run.has_room() => None,
            Phase::Upgrading => {
                let host = run.counted().next().cloned();
                host.map(|host| LastWait::HostUnderWay { host, others: run.counted().count() - 1 })
            }
        };
        let preparing = state.all_preparing(run, now);
        Self { by: Explainer::new(state, view, now), run, all, preparing }
    }

    /// What `host`, which is to be prepared, is prepared or waits for a slot, waits for; absent if its turn was about to come.
    pub(crate) fn of_host(&self, name: &HostName, host: &RunHost) -> Option<LastWait> {
        if host.is_untold() && self.by.state.pause.is_none() {
            let failed = host.reason.clone().map(|reason| LastWait::Recorded(Box::new(reason)));
            // Without any, the reboot queue has the host, or its turn was about to come.
            let others = Some(self.preparing).filter(|hosts| *hosts > 0);
            return failed.or(others.map(|hosts| LastWait::HostsPreparing { hosts }));
        }
        let own = || self.by.waits_for(self.run, name, host);
        self.all.clone().or_else(|| own().map(|reason| LastWait::Recorded(Box::new(reason))))
    }
}

/// Why an earlier slot of the host keeps it from starting.
fn earlier_slot(state: &State, name: &HostName) -> Option<HostBlocker> {
    let slot = state.slots.get(name)?;
    if let Some(blocker) = reboot_under_way(state, name) {
        Some(blocker)
    } else if slot.may_see_late_command(state.fence.as_ref()) {
        Some(HostBlocker::EarlierCommand)
    } else if matches!(slot.state, SlotState::Releasing { .. }) {
        Some(HostBlocker::EarlierSlot { refusal: slot.refusal.clone(), again_at: slot.unlock_again_at() })
    } else {
        None
    }
}

/// What the reboot queue does to the host.
fn reboot_under_way(state: &State, name: &HostName) -> Option<HostBlocker> {
    let (index, entry) = state.entry_under_way(name)?;
    let reason = entry.reason.clone();
    Some(HostBlocker::RebootUnderWay { index, status: entry.status, reason })
}

/// How far the work on the node of the host is.
fn node_under_way(state: &State, name: &HostName) -> Option<HostBlocker> {
    Some(HostBlocker::NodeUnderWay { node: state.nodes.get(name)?.progress() })
}

/// What of the node of a host in no run is not as it was.
fn remaining_node(state: &State, name: &HostName) -> Option<HostBlocker> {
    let node = state.nodes.get(name)?;
    match node.stage {
        NodeStage::Uncordoning { .. } => node_under_way(state, name),
        NodeStage::Checking | NodeStage::Evicting | NodeStage::Drained | NodeStage::Rechecking => {
            (!state.is_at_work(name)).then(|| HostBlocker::NodeCordoned { host: name.clone() })
        }
    }
}

/// The first host that holds a slot of a group without being under way, if `reason` is that an embedded slot is missing.
fn stuck_slot(state: &State, reason: &Reason) -> Option<HostBlocker> {
    let Reason::SlotDenied { group, denial: Denial::Embedded(_) } = reason else { return None };
    let mut held =
        state.slots.iter().filter(|(_, slot)| slot.group == *group && slot.state == SlotState::Held);
    held.find_map(|(host, _)| {
        Some(HostBlocker::SlotStuck { host: host.clone(), reason: state.why_stopped(host)? })
    })
}

/// Blockers that follow from the view of the host: it may be off, and a worker with a wrong clock may consider a
/// command expired.
fn liveness(host: &SeenHost) -> impl Iterator<Item = Why> + use<> {
    let silent = silent(host);
    let skew = host.clock_skew_secs.filter(|seconds| seconds.saturating_abs() > CLOCK_SKEW_SECS_MAX);
    let skew = skew.map(|seconds| HostBlocker::WorkerClockSkew { seconds });
    silent.into_iter().chain(skew.map(Why::from))
}

/// That a host is silent, and since when.
fn silent(host: &SeenHost) -> Option<Why> {
    let since = host.silence.map(|silence| silence.since);
    (host.reachability == Reachability::Unreachable).then(|| Why { since, ..HostBlocker::Silent.into() })
}

fn outside_of_runs(state: &State, view: &View, forecast: &Forecast, host: &HostName) -> Vec<Why> {
    let left_out = left_out(state, view, host).map(|blocker| vec![blocker]);
    let slot = reboot_under_way(state, host).or_else(|| remaining_slot(state, host));
    let node = remaining_node(state, host);
    let mut blockers: Vec<Why> = slot.into_iter().chain(node).map(Why::from).collect();
    blockers.extend(left_out.unwrap_or_else(|| no_run(forecast, view.hosts.get(host))));
    blockers
}

/// Why a host is in no run, whether or not one is active.
fn left_out(state: &State, view: &View, host: &HostName) -> Option<Why> {
    let Some(seen) = view.hosts.get(host) else { return Some(HostBlocker::NotAnnounced.into()) };
    if let Some(reason) = state.left_out(host) {
        let deferral = state.enrolment.deferred.get(host).filter(|_| state.enrolled(host).takes_part());
        let (since, until) = (deferral.map(|it| it.since), deferral.and_then(|it| it.until));
        return Some(Why { until, since, ..reason.into() });
    }
    let Some(config) = &state.config else {
        return Some(Cause::Window(StartBlocker::NoConfiguration.into()).into());
    };
    let mut configured = config.worker_applications.iter().map(|entry| &entry.name);
    if !configured.clone().any(|name| seen.applications.contains(name)) {
        let refused = configured.find(|name| seen.refused.contains(*name)).cloned();
        let refused = refused.map(|application| HostBlocker::ApplicationRefused { application });
        return Some(refused.unwrap_or(HostBlocker::NotServed).into());
    }
    let run = state.run.as_ref()?;
    Some(Why::until(HostBlocker::AppearedLate, run.not_after))
}

/// What the host itself lacks, that no run is active, and why none starts.
fn no_run(forecast: &Forecast, seen: Option<&SeenHost>) -> Vec<Why> {
    let absent = match seen.map(|seen| seen.reachability) {
        Some(Reachability::Unreachable) => seen.and_then(silent),
        Some(Reachability::Awaited) => Some(HostBlocker::HeartbeatAwaited.into()),
        Some(Reachability::Reachable | Reachability::Unknown) | None => None,
    };
    let mut blockers: Vec<Why> = absent.into_iter().collect();
    match &forecast.next {
        NextRun::At(start) => blockers.push(Why::until(HostBlocker::NoRun, start.at)),
        NextRun::Never(by) => blockers.extend([HostBlocker::NoRun.into(), by.clone().into()]),
        NextRun::Blocked { start, by } => {
            let cause = Cause::OpenWindow { by: by.clone(), open_until: start.occurrence.end };
            // Heartbeats are awaited only briefly; the leader decides how long.
            let until = (!matches!(by, WindowBlocker::HostsAwaited { .. })).then_some(start.latest);
            blockers.extend([HostBlocker::NoRun.into(), Why::until(cause, until)]);
        }
    }
    blockers.extend(forecast.used.clone().map(|used| {
        let until = used.open_until;
        Why::until(HostBlocker::WindowUsed(used), until)
    }));
    blockers
}

/// The slot that a host still holds outside of runs, and why.
fn remaining_slot(state: &State, name: &HostName) -> Option<HostBlocker> {
    let slot = state.slots.get(name)?;
    let group = slot.group.clone();
    Some(match slot.state {
        SlotState::Releasing { .. } => HostBlocker::SlotReleasing {
            group,
            refusal: slot.refusal.clone(),
            again_at: slot.unlock_again_at(),
        },
        SlotState::Requested | SlotState::Held => {
            let entry = slot.owner.entry();
            let mut in_runs = state.known_runs().filter(|_| entry.is_none()).filter_map(|run| run.host(name));
            let in_run = in_runs.next();
            HostBlocker::SlotHeld {
                group,
                entry,
                since: slot.since.trunc_subsecs(0),
                reason: in_run.and_then(|host| host.reason.clone()),
                late_answer: in_run.and_then(|host| host.late_answer),
                kept_by: state.keeps_slot(name).then(|| name.clone()),
            }
        }
    })
}
