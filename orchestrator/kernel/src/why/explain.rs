//! Why a host is not progressing, and until when: which blockers apply. `console` has their sentences.

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound as _, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::{Action, GroupName, HostName};

use super::blocker::{Blocker, Cause, HostBlocker};
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
    /// The reason that the active run recorded, or for which it takes no part.
    pub reason: Option<Reason>,
    /// Why it is not progressing, the decisive blocker first. For a host with a final status: why it did not succeed.
    pub blockers: Vec<Blocker>,
}

impl Explanation {
    /// When time alone ends the first of the blockers; absent if time ends none of them.
    pub fn until(&self) -> Option<DateTime<Utc>> {
        self.blockers.iter().filter_map(|blocker| blocker.until).min()
    }
}

/// Explains why `host` is not progressing at `now`; `forecast` is the site's.
pub fn explain(
    state: &State,
    view: &View,
    forecast: &Forecast,
    host: &HostName,
    now: DateTime<Utc>,
) -> Explanation {
    match state.run.as_ref().and_then(|run| Some((run, run.host(host)?))) {
        Some((run, in_run)) => {
            let in_run = HostInRun { state, view, run, name: host, host: in_run, now };
            Explanation {
                status: Some(in_run.host.status),
                since: Some(in_run.host.since),
                reason: in_run.reason(),
                blockers: in_run.blockers(),
            }
        }
        None => Explanation {
            status: None,
            since: None,
            reason: view.hosts.get(host).and_then(|_| state.enrolled(host).left_out(host)),
            blockers: outside_of_runs(state, view, forecast, host),
        },
    }
}

/// Why `host` of `run` waits, was skipped or did not succeed.
pub fn reason_in_run(
    state: &State,
    view: &View,
    run: &Run,
    name: &HostName,
    now: DateTime<Utc>,
) -> Option<Reason> {
    HostInRun { state, view, run, name, host: run.host(name)?, now }.reason()
}

/// A host of a run.
#[derive(Clone, Copy)]
struct HostInRun<'a> {
    state: &'a State,
    view: &'a View,
    run: &'a Run,
    name: &'a HostName,
    host: &'a RunHost,
    now: DateTime<Utc>,
}

impl HostInRun<'_> {
    /// What was recorded for it; if it waits for a slot, why it has none.
    fn reason(self) -> Option<Reason> {
        match self.host.status {
            HostStatus::Waiting => self.state.turn_blocker(self.view, self.run, self.name, self.now),
            HostStatus::Pending
            | HostStatus::Preparing
            | HostStatus::Prepared
            | HostStatus::Draining
            | HostStatus::Upgrading
            | HostStatus::Rebooting
            | HostStatus::Recovering
            | HostStatus::Upgraded
            | HostStatus::Failed
            | HostStatus::TimedOut
            | HostStatus::Skipped
            | HostStatus::Cancelled => self.host.reason.clone(),
        }
    }

    fn blockers(self) -> Vec<Blocker> {
        let mut blockers = self.by_status();
        if !self.host.status.is_final() {
            blockers.extend(self.view.hosts.get(self.name).into_iter().flat_map(liveness));
        }
        let takes_part = self.state.enrolled(self.name).takes_part();
        if self.host.status.is_under_way() && !takes_part {
            blockers.push(Blocker::until(HostBlocker::LeavesAfterRun, self.deadline()));
        }
        blockers
    }

    /// When the run stops waiting for the host.
    fn deadline(self) -> DateTime<Utc> {
        let Self { run, host, .. } = self;
        let reboot = host.unanswered().filter(|command| command.action == Action::Reboot);
        let booted = reboot.and_then(|command| Some(command.sent_at? + run.rollout.boot_timeout.to_delta()));
        booted.map_or(run.not_after, |booted| booted.min(run.not_after))
    }

    /// The blockers that follow from its status.
    fn by_status(self) -> Vec<Blocker> {
        let Self { state, run, name, host, .. } = self;
        let waits_for = |cause: HostBlocker| vec![Blocker::until(cause, self.deadline())];
        match host.status {
            HostStatus::Pending if state.has_unanswered_reboot(name) => {
                reboot_under_way(state, name).map(waits_for).unwrap_or_default()
            }
            HostStatus::Pending => waits_for(HostBlocker::CommandUnsent { action: Action::Prepare }),
            HostStatus::Preparing => waits_for(HostBlocker::ReplyAwaited { action: Action::Prepare }),
            HostStatus::Prepared if host.backoff.is_some() && host.reason.is_some() => {
                let until = host.backoff.map_or(run.not_after, |backoff| backoff.until.min(run.not_after));
                host.reason.clone().map(|reason| Blocker::until(reason, until)).into_iter().collect()
            }
            HostStatus::Prepared => match run.phase {
                Phase::Preparing => waits_for(HostBlocker::HostsUnprepared { hosts: run.unprepared().len() }),
                Phase::Upgrading => self.before_turn(),
            },
            HostStatus::Waiting if !run.has_room() || earlier_slot(state, name).is_some() => {
                self.before_turn()
            }
            HostStatus::Skipped if self.is_approved_since() => {
                vec![Blocker::until(HostBlocker::ApprovedLate, run.not_after)]
            }
            HostStatus::Waiting => self.with_stuck_slot(self.reason()),
            HostStatus::Failed | HostStatus::TimedOut | HostStatus::Skipped | HostStatus::Cancelled => {
                self.with_stuck_slot(self.reason())
            }
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

    /// `reason`, and, if an embedded slot is missing, the host that keeps one without being under way.
    fn with_stuck_slot(self, reason: Option<Reason>) -> Vec<Blocker> {
        let stuck = if let Some(Reason::SlotDenied { group, denial: Denial::Embedded(_) }) = &reason {
            stuck_slot(self.state, group)
        } else {
            None
        };
        let until = (!self.host.status.is_final()).then(|| self.deadline());
        let reason = reason.map(|reason| Blocker::until(reason, until));
        reason.into_iter().chain(stuck.map(Blocker::from)).collect()
    }

    /// Why it is not the host's turn: its own earlier slot, the hosts in progress, or the first host of its group.
    fn before_turn(self) -> Vec<Blocker> {
        let Self { state, run, .. } = self;
        if let Some(blocker) = earlier_slot(state, self.name) {
            return vec![Blocker::until(blocker, self.deadline())];
        }
        if run.has_room()
            && let Some(blockers) = self.by_turn()
        {
            return blockers;
        }
        let under_way = run.under_way().get_min().and_then(|host| Some((host, run.host(host)?)));
        vec![match under_way {
            None => Blocker::until(HostBlocker::TurnAwaited, self.deadline()),
            Some((name, host)) => {
                let until = HostInRun { name, host, ..self }.deadline();
                Blocker::until(HostBlocker::HostUnderWay { host: name.clone() }, until)
            }
        }]
    }

    /// Why the host of its group whose turn it is has no slot, be it this one or another.
    fn by_turn(self) -> Option<Vec<Blocker>> {
        let first = self.state.turn_of(self.run, &self.host.group, self.now)?.host;
        let reason = self.state.turn_blocker(self.view, self.run, &first, self.now)?;
        let mut blockers = self.with_stuck_slot(Some(reason));
        if first != *self.name {
            let by = Box::new(blockers.first()?.cause.clone());
            blockers[0] = Blocker::until(HostBlocker::HostFirst { host: first, by }, self.deadline());
        }
        Some(blockers)
    }

    /// Whether the run skipped the host because it was not approved, and it is approved by now.
    fn is_approved_since(self) -> bool {
        let left_out =
            matches!(self.host.reason, Some(Reason::AwaitsApproval { .. } | Reason::HostWithdrawn { .. }));
        left_out && self.state.enrolled(self.name).takes_part()
    }
}

/// What the hosts of the active run wait for whose turn has not come. It is made once for all of them.
pub(crate) struct LastWaits<'a> {
    state: &'a State,
    view: &'a View,
    run: &'a Run,
    now: DateTime<Utc>,
    /// What keeps every one of them.
    all: Option<LastWait>,
    /// By group, why the host waits whose turn it is.
    first: BTreeMap<&'a GroupName, Reason>,
}

impl<'a> LastWaits<'a> {
    pub(crate) fn of(state: &'a State, view: &'a View, run: &'a Run, now: DateTime<Utc>) -> Self {
        let first = |hosts: &OrdSet<HostName>| Some((hosts.get_min()?.clone(), hosts.len() - 1));
        let all = match run.phase {
            Phase::Preparing => {
                first(run.unprepared()).map(|(host, others)| LastWait::HostsUnprepared { host, others })
            }
            Phase::Upgrading if run.has_room() => None,
            Phase::Upgrading => {
                first(run.under_way()).map(|(host, others)| LastWait::HostUnderWay { host, others })
            }
        };
        let of_group = |group: &'a GroupName| {
            let first = state.turn_of(run, group, now)?.host;
            Some((group, state.turn_blocker(view, run, &first, now)?))
        };
        let first = run.ready().keys().filter_map(of_group).collect();
        Self { state, view, run, now, all, first }
    }

    /// What `host`, which is prepared or waits for a slot, waits for; absent if its turn was about to come.
    pub(crate) fn of_host(&self, name: &HostName, host: &RunHost) -> Option<LastWait> {
        let own = || self.state.turn_blocker(self.view, self.run, name, self.now);
        let own = (host.status == HostStatus::Waiting).then_some(own);
        let of_turn = || own.map_or_else(|| self.first.get(&host.group).cloned(), |own| own());
        self.all.clone().or_else(|| of_turn().map(|reason| LastWait::Recorded(Box::new(reason))))
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
    let reason = entry.reason.clone().map(Reason::without_output);
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

/// The first host that holds a slot of `group` without being under way.
fn stuck_slot(state: &State, group: &GroupName) -> Option<HostBlocker> {
    let reason = |host: &HostName| {
        if let Some((_, entry)) = state.entry_under_way(host) {
            return entry.reason.clone().map(Reason::without_output);
        }
        let mut newest = state.run.iter().chain(&state.last_run).filter_map(|run| run.host(host)).peekable();
        let is_under_way = newest.peek().is_some_and(|in_run| in_run.status.is_under_way());
        newest.find_map(|in_run| in_run.reason.clone()).filter(|_| !is_under_way)
    };
    let mut held =
        state.slots.iter().filter(|(_, slot)| slot.group == *group && slot.state == SlotState::Held);
    held.find_map(|(host, _)| Some(HostBlocker::SlotStuck { host: host.clone(), reason: reason(host)? }))
}

/// Blockers that follow from the view of the host: it may be off, and a worker with a wrong clock may consider a
/// command expired.
fn liveness(host: &SeenHost) -> impl Iterator<Item = Blocker> + use<> {
    let silent = (host.reachability == Reachability::Unreachable).then_some(HostBlocker::Silent);
    let skew = host.clock_skew_secs.filter(|seconds| seconds.saturating_abs() > CLOCK_SKEW_SECS_MAX);
    let skew = skew.map(|seconds| HostBlocker::WorkerClockSkew { seconds });
    silent.into_iter().chain(skew).map(Blocker::from)
}

fn outside_of_runs(state: &State, view: &View, forecast: &Forecast, host: &HostName) -> Vec<Blocker> {
    let left_out = left_out(state, view, host).map(|blocker| vec![blocker]);
    let slot = reboot_under_way(state, host).or_else(|| remaining_slot(state, host));
    let node = remaining_node(state, host);
    let mut blockers: Vec<Blocker> = slot.into_iter().chain(node).map(Blocker::from).collect();
    blockers.extend(left_out.unwrap_or_else(|| no_run(forecast, view.hosts.get(host))));
    blockers
}

/// Why a host is in no run, whether or not one is active.
fn left_out(state: &State, view: &View, host: &HostName) -> Option<Blocker> {
    let Some(seen) = view.hosts.get(host) else { return Some(HostBlocker::NotAnnounced.into()) };
    if let Some(reason) = state.enrolled(host).left_out(host) {
        return Some(reason.into());
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
    Some(Blocker::until(HostBlocker::AppearedLate, run.not_after))
}

/// What the host itself lacks, that no run is active, and why none starts.
fn no_run(forecast: &Forecast, seen: Option<&SeenHost>) -> Vec<Blocker> {
    let absent = match seen.map(|seen| seen.reachability) {
        Some(Reachability::Unreachable) => Some(HostBlocker::Silent),
        Some(Reachability::Awaited) => Some(HostBlocker::HeartbeatAwaited),
        Some(Reachability::Reachable | Reachability::Unknown) | None => None,
    };
    let mut blockers: Vec<Blocker> = absent.map(Blocker::from).into_iter().collect();
    match &forecast.next {
        NextRun::At(start) => blockers.push(Blocker::until(HostBlocker::NoRun, start.at)),
        NextRun::Never(by) => blockers.extend([HostBlocker::NoRun.into(), by.clone().into()]),
        NextRun::Blocked { start, by } => {
            let cause = Cause::OpenWindow { by: by.clone(), open_until: start.occurrence.end };
            // Heartbeats are awaited only briefly; the leader decides how long.
            let until = (!matches!(by, WindowBlocker::HostsAwaited { .. })).then_some(start.latest);
            blockers.extend([HostBlocker::NoRun.into(), Blocker::until(cause, until)]);
        }
    }
    blockers.extend(forecast.used.clone().map(|used| {
        let until = used.open_until;
        Blocker::until(HostBlocker::WindowUsed(used), until)
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
            let in_run = state.last_run.as_ref().filter(|_| entry.is_none()).and_then(|run| run.host(name));
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
