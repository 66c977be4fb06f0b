//! What a leader may ask of a provider again: each bound is a function of its own.
//!
//! A leader that has an answer asks the same only if something has happened since: its pair was forgotten, what it was to have was lost, or
//! somebody wants it to be asked. All of that follows from facts, so a repetition needs one that was committed by the leader between its
//! two calls. The facts by which something new is to be told are none of these: they lead to an event of their own.
//!
//! Another leader may ask the same once more, as it does not know what the one before was told, until that is in the journal. So
//! everything is counted for each leadership.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::Fact;
use os_upgrade_kernel::fact::{DesiredFact, EnrolmentFact, RunFact, SecretFact};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{Phase, ProviderName, next_due};

/// By so small a part of the interval before it is due, a poll counts as that poll.
const EARLY_PARTS: u32 = 16;

/// A provider, and a host that it selects.
pub(super) type Pair = (ProviderName, HostName);

/// An event of a pair with its cause, which is counted anew in each epoch.
pub(super) type EventOfEpoch = (u64, Pair, HookEvent, u64);

/// A moment of a leadership.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The number of the leadership.
    pub(super) leadership: u64,
    /// The sequence up to which its process had the journal.
    pub(super) position: u64,
    /// How often clocks had been changed.
    pub(super) clock_changes: u64,
}

/// What has been answered, and what has happened since.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// The sequences of the facts by which every pair may be asked again.
    of_all: BTreeSet<u64>,
    /// Those by which all pairs of a provider may be.
    of_provider: BTreeMap<ProviderName, BTreeSet<u64>>,
    /// Those by which all pairs of a host may be.
    of_host: BTreeMap<HostName, BTreeSet<u64>>,
    /// Those by which one pair may be.
    of_pair: BTreeMap<Pair, BTreeSet<u64>>,
    /// The interval that was journaled last for each pair, in seconds, unless it may have been forgotten since.
    intervals: BTreeMap<Pair, u64>,
    /// When each leadership last made a call about each event that was answered.
    answered: BTreeMap<(EventOfEpoch, u64), Moment>,
}

impl Repeats {
    /// A fact was added to the journal in the record with this sequence. Pairs that it is about may be asked the same again: they may be forgotten,
    /// or lose what the host was to have; a provider is polled at another interval; somebody wants it to be asked, or a run does; or the pauses
    /// after failures end.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other facts let nothing be asked again")]
    pub(super) fn fact(&mut self, sequence: u64, fact: &Fact) {
        match fact {
            Fact::Config(_) | Fact::Restoration(_) => {
                self.of_all.insert(sequence);
                // Devices that join anew have no interval.
                self.intervals.clear();
            }
            Fact::Secret(SecretFact::Stored { .. }) => {
                self.of_all.insert(sequence);
            }
            Fact::Enrolment(fact) => {
                for host in hosts_of(fact) {
                    self.of_host.entry(host.clone()).or_default().insert(sequence);
                    self.intervals.retain(|(_, of), _| of != host);
                }
            }
            Fact::Run(RunFact::Started { hosts, .. }) => {
                for entry in hosts {
                    self.of_host.entry(entry.host.clone()).or_default().insert(sequence);
                }
            }
            Fact::Desired(DesiredFact::PollRequested { provider, host: Some(host), .. }) => {
                self.of_pair.entry((provider.clone(), host.clone())).or_default().insert(sequence);
            }
            Fact::Desired(DesiredFact::PollRequested { provider, host: None, .. }) => {
                self.of_provider.entry(provider.clone()).or_default().insert(sequence);
            }
            Fact::Desired(DesiredFact::HookAnswered { provider, host, poll_interval, .. }) => {
                let Some(interval) = *poll_interval else { return };
                let pair = (provider.clone(), host.clone());
                if self.intervals.insert(pair.clone(), interval) != Some(interval) {
                    self.of_pair.entry(pair).or_default().insert(sequence);
                }
            }
            _ => {}
        }
    }

    /// A call about `event` that was made at that moment is answered.
    pub(super) fn answered(&mut self, event: EventOfEpoch, made: Moment) {
        self.answered.insert((event, made.leadership), made);
    }

    /// Whether a leader may ask about `event` at the moment `now`: it has had no answer to that, or there is a reason to repeat it. A poll is
    /// also repeated by a leader whose clock was changed: when the next one is due was computed by another time.
    pub(super) fn may_ask(&self, event: &EventOfEpoch, now: Moment) -> bool {
        let Some(before) = self.answered.get(&(event.clone(), now.leadership)) else { return true };
        let (_, pair, kind, _) = event;
        let is_poll = *kind == HookEvent::DevicePoll;
        self.has_reason_since(*before, pair, now) || (is_poll && before.clock_changes != now.clock_changes)
    }

    /// Whether a leader that has led since `began` may ask at the moment `now` about `event`, a spec that, as it knows, was answered. It polls
    /// instead, unless the host has lost what the provider had given, an operator wants it, or a run waits for a required provider: since the
    /// answer, or since it leads if an earlier leader had that.
    pub(super) fn may_ask_answered_spec(
        &self,
        began: Moment,
        event: &EventOfEpoch,
        is_required: bool,
        now: Moment,
    ) -> bool {
        let answered = self.answered.get(&(event.clone(), now.leadership)).copied();
        let (_, pair, ..) = event;
        is_required || self.has_reason_since(answered.unwrap_or(began), pair, now)
    }

    /// Whether the process has committed a fact since `before` by which it may ask about the pair again.
    fn has_reason_since(&self, before: Moment, pair: &Pair, now: Moment) -> bool {
        let (provider, host) = pair;
        let keyed = [
            self.of_provider.get(provider),
            self.of_host.get(host),
            self.of_pair.get(pair),
            Some(&self.of_all),
        ];
        let last_of = |reasons: &BTreeSet<u64>| reasons.range(..=now.position).next_back().copied();
        let last = keyed.into_iter().flatten().filter_map(last_of).max();
        last.is_some_and(|last| last > before.position)
    }
}

/// The hosts that a fact is about.
fn hosts_of(fact: &EnrolmentFact) -> &[HostName] {
    match fact {
        EnrolmentFact::HostsApproved { hosts, .. } => hosts,
        EnrolmentFact::KeyPinned { host, .. }
        | EnrolmentFact::HostWithdrawn { host, .. }
        | EnrolmentFact::HostRemoved { host, .. }
        | EnrolmentFact::HostPurged { host }
        | EnrolmentFact::HostDeferred { host, .. }
        | EnrolmentFact::DeferralEnded { host, .. } => std::slice::from_ref(host),
    }
}

/// When the poll of a pair that is made at `wall`, by the clock of its process, was due, in seconds since 1970. The pair is polled each
/// `interval_secs`. There is one poll in each interval: with the rule that none is repeated, this bounds how many there are.
pub(super) fn poll_due((provider, host): &Pair, interval_secs: u64, wall: DateTime<Utc>) -> Option<u64> {
    let interval = Duration::from_secs(interval_secs);
    let next = next_due(Phase::new(host, provider), interval, wall + interval / EARLY_PARTS);
    u64::try_from(next.timestamp()).ok()?.checked_sub(interval_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(provider: &str, host: &str) -> Pair {
        (ProviderName::new(provider).unwrap(), HostName::new(host).unwrap())
    }

    fn moment(position: u64) -> Moment {
        Moment { leadership: 1, position, clock_changes: 0 }
    }

    fn withdrawn(host: &str) -> Fact {
        let host = HostName::new(host).unwrap();
        let actor = "eve".to_owned();
        let reason = "moved".to_owned();
        EnrolmentFact::HostWithdrawn { host, actor, reason, forgotten: false }.into()
    }

    fn polled(provider: &str, host: Option<&str>) -> Fact {
        let provider = ProviderName::new(provider).unwrap();
        let host = host.map(|host| HostName::new(host).unwrap());
        DesiredFact::PollRequested { provider, host, actor: "eve".to_owned() }.into()
    }

    /// What is about another host or another provider, or was there before the answer, is no reason to repeat a call.
    #[test]
    fn facts_about_others_are_no_reason() {
        let event: EventOfEpoch = (0, pair("app", "h1"), HookEvent::DeviceSpecUpdate, 3);
        for (fact, sequence, expected) in [
            (withdrawn("h1"), 7, true),
            (withdrawn("h2"), 7, false),
            (withdrawn("h1"), 3, false),
            (polled("app", Some("h1")), 7, true),
            (polled("app", None), 7, true),
            (polled("app", Some("h2")), 7, false),
            (polled("net", None), 7, false),
        ] {
            let mut repeats = Repeats::default();
            repeats.answered(event.clone(), moment(5));
            repeats.fact(sequence, &fact);
            let may_ask = repeats.may_ask(&event, moment(9));
            let may_ask_spec = repeats.may_ask_answered_spec(moment(1), &event, false, moment(9));
            assert_eq!((may_ask, may_ask_spec), (expected, expected), "{sequence}: {fact:?}");
        }
    }
}
