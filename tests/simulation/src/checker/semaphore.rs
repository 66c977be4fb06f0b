//! The semaphores, as their clients see them: whether the history of all calls is linearisable.
//!
//! It is when the calls can be put into one order, each at a moment between its question and its answer, in which a
//! sequential counting semaphore with owners ([`specification`]) would have given just these answers. A call without an
//! answer may have had its effect at any moment since, or never. To find such an order is hard; to check one is not, and
//! the journal has one: every change of a semaphore is a fact of it, and whoever leads next goes on from these facts in
//! their order. So it is checked that
//!
//! 1. each fact is what the sequential semaphore would do, in the order of the journal: no slot beyond those there are;
//! 2. each fact is the work of one call of just this client, which had been asked and not been answered when the fact
//!    was stored, and of which the answer, if there ever is one, says so; and no call is told that nothing was changed,
//!    or the contrary, that has a fact. Calls that look the same can stand for each other, so they are counted: at no
//!    time are there more facts than calls that may have made them;
//! 3. each answer of a call that has made no fact is what the semaphore would say, without being changed, at some moment
//!    between question and answer. Such calls do not touch each other, so each can be placed for itself.
//!
//! Facts and these moments together are the order that was looked for: what passes is linearisable. Histories that are
//! so in another order than the journal's only are called wrong, and are: the next leader would know another state than
//! the one its clients have been told of.

mod specification;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::semaphore::DeniedKind;
use os_upgrade_kernel::{
    Accepted, Answer, Fact, LockOperation, LockProvider, Operation, Refusal, Request, SlotOperation,
    SlotRefusal,
};
use os_upgrade_protocol::{GroupName, HostName};
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::node::CallId;
use os_upgrade_shell::not_done::NotDone;

use self::specification::{Specification, Told};
use super::calls::MAY_YET_COME;
use super::violation::Violation;
use crate::time::Micros;

/// What a call wants, and a fact does; calls with the same can stand for each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Matter {
    group: GroupName,
    id: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Lock,
    Unlock,
    /// Each request of an operator has an actor of its own.
    Operator(String),
}

/// A call that may still have an effect.
#[derive(Debug)]
struct Open {
    request: Request,
    asked: Micros,
    /// Until when it may have one, if its asker has been told that nobody knows.
    until: Option<Micros>,
    /// What it could have been told since without changing anything.
    possible: Vec<Told>,
}

/// A fact of which it is not yet clear which call has made it.
#[derive(Debug)]
struct Made {
    at: Micros,
    told: Told,
}

/// Calls under way, and what the journal says of the semaphores.
#[derive(Debug)]
pub(super) struct Semaphores {
    provider: LockProvider,
    specification: Specification,
    open: BTreeMap<Matter, BTreeMap<CallId, Open>>,
    made: BTreeMap<Matter, Vec<Made>>,
    answers: u64,
}

impl Semaphores {
    pub(super) fn new(provider: LockProvider, hosts: impl IntoIterator<Item = HostName>) -> Self {
        let specification = Specification::new(hosts);
        Self { provider, specification, open: BTreeMap::new(), made: BTreeMap::new(), answers: 0 }
    }

    /// How many answers about slots were found right.
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// Whether the journal says that `host` is at work on its upgrade.
    pub(super) fn is_under_way(&self, host: &HostName) -> bool {
        self.specification.is_under_way(host)
    }

    /// Somebody asks.
    pub(super) fn asked(&mut self, now: Micros, call: CallId, request: &Request) {
        let Some(matter) = self.matter(request) else { return };
        let possible = self.specification.says(request).into_iter().collect();
        let open = Open { request: request.clone(), asked: now, until: None, possible };
        self.open.entry(matter).or_default().insert(call, open);
    }

    /// They are answered.
    pub(super) fn answered(
        &mut self,
        now: Micros,
        call: CallId,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        let Some(matter) = self.matter(request) else { return Ok(()) };
        self.check_answer(now, call, &matter, request, outcome)?;
        self.answers += 1;
        Ok(())
    }

    /// What is asked of the embedded semaphores, if it is.
    fn matter(&self, request: &Request) -> Option<Matter> {
        Matter::of_request(request).filter(|_| self.provider == LockProvider::Embedded)
    }

    fn check_answer(
        &mut self,
        now: Micros,
        call: CallId,
        matter: &Matter,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        let calls = self.open.entry(matter.clone()).or_default();
        let answer = match outcome {
            Ok(answered) => &answered.answer,
            Err(NotDone::Unchanged { .. }) => {
                calls.remove(&call);
                return self.check_made(matter);
            }
            Err(NotDone::Unknown { .. }) => {
                if let Some(open) = calls.get_mut(&call) {
                    open.until = Some(now + MAY_YET_COME);
                }
                return Ok(());
            }
        };
        let Some(open) = calls.remove(&call) else { return Ok(()) };
        let Some(told) = Told::of(answer) else {
            return Err(Violation::new("semaphore", format!("{request:?} is answered {answer:?}")));
        };
        if !self.take_made(matter, open.asked, Some(told)) && !open.possible.contains(&told) {
            let asked = open.asked;
            let text = format!("{request:?} of {asked} is answered {answer:?}, which was never so");
            return Err(Violation::new("semaphore", text));
        }
        self.check_made(matter)
    }

    /// A process that stood still goes on: what it has kept may leave it only now.
    pub(super) fn goes_on(&mut self, now: Micros) {
        for until in
            self.open.values_mut().flat_map(BTreeMap::values_mut).filter_map(|open| open.until.as_mut())
        {
            *until = (now + MAY_YET_COME).max(*until);
        }
    }

    /// A fact of that time stands in the journal.
    pub(super) fn fact(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        let checked = self.check_fact(now, at, fact);
        match self.provider {
            LockProvider::Embedded => checked,
            LockProvider::External => Ok(()),
        }
    }

    fn check_fact(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        self.specification.fact(at, fact)?;
        if let Some((matter, told)) = Matter::of_fact(fact) {
            self.expire(now, &matter);
            self.made.entry(matter.clone()).or_default().push(Made { at: now, told });
            self.check_made(&matter)?;
        }
        for open in self.open.values_mut().flat_map(BTreeMap::values_mut) {
            if let Some(told) = self.specification.says(&open.request)
                && !open.possible.contains(&told)
            {
                open.possible.push(told);
            }
        }
        Ok(())
    }

    /// Calls that may have no effect any more are no candidates.
    fn expire(&mut self, now: Micros, matter: &Matter) {
        let Some(calls) = self.open.get_mut(matter) else { return };
        let gone = |open: &Open| open.until.is_some_and(|until| until < now);
        let expired: Vec<Micros> = calls.values().filter(|open| gone(open)).map(|open| open.asked).collect();
        calls.retain(|_, open| !gone(open));
        for asked in expired {
            self.take_made(matter, asked, None);
        }
    }

    /// The earliest fact that a call asked at that time may have made is its work. The later a call was asked, the fewer
    /// facts may be its own, and the earlier a fact is, the fewer calls may have made it; so this is never a mistake.
    fn take_made(&mut self, matter: &Matter, asked: Micros, told: Option<Told>) -> bool {
        let Some(made) = self.made.get_mut(matter) else { return false };
        let its_own = |made: &Made| made.at >= asked && told.is_none_or(|told| made.told == told);
        let found = made.iter().position(its_own);
        found.map(|index| made.remove(index)).is_some()
    }

    /// Whether there are calls enough for all facts that no answered call has made.
    fn check_made(&self, matter: &Matter) -> Result<(), Violation> {
        let asked = || self.open.get(matter).into_iter().flat_map(BTreeMap::values).map(|open| open.asked);
        for (earlier, made) in self.made.get(matter).into_iter().flatten().enumerate() {
            if asked().filter(|asked| *asked <= made.at).count() <= earlier {
                let Matter { group, id, kind } = matter;
                let text =
                    format!("a change at {} ({kind:?} of {id} in {group}) that nobody asked for", made.at);
                return Err(Violation::new("semaphore", text));
            }
        }
        Ok(())
    }
}

impl Matter {
    fn of_request(request: &Request) -> Option<Self> {
        let (group, id, kind) = match &request.operation {
            Operation::Lock(LockOperation::Lock { group, id }) => (group, id, Kind::Lock),
            Operation::Lock(LockOperation::Unlock { group, id }) => (group, id, Kind::Unlock),
            Operation::Slot(
                SlotOperation::Hold { group, id, .. }
                | SlotOperation::Release { group, id, .. }
                | SlotOperation::Reclaim { group, id },
            ) => (group, id, Kind::Operator(request.actor.clone())),
            Operation::Run(_) | Operation::Config(_) | Operation::Enrolment(_) | Operation::Secret(_) => {
                return None;
            }
        };
        Some(Self { group: group.clone(), id: id.as_str().to_owned(), kind })
    }

    /// With what whoever made it is told.
    #[allow(clippy::wildcard_enum_match_arm, reason = "all others are no changes that clients ask for")]
    fn of_fact(fact: &Fact) -> Option<(Self, Told)> {
        let (group, id, kind, told) = match fact {
            Fact::LockGranted { group, id, .. } => (group, id, Kind::Lock, Told::Yes),
            Fact::LockAwaited { group, id, .. } => (group, id, Kind::Lock, Told::Full),
            Fact::LockReleased { group, id, .. } => (group, id, Kind::Unlock, Told::Yes),
            Fact::HoldPlaced { group, id, actor, .. } | Fact::HolderReleased { group, id, actor, .. } => {
                (group, id, Kind::Operator(actor.clone()), Told::Yes)
            }
            _ => return None,
        };
        Some((Self { group: group.clone(), id: id.as_str().to_owned(), kind }, told))
    }
}

impl Told {
    /// What an answer says; none for those that no call about a slot is given.
    fn of(answer: &Answer) -> Option<Self> {
        match answer {
            Ok(Accepted::Done) => Some(Self::Yes),
            Err(Refusal::Lock(denied)) => Self::of_denied(denied.kind()),
            Err(Refusal::Slot(refusal)) => match refusal {
                SlotRefusal::LockDenied { denied } => Self::of_denied(denied.kind()),
                SlotRefusal::NoHolder { .. } => Some(Self::NoHolder),
                SlotRefusal::HolderAtWork { .. } | SlotRefusal::HolderUncertain { .. } => Some(Self::AtWork),
                SlotRefusal::ReclaimsNothing => Some(Self::ReclaimsNothing),
                SlotRefusal::InInventory { .. } => Some(Self::InInventory),
                SlotRefusal::NotLeft { .. } => Some(Self::NotLeft),
                SlotRefusal::HeldAlready { .. } => Some(Self::HeldAlready),
            },
            Ok(Accepted::Created | Accepted::Valid)
            | Err(Refusal::Run(_) | Refusal::Config(_) | Refusal::Enrolment(_) | Refusal::Secret(_)) => None,
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
