//! Raw calls of the API, so that a test sees status, headers and bodies as they are.

use std::time::Duration;

use harness::http;
use harness::wait::PATIENCE;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};

/// Patches that merge.
pub(super) const MERGE: &str = "application/merge-patch+json";
/// Patches that are lists of operations.
pub(super) const JSON_PATCH: &str = "application/json-patch+json";

/// A caller.
#[derive(Debug, Clone)]
pub(super) struct Api {
    url: String,
    token: Option<String>,
    client: Client,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    /// The body.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A header; empty if it is absent.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Panics unless it has this status; returns the body.
    #[track_caller]
    pub(super) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Panics unless it is a `Status` with this code and reason; returns the message.
    #[track_caller]
    pub(super) fn refused(&self, code: u16, reason: &str) -> String {
        let body = self.expect(code);
        assert_eq!((&body["kind"], &body["status"]), (&json!("Status"), &json!("Failure")), "{body}");
        assert_eq!((&body["code"], &body["reason"]), (&json!(code), &json!(reason)), "{body}");
        body["message"].as_str().unwrap().to_owned()
    }
}

impl Api {
    /// A caller with this token, or without any.
    pub(super) fn new(url: &str, token: Option<&str>) -> Self {
        let client = http::builder([]).build().unwrap();
        Self { url: url.to_owned(), token: token.map(str::to_owned), client }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn answer(request: RequestBuilder) -> Result<Answer, reqwest::Error> {
        let response = request.timeout(PATIENCE).send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, text: response.text().await? })
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        Self::answer(self.request(Method::GET, path)).await.unwrap()
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body).await.unwrap()
    }

    /// A request whose connection may be cut.
    pub(super) async fn try_post(&self, path: &str, body: &Value) -> Result<Answer, reqwest::Error> {
        Self::answer(self.request(Method::POST, path).json(body)).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Answer {
        Self::answer(self.request(Method::PUT, path).json(body)).await.unwrap()
    }

    pub(super) async fn patch(&self, kind: &str, path: &str, body: &Value) -> Answer {
        let request = self.request(Method::PATCH, path).header(CONTENT_TYPE, kind).body(body.to_string());
        Self::answer(request).await.unwrap()
    }

    pub(super) async fn delete(&self, path: &str, body: &Value) -> Answer {
        Self::answer(self.request(Method::DELETE, path).json(body)).await.unwrap()
    }

    /// A watch that has begun.
    pub(super) async fn watch(&self, path: &str) -> Watch {
        let response = self.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{response:?}");
        Watch { response, read: Vec::new() }
    }
}

/// A watch in progress.
#[derive(Debug)]
pub(super) struct Watch {
    response: Response,
    read: Vec<u8>,
}

impl Watch {
    /// The next event; none if the watch has ended.
    pub(super) async fn next(&mut self) -> Option<Value> {
        self.next_within(PATIENCE).await.expect("an event, or the end")
    }

    /// The next event, the end as null; none if neither comes in time.
    async fn next_within(&mut self, patience: Duration) -> Option<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(Some(serde_json::from_slice(&line).unwrap()));
            }
            match tokio::time::timeout(patience, self.response.chunk()).await.ok()?.unwrap() {
                Some(bytes) => self.read.extend(bytes),
                None => return Some(None),
            }
        }
    }

    /// Whether nothing has arrived.
    pub(super) async fn is_silent(&mut self) -> bool {
        self.next_within(Duration::ZERO).await.is_none()
    }

    /// The next event's type, and the name and version of its object.
    pub(super) async fn next_change(&mut self) -> (String, String, u64) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &event["object"]["metadata"];
        let version = text(&metadata["resourceVersion"]).parse().unwrap();
        (text(&event["type"]), text(&metadata["name"]), version)
    }
}
