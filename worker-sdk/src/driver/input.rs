//! Inputs of the loop, and the tasks that send it hints, reconnects and changed versions. Commands and the results of
//! actions are sent where they are read and carried out.

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

/// An input of the loop.
#[derive(Debug)]
pub(super) enum Input {
    Event(Event),
    /// A request to stop the handler under way.
    Hint(Hint),
}

/// Sends hints to the loop; the subscription survives reconnects.
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
            Err(error) => warn!("cannot subscribe to hints: {error}"),
        }
        tokio::time::sleep(SUBSCRIBE_PAUSE).await;
    }
}

/// Wakes the loop at each new connection, of which it tells the rules.
pub(super) async fn reconnects(bus: Bus, inputs: mpsc::Sender<Input>) {
    let mut link = bus.link();
    let mut last = 0;
    while let Ok(now) = link.wait_for(|link| link.connected && link.epoch != last).await.map(|link| *link) {
        last = now.epoch;
        if inputs.send(Input::Event(Event::Tick)).await.is_err() {
            return;
        }
    }
}

/// Sends each notification about changed versions to the rules.
pub(super) async fn version_changes(versions: VersionsNotifier, inputs: mpsc::Sender<Input>) {
    loop {
        versions.notified().await;
        if inputs.send(Input::Event(Event::VersionsChanged)).await.is_err() {
            return;
        }
    }
}
