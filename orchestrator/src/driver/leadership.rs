//! The leadership of this instance, as its jobs see it while they are under way.

use std::mem;
use std::time::Duration;

use os_upgrade_shell::dispatch::may_write;
use tokio::sync::watch;
use tokio::time::Instant;

/// Until when this instance leads, if it does not renew its lease, on the monotonic clock that began at `started`.
#[derive(Debug)]
pub(super) struct Lease {
    started: Instant,
    /// Each leadership has a channel of its own, so that no later one is taken for it.
    until: watch::Sender<Option<Duration>>,
}

impl Lease {
    pub(super) fn none(started: Instant) -> Self {
        Self { started, until: watch::Sender::new(None) }
    }

    /// This instance leads until `until`, or it does not lead. Between two leaderships this is said with `None`.
    pub(super) fn set(&mut self, until: Option<Duration>) {
        let has_changed = self.until.send_if_modified(|known| mem::replace(known, until) != until);
        if has_changed && until.is_none() {
            self.until = watch::Sender::new(None);
        }
    }

    /// The present leadership.
    pub(super) fn leadership(&self) -> Leadership {
        Leadership { started: self.started, until: self.until.subscribe() }
    }
}

/// One leadership of this instance. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Leadership {
    started: Instant,
    until: watch::Receiver<Option<Duration>>,
}

impl Leadership {
    /// Whether a job may write to its system.
    pub(super) fn may_write(&self) -> bool {
        may_write(*self.until.borrow(), self.started.elapsed())
    }

    /// Resolves when it has ended, since it was lost, or since nobody has renewed the lease.
    pub(super) async fn ended(mut self) {
        loop {
            let Some(until) = *self.until.borrow_and_update() else { return };
            tokio::select! {
                () = tokio::time::sleep_until(self.started + until) => if *self.until.borrow() == Some(until) { return },
                changed = self.until.changed() => if changed.is_err() { return },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_with_the_last_lease() {
        let started = Instant::now();
        let mut lease = Lease::none(started);
        lease.set(Some(Duration::from_secs(6)));
        let leadership = lease.leadership();
        let ends = tokio::spawn(leadership.clone().ended());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!leadership.may_write(), "the lease is running out");
        // It is renewed in time, and then no more.
        lease.set(Some(Duration::from_secs(11)));
        assert!(leadership.may_write());
        ends.await.unwrap();
        assert_eq!(started.elapsed().as_secs(), 11);
        assert!(!leadership.may_write());
    }

    #[tokio::test(start_paused = true)]
    async fn later_leadership_is_another_one() {
        let started = Instant::now();
        let mut lease = Lease::none(started);
        lease.set(Some(Duration::from_secs(100)));
        let first = lease.leadership();
        let ends = tokio::spawn(first.clone().ended());
        // It is lost before it expires, and the instance leads again before anybody has looked.
        lease.set(None);
        lease.set(Some(Duration::from_secs(200)));
        assert!(!first.may_write());
        assert!(lease.leadership().may_write());
        ends.await.unwrap();
        assert_eq!(started.elapsed().as_secs(), 0);
    }
}
