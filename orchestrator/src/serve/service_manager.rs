//! Notifies systemd, for services of `Type=notify`: ready, status, watchdog, stopping. Without `NOTIFY_SOCKET` in the
//! environment nothing is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::published_state::Readiness;

/// The time after which an instance that is not ready is still reported as ready. Starting the service, or booting, must
/// not wait for a bus that is away.
const UP_WITHIN: Duration = Duration::from_secs(10);

/// Time between two checks for changes.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// Notifies the service manager until `shutdown`. `iterations` counts those of the driver's loop: while it stands still,
/// the watchdog is not reset, so that it ends this process.
pub(super) async fn notify(site: SiteHandle, iterations: Arc<AtomicU64>, shutdown: CancellationToken) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return shutdown.cancelled().await;
    }
    let mut notifier = Notifier::new(sd_notify::watchdog_enabled(), Instant::now());
    while !shutdown.is_cancelled() {
        let due =
            notifier.update(&site.published().readiness, iterations.load(Ordering::Relaxed), Instant::now());
        send(due).await;
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(CHECK_EVERY) => {}
        }
    }
    send(vec![Notification::Stopping, Notification::Status("stopping".to_owned())]).await;
}

/// Sends on a blocking thread, so that a service manager that does not read cannot delay runs.
async fn send(due: Vec<Notification>) {
    if due.is_empty() {
        return;
    }
    let sent = tokio::task::spawn_blocking(move || {
        let states: Vec<NotifyState<'_>> = due.iter().map(Notification::state).collect();
        sd_notify::notify(&states)
    });
    match sent.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot notify the service manager"),
        Err(error) => tracing::error!(%error, "cannot notify the service manager"),
    }
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Notification {
    Ready,
    Stopping,
    Alive,
    Status(String),
}

impl Notification {
    fn state(&self) -> NotifyState<'_> {
        match self {
            Self::Ready => NotifyState::Ready,
            Self::Stopping => NotifyState::Stopping,
            Self::Alive => NotifyState::Watchdog,
            Self::Status(text) => NotifyState::Status(text),
        }
    }
}

/// What has been sent, and what is due next.
#[derive(Debug)]
struct Notifier {
    ready: bool,
    /// When it is reported as ready at the latest.
    up_at: Instant,
    status: String,
    /// How often to reset the watchdog: half of its timeout. `None` without a watchdog.
    alive_every: Option<Duration>,
    alive_at: Instant,
    /// The driver's iterations when the watchdog was last reset.
    iterations: Option<u64>,
}

impl Notifier {
    fn new(watchdog: Option<Duration>, now: Instant) -> Self {
        let alive_every = watchdog.map(|within| within / 2);
        Self {
            ready: false,
            up_at: now + UP_WITHIN,
            status: String::new(),
            alive_every,
            alive_at: now,
            iterations: None,
        }
    }

    /// The notifications to send now.
    fn update(&mut self, readiness: &Readiness, iterations: u64, now: Instant) -> Vec<Notification> {
        let mut due = Vec::new();
        let (up, status) = match readiness {
            Readiness::Ready => (true, "ready"),
            Readiness::NotReady(why) => (false, why.as_str()),
            // It is up, so that an operator can see why it halted.
            Readiness::Halted { why, .. } => (true, why.as_str()),
        };
        if (up || self.up_at <= now) && !self.ready {
            self.ready = true;
            due.push(Notification::Ready);
        }
        // A status is one line: text after a line break would be read as another variable.
        let status = status.split_whitespace().collect::<Vec<_>>().join(" ");
        if status != self.status {
            self.status.clone_from(&status);
            due.push(Notification::Status(status));
        }
        if let Some(every) = self.alive_every
            && self.alive_at <= now
            && self.iterations != Some(iterations)
        {
            self.alive_at = now + every;
            self.iterations = Some(iterations);
            due.push(Notification::Alive);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Notification {
        Notification::Status(text.to_owned())
    }

    #[test]
    fn ready_is_sent_once_status_on_change() {
        let now = Instant::now();
        let mut notifier = Notifier::new(None, now);
        let away = Readiness::NotReady("NATS\n is unreachable".to_owned());
        assert_eq!(notifier.update(&away, 1, now), [status("NATS is unreachable")]);
        assert_eq!(notifier.update(&away, 2, now), []);
        assert_eq!(notifier.update(&Readiness::Ready, 3, now), [Notification::Ready, status("ready")]);
        assert_eq!(notifier.update(&away, 4, now), [status("NATS is unreachable")]);
        assert_eq!(notifier.update(&Readiness::Ready, 5, now), [status("ready")]);
    }

    #[test]
    fn long_wait_is_reported_ready() {
        let start = Instant::now();
        let mut notifier = Notifier::new(None, start);
        let waiting = Readiness::NotReady("waiting for NATS".to_owned());
        assert_eq!(notifier.update(&waiting, 1, start), [status("waiting for NATS")]);
        assert_eq!(notifier.update(&waiting, 2, start + UP_WITHIN - Duration::from_millis(1)), []);
        assert_eq!(notifier.update(&waiting, 3, start + UP_WITHIN), [Notification::Ready]);
        assert_eq!(notifier.update(&Readiness::Ready, 4, start + UP_WITHIN), [status("ready")]);
    }

    #[test]
    fn halted_is_reported_ready() {
        let now = Instant::now();
        let halted = Readiness::Halted { kind: "data-lost", why: "the journal was made anew".to_owned() };
        let due = Notifier::new(None, now).update(&halted, 1, now);
        assert_eq!(due, [Notification::Ready, status("the journal was made anew")]);
    }

    #[test]
    fn stuck_driver_does_not_reset_watchdog() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut notifier = Notifier::new(Some(Duration::from_secs(4)), start);
        let mut resets = |iterations, millis| {
            notifier
                .update(&Readiness::Ready, iterations, at(millis))
                .into_iter()
                .filter(|one| *one == Notification::Alive)
                .count()
        };
        assert_eq!(resets(1, 0), 1);
        assert_eq!(resets(9, 1_900), 0);
        assert_eq!(resets(10, 2_000), 1);
        // It stays stuck.
        assert_eq!([resets(10, 4_000), resets(10, 6_000), resets(10, 60_000)], [0; 3]);
        assert_eq!(resets(11, 60_200), 1);
    }
}
