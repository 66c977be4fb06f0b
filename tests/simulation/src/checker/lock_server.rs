//! Rules `lease` and `rate`: only the process that holds the lease sends requests to the lock server. All processes
//! together send at most one request a second, and three at once, and a process respects the `Retry-After` that it
//! received.

use std::collections::BTreeMap;
use std::time::Duration;

use os_upgrade_protocol::HostName;
use os_upgrade_shell::fleet_lock::RetryAfter;

use super::violation::Violation;
use crate::time::{Micros, SECOND};

/// How many requests the server accepts at once.
const AT_ONCE: Micros = 3;
/// The longest `Retry-After` that an unlock must respect.
const UNLOCK_WAITS: Micros = 60 * SECOND;

/// The requests to the lock server so far, and its pauses.
#[derive(Debug, Default)]
pub(super) struct LockRequests {
    /// Until when the requests so far occupy the server, at one a second.
    busy_until: Micros,
    /// Until when each process, by its nonce, may not lock, and not unlock.
    paused_until: BTreeMap<String, (Micros, Micros)>,
}

impl LockRequests {
    /// A process has decided to send a request to the lock server.
    pub(super) fn check(
        &mut self,
        now: Micros,
        nonce: &str,
        host: &HostName,
        unlock: bool,
    ) -> Result<(), Violation> {
        self.busy_until = self.busy_until.max(now) + SECOND;
        if self.busy_until > now + AT_ONCE * SECOND {
            let text = format!("a request about {host} goes to the lock server too soon after others");
            return Err(Violation::new("rate", text));
        }
        let (lock_from, unlock_from) = self.paused_until.get(nonce).copied().unwrap_or_default();
        if now < if unlock { unlock_from } else { lock_from } {
            let text = format!("{nonce} sends a request about {host} before the end of Retry-After");
            return Err(Violation::new("rate", text));
        }
        Ok(())
    }

    /// The lock server has answered a process with `retry_after`.
    pub(super) fn retry_later(&mut self, now: Micros, nonce: &str, retry_after: RetryAfter) {
        let RetryAfter::Server(pause) = retry_after else { return };
        let pause = micros(pause);
        let (lock_from, unlock_from) = self.paused_until.entry(nonce.to_owned()).or_default();
        *lock_from = (*lock_from).max(now + pause);
        *unlock_from = (*unlock_from).max(now + pause.min(UNLOCK_WAITS));
    }
}

/// A request leaves a process; `leads` is whether that process holds the lease.
pub(super) fn check_lease(host: &HostName, leads: bool) -> Result<(), Violation> {
    if !leads {
        let text = format!("a request about {host} goes to the lock server without the lease");
        return Err(Violation::new("lease", text));
    }
    Ok(())
}

fn micros(pause: Duration) -> Micros {
    Micros::try_from(pause.as_micros()).unwrap_or(Micros::MAX)
}
