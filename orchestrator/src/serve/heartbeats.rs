//! The task that sends this instance's heartbeats and records those of others.

use std::time::Duration;

use chrono::Utc;
use os_upgrade_site::instances::Heartbeat;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::shared::Shared;

/// Time between two heartbeats.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// The most heartbeats that wait to be recorded.
const WAITING_MAX: usize = 64;

/// Waits for the bus, then sends and records heartbeats until the instance stops.
pub(super) async fn run(Shared { cluster, bus, published, shutdown: stop, .. }: Shared) {
    let Some(bus) = stop.run_until_cancelled(bus.wait()).await.cloned() else { return };
    let (sender, mut heard) = mpsc::channel(WAITING_MAX);
    let reader = {
        let (bus, stop) = (bus.clone(), stop.clone());
        tokio::spawn(async move { bus.read_instances(stop, sender).await })
    };
    let mut beat = tokio::time::interval(BEAT_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(payload) = heard.recv() => {
                if let Some(heartbeat) = Heartbeat::read(&payload) {
                    cluster.record(heartbeat, Utc::now());
                }
            }
            _ = beat.tick() => bus.send_heartbeat(&cluster.heartbeat(&published.load(), Utc::now())).await,
        }
    }
    reader.abort();
}
