//! Inputs of the loop, and the tasks that send it hints, reconnects and changed versions. Commands and the results of
//! actions are sent where they are read and carried out.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::Subscriber;
use futures::StreamExt;
use os_upgrade_protocol::Hint;
use os_upgrade_worker_rules::Event;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use crate::VersionsNotifier;
use crate::bus::Bus;

/// The pause after the hint subscription failed.
pub(super) const SUBSCRIBE_PAUSE: Duration = Duration::from_secs(1);

/// An input of the loop.
#[derive(Debug)]
pub(super) enum Input {
    Event(Event),
    /// A request to stop the handler under way.
    Hint(Hint),
}

/// What the rules are told when `event` arrives, and there have been so many `connections`: first that there is one of which they do not
/// know, as nothing may happen over it before. A command that came over an earlier one is left out, since it is delivered again.
pub(super) fn arrived(known: &mut u64, connections: u64, event: Event) -> VecDeque<Event> {
    let is_new = connections > *known;
    *known = connections.max(*known);
    let is_outdated = matches!(&event, Event::CommandReceived(received) if received.connection < *known);
    if is_outdated {
        debug!("a command of an earlier connection is left to its next delivery");
    }
    let reconnected = is_new.then_some(Event::Reconnected);
    reconnected.into_iter().chain(Some(event).filter(|_| !is_outdated)).collect()
}

/// Sends hints to the loop.
pub(super) async fn hints(bus: Bus, subject: String, inputs: mpsc::Sender<Input>) {
    loop {
        let mut hints = subscribed(&bus, &subject).await;
        while let Some(message) = hints.next().await {
            if inputs.send(Input::Hint(Hint::read(&message.payload))).await.is_err() {
                return;
            }
        }
        tokio::time::sleep(SUBSCRIBE_PAUSE).await;
    }
}

/// A subscription to hints, however long it takes; it survives reconnects.
pub(super) async fn subscribed(bus: &Bus, subject: &str) -> Subscriber {
    loop {
        bus.await_connection().await;
        match bus.subscribe(subject.to_owned()).await {
            Ok(hints) => return hints,
            Err(error) => warn!("cannot subscribe to hints: {error}"),
        }
        tokio::time::sleep(SUBSCRIBE_PAUSE).await;
    }
}

/// Wakes the loop at each new connection, so that it tells the rules.
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

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use os_upgrade_worker_rules::Received;

    use super::*;

    fn command(connection: u64) -> Event {
        Event::CommandReceived(Received {
            sequence: 1,
            published: DateTime::UNIX_EPOCH,
            delivered: 1,
            last_sequence_at_open: 0,
            connection,
            subject: String::new(),
            ack_subject: String::new(),
            run_header: None,
            id_header: None,
            payload: Vec::new(),
        })
    }

    #[test]
    fn new_connection_is_told_before_anything_else() {
        let mut known = 0;
        for (connections, event, expected) in [
            (1, Event::Tick, vec![Event::Reconnected, Event::Tick]),
            (1, command(1), vec![command(1)]),
            (2, command(1), vec![Event::Reconnected]),
            (2, command(1), vec![]),
            (2, command(2), vec![command(2)]),
            (3, command(3), vec![Event::Reconnected, command(3)]),
            (3, Event::StateSaved, vec![Event::StateSaved]),
        ] {
            assert_eq!(arrived(&mut known, connections, event), expected, "{connections}");
        }
    }
}
