//! Rule `rate`: a lock server that takes one request a second, and three at once, is never asked more, whoever leads; and
//! one that wants to be left alone is, by the process that it told.

use std::collections::BTreeMap;
use std::time::Duration;

use os_upgrade_protocol::HostName;
use os_upgrade_shell::fleetlock::RetryAfter;

use super::Checker;
use crate::time::{Micros, SECOND};

/// How many requests the server takes at once.
const AT_ONCE: Micros = 3;
/// How long at least an unlock waits for a server that wants to be left alone for longer.
const UNLOCK_WAITS: Micros = 60 * SECOND;

/// What the server has been asked, and has asked for itself.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// How long the requests so far occupy the server.
    busy_until: Micros,
    /// Until when each process may not ask for a slot, and may not give one back.
    left_alone: BTreeMap<String, (Micros, Micros)>,
}

impl Checker {
    /// A process has decided to ask the lock server.
    pub(crate) fn lock_server_to_be_asked(&mut self, nonce: &str, host: &HostName, unlock: bool) {
        let now = self.now;
        let asked = &mut self.asked;
        asked.busy_until = asked.busy_until.max(now) + SECOND;
        let too_often = asked.busy_until > now + AT_ONCE * SECOND;
        let (lock_from, unlock_from) = asked.left_alone.get(nonce).copied().unwrap_or_default();
        if too_often {
            self.violated("rate", format!("the lock server is asked about {host} too soon after others"));
        }
        if now < if unlock { unlock_from } else { lock_from } {
            self.violated(
                "rate",
                format!("{nonce} asks about {host} though it is to leave the server alone"),
            );
        }
    }

    /// A process is told by the lock server to come back later.
    pub(crate) fn lock_server_wants_peace(&mut self, nonce: &str, retry_after: RetryAfter) {
        let RetryAfter::Server(pause) = retry_after else { return };
        let pause = micros(pause);
        let (lock_from, unlock_from) = self.asked.left_alone.entry(nonce.to_owned()).or_default();
        *lock_from = (*lock_from).max(self.now + pause);
        *unlock_from = (*unlock_from).max(self.now + pause.min(UNLOCK_WAITS));
    }
}

fn micros(pause: Duration) -> Micros {
    Micros::try_from(pause.as_micros()).unwrap_or(Micros::MAX)
}
