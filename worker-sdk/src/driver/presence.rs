//! Heartbeats and the announcement, by which a worker makes itself known.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use chrono::Utc;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::{Announcement, Heartbeat, HostName, subject};
use tracing::{info, warn};

use crate::bus::Bus;

/// How often a heartbeat is sent; a host without one for 30 s counts as unreachable.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);
/// The pause after an announcement failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Sends a heartbeat immediately, every ten seconds, and after each reconnect. Never returns.
pub(super) async fn heartbeats(bus: Bus, host: HostName) {
    let subject = subject::presence(&host);
    let mut link = bus.link();
    loop {
        let epoch = link.borrow_and_update().epoch;
        let heartbeat = Heartbeat { time: Some(Utc::now()) };
        bus.send(subject.clone(), heartbeat.to_payload().into()).await;
        let reconnected = link.wait_for(|link| link.connected && link.epoch != epoch);
        // A reconnect and the timeout both mean that it is time for the next one.
        let _ = tokio::time::timeout(HEARTBEAT_EVERY, reconnected).await;
    }
}

/// Announces the worker at its start, and again after a reconnect if the stored announcement differs. Never returns.
pub(super) async fn announcements(bus: Bus, announcement: Announcement) {
    let mut link = bus.link();
    let mut first = true;
    let mut throttle = LogThrottle::default();
    loop {
        bus.await_connection().await;
        let epoch = link.borrow_and_update().epoch;
        while let Err(error) = announce(&bus, &announcement, first).await {
            if throttle.is_due(&error, Instant::now()) {
                warn!("the announcement is not stored yet: {error}");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        first = false;
        throttle.reset();
        // The sender lives in `bus`, so this cannot fail.
        let _ = link.wait_for(|link| link.connected && link.epoch != epoch).await;
    }
}

async fn announce(bus: &Bus, announcement: &Announcement, even_if_unchanged: bool) -> Result<(), String> {
    let subject = subject::worker(&announcement.application, &announcement.host);
    let stream = bus.await_stream(subject::WORKERS_STREAM).await;
    if !even_if_unchanged {
        let last = bus.last_payload(&stream, &subject).await?;
        let last = last.and_then(|payload| Announcement::parse(&payload).ok());
        if last.is_some_and(|last| is_same(&last, announcement)) {
            return Ok(());
        }
    }
    let now = Announcement { time: Some(Utc::now()), ..announcement.clone() };
    bus.publish_stored(subject, HeaderMap::new(), now.to_payload().into()).await?;
    info!("the worker is announced");
    Ok(())
}

/// Whether both announcements are equal except for their time.
fn is_same(last: &Announcement, announcement: &Announcement) -> bool {
    let announcement = Announcement { time: last.time, ..announcement.clone() };
    *last == announcement
}
