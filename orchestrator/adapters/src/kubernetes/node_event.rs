//! Events of Kubernetes about nodes, which `kubectl describe node` shows: what was done to a node, and why.
//!
//! They are a courtesy. Nothing depends on them, nobody waits for them, and one that cannot be written is left out. The name of an
//! event follows from what it says and from the cordon that it is about, so that it is there once, whichever instance writes it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::Utc;
use os_upgrade_protocol::limits::bounded;
use os_upgrade_protocol::time;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::api::EVENT_NAMESPACE;
use super::client::Client;
use super::mark::{Mark, Marking, Note};
use super::node::NodeState;

/// Who reports them.
const REPORTER: &str = "os-upgrade";
/// The longest message, as the API takes it.
const MESSAGE_BYTES_MAX: usize = 1_000;
/// How much of a node's name is in the name of an event.
const NAME_BYTES_MAX: usize = 200;
/// How many events are being written at once. Others are left out.
const AT_ONCE: usize = 8;
/// How many events are remembered, so that they are not written again.
const REMEMBERED_MAX: usize = 4_096;

/// What was done to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeEvent {
    /// It was cordoned, to be drained.
    Cordoned,
    /// It was drained.
    Drained,
    /// It would not be drained, so nothing was evicted.
    DrainRefused {
        /// Why not.
        why: String,
    },
    /// It is as it was before.
    Uncordoned,
}

/// The events that this process writes.
#[derive(Debug)]
pub(crate) struct NodeEvents {
    in_flight: Arc<Semaphore>,
    /// The last events.
    written: Mutex<VecDeque<u64>>,
}

impl Default for NodeEvents {
    fn default() -> Self {
        Self { in_flight: Arc::new(Semaphore::new(AT_ONCE)), written: Mutex::default() }
    }
}

impl NodeEvents {
    /// Writes an event about a node, in the background. `node` has the mark of the cordon that it is about.
    pub(crate) fn report(&self, client: &Client, node: &NodeState, event: &NodeEvent) {
        let Marking::Marked { mark, text } = &node.cordon.marking else { return };
        let id = id(node, mark, Note::read(text).since.as_deref(), event);
        let Ok(seat) = Arc::clone(&self.in_flight).try_acquire_owned() else { return };
        if !self.is_new(id) {
            return;
        }
        let (client, name, body) = (client.clone(), node.name.clone(), body(node, mark, id, event));
        tokio::spawn(async move {
            if let Err(error) = client.create_event(&body).await {
                tracing::debug!(node = name, %error, "an event about a node is left out");
            }
            drop(seat);
        });
    }

    fn is_new(&self, id: u64) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.contains(&id) {
            return false;
        }
        if written.len() >= REMEMBERED_MAX {
            written.pop_front();
        }
        written.push_back(id);
        true
    }
}

impl NodeEvent {
    const fn reason(&self) -> &'static str {
        match self {
            Self::Cordoned => "Cordoned",
            Self::Drained => "Drained",
            Self::DrainRefused { .. } => "DrainRefused",
            Self::Uncordoned => "Uncordoned",
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::DrainRefused { .. } => "Warning",
            Self::Cordoned | Self::Drained | Self::Uncordoned => "Normal",
        }
    }

    fn message(&self, mark: &Mark) -> String {
        let Mark { site, owner, .. } = mark;
        let what = match self {
            Self::Cordoned => "cordoned, to be drained".to_owned(),
            Self::Drained => "drained".to_owned(),
            Self::DrainRefused { why } => format!("not drained, nothing was evicted: {why}"),
            Self::Uncordoned => "as it was before the cordon".to_owned(),
        };
        bounded(&format!("{what} (site {site}, {owner})"), MESSAGE_BYTES_MAX)
    }
}

/// What tells an event from others: the same one is written once. Its text is none of that, since servers may add a time or an id to
/// each answer.
fn id(node: &NodeState, mark: &Mark, since: Option<&str>, event: &NodeEvent) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&node.uid, &mark.site, &mark.owner, since, event.reason()).hash(&mut hasher);
    hasher.finish()
}

fn body(node: &NodeState, mark: &Mark, id: u64, event: &NodeEvent) -> Value {
    let now = time::format(Utc::now());
    let end = node.name.len().min(NAME_BYTES_MAX);
    let prefix = node.name.get(..end).unwrap_or_default().trim_end_matches(['.', '-']);
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "namespace": EVENT_NAMESPACE, "name": format!("{prefix}.{id:016x}") },
        "involvedObject": { "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid },
        "type": event.kind(),
        "reason": event.reason(),
        "message": event.message(mark),
        "source": { "component": REPORTER },
        "reportingComponent": REPORTER,
        "reportingInstance": mark.site,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::super::objects::Node;
    use super::*;

    /// Webhooks may add an id to what they say, and a check is repeated where its outcome was lost.
    #[test]
    fn refused_drain_is_one_event_for_each_cordon() {
        let node: Node =
            serde_json::from_value(json!({ "metadata": { "name": "n1", "uid": "u1" } })).unwrap();
        let node = NodeState::from(node);
        let mark = json!({
            "site": "here", "owner": "r1", "host": "n1", "fence": { "restored": 0, "sequence": 7 },
            "wasUnschedulable": false,
        });
        let mark: Mark = serde_json::from_value(mark).unwrap();
        let refused = |since, why: &str| {
            id(&node, &mark, Some(since), &NodeEvent::DrainRefused { why: why.to_owned() })
        };
        assert_eq!(refused("1", "request 17 is denied"), refused("1", "request 18 is denied"));
        assert_ne!(refused("1", ""), refused("2", ""));
        assert_ne!(refused("1", ""), id(&node, &mark, Some("1"), &NodeEvent::Drained));
    }

    #[test]
    fn memory_of_events_is_bounded() {
        let events = NodeEvents::default();
        let bound = u64::try_from(REMEMBERED_MAX).unwrap();
        assert!((0..2 * bound).all(|id| events.is_new(id)));
        assert!(!events.is_new(2 * bound - 1) && events.is_new(0));
        assert_eq!(events.written.lock().unwrap().len(), REMEMBERED_MAX);
    }
}
