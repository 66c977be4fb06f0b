//! What providers of kind `hooks` are told: of each approval, in order, under UUIDs by which they know repetitions, and not without a cause.
//!
//! An `ON_ENROLLMENT_REQUEST` is told on a best-effort basis, beside whatever else is told of the host later. Nothing is counted of it.

mod repeats;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{DesiredFact, EnrolmentFact};
use os_upgrade_kernel::{ConfigProvider, Fact, State, View};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::Ticket;
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_shell::delivery::{HookQuestion, ProviderQuestion};

use self::repeats::{EventOfEpoch, Moment, Pair, Repeats, poll_due};
use super::desired::Writer;
use super::violation::Violation;
use crate::time::{Micros, SECOND, beginning};

/// An earlier leader may still poll for so long after its successor has begun, without knowing of that.
const OVERLAP: i64 = 10;

/// A process that makes calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookCaller {
    pub(crate) writer: Writer,
    /// The time by its clock.
    pub(crate) wall: DateTime<Utc>,
    /// Whether that is the right time.
    pub(crate) is_right: bool,
    /// The sequence up to which it has the journal.
    pub(crate) position: u64,
}

/// A leadership of a process.
#[derive(Debug, Clone, Copy)]
struct Leadership {
    /// When it began, in seconds since 1970.
    began: i64,
    start: Moment,
}

/// A call that may be under way.
#[derive(Debug)]
struct OpenCall {
    event: EventOfEpoch,
    /// When it was made; absent if its process was not seen to begin to lead.
    made: Option<Moment>,
}

#[derive(Debug, Default)]
pub(crate) struct Hooks {
    /// The approvals that a provider is still to be told of, each with its cause.
    unjoined: BTreeMap<Pair, u64>,
    /// The causes of all approvals so far.
    joins: BTreeSet<(Pair, u64)>,
    /// What has reached each provider.
    arrived: BTreeSet<(Pair, HookEvent, u64)>,
    /// The digests of the metadata that have reached each provider.
    arrived_metadata: BTreeSet<(Pair, u64)>,
    /// What is told under each UUID, and the UUID of each.
    by_uuid: BTreeMap<String, EventOfEpoch>,
    uuids: BTreeMap<EventOfEpoch, String>,
    /// The calls of each process that may be under way.
    open: BTreeMap<(Writer, Ticket), OpenCall>,
    /// Which leadership made each poll first.
    polls: BTreeMap<(Pair, u64), u64>,
    /// The last leadership of each process, and how many there were.
    leaderships: BTreeMap<Writer, Leadership>,
    leaderships_count: u64,
    /// How often clocks were changed.
    clock_changes: u64,
    repeats: Repeats,
}

impl Hooks {
    /// A process begins to lead, and has the journal up to `position`.
    pub(super) fn led(&mut self, now: Micros, writer: Writer, position: u64) {
        self.leaderships_count += 1;
        let start =
            Moment { leadership: self.leaderships_count, position, clock_changes: self.clock_changes };
        self.leaderships.insert(writer, Leadership { began: unix(now), start });
        self.open.retain(|(of, _), _| *of != writer);
    }

    /// The clock of some process is changed.
    pub(super) fn clock_changed(&mut self) {
        self.clock_changes += 1;
    }

    /// Of its calls, a process awaits the answers to these.
    pub(super) fn awaits(&mut self, writer: Writer, awaited: &[Ticket]) {
        self.open.retain(|(of, ticket), _| *of != writer || awaited.contains(ticket));
    }

    /// A process, which knows `state`, tells a provider of an event.
    pub(super) fn called(
        &mut self,
        caller: HookCaller,
        question: &ProviderQuestion,
        state: &State,
    ) -> Result<(), Violation> {
        let Some(hook) = &question.hook else { return Ok(()) };
        let writer = caller.writer;
        let pair = (question.provider.name.clone(), question.host.clone());
        self.check_uuid(&pair, hook, state.epoch())?;
        if hook.event == HookEvent::EnrollmentRequest {
            let takes_part = state.enrolled(&question.host).takes_part();
            return if takes_part { Err(asked(&pair, hook, "and it takes part")) } else { Ok(()) };
        }
        let mut others = self.open.iter().filter(|((of, _), _)| *of == writer);
        if others.any(|(_, OpenCall { event: (_, other, ..), .. })| *other == pair) {
            return Err(asked(&pair, hook, "beside another call about it"));
        }
        let start = self.leaderships.get(&writer).map(|leadership| leadership.start);
        let now = start.map(|start| Moment {
            position: caller.position,
            clock_changes: self.clock_changes,
            ..start
        });
        let event: EventOfEpoch = (state.epoch(), pair.clone(), hook.event, hook.cause);
        self.open.insert((writer, question.ticket), OpenCall { event: event.clone(), made: now });
        check_cause(&pair, hook, state)?;
        if hook.event == HookEvent::DevicePoll {
            check_due(&pair, hook, polled_each(&question.provider, state, &question.host), caller.wall)?;
        }
        let Some((start, now)) = start.zip(now) else { return Ok(()) };
        if !self.repeats.may_ask(&event, now) {
            return Err(asked(&pair, hook, "as this leader has done, and was answered"));
        }
        let is_required = question.provider.required;
        if is_answered_spec(&pair, hook, state)
            && !self.repeats.may_ask_answered_spec(start, &event, is_required, now)
        {
            return Err(asked(&pair, hook, "which was answered, as this leader knows"));
        }
        if hook.event == HookEvent::DevicePoll && caller.is_right {
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
        let number = leadership.start.leadership;
        let first = *self.polls.entry((pair.clone(), hook.cause)).or_insert(number);
        let was_due_before =
            i64::try_from(hook.cause).is_ok_and(|due| due < leadership.began.saturating_sub(OVERLAP));
        if first != number && was_due_before {
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
        self.arrived_metadata.insert((pair.clone(), hook.digest));
        self.arrived.insert((pair, hook.event, hook.cause));
    }

    /// A process learns what a provider has answered.
    pub(super) fn answered(&mut self, writer: Writer, ticket: Ticket, is_failure: bool) {
        let Some(OpenCall { event, made }) = self.open.remove(&(writer, ticket)) else { return };
        if !is_failure && let Some(made) = made {
            self.repeats.answered(event, made);
        }
    }

    /// A fact was added to the journal in the record with this sequence, and folds to `state`.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, sequence: u64, fact: &Fact, state: &State) -> Result<(), Violation> {
        self.repeats.fact(sequence, fact);
        match fact {
            Fact::Enrolment(EnrolmentFact::KeyPinned { host, .. }) => self.approved(host, state)?,
            Fact::Enrolment(
                EnrolmentFact::HostWithdrawn { host, .. } | EnrolmentFact::HostRemoved { host, .. },
            ) => self.unjoined.retain(|(_, other), _| other != host),
            Fact::Config(_) => self.configured(state),
            Fact::Desired(DesiredFact::HookAnswered { provider, host, event, cause, metadata, .. }) => {
                let pair = (provider.clone(), host.clone());
                let told = (pair.clone(), *event, *cause);
                let has_arrived = *event == HookEvent::DevicePoll || self.arrived.contains(&told);
                if !has_arrived || !self.arrived_metadata.contains(&(pair, *metadata)) {
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

    /// A provider that was not told that a host has joined it.
    pub(super) fn untold_join(&self) -> Option<String> {
        let ((provider, host), cause) = self.unjoined.first_key_value()?;
        Some(format!("{provider} was never told that {host} has joined it, by the cause {cause}"))
    }

    /// What a provider was not told of a host by `now`: an event, or the metadata that the host has. What counts as told has reached it.
    pub(super) fn untold(state: &State, view: &View, now: DateTime<Utc>) -> Option<String> {
        let providers = state.config.iter().flat_map(|config| config.hook_providers());
        let mut pairs =
            providers.flat_map(|provider| state.hosts_of(view, provider).map(move |host| (provider, host)));
        pairs.find_map(|(provider, host)| {
            let name = &provider.name;
            let Some(device) = state.hook_device(name, host) else {
                return Some(format!("{host} has not joined {name}"));
            };
            if let Some(event) = device.pending.keys().next() {
                return Some(format!("{name} was never told of {event:?} of {host}"));
            }
            // What was told by a clock that was ahead counts until that time has come.
            let told = device.told.filter(|told| told.since <= now);
            let has_other_metadata = told.is_some_and(|told| told.digest != view.metadata_digest(host));
            let hears = provider.hears(HookEvent::DeviceMetadataUpdate);
            (hears && has_other_metadata).then(|| format!("{name} was never told the metadata of {host}"))
        })
    }

    /// The bus was put back to an earlier moment. Causes from then on are counted again, perhaps in the same epoch.
    pub(super) fn rolled_back(&mut self) {
        self.unjoined.clear();
        self.joins.clear();
        self.by_uuid.clear();
        self.uuids.clear();
        self.polls.clear();
        self.repeats = Repeats::default();
        // Sequences are counted again, too.
        self.leaderships.clear();
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

/// A poll is that of the interval in force, and of now, by the clock of its process.
fn check_due(
    pair: &Pair,
    hook: &HookQuestion,
    interval_secs: u64,
    wall: DateTime<Utc>,
) -> Result<(), Violation> {
    let due = poll_due(pair, interval_secs, wall);
    if due == Some(hook.cause) {
        return Ok(());
    }
    Err(asked(pair, hook, &format!("where the poll of each {interval_secs} s at {wall} is {due:?}")))
}

/// Whether a provider is told of the last spec of a host though it has answered to it, as the process knows: nothing is to be told.
fn is_answered_spec((provider, host): &Pair, hook: &HookQuestion, state: &State) -> bool {
    let device = state.hook_device(provider, host);
    hook.event == HookEvent::DeviceSpecUpdate && device.is_some_and(|device| device.pending.is_empty())
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

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::fact::ConfigFact;
    use os_upgrade_kernel::{Configures, SeenHost, Settings};
    use os_upgrade_protocol::{ApplicationName, HostKey};
    use os_upgrade_provider_rules::ProviderName;

    use super::*;

    #[test]
    fn untold_events_and_metadata_are_found() {
        let now = beginning();
        let key = HostKey::new([1; 32]);
        let host = HostName::new("h1").unwrap();
        let provider = serde_json::json!({ "name": "app", "kind": "hooks", "url": "https://hooks.example/" });
        let config = serde_json::json!({ "config-providers": [provider] });
        let config = Some(serde_json::from_value(config).unwrap());
        let settings = Settings { auto_approve: true, ..Settings::default() };
        let facts: [Fact; 3] = [
            ConfigFact::SettingsAdopted { settings }.into(),
            ConfigFact::Replaced { config, actor: "eve".to_owned(), difference: Vec::new() }.into(),
            EnrolmentFact::KeyPinned { host: host.clone(), key, actor: None }.into(),
        ];
        let mut state = State::default();
        for fact in facts {
            state.apply(now, &fact).unwrap();
        }
        let application = ApplicationName::new("os-upgrade-test").unwrap();
        let seen = SeenHost { configures: Some(Configures { application, key }), ..SeenHost::default() };
        let mut view = View { hosts: [(host.clone(), seen)].into_iter().collect(), ..View::default() };
        let untold = |state: &State, view: &View| Hooks::untold(state, view, now).unwrap_or_default();
        assert_eq!(untold(&state, &view), "app was never told of FleetJoin of h1");
        let answered = DesiredFact::HookAnswered {
            provider: ProviderName::new("app").unwrap(),
            host: host.clone(),
            event: HookEvent::FleetJoin,
            cause: 1,
            metadata: view.metadata_digest(&host),
            poll_interval: None,
        };
        state.apply(now, &answered.into()).unwrap();
        assert_eq!(untold(&state, &view), "");
        view.hosts.get_mut(&host).unwrap().metadata_digest = 7;
        assert_eq!(untold(&state, &view), "app was never told the metadata of h1");
    }
}
