//! One slot of any FleetLock server: waited for, and given back.

use std::time::Duration;

use nix::sys::signal::Signal;
use os_upgrade_adapters::fleet_lock_client::{FleetLockClient, Reply, Timeouts};
use os_upgrade_kernel::slot::DeniedKind;
use os_upgrade_kernel::{ClientId, LockOutcome, NoAnswer, SlotOrder};
use os_upgrade_protocol::GroupName;
use os_upgrade_settings::HttpUrl;
use os_upgrade_shell::fleet_lock::{self, RetryAfter};
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::BuildError;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::credentials::Source;
use super::signals::Signals;
use super::unlock;
use crate::output::errln;

/// How long connecting to the server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request may take, in total.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The shortest pause between two requests.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// How long after the first attempt to give a slot back the last one begins.
const GIVE_BACK_WITHIN: Duration = Duration::from_mins(1);
/// The longest pause between two attempts to give a slot back, unless the server asks for a longer one. The first pause
/// is [`PAUSE_MIN`].
const GIVE_BACK_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long the server may take to grant a slot after the request was abandoned, or got neither a grant nor a refusal.
const LATE_WITHIN: Duration = Duration::from_secs(2);

/// A slot that is held or requested.
#[derive(Debug)]
pub(super) struct Slot {
    client: FleetLockClient,
    /// The server, without its password.
    server: String,
    /// The command that gives it back, for operators.
    unlock_command: String,
    group: GroupName,
    id: ClientId,
}

/// How waiting for a slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitOutcome {
    /// It is held.
    Granted,
    /// The time is over; the slot is not held.
    TimedOut,
    /// The time is over, and the server never answered.
    Unreachable,
    /// This signal ended the wait; the slot is not held.
    Signalled(Signal),
}

/// What is known while a slot is waited for.
#[derive(Debug, Default)]
struct WaitState {
    /// Whether the server ever answered.
    reached: bool,
    /// Whether the slot may have been granted without the answer reaching us.
    uncertain: bool,
    /// Whether the last answer was an os-upgrade server's that all slots are held. It then counts us as a waiter.
    waiting: bool,
    /// The last reported reason why it was not granted.
    reported: String,
}

impl WaitState {
    /// Updates `self` with an answer.
    fn update(&mut self, reply: &Reply) {
        self.reached |= !matches!(reply.outcome, LockOutcome::Unreachable { .. });
        let full = DeniedKind::FailedLockSemaphoreFull.as_str();
        self.waiting = matches!(&reply.outcome, LockOutcome::Denied { lock_kind, .. } if lock_kind == full);
        self.uncertain = match reply.status {
            // Others hold the slots, so none is ours, even if an earlier request got no answer.
            Some(409 | 423) => false,
            // This request had no effect, but an earlier one may have had.
            Some(400..=499) => self.uncertain,
            // A server that fails, or does not speak FleetLock, may still have granted it.
            Some(_) | None => true,
        };
    }
}

impl Slot {
    pub(super) fn new(
        url: &HttpUrl,
        source: &Source,
        tls: &TlsFiles,
        group: GroupName,
        id: ClientId,
    ) -> Result<Self, BuildError> {
        let timeouts = Timeouts { connect: CONNECT_TIMEOUT, total: ANSWER_TIMEOUT };
        let client = FleetLockClient::new(url, timeouts, Some(tls))?;
        let unlock_command = unlock::command_line(url, source, tls, &group, &id);
        Ok(Self { client, server: url.to_string(), unlock_command, group, id })
    }

    /// Asks every `retry`, plus some jitter, until the slot is granted or `within` is over; `None` waits without a bound.
    /// The server may ask for longer pauses.
    pub(super) async fn wait(
        &self,
        within: Option<Duration>,
        retry: Duration,
        signals: &mut Signals,
    ) -> WaitOutcome {
        let deadline = within.and_then(|within| Instant::now().checked_add(within));
        let mut state = WaitState::default();
        let waited = loop {
            let mut request = Box::pin(self.client.request(SlotOrder::Lock, &self.group, &self.id));
            let reply = tokio::select! {
                biased;
                signal = signals.next() => {
                    // An unlock may use another connection and arrive before the request, so wait for the answer first.
                    let late = timeout(LATE_WITHIN, request).await;
                    state.update(&late.unwrap_or_else(|_| unanswered()));
                    break WaitOutcome::Signalled(signal);
                }
                reply = &mut request => reply,
            };
            if reply.outcome == LockOutcome::Granted {
                return WaitOutcome::Granted;
            }
            state.update(&reply);
            self.report(&reply.outcome, &mut state);
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                errln!("os-upgrade: no slot of group {} was granted in time", self.group);
                break if state.reached { WaitOutcome::TimedOut } else { WaitOutcome::Unreachable };
            }
            let next = now + with_jitter(retry.max(retry_after(&reply)).max(PAUSE_MIN));
            let next = deadline.map_or(next, |deadline| deadline.min(next));
            tokio::select! {
                biased;
                signal = signals.next() => break WaitOutcome::Signalled(signal),
                () = sleep_until(next) => {}
            }
        };
        self.give_up(&state, signals).await;
        waited
    }

    fn report(&self, outcome: &LockOutcome, state: &mut WaitState) {
        let reason = unlock::describe(outcome);
        if reason != state.reported {
            errln!("os-upgrade: waiting for a slot of group {} at {}: {reason}", self.group, self.server);
            state.reported = reason;
        }
    }

    /// Makes sure that no slot stays held. After a refusal, an os-upgrade server gets an unlock, so that we are no longer a
    /// waiter. Other servers do not: some release another holder's slot when a client unlocks what it does not hold.
    async fn give_up(&self, state: &WaitState, signals: &mut Signals) {
        let begun = Instant::now();
        if !state.uncertain {
            if state.waiting {
                tokio::select! {
                    biased;
                    _ = self.unlock() => {}
                    _ = signals.another(begun) => {}
                }
            }
            return;
        }
        if !state.reached {
            // Most likely the server was unreachable all the time, so there is nothing to retry or report.
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

    /// Gives the slot back. The first attempt ignores signals, as they may be what ended the command. Further attempts are
    /// made for a bounded time, or until another signal comes. If all fail, it prints the command that gives it back.
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
                let next = Instant::now() + with_jitter(pause.max(retry_after(&last)));
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
            let Self { group, id, unlock_command, .. } = self;
            errln!(
                "os-upgrade: {id} may still hold a slot of group {group}: {}",
                unlock::describe(&last.outcome)
            );
            errln!("os-upgrade: give it back with: {unlock_command}");
        }
        given_back
    }

    async fn unlock(&self) -> Reply {
        self.client.request(SlotOrder::Unlock, &self.group, &self.id).await
    }
}

fn unanswered() -> Reply {
    Reply::from(LockOutcome::Unreachable { why: NoAnswer::TimedOut })
}

/// The pause that the server asks for; zero if it asks for none.
fn retry_after(reply: &Reply) -> Duration {
    reply.retry_after.map_or(Duration::ZERO, RetryAfter::pause)
}

fn with_jitter(pause: Duration) -> Duration {
    fleet_lock::with_jitter(pause, fastrand::u32(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the slot may be held after answers with these statuses; 0 is no answer.
    fn uncertain(statuses: &[u16]) -> bool {
        let mut state = WaitState::default();
        for status in statuses {
            let refused = LockOutcome::Denied { lock_kind: "k".to_owned(), value: "v".to_owned() };
            let status = Some(*status).filter(|status| *status != 0);
            state.update(&Reply { status, ..Reply::from(refused) });
        }
        state.uncertain
    }

    #[test]
    fn only_definite_refusals_make_it_certain() {
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
