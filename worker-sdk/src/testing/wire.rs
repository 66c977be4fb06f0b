//! Everything that goes over the wire about one host, in the order in which the server saw it.

use std::time::{Duration, Instant};

use async_nats::{Client, Message};
use bytes::Bytes;
use futures::StreamExt;
use os_upgrade_protocol::{HostName, header, subject};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The stream has handed a command to a worker.
    Delivered { sequence: u64 },
    /// A worker has acknowledged a command.
    Acked { sequence: u64 },
    /// A worker has said that it is still at a command.
    InProgress { sequence: u64 },
    /// A reply, and where the stream was asked to confirm it.
    Reply { payload: Bytes, in_reply_to: Option<u64>, inbox: Option<String> },
    /// The stream has confirmed the reply that names this inbox.
    Stored { inbox: String },
    /// A heartbeat.
    Beat,
    /// What the check has sent to itself.
    Probe,
}

/// What was seen, and when.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) at: Instant,
    pub(super) seen: Seen,
}

/// The wire.
#[derive(Debug)]
pub(super) struct Wire {
    client: Client,
    host: HostName,
    log: watch::Sender<Vec<Event>>,
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

    /// Listens to everything: only one subscription tells in which order things happened. It also counts as somebody who
    /// waits for every answer, so the server would go on handing commands to a worker that has been killed, and not tell
    /// one that its consumer is gone.
    pub(super) async fn listen_to_all(&mut self) -> Result<(), String> {
        self.knows_order = true;
        self.listen(vec![">".to_owned()]).await
    }

    /// Listens to what the worker sends; in which order an acknowledgement and a reply came is not known any more.
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

    /// Whether what is seen now is in the order in which it happened.
    pub(super) const fn knows_order(&self) -> bool {
        self.knows_order
    }

    /// How much has been seen so far.
    pub(super) fn mark(&self) -> usize {
        self.log.borrow().len()
    }

    /// Looks at everything that has been seen.
    pub(super) fn look<T>(&self, look: impl FnOnce(&[Event]) -> T) -> T {
        look(&self.log.borrow())
    }

    /// Looks, each time something is seen, until `look` finds something or `patience` is over.
    pub(super) async fn until<T>(
        &self,
        patience: Duration,
        mut look: impl FnMut(&[Event]) -> Option<T>,
    ) -> Option<T> {
        let mut log = self.log.subscribe();
        let looking = async {
            loop {
                let found = look(&log.borrow_and_update());
                if found.is_some() {
                    return found;
                }
                if log.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(patience, looking).await.ok().flatten()
    }
}

/// Where the check sends to itself, to see whether it hears everything.
pub(super) fn probe(host: &HostName) -> String {
    format!("os-upgrade.check.{}", host.token())
}

fn interpret(host: &HostName, message: &Message, before: &[Event]) -> Option<Seen> {
    let at = message.subject.as_str();
    if let Some(sequence) = acknowledged(at) {
        return Some(match &message.payload[..] {
            b"+WPI" => Seen::InProgress { sequence },
            // Not acknowledged: it is to be delivered again.
            payload if payload.starts_with(b"-NAK") => return None,
            // An empty one, +ACK, +NXT and +TERM all settle it.
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
    let asked = before
        .iter()
        .any(|event| matches!(&event.seen, Seen::Reply { inbox: Some(inbox), .. } if inbox.as_str() == at));
    // An error of the stream has no sequence.
    let stored = asked && serde_json::from_slice::<serde_json::Value>(&message.payload).ok()?["seq"].is_u64();
    stored.then(|| Seen::Stored { inbox: at.to_owned() })
}

/// The stream sequence of the command that is acknowledged through `subject`:
/// `$JS.ACK.<stream>.<consumer>.<times>.<sequence>.…`, with the domain and account before the stream in the longer form.
fn acknowledged(subject: &str) -> Option<u64> {
    let tokens: Vec<_> = subject.strip_prefix("$JS.ACK.")?.split('.').collect();
    let tokens = if tokens.len() == 7 { &tokens[..] } else { tokens.get(2..)? };
    let of_ours = tokens.first() == Some(&subject::CONTROL_STREAM);
    of_ours.then(|| tokens.get(3)?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_command_is_acknowledged() {
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
