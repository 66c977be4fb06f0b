//! Raw calls of the API, so that a test sees status, headers and bodies as they are.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures::StreamExt as _;
use harness::wait::PATIENCE;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use kube::config::AuthInfo;
use kube::{Client, Config, Error};
use serde_json::{Value, json};

type Response = hyper::Response<kube::client::Body>;

/// Objects.
const JSON: &str = "application/json";
/// Patches that merge.
pub(super) const MERGE: &str = "application/merge-patch+json";
/// Patches that are lists of operations.
pub(super) const JSON_PATCH: &str = "application/json-patch+json";

/// A caller.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    /// What it may change: objects whose path has this segment. Everything if absent.
    scope: Option<String>,
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
        Self::stranger(Config::new(url.parse().unwrap()), token)
    }

    /// A caller at the server of a configuration who has not its credentials, but this token, or none.
    pub(super) fn stranger(mut config: Config, token: Option<&str>) -> Self {
        config.auth_info = AuthInfo::default();
        if let Some(token) = token {
            config.headers.push((AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap()));
        }
        Self::of(config, None)
    }

    /// A caller with the credentials of a configuration, which may change what has the scope in its path.
    pub(super) fn of(mut config: Config, scope: Option<String>) -> Self {
        // As any client of rustls, it needs a provider.
        drop(harness::http::builder([]));
        config.default_retry = false;
        Self { client: Client::try_from(config).unwrap(), scope }
    }

    /// Sends a request. In a cluster that others use, one that could change what is not of the test is never sent.
    async fn send(&self, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Result<Response, Error> {
        if let Some(scope) = &self.scope
            && method != Method::GET
        {
            let is_ours = path.split(['/', '?']).any(|segment| segment == scope);
            let adds = method == Method::POST && ["/api/v1/namespaces", "/api/v1/nodes"].contains(&path);
            assert!(is_ours || adds, "{method} {path} is not about an object of the test");
        }
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind);
        self.client.send(request.body(body.into()).unwrap()).await
    }

    async fn answer(&self, method: Method, path: &str, kind: &str, body: &Value) -> Result<Answer, Error> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = async {
            let response = self.send(method, path, kind, body).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let text = response.into_body().collect_bytes().await?;
            Ok(Answer { status, headers, text: String::from_utf8_lossy(&text).into_owned() })
        };
        tokio::time::timeout(PATIENCE, answer).await.expect("an answer")
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.answer(Method::GET, path, JSON, &Value::Null).await.unwrap()
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body).await.unwrap()
    }

    /// A request whose connection may be cut.
    pub(super) async fn try_post(&self, path: &str, body: &Value) -> Result<Answer, Error> {
        self.answer(Method::POST, path, JSON, body).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.answer(Method::PUT, path, JSON, body).await.unwrap()
    }

    pub(super) async fn patch(&self, kind: &str, path: &str, body: &Value) -> Answer {
        self.answer(Method::PATCH, path, kind, body).await.unwrap()
    }

    pub(super) async fn delete(&self, path: &str, body: &Value) -> Answer {
        self.answer(Method::DELETE, path, JSON, body).await.unwrap()
    }

    /// A watch that has begun.
    pub(super) async fn watch(&self, path: &str) -> Watch {
        let response = self.send(Method::GET, path, JSON, Vec::new()).await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{response:?}");
        Watch { stream: Body::new(response.into_body()).into_data_stream(), read: Vec::new() }
    }
}

/// A watch in progress.
#[derive(Debug)]
pub(super) struct Watch {
    stream: BodyDataStream,
    read: Vec<u8>,
}

impl Watch {
    /// The next event; none if the watch has ended.
    pub(super) async fn next(&mut self) -> Option<Value> {
        // A real server sends a bookmark each minute.
        self.next_within(2 * PATIENCE).await.expect("an event, or the end")
    }

    /// The next event, the end as null; none if neither comes in time.
    async fn next_within(&mut self, patience: Duration) -> Option<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(Some(serde_json::from_slice(&line).unwrap()));
            }
            match tokio::time::timeout(patience, self.stream.next()).await.ok()? {
                Some(bytes) => self.read.extend(bytes.unwrap()),
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
