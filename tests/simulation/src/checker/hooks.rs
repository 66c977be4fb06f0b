//! What providers of kind `hooks` are told: of each approval, in order, under UUIDs by which they know repetitions, and not without a cause.
//!
//! An `ON_ENROLLMENT_REQUEST` is told on a best-effort basis, beside whatever else is told of the host later. Nothing is counted of it.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::fact::{DesiredFact, EnrolmentFact, RunFact};
use os_upgrade_kernel::{ConfigProvider, Fact, State};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{ProviderName, Ticket};
use os_upgrade_shell::delivery::{HookQuestion, ProviderQuestion};

use super::desired::Writer;
use super::violation::Violation;
use crate::time::{Micros, SECOND, beginning};

/// A provider, and a host that it selects.
type Pair = (ProviderName, HostName);

/// An event of a pair with its cause, which is counted anew in each epoch.
type EventOfEpoch = (u64, Pair, HookEvent, u64);

/// How many answered calls each cause may lead to: its own, one that was under way when it arose, and those that a run waits for.
const CALLS_PER_CAUSE: u64 = 3;
/// An earlier leader may still poll for so long after its successor has begun, without knowing of that.
const OVERLAP: i64 = 10;

/// A leadership of a process.
#[derive(Debug, Clone, Copy)]
struct Leadership {
    number: u64,
    /// When it began, in seconds since 1970.
    began: i64,
}

/// The calls about a pair, and what may have led to them.
#[derive(Debug)]
struct Account {
    /// When the first one was made.
    since: Micros,
    answered: u64,
    causes: u64,
    /// The shortest time between two polls so far, in seconds.
    interval: u64,
}

#[derive(Debug, Default)]
pub(super) struct Hooks {
    /// The approvals that a provider is still to be told of, each with its cause.
    unjoined: BTreeMap<Pair, u64>,
    /// The causes of all approvals so far.
    joins: BTreeSet<(Pair, u64)>,
    /// What has reached each provider.
    arrived: BTreeSet<(Pair, HookEvent, u64)>,
    /// What is told under each UUID, and the UUID of each.
    by_uuid: BTreeMap<String, EventOfEpoch>,
    uuids: BTreeMap<EventOfEpoch, String>,
    /// The calls of each process that may be under way.
    open: BTreeMap<(Writer, Ticket), Pair>,
    /// Which leadership made each poll first.
    polls: BTreeMap<(Pair, u64), u64>,
    /// The last leadership of each process, and how many there were.
    leaderships: BTreeMap<Writer, Leadership>,
    leaderships_count: u64,
    accounts: BTreeMap<Pair, Account>,
    /// What may have led to calls about any pair.
    common_causes: u64,
}

impl Hooks {
    /// A process begins to lead.
    pub(super) fn led(&mut self, now: Micros, writer: Writer) {
        self.leaderships_count += 1;
        self.common_causes += 1;
        let leadership = Leadership { number: self.leaderships_count, began: unix(now) };
        self.leaderships.insert(writer, leadership);
        self.open.retain(|(of, _), _| *of != writer);
    }

    /// Of its calls, a process awaits the answers to these.
    pub(super) fn awaits(&mut self, writer: Writer, awaited: &[Ticket]) {
        self.open.retain(|(of, ticket), _| *of != writer || awaited.contains(ticket));
    }

    /// A process, which knows `state`, tells a provider of an event; `is_right`: its clock is.
    pub(super) fn called(
        &mut self,
        now: Micros,
        (writer, is_right): (Writer, bool),
        question: &ProviderQuestion,
        state: &State,
    ) -> Result<(), Violation> {
        let Some(hook) = &question.hook else { return Ok(()) };
        let pair = (question.provider.name.clone(), question.host.clone());
        self.check_uuid(&pair, hook, state.epoch())?;
        if hook.event == HookEvent::EnrollmentRequest {
            let takes_part = state.enrolled(&question.host).takes_part();
            return if takes_part { Err(asked(&pair, hook, "and it takes part")) } else { Ok(()) };
        }
        let mut others = self.open.iter().filter(|((of, _), _)| *of == writer);
        if others.any(|(_, other)| *other == pair) {
            return Err(asked(&pair, hook, "beside another call about it"));
        }
        self.open.insert((writer, question.ticket), pair.clone());
        check_cause(&pair, hook, state)?;
        let interval = polled_each(&question.provider, state, &question.host);
        let account = self.accounts.entry(pair.clone()).or_insert_with(|| Account {
            since: now,
            answered: 0,
            causes: 0,
            interval,
        });
        account.interval = account.interval.min(interval);
        if hook.event == HookEvent::DevicePoll && is_right {
            self.check_poll(writer, &pair, hook)?;
        }
        Ok(())
    }

    /// The same event has the same UUID, and no other event has it.
    fn check_uuid(&mut self, pair: &Pair, hook: &HookQuestion, epoch: u64) -> Result<(), Violation> {
        let event: EventOfEpoch = (epoch, pair.clone(), hook.event, hook.cause);
        let uuid = hook.uuid.to_string();
        let other_uuid = self.uuids.insert(event.clone(), uuid.clone()).filter(|other| *other != uuid);
        let other_event = self.by_uuid.insert(uuid.clone(), event.clone()).filter(|other| *other != event);
        if other_uuid.is_none() && other_event.is_none() {
            return Ok(());
        }
        let text = format!("{event:?} is told as {uuid}, after {other_uuid:?} and {other_event:?}");
        Err(Violation::new("told", text))
    }

    /// A poll that was due before a leadership began is not repeated by it.
    fn check_poll(&mut self, writer: Writer, pair: &Pair, hook: &HookQuestion) -> Result<(), Violation> {
        let Some(leadership) = self.leaderships.get(&writer) else { return Ok(()) };
        let first = *self.polls.entry((pair.clone(), hook.cause)).or_insert(leadership.number);
        let was_due_before =
            i64::try_from(hook.cause).is_ok_and(|due| due < leadership.began.saturating_sub(OVERLAP));
        if first != leadership.number && was_due_before {
            return Err(asked(pair, hook, "as a leader before this one has done"));
        }
        Ok(())
    }

    /// A call reaches its provider.
    pub(super) fn arrived(&mut self, question: &ProviderQuestion) {
        let Some(hook) = &question.hook else { return };
        let pair = (question.provider.name.clone(), question.host.clone());
        if hook.event == HookEvent::FleetJoin && self.unjoined.get(&pair) == Some(&hook.cause) {
            self.unjoined.remove(&pair);
        }
        self.arrived.insert((pair, hook.event, hook.cause));
    }

    /// A process learns what a provider has answered.
    pub(super) fn answered(
        &mut self,
        now: Micros,
        writer: Writer,
        ticket: Ticket,
        is_failure: bool,
    ) -> Result<(), Violation> {
        let Some(pair) = self.open.remove(&(writer, ticket)) else { return Ok(()) };
        let Some(account) = self.accounts.get_mut(&pair).filter(|_| !is_failure) else { return Ok(()) };
        account.answered += 1;
        let polls = (now - account.since) / SECOND / account.interval.max(1);
        // The first poll, and one more whenever the interval is another one, are earlier than that.
        let most = 2 + polls + CALLS_PER_CAUSE * (1 + account.causes + self.common_causes);
        if account.answered > most {
            return Err(Violation::new("asked", format!("{pair:?} too often: {account:?}")));
        }
        Ok(())
    }

    /// A fact was added to the journal, which folds to `state`.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, fact: &Fact, state: &State) -> Result<(), Violation> {
        match fact {
            Fact::Enrolment(EnrolmentFact::KeyPinned { host, .. }) => {
                self.common_causes += 1;
                self.approved(host, state)?;
            }
            Fact::Enrolment(
                EnrolmentFact::HostWithdrawn { host, .. } | EnrolmentFact::HostRemoved { host, .. },
            ) => {
                self.common_causes += 1;
                self.unjoined.retain(|(_, other), _| other != host);
            }
            Fact::Config(_) => {
                self.common_causes += 1;
                self.configured(state);
            }
            Fact::Run(RunFact::Started { .. })
            | Fact::Restoration(_)
            | Fact::Desired(DesiredFact::PollRequested { .. }) => self.common_causes += 1,
            Fact::Desired(
                DesiredFact::CallbackReceived { provider, hosts }
                | DesiredFact::HookMetadataChanged { provider, hosts },
            ) => {
                for host in hosts {
                    self.caused(provider, host);
                }
            }
            Fact::Desired(DesiredFact::HookAnswered { provider, host, event, cause, .. }) => {
                // It may want to be asked at another interval.
                self.caused(provider, host);
                let told = ((provider.clone(), host.clone()), *event, *cause);
                if *event != HookEvent::DevicePoll && !self.arrived.contains(&told) {
                    let text = format!("{told:?} counts as told, and has not reached the provider");
                    return Err(Violation::new("told", text));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A key of `host` was approved: each provider that selects it is to be told, once more if it was before.
    fn approved(&mut self, host: &HostName, state: &State) -> Result<(), Violation> {
        for provider in state.config.iter().flat_map(|config| config.hook_providers()) {
            if !provider.selects(host) || !provider.hears(HookEvent::FleetJoin) {
                continue;
            }
            let pair = (provider.name.clone(), host.clone());
            let device = state.hook_device(&provider.name, host);
            let Some(cause) = device.and_then(|device| device.pending.get(&HookEvent::FleetJoin)) else {
                let text = format!("{} is not to be told that {host} was approved", provider.name);
                return Err(Violation::new("told", text));
            };
            if !self.joins.insert((pair.clone(), *cause)) {
                let text = format!("{pair:?} joins again by the cause {cause}");
                return Err(Violation::new("told", text));
            }
            self.unjoined.insert(pair, *cause);
        }
        Ok(())
    }

    /// The configuration is another one: providers are no longer told of hosts that they do not select.
    fn configured(&mut self, state: &State) {
        let is_told = |(name, host): &Pair| {
            let provider = state.hook_provider(name);
            provider.is_some_and(|it| it.selects(host) && it.hears(HookEvent::FleetJoin))
        };
        self.unjoined.retain(|pair, _| is_told(pair));
    }

    fn caused(&mut self, provider: &ProviderName, host: &HostName) {
        if let Some(account) = self.accounts.get_mut(&(provider.clone(), host.clone())) {
            account.causes += 1;
        }
    }

    /// A provider that was not told that a host has joined it.
    pub(super) fn untold_join(&self) -> Option<String> {
        let ((provider, host), cause) = self.unjoined.first_key_value()?;
        Some(format!("{provider} was never told that {host} has joined it, by the cause {cause}"))
    }

    /// The bus was put back to an earlier moment. Causes from then on are counted again, perhaps in the same epoch.
    pub(super) fn rolled_back(&mut self) {
        self.unjoined.clear();
        self.joins.clear();
        self.by_uuid.clear();
        self.uuids.clear();
        self.polls.clear();
        self.accounts.clear();
    }
}

/// The process that tells of an event knows why: it is the first that is still to be told. Else it is a poll, or the spec of which the provider
/// was told last.
fn check_cause(pair: &Pair, hook: &HookQuestion, state: &State) -> Result<(), Violation> {
    let (provider, host) = pair;
    let Some(device) = state.hook_device(provider, host) else {
        return Err(asked(pair, hook, "which is no device of it"));
    };
    let is_right = match device.pending.iter().next() {
        Some((event, cause)) => (hook.event, hook.cause) == (*event, *cause),
        None => match hook.event {
            HookEvent::DevicePoll => true,
            HookEvent::DeviceSpecUpdate => hook.cause == device.spec,
            HookEvent::EnrollmentRequest | HookEvent::FleetJoin | HookEvent::DeviceMetadataUpdate => false,
        },
    };
    if is_right { Ok(()) } else { Err(asked(pair, hook, &format!("and is to be told {device:?}"))) }
}

/// How often a provider wants to be asked about a host, in seconds.
fn polled_each(provider: &ConfigProvider, state: &State, host: &HostName) -> u64 {
    let device = state.hook_device(&provider.name, host);
    device.and_then(|device| device.poll_interval).unwrap_or(provider.poll_interval.as_secs())
}

fn asked(pair: &Pair, hook: &HookQuestion, why: &str) -> Violation {
    let HookQuestion { event, cause, .. } = hook;
    Violation::new("asked", format!("{} is told of {event:?} of {}, by {cause}, {why}", pair.0, pair.1))
}

/// The right time in seconds since 1970.
fn unix(now: Micros) -> i64 {
    beginning().timestamp() + i64::try_from(now / SECOND).unwrap_or(i64::MAX / 2)
}
