//! All messages about one host, in the order in which the server received them.

use std::time::{Duration, Instant};

use async_nats::{Client, Message};
use bytes::Bytes;
use futures::StreamExt;
use os_upgrade_protocol::{AckSubject, HostName, header, subject};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// An observed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The stream has delivered a command to a worker.
    Delivered { sequence: u64 },
    /// A worker has acknowledged a command.
    Acked { sequence: u64 },
    /// A worker has reported that a command is still under way.
    InProgress { sequence: u64 },
    /// A reply, and the inbox for the stream's confirmation.
    Reply { payload: Bytes, in_reply_to: Option<u64>, inbox: Option<String> },
    /// The stream has confirmed the reply that names this inbox.
    Stored { inbox: String },
    /// A heartbeat.
    Beat,
    /// A message that the check has sent to itself.
    Probe,
}

/// An observed message and its time.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) at: Instant,
    pub(super) seen: Seen,
}

/// The log of the messages observed between the controller and one worker.
#[derive(Debug)]
pub(super) struct Wire {
    client: Client,
    host: HostName,
    log: watch::Sender<Vec<Event>>,
    /// Whether the log is in the order in which the server received the messages.
    knows_order: bool,
    listener: JoinSet<()>,
}

impl Wire {
    pub(super) fn new(client: Client, host: HostName) -> Self {
        Self {
            client,
            host,
            log: watch::Sender::new(Vec::new()),
            knows_order: false,
            listener: JoinSet::new(),
        }
    }

    /// Subscribes to everything: only a single subscription preserves the order of messages. It also counts as a
    /// subscriber to every inbox, so the server would keep delivering commands to a killed worker, and would not report a
    /// deleted consumer to the worker.
    pub(super) async fn listen_to_all(&mut self) -> Result<(), String> {
        self.knows_order = true;
        self.listen(vec![">".to_owned()]).await
    }

    /// Subscribes only to the worker's messages; from then on the order of acknowledgements and replies is unknown.
    pub(super) async fn listen_to_worker(&mut self) -> Result<(), String> {
        self.knows_order = false;
        let acks = "$JS.ACK.>".to_owned();
        self.listen(vec![acks, subject::reply(&self.host), subject::presence(&self.host)]).await
    }

    async fn listen(&mut self, subjects: Vec<String>) -> Result<(), String> {
        self.listener.shutdown().await;
        let mut subscriptions = Vec::new();
        for subject in subjects {
            let subscribed = self.client.subscribe(subject).await;
            subscriptions.push(subscribed.map_err(|error| error.to_string())?);
        }
        self.client.flush().await.map_err(|error| error.to_string())?;
        let (log, host) = (self.log.clone(), self.host.clone());
        self.listener.spawn(async move {
            let mut messages = futures::stream::select_all(subscriptions);
            while let Some(message) = messages.next().await {
                let at = Instant::now();
                let seen = interpret(&host, &message, &log.borrow());
                if let Some(seen) = seen {
                    log.send_modify(|log| log.push(Event { at, seen }));
                }
            }
        });
        Ok(())
    }

    /// Whether messages are now observed in the order in which the server received them.
    pub(super) const fn knows_order(&self) -> bool {
        self.knows_order
    }

    /// The number of messages observed so far.
    pub(super) fn mark(&self) -> usize {
        self.log.borrow().len()
    }

    /// Applies `inspect` to all observed messages.
    pub(super) fn inspect<T>(&self, inspect: impl FnOnce(&[Event]) -> T) -> T {
        inspect(&self.log.borrow())
    }

    /// Applies `find` after each new message until it returns a value; `None` when `patience` is over.
    pub(super) async fn until<T>(
        &self,
        patience: Duration,
        mut find: impl FnMut(&[Event]) -> Option<T>,
    ) -> Option<T> {
        let mut log = self.log.subscribe();
        let search = async {
            loop {
                let found = find(&log.borrow_and_update());
                if found.is_some() {
                    return found;
                }
                if log.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(patience, search).await.ok().flatten()
    }
}

/// The subject on which the check sends a message to itself, to test whether it receives everything.
pub(super) fn probe(host: &HostName) -> String {
    format!("os-upgrade.check.{}", host.token())
}

fn interpret(host: &HostName, message: &Message, before: &[Event]) -> Option<Seen> {
    let at = message.subject.as_str();
    if let Some(sequence) = acknowledged(at) {
        return Some(match &message.payload[..] {
            b"+WPI" => Seen::InProgress { sequence },
            // Not acknowledged: the command will be delivered again.
            payload if payload.starts_with(b"-NAK") => return None,
            // An empty payload, +ACK, +NXT and +TERM all acknowledge it.
            _ => Seen::Acked { sequence },
        });
    }
    if at == subject::command(host) {
        let sequence = acknowledged(message.reply.as_ref()?)?;
        return Some(Seen::Delivered { sequence });
    }
    if at == subject::reply(host) {
        let value = message.headers.as_ref().and_then(|headers| headers.get(header::IN_REPLY_TO));
        return Some(Seen::Reply {
            payload: message.payload.clone(),
            in_reply_to: value.and_then(|value| value.as_str().parse().ok()),
            inbox: message.reply.as_ref().map(ToString::to_string),
        });
    }
    if at == subject::presence(host) {
        return Some(Seen::Beat);
    }
    if at == probe(host) {
        return Some(Seen::Probe);
    }
    let is_reply_inbox = before
        .iter()
        .any(|event| matches!(&event.seen, Seen::Reply { inbox: Some(inbox), .. } if inbox.as_str() == at));
    // An error message of the stream has no sequence.
    let stored =
        is_reply_inbox && serde_json::from_slice::<serde_json::Value>(&message.payload).ok()?["seq"].is_u64();
    stored.then(|| Seen::Stored { inbox: at.to_owned() })
}

/// The stream sequence of the command that is acknowledged through `subject`.
fn acknowledged(subject: &str) -> Option<u64> {
    let ack = AckSubject::parse(subject).filter(|ack| ack.stream() == subject::CONTROL_STREAM)?;
    ack.stream_sequence()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_sequences_are_parsed() {
        for (subject, expected) in [
            ("$JS.ACK.os-upgrade:control.worker-h1.1.7.3.1790000000.0", Some(7)),
            ("$JS.ACK.hub.hash.os-upgrade:control.worker-h1.1.7.3.1790000000.0.random", Some(7)),
            ("$JS.ACK.other.worker-h1.1.7.3.1790000000.0", None),
            ("$JS.ACK.short", None),
            ("os-upgrade:control.reply.h1", None),
        ] {
            assert_eq!(acknowledged(subject), expected, "{subject}");
        }
    }
}
