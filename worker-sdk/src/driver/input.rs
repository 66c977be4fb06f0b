//! What comes to the loop; and the tasks that pass on hints, new connections and changed versions. Commands, and what comes
//! of actions, are passed on where they are read and carried out.

use std::time::Duration;

use futures::StreamExt;
use os_upgrade_protocol::Hint;
use os_upgrade_worker_rules::Event;
use tokio::sync::mpsc;
use tracing::warn;

use crate::VersionsNotifier;
use crate::bus::Bus;

/// The pause after the hint subscription failed.
const SUBSCRIBE_PAUSE: Duration = Duration::from_secs(1);

/// What comes to the loop.
#[derive(Debug)]
pub(super) enum Input {
    Event(Event),
    /// The handler under way is asked to stop.
    Hint(Hint),
}

/// Passes on hints; the subscription outlives reconnects.
pub(super) async fn hints(bus: Bus, subject: String, inputs: mpsc::Sender<Input>) {
    loop {
        bus.await_connection().await;
        match bus.subscribe(subject.clone()).await {
            Ok(mut hints) => {
                while let Some(message) = hints.next().await {
                    if inputs.send(Input::Hint(Hint::read(&message.payload))).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => warn!("cannot listen for hints: {error}"),
        }
        tokio::time::sleep(SUBSCRIBE_PAUSE).await;
    }
}

/// Tells the rules of each new connection.
pub(super) async fn reconnects(bus: Bus, inputs: mpsc::Sender<Input>) {
    let mut link = bus.link();
    let mut last = 0;
    while let Ok(now) = link.wait_for(|link| link.connected && link.epoch != last).await.map(|link| *link) {
        last = now.epoch;
        if inputs.send(Input::Event(Event::Reconnected)).await.is_err() {
            return;
        }
    }
}

/// Tells the rules that versions may have changed, each time somebody says so.
pub(super) async fn version_changes(versions: VersionsNotifier, inputs: mpsc::Sender<Input>) {
    loop {
        versions.notified().await;
        if inputs.send(Input::Event(Event::VersionsChanged)).await.is_err() {
            return;
        }
    }
}
