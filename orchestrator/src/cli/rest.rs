//! An instance's API as the commands ask it: one request, and what it answers or why not.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;

use crate::config::HttpUrl;
use crate::http_client::{self, beginning};

/// Where an instance listens unless it is told otherwise.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:8646";

/// How long the answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The largest answer that is read, in bytes: far more than the state of a large site takes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads a URL from the command line.
pub(super) fn http_url(text: &str) -> Result<HttpUrl, String> {
    text.parse().map_err(|_| "an http:// or https:// URL is expected".to_owned())
}

/// The JSON at `path`.
pub(super) async fn get(base: &HttpUrl, path: &str) -> anyhow::Result<Value> {
    ask(base, Method::GET, at(base, path)?, None).await
}

/// Has something done by a POST to `path`.
pub(super) async fn post(base: &HttpUrl, path: &str, body: &Value) -> anyhow::Result<()> {
    ask(base, Method::POST, at(base, path)?, Some(body)).await.map(drop)
}

/// Has what is at `path`, below which `segments` are, taken away.
pub(super) async fn delete(base: &HttpUrl, path: &str, segments: [&str; 2]) -> anyhow::Result<()> {
    let mut url = at(base, path)?;
    if segments.iter().any(|segment| matches!(*segment, "." | "..")) {
        bail!("neither . nor .. can stand in a path");
    }
    url.path_segments_mut().ok().context("an http:// or https:// URL is expected")?.extend(segments);
    ask(base, Method::DELETE, url, None).await.map(drop)
}

/// The API is at the server's root, also where the URL is the one given to FleetLock clients.
fn at(base: &HttpUrl, path: &str) -> anyhow::Result<Url> {
    Ok(base.url().join(path)?)
}

async fn ask(base: &HttpUrl, method: Method, url: Url, body: Option<&Value>) -> anyhow::Result<Value> {
    let http = http_client::builder(&url).timeout(ANSWER_WITHIN).build()?;
    let request = http.request(method, url);
    let request = body.into_iter().fold(request, reqwest::RequestBuilder::json);
    // The URL is said, and without its password.
    let unanswered = |error: reqwest::Error| error.without_url();
    let response = request.send().await.map_err(unanswered).with_context(|| format!("cannot ask {base}"))?;
    let status = response.status();
    let answer = beginning(response, ANSWER_BYTES_MAX).await;
    let answer = answer.map_err(unanswered).with_context(|| format!("cannot ask {base}"))?;
    if answer.len() > ANSWER_BYTES_MAX {
        bail!("{base} answers with more than {ANSWER_BYTES_MAX} bytes");
    }
    match status {
        StatusCode::OK => serde_json::from_slice(&answer).context("an unexpected answer"),
        StatusCode::NO_CONTENT => Ok(Value::Null),
        _ => bail!("{}", refusal(status, &answer)),
    }
}

/// What the API says, or at least its status.
fn refusal(status: StatusCode, answer: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let message = answer["errors"][0]["error-message"].as_str();
    message.map_or_else(|| format!("it answers {status}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_refuses_is_said_in_its_words() {
        let body = br#"{"errors":[{"error-message":"there is no group x"}]}"#;
        assert_eq!(refusal(StatusCode::NOT_FOUND, body), "there is no group x");
        assert_eq!(refusal(StatusCode::BAD_GATEWAY, b"<html>"), "it answers 502 Bad Gateway");
    }

    #[test]
    fn the_api_is_at_the_root() {
        let base = "http://h:1/fleetlock/?x".parse().unwrap();
        assert_eq!(at(&base, "/v1/state/fleet-lock").unwrap().as_str(), "http://h:1/v1/state/fleet-lock");
    }
}
