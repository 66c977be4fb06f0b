//! Watches: changes as they happen, a line of JSON each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::request::Request;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::state::{Shared, State};
use crate::store::{self, Change};

/// The pause between bookmarks: a minute at a real server, which is long for a test.
const BOOKMARK_INTERVAL: Duration = Duration::from_millis(200);
/// When a watch ends whose client names no time, or none but 0.
const TIMEOUT: Duration = Duration::from_mins(30);

/// A watch in progress.
struct Watch {
    shared: Arc<Shared>,
    changed: watch::Receiver<()>,
    resource: Resource,
    namespace: Option<String>,
    selector: Selector,
    has_bookmarks: bool,
    /// The version of the last change that was looked at.
    last: u64,
    /// The version of the last bookmark.
    marked: u64,
    /// When the next one is due, however much happens meanwhile.
    next_bookmark: Instant,
    pending: VecDeque<Value>,
    is_over: bool,
    ends: Instant,
    cuts: u64,
}

/// The body of the answer to a watch.
pub(crate) fn body(shared: &Arc<Shared>, request: &Request) -> Result<Body, Failure> {
    let timeout =
        request.number("timeoutSeconds")?.filter(|secs| *secs > 0).map_or(TIMEOUT, Duration::from_secs);
    let mut watch = Watch {
        shared: Arc::clone(shared),
        changed: shared.changes(),
        resource: request.target.resource,
        namespace: request.target.namespace.clone(),
        selector: request.selector()?,
        has_bookmarks: request.parameter("allowWatchBookmarks") == "true",
        last: 0,
        marked: 0,
        next_bookmark: Instant::now() + BOOKMARK_INTERVAL,
        pending: VecDeque::new(),
        is_over: false,
        ends: Instant::now() + timeout,
        cuts: 0,
    };
    let asked = request.parameter("resourceVersion");
    shared.read(|state| watch.begin(asked, state))?;
    Ok(Body::from_stream(futures::stream::unfold(watch, Watch::next)))
}

fn event(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

impl Watch {
    fn begin(&mut self, asked: &str, state: &mut State) -> Result<(), Failure> {
        self.cuts = state.cuts;
        let (store, lists) = (&state.store, &state.lists);
        if asked.is_empty() || asked == "0" {
            let (version, objects) = if asked == "0" {
                (lists.cached_version(store), lists.cached(store))
            } else {
                (store.version(), store.objects())
            };
            self.last = version;
            let found = store::list(objects, self.resource, self.namespace.as_deref());
            let found = found.filter(|(_, object)| self.selector.matches(object));
            self.pending.extend(found.map(|(_, object)| event("ADDED", object)));
            return Ok(());
        }
        let wrong = |_| {
            let why = format!("strconv.ParseUint: parsing \"{asked}\": invalid syntax");
            Failure::new(500, "", format!("resourceVersion: Invalid value: \"{asked}\": {why}"))
        };
        self.last = asked.parse().map_err(wrong)?;
        if self.last < store.oldest() {
            let message = format!("too old resource version: {} ({})", self.last, store.oldest());
            self.pending.push_back(event("ERROR", &Failure::new(410, "Expired", message).status()));
            self.is_over = true;
        }
        Ok(())
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some((Ok(Bytes::from(format!("{event}\n"))), self));
            }
            if self.is_over {
                return None;
            }
            self.look();
            if self.is_over || !self.pending.is_empty() {
                continue;
            }
            tokio::select! {
                // The sender lives as long as this watch does.
                _ = self.changed.changed() => {}
                () = tokio::time::sleep_until(self.next_bookmark), if self.has_bookmarks => self.bookmark(),
                () = tokio::time::sleep_until(self.ends) => self.is_over = true,
            }
        }
    }

    /// Takes up the changes since it last looked.
    fn look(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.read(|state| {
            self.is_over = state.cuts != self.cuts;
            let visible = state.lists.cached_version(&state.store);
            let changes = state.store.changes_after(self.last).iter();
            for change in changes.take_while(|change| change.version <= visible) {
                self.last = change.version;
                self.pending.extend(self.event_of(change));
            }
        });
    }

    fn event_of(&self, change: &Change) -> Option<Value> {
        let key = &change.key;
        if key.resource != self.resource || self.namespace.as_ref().is_some_and(|name| *name != key.namespace)
        {
            return None;
        }
        let selected = |object: &&Arc<Value>| self.selector.matches(object);
        let (before, after) =
            (change.before.as_ref().filter(selected), change.after.as_ref().filter(selected));
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(event("ADDED", after)),
            (Some(_), Some(after)) => Some(event("MODIFIED", after)),
            (Some(before), None) => {
                let mut last = Value::clone(before);
                last["metadata"]["resourceVersion"] = json!(change.version.to_string());
                Some(event("DELETED", &last))
            }
        }
    }

    /// Says up to which version nothing was missed, if that has advanced.
    fn bookmark(&mut self) {
        self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
        let visible = self.shared.read(|state| state.lists.cached_version(&state.store));
        if visible > self.marked && self.last <= visible {
            self.marked = visible;
            let metadata = json!({ "resourceVersion": self.last.to_string(), "creationTimestamp": null });
            let (kind, version) = (self.resource.kind, self.resource.api_version());
            let object = json!({ "kind": kind, "apiVersion": version, "metadata": metadata });
            self.pending.push_back(event("BOOKMARK", &object));
        }
    }
}
