//! One slot of any FleetLock server: waited for, and given back.

use std::time::Duration;

use nix::sys::signal::Signal;
use os_upgrade_adapters::fleetlock::{FleetLockClient, Reply, Timeouts};
use os_upgrade_kernel::semaphore::DeniedKind;
use os_upgrade_kernel::{ClientId, LockOutcome, NoAnswer, SlotOrder};
use os_upgrade_protocol::GroupName;
use os_upgrade_settings::HttpUrl;
use os_upgrade_shell::fleetlock::{self, RetryAfter};
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::BuildError;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::credentials::Found;
use super::signals::Signals;
use super::unlock;
use crate::output::errln;

/// How long connecting to the server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The shortest pause between two questions.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// How long giving back is tried, from the first attempt on; the last one begins then.
const GIVE_BACK_WITHIN: Duration = Duration::from_mins(1);
/// The longest pause between two attempts to give back, where the server does not want a longer one; the first is
/// [`PAUSE_MIN`].
const GIVE_BACK_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a slot may be granted after the question for it was given up, or answered without a yes or no.
const LATE_WITHIN: Duration = Duration::from_secs(2);

/// A slot that is, or is to be, ours.
#[derive(Debug)]
pub(super) struct Slot {
    client: FleetLockClient,
    /// The server, without its password.
    server: String,
    /// What gives it back, for people.
    by_hand: String,
    group: GroupName,
    id: ClientId,
}

/// How waiting for a slot has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// It is held.
    Granted,
    /// Time is over, and it is not held.
    TimedOut,
    /// Time is over, and nobody has ever answered.
    Unreachable,
    /// This signal has come, and it is not held.
    Signalled(Signal),
}

/// What is known while a slot is waited for.
#[derive(Debug, Default)]
struct Known {
    /// Whether anybody has ever answered.
    reached: bool,
    /// Whether the slot may have been granted without our having heard of it.
    uncertain: bool,
    /// Whether the last answer was our kind of server's that all slots are held: it keeps one for who asks again.
    awaited: bool,
    /// Why it was not granted, as it was said last.
    said: String,
}

impl Known {
    /// What an answer says about the slot. `self` is what was known before the question.
    fn learn(&mut self, reply: &Reply) {
        self.reached |= !matches!(reply.outcome, LockOutcome::Unreachable { .. });
        let full = DeniedKind::FailedLockSemaphoreFull.as_str();
        self.awaited = matches!(&reply.outcome, LockOutcome::Denied { lock_kind, .. } if lock_kind == full);
        self.uncertain = match reply.status {
            // Somebody else holds it: so it is not ours, also where an earlier question was not answered.
            Some(409 | 423) => false,
            // Nothing came of this question, which says nothing about earlier ones.
            Some(400..=499) => self.uncertain,
            // Whatever else it says: a server that fails, and one that does not speak FleetLock, may have granted it.
            Some(_) | None => true,
        };
    }
}

impl Slot {
    pub(super) fn new(
        url: &HttpUrl,
        found: &Found,
        tls: &TlsFiles,
        group: GroupName,
        id: ClientId,
    ) -> Result<Self, BuildError> {
        let timeouts = Timeouts { connect: CONNECT_TIMEOUT, total: ANSWER_TIMEOUT };
        let client = FleetLockClient::new(url, timeouts, Some(tls))?;
        let by_hand = unlock::by_hand(url, found, tls, &group, &id);
        Ok(Self { client, server: url.to_string(), by_hand, group, id })
    }

    /// Asks every `retry`, and a bit more, until the slot is granted, or `within` is over if there is such a bound. The
    /// server may ask for longer pauses.
    pub(super) async fn wait(
        &self,
        within: Option<Duration>,
        retry: Duration,
        signals: &mut Signals,
    ) -> Waited {
        let deadline = within.and_then(|within| Instant::now().checked_add(within));
        let mut known = Known::default();
        let waited = loop {
            let mut asked = Box::pin(self.client.ask(SlotOrder::Lock, &self.group, &self.id));
            let reply = tokio::select! {
                biased;
                signal = signals.next() => {
                    // Its unlock would go another way, and might come before it.
                    let late = timeout(LATE_WITHIN, asked).await;
                    known.learn(&late.unwrap_or_else(|_| unanswered()));
                    break Waited::Signalled(signal);
                }
                reply = &mut asked => reply,
            };
            if reply.outcome == LockOutcome::Granted {
                return Waited::Granted;
            }
            known.learn(&reply);
            self.say(&reply.outcome, &mut known);
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                errln!("os-upgrade: no slot of group {} was had in time", self.group);
                break if known.reached { Waited::TimedOut } else { Waited::Unreachable };
            }
            let next = now + drawn_out(retry.max(wanted(&reply)).max(PAUSE_MIN));
            let next = deadline.map_or(next, |deadline| deadline.min(next));
            tokio::select! {
                biased;
                signal = signals.next() => break Waited::Signalled(signal),
                () = sleep_until(next) => {}
            }
        };
        self.give_up(&known, signals).await;
        waited
    }

    fn say(&self, outcome: &LockOutcome, known: &mut Known) {
        let said = unlock::words(outcome);
        if said != known.said {
            errln!("os-upgrade: waiting for a slot of group {} at {}: {said}", self.group, self.server);
            known.said = said;
        }
    }

    /// Sees to it that nothing is held. After a refusal our own server is told that nobody waits any more, and others
    /// nothing: some take a slot from whoever holds it when somebody gives back what he does not hold.
    async fn give_up(&self, known: &Known, signals: &mut Signals) {
        let begun = Instant::now();
        if !known.uncertain {
            if known.awaited {
                tokio::select! {
                    biased;
                    _ = self.unlock() => {}
                    _ = signals.another(begun) => {}
                }
            }
            return;
        }
        if !known.reached {
            // Most likely nobody was there all the time, so that there is nothing to try again, nor to tell.
            tokio::select! {
                biased;
                _ = self.client.unlock(&self.group, &self.id) => {}
                _ = signals.another(begun) => {}
            }
        } else if self.give_back(signals).await {
            tokio::select! {
                biased;
                _ = signals.another(begun) => {}
                () = sleep(LATE_WITHIN) => {
                    self.give_back(signals).await;
                }
            }
        }
    }

    /// Gives the slot back: asks once, whatever signals come, as they may be what has ended the command; then for a
    /// bounded time or until another signal comes. Says so when that was in vain.
    pub(super) async fn give_back(&self, signals: &mut Signals) -> bool {
        let begun = Instant::now();
        let deadline = begun + GIVE_BACK_WITHIN;
        let mut last = self.unlock().await;
        let again = async {
            let mut pause = PAUSE_MIN;
            while last.outcome != LockOutcome::Granted {
                if Instant::now() >= deadline {
                    return false;
                }
                let next = Instant::now() + drawn_out(pause.max(wanted(&last)));
                sleep_until(next.min(deadline)).await;
                last = self.unlock().await;
                pause = (pause * 2).min(GIVE_BACK_PAUSE_MAX);
            }
            true
        };
        let given_back = tokio::select! {
            biased;
            given_back = again => given_back,
            _ = signals.another(begun) => false,
        };
        if !given_back {
            let Self { group, id, by_hand, .. } = self;
            errln!(
                "os-upgrade: {id} may still hold a slot of group {group}: {}",
                unlock::words(&last.outcome)
            );
            errln!("os-upgrade: give it back with: {by_hand}");
        }
        given_back
    }

    async fn unlock(&self) -> Reply {
        self.client.ask(SlotOrder::Unlock, &self.group, &self.id).await
    }
}

fn unanswered() -> Reply {
    Reply::from(LockOutcome::Unreachable { why: NoAnswer::TimedOut })
}

/// How long the server wants to be left alone.
fn wanted(reply: &Reply) -> Duration {
    reply.retry_after.map_or(Duration::ZERO, RetryAfter::pause)
}

fn drawn_out(pause: Duration) -> Duration {
    fleetlock::drawn_out(pause, fastrand::u32(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After answers of these statuses, whether the slot may be held.
    fn uncertain(statuses: &[u16]) -> bool {
        let mut known = Known::default();
        for status in statuses {
            let refused = LockOutcome::Denied { lock_kind: "k".to_owned(), value: "v".to_owned() };
            let status = Some(*status).filter(|status| *status != 0);
            known.learn(&Reply { status, ..Reply::from(refused) });
        }
        known.uncertain
    }

    #[test]
    fn only_a_refusal_for_certain_makes_it_certain() {
        for (statuses, expected) in [
            (&[409][..], false),
            (&[423], false),
            (&[400, 401, 404, 429], false),
            (&[503], true),
            (&[500], true),
            (&[202], true),
            (&[302], true),
            (&[0], true),
            (&[503, 429], true),
            (&[0, 400], true),
            (&[503, 409], false),
            (&[409, 503], true),
        ] {
            assert_eq!(uncertain(statuses), expected, "{statuses:?}");
        }
    }
}
