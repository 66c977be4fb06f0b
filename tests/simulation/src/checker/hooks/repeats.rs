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
use os_upgrade_kernel::fact::{DesiredFact, RunFact, SecretFact};
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
    /// The sequences of the facts by which a pair is polled at another interval.
    of_pair: BTreeMap<Pair, BTreeSet<u64>>,
    /// The interval that was journaled last for each pair, in seconds, unless it may have been forgotten since.
    intervals: BTreeMap<Pair, u64>,
    /// When each leadership last made a call about each event that was answered.
    answered: BTreeMap<(EventOfEpoch, u64), Moment>,
}

impl Repeats {
    /// A fact was added to the journal in the record with this sequence.
    pub(super) fn fact(&mut self, sequence: u64, fact: &Fact) {
        if lets_all_be_asked_again(fact) {
            self.of_all.insert(sequence);
            // Devices that join anew have no interval.
            self.intervals.clear();
        }
        if let Fact::Desired(DesiredFact::HookAnswered {
            provider,
            host,
            poll_interval: Some(interval),
            ..
        }) = fact
        {
            let pair = (provider.clone(), host.clone());
            if self.intervals.insert(pair.clone(), *interval) != Some(*interval) {
                self.of_pair.entry(pair).or_default().insert(sequence);
            }
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

    /// Whether a leader that has led since `began` may ask at the moment `now` about a spec that, as it knows, was answered. It polls instead,
    /// unless the host has lost what the provider had given, an operator wants it, or a run waits for a required provider.
    pub(super) fn may_ask_answered_spec(
        &self,
        began: Moment,
        pair: &Pair,
        is_required: bool,
        now: Moment,
    ) -> bool {
        is_required || self.has_reason_since(began, pair, now)
    }

    /// Whether the process has committed a fact since `before` by which it may ask about the pair again.
    fn has_reason_since(&self, before: Moment, pair: &Pair, now: Moment) -> bool {
        let last_of = |reasons: &BTreeSet<u64>| reasons.range(..=now.position).next_back().copied();
        let last = last_of(&self.of_all).max(self.of_pair.get(pair).and_then(last_of));
        last.is_some_and(|last| last > before.position)
    }
}

/// Whether any pair may be asked the same again after `fact`: it may be forgotten, or lose what the host was to have; a provider is polled at another
/// interval; somebody wants it to be asked, or a run does; or the pauses after failures end.
fn lets_all_be_asked_again(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Config(_)
            | Fact::Enrolment(_)
            | Fact::Restoration(_)
            | Fact::Secret(SecretFact::Stored { .. })
            | Fact::Run(RunFact::Started { .. })
            | Fact::Desired(DesiredFact::PollRequested { .. })
    )
}

/// When the poll of a pair that is made at `wall`, by the clock of its process, was due, in seconds since 1970. The pair is polled each
/// `interval_secs`. There is one poll in each interval: with the rule that none is repeated, this bounds how many there are.
pub(super) fn poll_due((provider, host): &Pair, interval_secs: u64, wall: DateTime<Utc>) -> Option<u64> {
    let interval = Duration::from_secs(interval_secs);
    let next = next_due(Phase::new(host, provider), interval, wall + interval / EARLY_PARTS);
    u64::try_from(next.timestamp()).ok()?.checked_sub(interval_secs)
}
