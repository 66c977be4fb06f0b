//! A client that follows the events of an instance.

use std::time::Duration;

use serde_json::Value;

use crate::rest::Rest;

/// How long to wait for the next event.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of events, and what has been read of it.
#[derive(Debug)]
pub struct Events {
    response: reqwest::Response,
    text: String,
    /// The events so far, without the progress of workers.
    pub read: Vec<Value>,
    /// The last id.
    pub id: String,
}

impl Events {
    /// Follows the events of the instance, with this query, after the event `last`; without an id from now on.
    pub async fn follow(rest: &Rest, query: &str, last: &str) -> Self {
        let response = rest.stream(&format!("/v1/state/os-upgrade/events{query}"), last).await;
        let mut events = Self { response, text: String::new(), read: Vec::new(), id: last.to_owned() };
        // The first block says where it begins.
        events.piece().await;
        events
    }

    /// Reads until there is an event of this kind; false if the stream ends.
    pub async fn until(&mut self, kind: &str) -> bool {
        loop {
            if self.read.iter().any(|event| event["kind"] == kind) {
                return true;
            }
            if !self.piece().await {
                return false;
            }
        }
    }

    /// Reads until the stream ends.
    pub async fn until_end(&mut self) {
        while self.piece().await {}
    }

    /// The ids of the events so far.
    pub fn ids(&self) -> Vec<&str> {
        self.read.iter().filter_map(|event| event["id"].as_str()).collect()
    }

    async fn piece(&mut self) -> bool {
        let piece = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
        let piece = piece.unwrap_or_else(|_| panic!("no event follows {:?}", self.read));
        let Ok(Some(piece)) = piece else { return false };
        self.text.push_str(std::str::from_utf8(&piece).unwrap());
        while let Some((block, rest)) = self.text.split_once("\n\n") {
            let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            if let Some(id) = line("id: ") {
                id.clone_into(&mut self.id);
            }
            let event = line("data: ").map(|data| serde_json::from_str::<Value>(data).unwrap());
            self.read.extend(event.filter(|event| event["kind"] != "progress"));
            self.text = rest.into();
        }
        true
    }
}
