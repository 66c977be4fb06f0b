//! One slot of any FleetLock server: waited for, and given back.

use std::time::Duration;

use nix::sys::signal::Signal;
use os_upgrade_kernel::{ClientId, LockOutcome};
use os_upgrade_protocol::GroupName;
use os_upgrade_shell::fleetlock::RetryAfter;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::output::errln;
use super::signals::Signals;
use crate::config::HttpUrl;
use crate::fleetlock::client::tls::TlsFiles;
use crate::fleetlock::client::{BuildError, FleetLockClient, Operation, Reply, Timeouts};

/// How long connecting to the server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The shortest pause between two questions.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// How long giving back is tried, from the first failure on.
const GIVE_BACK_WITHIN: Duration = Duration::from_mins(1);
/// The longest pause between two attempts to give back; the first is [`PAUSE_MIN`].
const GIVE_BACK_PAUSE_MAX: Duration = Duration::from_secs(5);

/// A slot that is, or is to be, ours.
#[derive(Debug)]
pub(super) struct Slot {
    client: FleetLockClient,
    url: HttpUrl,
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
    /// Why it was not granted, as it was said last.
    said: String,
}

impl Slot {
    pub(super) fn new(
        url: HttpUrl,
        tls: &TlsFiles,
        group: GroupName,
        id: ClientId,
    ) -> Result<Self, BuildError> {
        let timeouts = Timeouts { connect: CONNECT_TIMEOUT, total: ANSWER_TIMEOUT };
        let client = FleetLockClient::with_tls(&url, timeouts, tls)?;
        Ok(Self { client, url, group, id })
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
            // Until an answer says otherwise.
            known.uncertain = true;
            let reply = tokio::select! {
                reply = self.client.ask(Operation::Lock, &self.group, &self.id) => reply,
                signal = signals.next() => break Waited::Signalled(signal),
            };
            if reply.outcome == LockOutcome::Granted {
                return Waited::Granted;
            }
            self.note(&reply.outcome, &mut known);
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                break if known.reached { Waited::TimedOut } else { Waited::Unreachable };
            }
            let pause = drawn_out(retry.max(wanted(&reply)).max(PAUSE_MIN));
            let next = deadline.map_or(now + pause, |deadline| deadline.min(now + pause));
            tokio::select! {
                () = sleep_until(next) => {}
                signal = signals.next() => break Waited::Signalled(signal),
            }
        };
        self.give_up(&known, signals).await;
        waited
    }

    fn note(&self, outcome: &LockOutcome, known: &mut Known) {
        let said = words(outcome);
        if said != known.said {
            errln!("os-upgrade: waiting for a slot of group {}: {said}", self.group);
            known.said = said;
        }
        match outcome {
            // It is not held, also where an earlier question was not answered.
            LockOutcome::Denied { .. } => (known.reached, known.uncertain) = (true, false),
            LockOutcome::Protocol { .. } | LockOutcome::Granted => known.reached = true,
            LockOutcome::Unreachable { .. } => {}
        }
    }

    /// Sees to it that nothing is held. After a refusal nothing is said any more: some servers take a slot from whoever
    /// holds it when somebody gives back what he does not hold.
    async fn give_up(&self, known: &Known, signals: &mut Signals) {
        if known.uncertain && known.reached {
            self.give_back(signals).await;
        } else if known.uncertain {
            // Most likely nobody was there all the time, so that there is nothing to try again, nor to tell.
            tokio::select! {
                _ = self.client.unlock(&self.group, &self.id) => {}
                _ = signals.next() => {}
            }
        }
    }

    /// Gives the slot back, trying for a bounded time or until a signal comes; says so when that was in vain.
    pub(super) async fn give_back(&self, signals: &mut Signals) {
        let mut pause = PAUSE_MIN;
        let mut last = None;
        let try_again = async {
            loop {
                let outcome = self.client.unlock(&self.group, &self.id).await;
                if outcome == LockOutcome::Granted {
                    return true;
                }
                last = Some(words(&outcome));
                sleep(drawn_out(pause)).await;
                pause = (pause * 2).min(GIVE_BACK_PAUSE_MAX);
            }
        };
        let given_back = tokio::select! {
            given_back = try_again => given_back,
            () = sleep(GIVE_BACK_WITHIN) => false,
            _ = signals.next() => false,
        };
        if !given_back {
            let Self { group, id, .. } = self;
            let why = last.unwrap_or_else(|| "no answer yet".to_owned());
            errln!("os-upgrade: {id} may still hold a slot of group {group}: {why}");
            errln!("os-upgrade: give it back with: {}", self.by_hand());
        }
    }

    /// What gives the slot back to any FleetLock server.
    fn by_hand(&self) -> String {
        let params = serde_json::json!({ "id": self.id.as_str(), "group": self.group });
        let body = serde_json::json!({ "client_params": params }).to_string();
        let url = self.url.to_string();
        let url = format!("{}/v1/steady-state", url.trim_end_matches('/'));
        format!("curl -H 'fleet-lock-protocol: true' -d {} {}", quoted(&body), quoted(&url))
    }
}

/// For a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn words(outcome: &LockOutcome) -> String {
    match outcome {
        LockOutcome::Granted => "granted".to_owned(),
        LockOutcome::Denied { lock_kind, value } => format!("{value} ({lock_kind})"),
        LockOutcome::Unreachable { detail } => format!("the server cannot be reached: {detail}"),
        LockOutcome::Protocol { detail } => format!("the server does not speak FleetLock: {detail}"),
    }
}

/// How long the server wants to be left alone.
fn wanted(reply: &Reply) -> Duration {
    match reply.retry_after {
        Some(RetryAfter::Slot(pause) | RetryAfter::Server(pause)) => pause,
        None => Duration::ZERO,
    }
}

/// `pause` and up to a quarter more, so that those who wait do not all ask at the same time.
fn drawn_out(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + fastrand::f64() / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_it_back_by_hand() {
        let url = "http://user:secret@h/base/".parse().unwrap();
        let tls = TlsFiles { ca: None, certificate: None, key: None, roles: ["a", "b", "c"] };
        let (group, id) = (GroupName::new("g").unwrap(), ClientId::new("it's").unwrap());
        let slot = Slot::new(url, &tls, group, id).unwrap();
        assert_eq!(
            slot.by_hand(),
            r#"curl -H 'fleet-lock-protocol: true' -d '{"client_params":{"group":"g","id":"it'\''s"}}' 'http://***@h/base/v1/steady-state'"#
        );
    }

    #[test]
    fn pauses_are_drawn_out_by_up_to_a_quarter() {
        let pause = Duration::from_secs(4);
        for _ in 0..100 {
            let drawn = drawn_out(pause);
            assert!(drawn >= pause && drawn <= pause + pause / 4, "{drawn:?}");
        }
    }
}
