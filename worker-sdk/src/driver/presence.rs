//! Heartbeats and the announcement, by which a worker makes itself known.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use chrono::Utc;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::{Announcement, Heartbeat, HostName, limits, subject};
use os_upgrade_worker_rules::BootId;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::desired::Offer;
use super::executor::catch_panic;
use crate::bus::Bus;
use crate::{HandlerResult, Worker};

/// How often a heartbeat is sent; a host without one for 30 s counts as unreachable.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);
/// How often a worker is asked whether its host needs a reboot, and how long its answer may take.
const REBOOT_REQUIRED_EVERY: Duration = Duration::from_mins(5);
const REBOOT_REQUIRED_WITHIN: Duration = Duration::from_secs(30);
/// How long the first announcement waits until it is known whether the host can read its manifest.
const OFFER_KNOWN_WITHIN: Duration = Duration::from_secs(10);
/// The pause after an announcement failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Sends a heartbeat immediately, every ten seconds, and after each reconnect. Never returns.
pub(super) async fn heartbeats(bus: Bus, host: HostName) {
    let subject = subject::presence(&host);
    let mut link = bus.link();
    loop {
        let epoch = link.borrow_and_update().epoch;
        let heartbeat = Heartbeat { time: Some(Utc::now()), units: false };
        bus.send(subject.clone(), heartbeat.to_payload().into()).await;
        let reconnected = link.wait_for(|link| link.connected && link.epoch != epoch);
        // A reconnect and the timeout both mean that it is time for the next one.
        let _ = tokio::time::timeout(HEARTBEAT_EVERY, reconnected).await;
    }
}

/// What may change the announcement.
#[derive(Debug)]
pub(super) struct Occasion {
    pub(super) boot_id: BootId,
    /// How many handlers have finished: each may have made a reboot necessary.
    pub(super) finished: u64,
}

/// Announces the worker at its start, and again if the announcement has changed, or if the stored one differs or is gone:
/// that is looked at after a reconnect and every [`REBOOT_REQUIRED_EVERY`]. A key that is offered is
/// part of it. Never returns.
pub(super) async fn announcements<W: Worker>(
    bus: Bus,
    worker: Arc<W>,
    mut announcement: Announcement,
    mut occasion: watch::Receiver<Occasion>,
    mut offer: Option<Offer>,
) {
    let mut link = bus.link();
    if let Some(offer) = &mut offer {
        bus.await_connection().await;
        // Otherwise each start would take back for a moment that the host takes configurations.
        let _ = tokio::time::timeout(OFFER_KNOWN_WITHIN, offer.known()).await;
    }
    let mut announcer = Announcer { bus, last: None, throttle: LogThrottle::default() };
    let mut number = 0;
    loop {
        announcer.bus.await_connection().await;
        let epoch = link.borrow_and_update().epoch;
        let check = Check { epoch, number };
        announcement.boot_id = Some(occasion.borrow_and_update().boot_id.0.clone());
        announcement.reboots_on_request = worker.can_reboot();
        announcement.configures = offer.as_mut().and_then(Offer::key);
        announcer.announce(check, &announcement).await;
        // Only now, since the answer may take long.
        match about_reboot(worker.reboot_required()).await {
            Ok(reason) => announcement.reboot_required = reason,
            Err(error) => debug!("it is not known whether the host needs a reboot: {error}"),
        }
        match about_reboot(worker.reboot_ineffective()).await {
            Ok(missed) => announcement.reboot_ineffective = missed,
            Err(error) => debug!("it is not known what the last reboot has brought: {error}"),
        }
        announcer.announce(check, &announcement).await;
        // The senders live in `bus` and in the driver, so neither can fail.
        tokio::select! {
            _ = link.wait_for(|link| link.connected && link.epoch != epoch) => {}
            _ = occasion.changed() => {}
            () = changed(&mut offer) => {}
            () = tokio::time::sleep(REBOOT_REQUIRED_EVERY) => number += 1,
        }
    }
}

/// Resolves when another key may have to be announced.
async fn changed(offer: &mut Option<Offer>) {
    match offer {
        Some(offer) => offer.changed().await,
        None => std::future::pending().await,
    }
}

/// An occasion to compare the stored announcement with what is to be announced. Another worker may have had it deleted, or
/// an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Check {
    /// The connection, as [`Link::epoch`](crate::bus::Link::epoch) counts.
    epoch: u64,
    /// Counts up while the connection lasts.
    number: u64,
}

/// The line that `answer` says about a reboot, if any.
async fn about_reboot(
    answer: impl Future<Output = HandlerResult<Option<String>>> + Send,
) -> Result<Option<String>, String> {
    let reason = tokio::time::timeout(REBOOT_REQUIRED_WITHIN, catch_panic(answer)).await;
    let reason = reason.unwrap_or_else(|_| Err("the handler took too long".to_owned()))?;
    let line = |text: String| limits::bounded(text.trim(), limits::REBOOT_REQUIRED_BYTES_MAX);
    Ok(reason.map(line).filter(|line| !line.is_empty()))
}

/// Stores announcements.
struct Announcer {
    bus: Bus,
    /// The last one that was stored, and when that was checked last.
    last: Option<(Check, Announcement)>,
    throttle: LogThrottle,
}

impl Announcer {
    /// Stores `announcement`, however long that takes, unless it is stored. At each check that is looked at once.
    async fn announce(&mut self, check: Check, announcement: &Announcement) {
        let current = Some((check, announcement.clone()));
        if self.last == current {
            return;
        }
        while let Err(error) = self.try_announce(announcement).await {
            if self.throttle.is_due(&error, Instant::now()) {
                warn!("the announcement is not stored yet: {error}");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        self.throttle.reset();
        self.last = current;
    }

    async fn try_announce(&self, announcement: &Announcement) -> Result<(), String> {
        let subject = subject::worker(&announcement.application, &announcement.host);
        let stream = self.bus.await_stream(subject::WORKERS_STREAM).await;
        // The first one of a process is stored even if it says nothing new.
        if self.last.is_some() {
            let last = self.bus.last_payload(&stream, &subject).await?;
            let last = last.and_then(|payload| Announcement::parse(&payload).ok());
            if last.is_some_and(|last| is_same(&last, announcement)) {
                return Ok(());
            }
        }
        let now = Announcement { time: Some(Utc::now()), ..announcement.clone() };
        self.bus.publish_stored(subject, HeaderMap::new(), now.to_payload().into()).await?;
        info!("the worker is announced");
        Ok(())
    }
}

/// Whether both announcements are equal except for their time.
fn is_same(last: &Announcement, announcement: &Announcement) -> bool {
    let announcement = Announcement { time: last.time, ..announcement.clone() };
    *last == announcement
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use async_nats::jetstream;
    use os_upgrade_protocol::ApplicationName;

    use super::*;
    use crate::testing::NatsServer;

    /// The orchestrator deletes what does not count, and a place may become free later.
    #[tokio::test]
    async fn announcement_that_is_gone_is_made_again() {
        let server = NatsServer::start().await.expect("NATS starts");
        let client = async_nats::connect(server.url()).await.expect("NATS answers");
        let stream = jetstream::stream::Config {
            name: subject::WORKERS_STREAM.to_owned(),
            subjects: vec![subject::WORKERS.to_owned()],
            ..jetstream::stream::Config::default()
        };
        let stream = jetstream::new(client.clone()).create_stream(stream).await.expect("NATS answers");
        let stored = async || stream.get_info().await.expect("NATS answers").state.messages;
        let (host, application) = (HostName::new("h1"), ApplicationName::new("a"));
        let announcement = Announcement::new(host.expect("valid"), application.expect("valid"));
        let mut announcer = Announcer { bus: Bus::new(client), last: None, throttle: LogThrottle::default() };
        let check = |number| Check { epoch: 1, number };
        for number in [0, 1] {
            announcer.announce(check(number), &announcement).await;
            assert_eq!(stored().await, 1, "it is still there");
        }
        stream.purge().await.expect("NATS answers");
        announcer.announce(check(1), &announcement).await;
        assert_eq!(stored().await, 0, "that was looked at");
        announcer.announce(check(2), &announcement).await;
        assert_eq!(stored().await, 1);
    }
}
