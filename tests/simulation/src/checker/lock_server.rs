//! Rules `lease` and `rate`: the lock server is asked by nobody but who holds the lease. One that takes one request a
//! second, and three at once, is never asked more, whoever leads; and one that wants to be left alone is, by the process
//! that it told.

use std::collections::BTreeMap;
use std::time::Duration;

use os_upgrade_protocol::HostName;
use os_upgrade_shell::fleetlock::RetryAfter;

use super::violation::Violation;
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

impl Asked {
    /// A process has decided to ask the lock server.
    pub(super) fn decided(
        &mut self,
        now: Micros,
        nonce: &str,
        host: &HostName,
        unlock: bool,
    ) -> Result<(), Violation> {
        self.busy_until = self.busy_until.max(now) + SECOND;
        if self.busy_until > now + AT_ONCE * SECOND {
            let text = format!("the lock server is asked about {host} too soon after others");
            return Err(Violation::new("rate", text));
        }
        let (lock_from, unlock_from) = self.left_alone.get(nonce).copied().unwrap_or_default();
        if now < if unlock { unlock_from } else { lock_from } {
            let text = format!("{nonce} asks about {host} though it is to leave the server alone");
            return Err(Violation::new("rate", text));
        }
        Ok(())
    }

    /// A process is told by the lock server to come back later.
    pub(super) fn wants_peace(&mut self, now: Micros, nonce: &str, retry_after: RetryAfter) {
        let RetryAfter::Server(pause) = retry_after else { return };
        let pause = micros(pause);
        let (lock_from, unlock_from) = self.left_alone.entry(nonce.to_owned()).or_default();
        *lock_from = (*lock_from).max(now + pause);
        *unlock_from = (*unlock_from).max(now + pause.min(UNLOCK_WAITS));
    }
}

/// A question leaves a process, which holds the lease or not.
pub(super) fn check_lease(host: &HostName, leads: bool) -> Result<(), Violation> {
    if !leads {
        let text = format!("the lock server is asked about {host} without the lease");
        return Err(Violation::new("lease", text));
    }
    Ok(())
}

fn micros(pause: Duration) -> Micros {
    Micros::try_from(pause.as_micros()).unwrap_or(Micros::MAX)
}
