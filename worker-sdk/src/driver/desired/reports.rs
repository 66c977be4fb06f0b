//! Publishes what the host has applied.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::{Applied, HostName, subject};
use os_upgrade_worker_rules::limits::backoff;
use tokio::sync::watch;
use tracing::warn;

use crate::bus::Bus;

/// The shortest time between two reports.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// Publishes each new report, and the last one again over each new connection: the stream may have been created again, and a host with its
/// own account may not look. Never returns.
pub(super) async fn run(bus: Bus, host: HostName, mut reports: watch::Receiver<Option<Applied>>) {
    let subject = subject::applied(&host);
    let mut link = bus.link();
    let mut throttle = LogThrottle::default();
    let mut published = None;
    let mut attempt = 0;
    loop {
        bus.await_connection().await;
        let epoch = link.borrow_and_update().epoch;
        let latest = reports.borrow_and_update().clone().map(|report| (epoch, report));
        if let Some((_, report)) = &latest
            && latest != published
        {
            let stored = bus.publish_stored(subject.clone(), HeaderMap::new(), report.to_payload().into());
            match stored.await {
                Ok(()) => {
                    (published, attempt) = (latest, 0);
                    throttle.reset();
                }
                Err(error) => {
                    attempt += 1;
                    if bus.is_connected() && throttle.is_due(&error, Instant::now()) {
                        warn!("what this host has applied is not reported yet: {error}");
                    }
                }
            }
            let pause =
                if attempt == 0 { REPORT_PAUSE } else { backoff(attempt).to_std().unwrap_or(REPORT_PAUSE) };
            tokio::time::sleep(pause).await;
            if attempt > 0 {
                continue;
            }
        }
        // The senders live in `bus` and in the loop, so neither can fail before the process ends.
        tokio::select! {
            _ = link.wait_for(|link| link.connected && link.epoch != epoch) => {}
            changed = reports.changed() => if changed.is_err() { return },
        }
    }
}
