//! The semaphores, as their clients see them: whether the history of all calls is linearisable.
//!
//! It is if the calls can be put into one order, each at a moment between call and answer, in which a sequential
//! counting semaphore with owners ([`specification`]) would have given exactly these answers. A call without an answer
//! may have had its effect at any moment since, or never. Finding such an order is hard; checking one is not, and the
//! journal has one: every change of a semaphore is a fact of it, and the next leader goes on from these facts in their
//! order. So these are checked:
//!
//! 1. each fact is what the sequential semaphore would do, in the order of the journal: never more slots than there
//!    are;
//! 2. each fact was caused by one call of exactly this client, which had been made and not answered when the fact was
//!    stored, and whose answer, if there is one, agrees with the fact; a call that caused a fact is not told that
//!    nothing was changed, or the contrary. Calls with the same intent can stand for each other, so they are counted:
//!    at no time are there more facts than calls that may have caused them;
//! 3. each answer of a call that caused no fact is what the semaphore would answer, without a change, at some moment
//!    between call and answer. Such calls do not affect each other, so each can be placed separately.
//!
//! Facts and these moments together are the order: what passes is linearisable. A history that is linearisable in
//! another order than the journal's only is reported as a violation, and is one: the next leader would have another
//! state than the one that its clients were told of.

mod specification;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::LockFact;
use os_upgrade_kernel::slot::DeniedKind;
use os_upgrade_kernel::{
    Accepted, Answer, Fact, LockOperation, LockProvider, Operation, Refusal, Request, SlotOperation,
    SlotRefusal,
};
use os_upgrade_protocol::{GroupName, HostName};
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::instance::CallId;
use os_upgrade_shell::not_done::NotDone;

use self::specification::{Specification, Verdict};
use super::calls::LATE_EFFECT_MAX;
use super::violation::Violation;
use crate::time::Micros;

/// The change that a call requests and a fact makes; calls with the same intent can stand for each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Intent {
    group: GroupName,
    id: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Lock,
    Unlock,
    /// Each request of an operator has its own actor.
    Operator(String),
}

/// A call that may still have an effect.
#[derive(Debug)]
struct OpenCall {
    request: Request,
    called: Micros,
    /// Until when it may have one, if its caller was told that the outcome is unknown.
    until: Option<Micros>,
    /// What it could have been answered since without changing anything.
    possible: Vec<Verdict>,
}

/// A fact that has not been matched with the call that caused it.
#[derive(Debug)]
struct Change {
    at: Micros,
    verdict: Verdict,
}

/// Calls under way, and the semaphores according to the journal.
#[derive(Debug)]
pub(super) struct Semaphores {
    provider: LockProvider,
    specification: Specification,
    open: BTreeMap<Intent, BTreeMap<CallId, OpenCall>>,
    changes: BTreeMap<Intent, Vec<Change>>,
    answers: u64,
}

impl Semaphores {
    pub(super) fn new(provider: LockProvider, hosts: impl IntoIterator<Item = HostName>) -> Self {
        let specification = Specification::new(hosts);
        Self { provider, specification, open: BTreeMap::new(), changes: BTreeMap::new(), answers: 0 }
    }

    /// The answers about slots that were found right.
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// Whether the journal says that `host` is at work on its upgrade.
    pub(super) fn is_under_way(&self, host: &HostName) -> bool {
        self.specification.is_under_way(host)
    }

    /// A call is made.
    pub(super) fn called(&mut self, now: Micros, call: CallId, request: &Request) {
        let Some(intent) = self.intent(request) else { return };
        let possible = self.specification.verdict(request).into_iter().collect();
        let open = OpenCall { request: request.clone(), called: now, until: None, possible };
        self.open.entry(intent).or_default().insert(call, open);
    }

    /// A call is answered.
    pub(super) fn answered(
        &mut self,
        now: Micros,
        call: CallId,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        let Some(intent) = self.intent(request) else { return Ok(()) };
        self.check_answer(now, call, &intent, request, outcome)?;
        self.answers += 1;
        Ok(())
    }

    /// The intent of a request to the embedded semaphores; none for other requests.
    fn intent(&self, request: &Request) -> Option<Intent> {
        Intent::of_request(request).filter(|_| self.provider == LockProvider::Embedded)
    }

    fn check_answer(
        &mut self,
        now: Micros,
        call: CallId,
        intent: &Intent,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        let calls = self.open.entry(intent.clone()).or_default();
        let answer = match outcome {
            Ok(answered) => &answered.answer,
            Err(NotDone::Unchanged { .. }) => {
                calls.remove(&call);
                return self.check_changes(intent);
            }
            Err(NotDone::Unknown { .. }) => {
                if let Some(open) = calls.get_mut(&call) {
                    open.until = Some(now + LATE_EFFECT_MAX);
                }
                return Ok(());
            }
        };
        let Some(open) = calls.remove(&call) else { return Ok(()) };
        let Some(verdict) = Verdict::of(answer) else {
            return Err(Violation::new("semaphore", format!("{request:?} is answered {answer:?}")));
        };
        if !self.match_change(intent, open.called, Some(verdict)) && !open.possible.contains(&verdict) {
            let called = open.called;
            let text = format!("{request:?} of {called} is answered {answer:?}, which was never so");
            return Err(Violation::new("semaphore", text));
        }
        self.check_changes(intent)
    }

    /// What a process has kept leaves it now.
    pub(super) fn kept_until(&mut self, now: Micros) {
        for until in
            self.open.values_mut().flat_map(BTreeMap::values_mut).filter_map(|open| open.until.as_mut())
        {
            *until = (now + LATE_EFFECT_MAX).max(*until);
        }
    }

    /// A fact of the time `at` was added to the journal.
    pub(super) fn fact(
        &mut self,
        now: Micros,
        at: DateTime<Utc>,
        fact: &Fact,
        silent: &BTreeSet<HostName>,
    ) -> Result<(), Violation> {
        let checked = self.check_fact(now, at, fact, silent);
        match self.provider {
            LockProvider::Embedded => checked,
            LockProvider::External => Ok(()),
        }
    }

    fn check_fact(
        &mut self,
        now: Micros,
        at: DateTime<Utc>,
        fact: &Fact,
        silent: &BTreeSet<HostName>,
    ) -> Result<(), Violation> {
        self.specification.fact(at, fact, silent)?;
        if let Some((intent, verdict)) = Intent::of_fact(fact) {
            self.expire(now, &intent);
            self.changes.entry(intent.clone()).or_default().push(Change { at: now, verdict });
            self.check_changes(&intent)?;
        }
        for open in self.open.values_mut().flat_map(BTreeMap::values_mut) {
            if let Some(verdict) = self.specification.verdict(&open.request)
                && !open.possible.contains(&verdict)
            {
                open.possible.push(verdict);
            }
        }
        Ok(())
    }

    /// Removes calls that can have no effect any more.
    fn expire(&mut self, now: Micros, intent: &Intent) {
        let Some(calls) = self.open.get_mut(intent) else { return };
        let is_over = |open: &OpenCall| open.until.is_some_and(|until| until < now);
        let expired: Vec<Micros> =
            calls.values().filter(|open| is_over(open)).map(|open| open.called).collect();
        calls.retain(|_, open| !is_over(open));
        for called in expired {
            self.match_change(intent, called, None);
        }
    }

    /// Matches a call with the earliest fact that it may have caused; returns whether there is one. The later a call
    /// was made, the fewer facts it may have caused, and the earlier a fact is, the fewer calls may have caused it; so
    /// this is never wrong.
    fn match_change(&mut self, intent: &Intent, called: Micros, verdict: Option<Verdict>) -> bool {
        let Some(changes) = self.changes.get_mut(intent) else { return false };
        let is_own =
            |change: &Change| change.at >= called && verdict.is_none_or(|verdict| change.verdict == verdict);
        let found = changes.iter().position(is_own);
        found.map(|index| changes.remove(index)).is_some()
    }

    /// Checks that there are enough calls for all facts that no answered call has caused.
    fn check_changes(&self, intent: &Intent) -> Result<(), Violation> {
        let called = || self.open.get(intent).into_iter().flat_map(BTreeMap::values).map(|open| open.called);
        for (earlier, change) in self.changes.get(intent).into_iter().flatten().enumerate() {
            if called().filter(|called| *called <= change.at).count() <= earlier {
                let Intent { group, id, kind } = intent;
                let text = format!("a change at {} ({kind:?} of {id} in {group}) without a call", change.at);
                return Err(Violation::new("semaphore", text));
            }
        }
        Ok(())
    }
}

impl Intent {
    fn of_request(request: &Request) -> Option<Self> {
        let (group, id, kind) = match &request.operation {
            Operation::Lock(LockOperation::Lock { group, id }) => (group, id, Kind::Lock),
            Operation::Lock(LockOperation::Unlock { group, id }) => (group, id, Kind::Unlock),
            Operation::Slot(
                SlotOperation::Hold { group, id, .. }
                | SlotOperation::Release { group, id, .. }
                | SlotOperation::Reclaim { group, id },
            ) => (group, id, Kind::Operator(request.actor.clone())),
            Operation::Run(_)
            | Operation::Pause(_)
            | Operation::Config(_)
            | Operation::Enrolment(_)
            | Operation::Reboot(_)
            | Operation::Node(_)
            | Operation::Desired(_)
            | Operation::Secret(_)
            | Operation::Unit(_) => return None,
        };
        Some(Self { group: group.clone(), id: id.as_str().to_owned(), kind })
    }

    /// The intent of a fact, with the answer to the call that caused it; none if clients do not request such facts.
    #[allow(clippy::wildcard_enum_match_arm, reason = "all others are no changes that clients request")]
    fn of_fact(fact: &Fact) -> Option<(Self, Verdict)> {
        let (group, id, kind, verdict) = match fact {
            Fact::Lock(LockFact::Granted { group, id, .. }) => (group, id, Kind::Lock, Verdict::Yes),
            Fact::Lock(LockFact::Awaited { group, id, .. }) => (group, id, Kind::Lock, Verdict::Full),
            Fact::Lock(LockFact::Released { group, id, .. } | LockFact::WaitEnded { group, id, .. }) => {
                (group, id, Kind::Unlock, Verdict::Yes)
            }
            Fact::Lock(
                LockFact::HoldPlaced { group, id, actor, .. }
                | LockFact::HolderReleased { group, id, actor, .. },
            ) => (group, id, Kind::Operator(actor.clone()), Verdict::Yes),
            _ => return None,
        };
        Some((Self { group: group.clone(), id: id.as_str().to_owned(), kind }, verdict))
    }
}

impl Verdict {
    /// What an answer means; none for those that no call about a slot gets.
    fn of(answer: &Answer) -> Option<Self> {
        match answer {
            Ok(Accepted::Done) => Some(Self::Yes),
            Err(Refusal::Lock(denied)) => Self::of_denied(denied.kind()),
            Err(Refusal::Slot(refusal)) => match refusal {
                SlotRefusal::LockDenied { denied } => Self::of_denied(denied.kind()),
                SlotRefusal::NoHolder { .. } => Some(Self::NoHolder),
                SlotRefusal::HolderAtWork { .. }
                | SlotRefusal::HolderRebooting { .. }
                | SlotRefusal::HolderUncertain { .. } => Some(Self::AtWork),
                SlotRefusal::ReclaimsNothing => Some(Self::ReclaimsNothing),
                SlotRefusal::InInventory { .. } => Some(Self::InInventory),
                SlotRefusal::NotLeft { .. } => Some(Self::NotLeft),
                SlotRefusal::HeldAlready { .. } => Some(Self::HeldAlready),
            },
            Ok(Accepted::Created | Accepted::Valid)
            | Err(
                Refusal::Run(_)
                | Refusal::Pause(_)
                | Refusal::Config(_)
                | Refusal::Enrolment(_)
                | Refusal::Reboot(_)
                | Refusal::Node(_)
                | Refusal::Desired(_)
                | Refusal::Secret(_)
                | Refusal::Unit(_),
            ) => None,
        }
    }

    fn of_denied(kind: DeniedKind) -> Option<Self> {
        match kind {
            DeniedKind::FailedLockSemaphoreFull => Some(Self::Full),
            DeniedKind::UnknownGroup => Some(Self::UnknownGroup),
            DeniedKind::OtherLockServer => None,
        }
    }
}
