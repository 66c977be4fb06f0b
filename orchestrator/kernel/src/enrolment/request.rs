//! Operators' decisions about hosts: approval, withdrawal and removal.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::{GroupName, HostKey, HostName, LongToken};
use os_upgrade_scheduler::MachineId;
use serde::{Deserialize, Serialize};

use super::state::{APPROVED_AT_ONCE_MAX, Deferral, ENROLLED_MAX, Enrolled};
use crate::answer::{Granted, RefusalClass};
use crate::fact::{EnrolmentFact, Fact, UnitFact};
use crate::reason::Reason;
use crate::reboot_queue;
use crate::run::{HostEvent, HostStatus, Run};
use crate::state::State;
use crate::unit::{self, MachineOffer};
use crate::view::{Reachability, View};

/// An operation on hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EnrolmentOperation {
    /// Let hosts take part in runs from now on: all of them or none.
    Approve {
        /// The hosts, 1 to 1000; they need not have announced themselves yet.
        hosts: Vec<HostName>,
        /// The keys that some of them announce, as the operator has seen them: they count from now on.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        keys: BTreeMap<HostName, HostKey>,
        /// The machines that some of them announce, as the operator has seen them: they may run units from now on.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        machines: BTreeMap<HostName, MachineOffer>,
    },
    /// Let a host no longer take part.
    Withdraw {
        host: HostName,
        /// Why, as the operator says.
        reason: String,
    },
    /// Forget a host that is gone, with what is stored of it.
    Remove {
        host: HostName,
        /// Why, as the operator says.
        reason: String,
    },
    /// Begin nothing on a host for now.
    Defer {
        host: HostName,
        /// Why, as the operator says.
        reason: String,
        /// When that ends by itself; absent if it lasts until an operator ends it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
    },
    /// Let a deferred host begin again. For one that is not deferred, nothing changes.
    EndDeferral {
        host: HostName,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EnrolmentRefusal {
    /// Too few or too many hosts at once.
    ApprovalSize,
    /// The name of a host is too long for a worker.
    NameTooLong {
        /// How long its token is.
        bytes: usize,
    },
    /// A key is of none of the hosts that are to be approved.
    KeyOfOther { host: HostName },
    /// The host announces another key than the operator has seen, or none any more.
    KeyChanged {
        host: HostName,
        /// What it announces now.
        announced: Option<HostKey>,
    },
    /// A machine is of none of the hosts that are to be approved.
    MachineOfOther { host: HostName },
    /// The host announces another machine than the operator has seen, or none any more.
    MachineChanged {
        host: HostName,
        /// What it announces now.
        announced: Option<MachineOffer>,
    },
    /// The id of the host's machine is that of another one.
    MachineTaken {
        host: HostName,
        /// That id.
        machine: MachineId,
        /// The host that has it.
        by: HostName,
    },
    /// The maximum number of approved and withdrawn hosts is reached.
    EnrolmentFull,
    /// There is no host of that name.
    UnknownHost {
        /// That name.
        host: HostName,
    },
    /// The host is not gone: its worker sends heartbeats.
    HostRunning { host: HostName },
    /// The host sends heartbeats, and it is not known yet whether it still does.
    HostAwaited { host: HostName },
    /// The host is in the active run.
    HostInRun {
        host: HostName,
        /// Its status there.
        status: HostStatus,
    },
    /// The host's node is cordoned.
    HostCordoned { host: HostName },
    /// The deferral would be over already.
    DeferralOver {
        until: DateTime<Utc>,
        /// What time it is.
        now: DateTime<Utc>,
    },
    /// The host holds a slot, or is about to.
    HostHoldsSlot { host: HostName, group: GroupName },
}

impl EnrolmentRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::ApprovalSize
            | Self::NameTooLong { .. }
            | Self::KeyOfOther { .. }
            | Self::MachineOfOther { .. } => RefusalClass::Invalid,
            Self::UnknownHost { .. } => RefusalClass::Missing,
            Self::EnrolmentFull
            | Self::KeyChanged { .. }
            | Self::MachineChanged { .. }
            | Self::MachineTaken { .. }
            | Self::DeferralOver { .. }
            | Self::HostRunning { .. }
            | Self::HostAwaited { .. }
            | Self::HostInRun { .. }
            | Self::HostCordoned { .. }
            | Self::HostHoldsSlot { .. } => RefusalClass::Conflict,
        }
    }
}

pub(crate) fn decide(
    state: &State,
    view: &View,
    operation: &EnrolmentOperation,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<Granted, EnrolmentRefusal> {
    match operation {
        EnrolmentOperation::Approve { hosts, keys, machines } => {
            approve(state, view, (hosts, keys, machines), actor)
        }
        EnrolmentOperation::Withdraw { host, reason } => withdraw(state, view, host, actor, reason),
        EnrolmentOperation::Remove { host, reason } => remove(state, view, host, actor, reason),
        EnrolmentOperation::Defer { until: Some(until), .. } if *until <= now => {
            Err(EnrolmentRefusal::DeferralOver { until: *until, now })
        }
        EnrolmentOperation::Defer { host, reason, until } => {
            let (actor, reason) = (actor.to_owned(), reason.clone());
            defer(state, view, host, Deferral { actor, reason, since: now, until: *until })
        }
        EnrolmentOperation::EndDeferral { host, reason } => {
            check_known(state, view, host)?;
            let is_deferred = state.enrolment.deferred.contains_key(host);
            let (host, actor, reason) = (host.clone(), Some(actor.to_owned()), reason.clone());
            let ended = EnrolmentFact::DeferralEnded { host, actor, reason };
            Ok(Granted::done(is_deferred.then_some(Fact::Enrolment(ended)).into_iter().collect()))
        }
    }
}

/// Defers a host. In the active run it is cancelled if its upgrade has not begun; its entries in the reboot queue stay queued.
fn defer(
    state: &State,
    view: &View,
    host: &HostName,
    deferral: Deferral,
) -> Result<Granted, EnrolmentRefusal> {
    check_known(state, view, host)?;
    let deferred = &state.enrolment.deferred;
    let before = deferred.get(host);
    if before.is_none() && deferred.len() >= ENROLLED_MAX {
        return Err(EnrolmentRefusal::EnrolmentFull);
    }
    let cancelled = cancel_in_run(state, host, deferral.as_reason());
    let Deferral { actor, reason, since: _, until } = deferral;
    let is_unchanged = before
        .is_some_and(|before| (&before.actor, &before.reason, before.until) == (&actor, &reason, until));
    let new = EnrolmentFact::HostDeferred { host: host.clone(), actor, reason, until };
    let new = (!is_unchanged).then_some(Fact::Enrolment(new));
    Ok(Granted::done(new.into_iter().chain(cancelled).collect()))
}

/// What is approved: hosts, and what some of them announce.
type Approved<'a> = (&'a [HostName], &'a BTreeMap<HostName, HostKey>, &'a BTreeMap<HostName, MachineOffer>);

/// Approves hosts for runs that start from now on. Hosts that are already approved keep their approval, and get the key and the machine that
/// they announce.
fn approve(
    state: &State,
    view: &View,
    (hosts, keys, machines): Approved<'_>,
    actor: &str,
) -> Result<Granted, EnrolmentRefusal> {
    let enrolment = &state.enrolment;
    if !(1..=APPROVED_AT_ONCE_MAX).contains(&hosts.len()) {
        return Err(EnrolmentRefusal::ApprovalSize);
    }
    let new: OrdSet<&HostName> =
        hosts.iter().filter(|host| !enrolment.approved.contains_key(*host)).collect();
    if let Some(LongToken(bytes)) = new.iter().find_map(|host| host.check_length().err()) {
        return Err(EnrolmentRefusal::NameTooLong { bytes });
    }
    let unknown = new.iter().filter(|host| !enrolment.has_place_of(host)).count();
    if !enrolment.has_room_for(unknown) {
        return Err(EnrolmentRefusal::EnrolmentFull);
    }
    let mut facts = Vec::new();
    if !new.is_empty() {
        let (hosts, actor) = (new.into_iter().cloned().collect(), actor.to_owned());
        facts.push(EnrolmentFact::HostsApproved { hosts, actor });
    }
    if let Some((host, _)) = keys.iter().find(|(host, _)| !hosts.contains(host)) {
        return Err(EnrolmentRefusal::KeyOfOther { host: host.clone() });
    }
    for (host, key) in keys {
        let announced = view.announced_key(host);
        if announced != Some(key) {
            return Err(EnrolmentRefusal::KeyChanged { host: host.clone(), announced: announced.copied() });
        }
    }
    let is_new = |(host, key): &(&HostName, &HostKey)| enrolment.pinned(host) != Some(*key);
    facts.extend(keys.iter().filter(is_new).map(|(host, key)| EnrolmentFact::KeyPinned {
        host: host.clone(),
        key: *key,
        actor: Some(actor.to_owned()),
    }));
    if let Some((host, _)) = machines.iter().find(|(host, _)| !hosts.contains(host)) {
        return Err(EnrolmentRefusal::MachineOfOther { host: host.clone() });
    }
    let joined = join_machines(state, view, machines, actor)?;
    Ok(Granted::done(facts.into_iter().map(Fact::from).chain(joined.into_iter().map(Fact::from)).collect()))
}

/// Lets hosts become the machines that they announce, as the operator has seen them. Two hosts never are one machine: one of them would be
/// told to run what the other one runs.
fn join_machines(
    state: &State,
    view: &View,
    machines: &BTreeMap<HostName, MachineOffer>,
    actor: &str,
) -> Result<Vec<UnitFact>, EnrolmentRefusal> {
    let before = &state.units.machines;
    // Hosts that are approved together may swap their ids.
    let kept = before.iter().filter(|(host, _)| !machines.contains_key(*host));
    let mut taken: BTreeMap<MachineId, &HostName> = kept.map(|(host, machine)| (machine.id, host)).collect();
    let mut joined = Vec::new();
    for (host, shown) in machines {
        let announced = unit::offer(view, host);
        if announced.as_ref() != Some(shown) {
            return Err(EnrolmentRefusal::MachineChanged { host: host.clone(), announced });
        }
        if let Some(by) = taken.insert(shown.id, host) {
            let (host, by) = (host.clone(), by.clone());
            return Err(EnrolmentRefusal::MachineTaken { host, machine: shown.id, by });
        }
        let address = view.hosts.get(host).and_then(|seen| seen.address.clone()).unwrap_or_default();
        let is_same = before.get(host).is_some_and(|machine| {
            (machine.id, &machine.metadata, &machine.address) == (shown.id, &shown.metadata, &address)
        });
        if !is_same {
            let (host, metadata, actor) = (host.clone(), shown.metadata.clone(), Some(actor.to_owned()));
            joined.push(UnitFact::MachineJoined { host, machine: shown.id, metadata, address, actor });
        }
    }
    Ok(joined)
}

/// Withdraws a host. In the active run it is cancelled if it has no slot yet. Once it holds its slot, its upgrade is
/// finished, including the reboot: a host left in the middle of an upgrade would be neither the old nor the new system,
/// and would keep its slot.
fn withdraw(
    state: &State,
    view: &View,
    host: &HostName,
    actor: &str,
    reason: &str,
) -> Result<Granted, EnrolmentRefusal> {
    check_known(state, view, host)?;
    check_room(state, host)?;
    let is_unchanged = matches!(
        state.enrolled(host),
        Enrolled::Withdrawn(current) if current.actor == actor && current.reason == reason
    );
    let mut facts = Vec::new();
    if !is_unchanged {
        let (actor, reason) = (actor.to_owned(), reason.to_owned());
        facts.push(Fact::Enrolment(EnrolmentFact::HostWithdrawn {
            host: host.clone(),
            actor,
            reason,
            forgotten: false,
        }));
    }
    // A host without a decision may be in the active run: it was auto-approved when the run started.
    let withdrawn = Reason::HostWithdrawn { actor: actor.to_owned(), reason: reason.to_owned() };
    facts.extend(cancel_in_run(state, host, withdrawn));
    facts.extend(reboot_queue::cancel_queued(state, host, actor, reason));
    Ok(Granted::done(facts))
}

/// Removes a host that is gone. What may still be at work is not removed: nobody would wait for it any more.
fn remove(
    state: &State,
    view: &View,
    host: &HostName,
    actor: &str,
    reason: &str,
) -> Result<Granted, EnrolmentRefusal> {
    let seen = view.hosts.get(host);
    if seen.is_none() && state.enrolment.removed.contains_key(host) {
        return Ok(Granted::done(Vec::new()));
    }
    check_known(state, view, host)?;
    check_room(state, host)?;
    let in_run = state.run.as_ref().and_then(|run| run.host(host)).filter(|host| !host.status.is_final());
    if let Some(in_run) = in_run {
        return Err(EnrolmentRefusal::HostInRun { host: host.clone(), status: in_run.status });
    }
    if let Some(slot) = state.slots.get(host) {
        return Err(EnrolmentRefusal::HostHoldsSlot { host: host.clone(), group: slot.group.clone() });
    }
    if state.nodes.contains_key(host) {
        return Err(EnrolmentRefusal::HostCordoned { host: host.clone() });
    }
    match seen.map(|seen| seen.reachability) {
        Some(Reachability::Reachable) => return Err(EnrolmentRefusal::HostRunning { host: host.clone() }),
        Some(Reachability::Awaited) => return Err(EnrolmentRefusal::HostAwaited { host: host.clone() }),
        Some(Reachability::Unknown | Reachability::Unreachable) | None => {}
    }
    let announced = seen.map_or(0, |seen| seen.announced);
    let cancelled = reboot_queue::cancel_queued(state, host, actor, reason);
    let (host, actor, reason) = (host.clone(), actor.to_owned(), reason.to_owned());
    let removed = Fact::Enrolment(EnrolmentFact::HostRemoved { host, actor, reason, announced });
    Ok(Granted::done([removed].into_iter().chain(cancelled).collect()))
}

/// What was stored of a removed host up to its announcement at the sequence `announced` has been deleted.
pub(crate) fn purged(state: &State, host: &HostName, announced: u64) -> Vec<Fact> {
    // It may have announced itself and been removed again meanwhile.
    let removal = state.enrolment.removed.get(host);
    let is_due = removal.is_some_and(|removal| !removal.purged && removal.announced == announced);
    is_due.then(|| Fact::Enrolment(EnrolmentFact::HostPurged { host: host.clone() })).into_iter().collect()
}

fn check_known(state: &State, view: &View, host: &HostName) -> Result<(), EnrolmentRefusal> {
    let in_run = state.run.as_ref().is_some_and(|run| run.host(host).is_some());
    let is_decided = state.enrolment.knows(host) || state.enrolment.deferred.contains_key(host);
    let is_known = view.hosts.contains_key(host) || in_run || is_decided;
    if !is_known && !view.left.contains(host) {
        return Err(EnrolmentRefusal::UnknownHost { host: host.clone() });
    }
    Ok(())
}

fn check_room(state: &State, host: &HostName) -> Result<(), EnrolmentRefusal> {
    let has_room = state.enrolment.has_place_of(host) || state.enrolment.has_room_for(1);
    if has_room { Ok(()) } else { Err(EnrolmentRefusal::EnrolmentFull) }
}

/// Cancels a host in the active run for this `reason`, unless it has begun or is not in it.
fn cancel_in_run(state: &State, host: &HostName, reason: Reason) -> Vec<Fact> {
    let is_before_upgrade =
        |run: &&Run| run.host(host).is_some_and(|in_run| in_run.status.is_before_upgrade());
    let Some(run) = state.run.as_ref().filter(is_before_upgrade) else { return Vec::new() };
    state.no_longer_waits(run, host, HostEvent::Cancelled { reason })
}

#[cfg(test)]
mod tests {
    use crate::fact::ConfigFact;
    use chrono::DateTime;
    use os_upgrade_protocol::RunId;

    use super::*;
    use crate::config::Settings;
    use crate::enrolment::{ENROLLED_MAX, KeyState, pin_first};
    use crate::owner::Owner;
    use crate::slot::Slot;
    use crate::view::{Configures, SeenHost};

    fn hosts(numbers: impl Iterator<Item = usize>) -> Vec<HostName> {
        numbers.map(|number| HostName::new(&format!("h{number}")).unwrap()).collect()
    }

    fn apply(state: &mut State, granted: Result<Granted, EnrolmentRefusal>) {
        for fact in granted.unwrap().facts {
            state.apply(DateTime::UNIX_EPOCH, &fact).unwrap();
        }
    }

    #[test]
    fn decisions_are_bounded() {
        let mut state = State::default();
        let all = hosts(0..ENROLLED_MAX);
        for some in all.chunks(APPROVED_AT_ONCE_MAX) {
            let approved =
                approve(&state, &View::default(), (some, &BTreeMap::new(), &BTreeMap::new()), "eve");
            apply(&mut state, approved);
        }
        let one_more = hosts(ENROLLED_MAX..=ENROLLED_MAX);
        let approval_of = |state: &State, hosts: &[HostName]| {
            approve(state, &View::default(), (hosts, &BTreeMap::new(), &BTreeMap::new()), "eve")
        };
        assert_eq!(approval_of(&state, &one_more), Err(EnrolmentRefusal::EnrolmentFull));
        assert_eq!(approval_of(&state, &all[..1]), Ok(Granted::done(Vec::new())));
        // Withdrawing an approved host takes no further room.
        let withdrawn = withdraw(&state, &View::default(), &all[7], "eve", "stolen");
        apply(&mut state, withdrawn);
        assert!(approval_of(&state, &all[7..8]).is_ok());
        assert_eq!(approval_of(&state, &one_more), Err(EnrolmentRefusal::EnrolmentFull));
        // Nor does removing one. What was decided about it is needed until what is stored of it has been deleted.
        let removed = remove(&state, &View::default(), &all[7], "eve", "scrapped");
        apply(&mut state, removed);
        assert_eq!(approval_of(&state, &one_more), Err(EnrolmentRefusal::EnrolmentFull));
        let purged = Granted::done(purged(&state, &all[7], 0));
        apply(&mut state, Ok(purged));
        assert!(approval_of(&state, &one_more).is_ok());
    }

    #[test]
    fn only_hosts_that_are_gone_are_removed() {
        let host = &hosts(0..1)[0];
        let seen = |reachability| {
            let seen = SeenHost { announced: 7, reachability, ..SeenHost::default() };
            View { hosts: [(host.clone(), seen)].into_iter().collect(), ..View::default() }
        };
        let removal = |state: &State, view: &View| remove(state, view, host, "eve", "scrapped");
        let announced = |announced| {
            let (host, actor, reason) = (host.clone(), "eve".to_owned(), "scrapped".to_owned());
            Ok(Granted::done(vec![Fact::Enrolment(EnrolmentFact::HostRemoved {
                host,
                actor,
                reason,
                announced,
            })]))
        };
        let mut state = State::default();
        let nobody = View::default();
        let unknown = EnrolmentRefusal::UnknownHost { host: host.clone() };
        assert_eq!(removal(&state, &nobody), Err(unknown));
        for reachability in [Reachability::Unknown, Reachability::Unreachable] {
            assert_eq!(removal(&state, &seen(reachability)), announced(7));
        }
        let running = EnrolmentRefusal::HostRunning { host: host.clone() };
        assert_eq!(removal(&state, &seen(Reachability::Reachable)), Err(running));
        let awaited = EnrolmentRefusal::HostAwaited { host: host.clone() };
        assert_eq!(removal(&state, &seen(Reachability::Awaited)), Err(awaited));
        let group = GroupName::new("default").unwrap();
        state.slots.insert(
            host.clone(),
            Slot::requested(&group, &Owner::from(RunId::new("r1").unwrap()), DateTime::UNIX_EPOCH),
        );
        let slot = EnrolmentRefusal::HostHoldsSlot { host: host.clone(), group };
        assert_eq!(removal(&state, &seen(Reachability::Unknown)), Err(slot));
        state.slots.remove(host);
        // One that was approved and has left.
        let only = (std::slice::from_ref(host), &BTreeMap::new(), &BTreeMap::new());
        let approved = approve(&state, &nobody, only, "eve");
        apply(&mut state, approved);
        assert_eq!(removal(&state, &nobody), announced(0));
        apply(&mut state, announced(0));
        assert_eq!(removal(&state, &nobody), Ok(Granted::done(Vec::new())), "it is gone already");
        assert_eq!(purged(&state, host, 7), [], "of an earlier removal");
        assert_eq!(
            purged(&state, host, 0),
            [Fact::Enrolment(EnrolmentFact::HostPurged { host: host.clone() })]
        );
        // The name stays one that nobody approves automatically, as long as others are.
        let settings = Settings { auto_approve: true, ..Settings::default() };
        state.apply(DateTime::UNIX_EPOCH, &Fact::Config(ConfigFact::SettingsAdopted { settings })).unwrap();
        let purge = Granted::done(purged(&state, host, 0));
        apply(&mut state, Ok(purge));
        assert_eq!(purged(&state, host, 0), [], "once is enough");
        assert_eq!(state.enrolled(host), Enrolled::Pending);
    }

    /// A key counts as the operator has seen it, or not at all. Another one later waits, whoever approves hosts.
    #[test]
    fn keys_are_approved_with_their_hosts() {
        let [first, second] = &hosts(0..2)[..] else { panic!("there are two") };
        let (old, new) = (HostKey::new([1; 32]), HostKey::new([2; 32]));
        let announcing = |key: Option<HostKey>| {
            let application = os_upgrade_protocol::ApplicationName::new("a").unwrap();
            let configures = key.map(|key| Configures { application, key });
            let seen = SeenHost { configures, ..SeenHost::default() };
            View { hosts: [(first.clone(), seen)].into_iter().collect(), ..View::default() }
        };
        let one = std::slice::from_ref(first);
        let decided = |state: &State, view: &View, host: &HostName, key: HostKey| {
            let keys = BTreeMap::from([(host.clone(), key)]);
            approve(state, view, (one, &keys, &BTreeMap::new()), "eve")
        };
        let changed = |announced| Err(EnrolmentRefusal::KeyChanged { host: first.clone(), announced });
        let mut state = State::default();
        assert_eq!(decided(&state, &announcing(Some(new)), first, old), changed(Some(new)));
        assert_eq!(decided(&state, &announcing(None), first, old), changed(None));
        let of_other = Err(EnrolmentRefusal::KeyOfOther { host: second.clone() });
        assert_eq!(decided(&state, &announcing(Some(old)), second, old), of_other);

        let approved = decided(&state, &announcing(Some(old)), first, old);
        apply(&mut state, approved);
        assert!(state.enrolled(first).takes_part());
        let key_state = |state: &State, announced| state.enrolment.key_state(first, announced);
        assert_eq!(key_state(&state, Some(&old)), Some(KeyState::Pinned));
        assert_eq!(key_state(&state, None), Some(KeyState::Pinned), "its worker is away");
        assert_eq!(key_state(&state, Some(&new)), Some(KeyState::Changed));
        assert_eq!(decided(&state, &announcing(Some(old)), first, old), Ok(Granted::done(Vec::new())));
        let approved = decided(&state, &announcing(Some(new)), first, new);
        apply(&mut state, approved);
        assert_eq!(state.enrolment.pinned(first), Some(&new));
        // Whoever takes it out takes its key out.
        let withdrawn = withdraw(&state, &announcing(Some(new)), first, "eve", "stolen");
        apply(&mut state, withdrawn);
        assert_eq!(key_state(&state, Some(&new)), Some(KeyState::Waiting));
    }

    #[test]
    fn first_keys_of_approved_hosts_are_pinned() {
        let [auto, approved, withdrawn] = &hosts(0..3)[..] else { panic!("there are three") };
        let application = os_upgrade_protocol::ApplicationName::new("a").unwrap();
        let seen = |key| SeenHost {
            configures: Some(Configures { application: application.clone(), key: HostKey::new([key; 32]) }),
            ..SeenHost::default()
        };
        let announcing = |key| View {
            hosts: [auto, approved, withdrawn].map(|host| (host.clone(), seen(key))).into_iter().collect(),
            ..View::default()
        };
        let mut state = State::default();
        let only = (std::slice::from_ref(approved), &BTreeMap::new(), &BTreeMap::new());
        let decided = approve(&state, &View::default(), only, "eve");
        apply(&mut state, decided);
        let decided = withdraw(&state, &announcing(1), withdrawn, "eve", "stolen");
        apply(&mut state, decided);
        assert_eq!(pin_first(&state, &announcing(1)), []);
        let settings = Settings { auto_approve: true, ..Settings::default() };
        state.apply(DateTime::UNIX_EPOCH, &Fact::Config(ConfigFact::SettingsAdopted { settings })).unwrap();
        let pinned = pin_first(&state, &announcing(1));
        let (host, key) = (auto.clone(), HostKey::new([1; 32]));
        assert_eq!(pinned, [Fact::from(EnrolmentFact::KeyPinned { host, key, actor: None })]);
        apply(&mut state, Ok(Granted::done(pinned)));
        assert_eq!(pin_first(&state, &announcing(2)), [], "another one waits");
    }

    #[test]
    fn approvals_per_request_are_bounded() {
        let approval_of = |hosts: &[HostName]| {
            let (state, view) = (State::default(), View::default());
            approve(&state, &view, (hosts, &BTreeMap::new(), &BTreeMap::new()), "eve")
        };
        assert_eq!(approval_of(&[]), Err(EnrolmentRefusal::ApprovalSize));
        let many = hosts(0..=APPROVED_AT_ONCE_MAX);
        assert_eq!(approval_of(&many), Err(EnrolmentRefusal::ApprovalSize));
        let long = [HostName::new(&"x".repeat(224)).unwrap()];
        assert_eq!(approval_of(&long), Err(EnrolmentRefusal::NameTooLong { bytes: 224 }));
        let [first, ..] = &many[..] else { panic!("there are many") };
        let twice = [first.clone(), first.clone()];
        let approved = Fact::Enrolment(EnrolmentFact::HostsApproved {
            hosts: vec![first.clone()],
            actor: "eve".to_owned(),
        });
        assert_eq!(approval_of(&twice), Ok(Granted::done(vec![approved])));
    }
}
