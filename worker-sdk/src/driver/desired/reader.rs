//! Reads the host's manifest: at each new connection, at a hint, and once a minute in case hints are lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::{HostName, subject};
use os_upgrade_worker_rules::{DesiredEvent, limits};
use tokio::sync::{Notify, mpsc, watch};
use tracing::warn;

use crate::bus::{Bus, RequestError};
use crate::driver::input::{SUBSCRIBE_PAUSE, subscribed};

/// How often the manifest is read without an occasion.
const READ_EVERY: Duration = Duration::from_mins(1);
/// How long after an occasion it is read once more: the server that has answered may not have had the newest one yet.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The shortest time between two reads, however many hints there are.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// Whether the host can read its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Unknown,
    /// Nobody answers: the host has no right to ask, or there is no stream.
    Unheard,
    /// It was answered once, be it that there is none. Later failures do not change that: they pass.
    Granted,
}

/// What reading needs.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) bus: Bus,
    pub(super) host: HostName,
    pub(super) hints: Arc<Notify>,
    pub(super) access: watch::Sender<Access>,
    pub(super) events: mpsc::Sender<DesiredEvent>,
}

impl Reader {
    /// Returns only when nobody takes the events any more.
    pub(super) async fn run(self) {
        let manifest = subject::desired_manifest(&self.host);
        let mut link = self.bus.link();
        let mut throttle = LogThrottle::default();
        let mut failures = 0;
        let mut retry_now = true;
        loop {
            let mut pause = if retry_now { READ_AGAIN_AFTER } else { READ_EVERY };
            // Which finds out how JetStream is reached.
            self.bus.await_stream(subject::CONTROL_STREAM).await;
            let epoch = link.borrow_and_update().epoch;
            match self.bus.get(subject::DESIRED_STREAM, &manifest).await {
                Ok(payload) => {
                    self.set_access(Access::Granted);
                    failures = 0;
                    throttle.reset();
                    let read = DesiredEvent::ManifestRead(payload.map(Into::into));
                    let retry = std::mem::take(&mut retry_now).then_some(DesiredEvent::RetryNow);
                    for event in [Some(read), retry].into_iter().flatten() {
                        if self.events.send(event).await.is_err() {
                            return;
                        }
                    }
                }
                Err(error) => {
                    failures += 1;
                    pause = pause_after(failures);
                    self.note_failure(&error, &mut throttle);
                }
            }
            tokio::time::sleep(READ_PAUSE).await;
            // The sender lives in `bus`, so waiting for the link cannot fail.
            tokio::select! {
                _ = link.wait_for(|link| link.connected && link.epoch != epoch) => retry_now = true,
                () = self.hints.notified() => retry_now = true,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn note_failure(&self, error: &RequestError, throttle: &mut LogThrottle) {
        if matches!(error, RequestError::Unheard) {
            self.set_access(Access::Unheard);
        }
        let text = error.to_string();
        if self.bus.is_connected() && throttle.is_due(&text, Instant::now()) {
            warn!(
                "the configurations of this host cannot be read, so it takes none: {text}. If this goes on, the orchestrators are \
                 of an older version, or the rights of this host are: renew them with `os-upgrade nats-config init` and `push`"
            );
        }
    }

    fn set_access(&self, access: Access) {
        self.access.send_if_modified(|known| {
            let is_news = *known != access && *known != Access::Granted;
            if is_news {
                *known = access;
            }
            is_news
        });
    }
}

fn pause_after(failures: u32) -> Duration {
    limits::backoff(failures).to_std().unwrap_or(READ_EVERY)
}

/// Passes on hints that the manifest has changed, once the host can read it.
pub(super) async fn hints(bus: Bus, host: HostName, mut access: watch::Receiver<Access>, hints: Arc<Notify>) {
    if access.wait_for(|access| *access == Access::Granted).await.is_err() {
        return;
    }
    let subject = subject::desired_hint(&host);
    loop {
        let mut messages = subscribed(&bus, &subject).await;
        while messages.next().await.is_some() {
            hints.notify_one();
        }
        tokio::time::sleep(SUBSCRIBE_PAUSE).await;
    }
}
