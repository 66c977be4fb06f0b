//! A client of a FleetLock server: asks for a slot and gives it back, and tells apart why it was not granted.
//!
//! It asks once. When to ask again is the caller's; nothing here waits or retries.

use std::error::Error as _;
use std::time::Duration;

use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_protocol::{GroupName, HostName};
use reqwest::{Client, Response, StatusCode, Url, header};
use serde::Deserialize;

use crate::config::HttpUrl;
use crate::http_client;

/// How long connecting may take, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request may take as a whole.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);
/// How much of an answer's body is read, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// How much of a body that is not FleetLock's is quoted, in characters.
const EXCERPT_CHARS_MAX: usize = 200;

/// What a server answered, or that it did not. Texts are at most
/// [`MESSAGE_BYTES_MAX`](os_upgrade_protocol::limits::MESSAGE_BYTES_MAX) bytes and hold no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 200: the slot is held (lock), or is not held any more (unlock).
    Granted,
    /// A FleetLock error: the server understood and said no.
    Denied {
        /// The HTTP status, 400 to 599.
        status: u16,
        /// The type of error, such as `failed_lock_semaphore_full`.
        kind: String,
        /// The server's explanation.
        value: String,
    },
    /// No answer: connecting, TLS or the connection failed, or it took too long. The server may have acted
    /// nevertheless.
    Unreachable {
        /// What failed.
        detail: String,
    },
    /// Something answered that is not FleetLock's: another status, a redirect, another body, no HTTP at all.
    Protocol {
        /// The HTTP status, if there was one.
        status: Option<u16>,
        /// What was wrong with it.
        detail: String,
    },
}

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For connecting.
    pub connect: Duration,
    /// For the whole request.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: CONNECT_TIMEOUT, total: TOTAL_TIMEOUT }
    }
}

/// A client could not be set up, for example for `https` on a machine without CA certificates.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up a FleetLock client for {url}")]
pub struct BuildError {
    url: HttpUrl,
    source: reqwest::Error,
}

/// A client of one FleetLock server. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct FleetLockClient {
    http: Client,
    lock: Endpoint,
    unlock: Endpoint,
}

/// The URL of an operation. Not displayed, as it may hold a password.
#[derive(Clone)]
struct Endpoint(Url);

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.path())
    }
}

impl FleetLockClient {
    /// A client of the server whose base URL is `base`, with or without a slash at its end. A user and password in
    /// it are sent as HTTP Basic authentication.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(base: &HttpUrl) -> Result<Self, BuildError> {
        Self::with_timeouts(base, Timeouts::default())
    }

    /// As [`FleetLockClient::new`], with other timeouts than [`CONNECT_TIMEOUT`] and [`TOTAL_TIMEOUT`].
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn with_timeouts(base: &HttpUrl, timeouts: Timeouts) -> Result<Self, BuildError> {
        let http = http_client::builder(base.url())
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.total)
            .build()
            .map_err(|source| BuildError { url: base.clone(), source })?;
        Ok(Self {
            http,
            lock: endpoint(base.url(), "v1/pre-reboot"),
            unlock: endpoint(base.url(), "v1/steady-state"),
        })
    }

    /// Asks for a slot of `group` for `id`. Asking again while it is held is granted again.
    pub async fn lock(&self, group: &GroupName, id: &HostName) -> Answer {
        self.ask(&self.lock, group, id).await
    }

    /// Gives the slot of `group` held for `id` back. That it was not held is granted too.
    pub async fn unlock(&self, group: &GroupName, id: &HostName) -> Answer {
        self.ask(&self.unlock, group, id).await
    }

    async fn ask(&self, endpoint: &Endpoint, group: &GroupName, id: &HostName) -> Answer {
        let params = serde_json::json!({ "client_params": { "id": id, "group": group } });
        let request = self.http.post(endpoint.0.clone()).header("fleet-lock-protocol", "true").json(&params);
        match request.send().await {
            Ok(response) => judge(response).await,
            Err(error) => failure(None, &error),
        }
    }
}

/// `path` below `base`, whose own path is kept.
fn endpoint(base: &Url, path: &str) -> Endpoint {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    Endpoint(url)
}

/// 200 alone grants; its body is of no interest.
async fn judge(response: Response) -> Answer {
    let status = response.status();
    if status == StatusCode::OK {
        return Answer::Granted;
    }
    if status.is_client_error() || status.is_server_error() {
        return refusal(status, response).await;
    }
    let location = response.headers().get(header::LOCATION).map(header::HeaderValue::as_bytes);
    let detail = match location {
        Some(location) if status.is_redirection() => {
            format!("{status}: redirect to {} not followed", excerpt(location))
        }
        _ => format!("{status}: only 200 grants"),
    };
    protocol(status, &detail)
}

/// The body that FleetLock gives errors.
#[derive(Deserialize)]
struct Refusal {
    kind: String,
    value: String,
}

async fn refusal(status: StatusCode, response: Response) -> Answer {
    let body = match bounded_body(response).await {
        Ok(Some(body)) => body,
        Ok(None) => {
            return protocol(status, &format!("{status}: a body of more than {BODY_BYTES_MAX} bytes"));
        }
        Err(error) => return failure(Some(status), &error),
    };
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(Refusal { kind, value }) if !kind.is_empty() => Answer::Denied {
            status: status.as_u16(),
            kind: bounded_message(&kind),
            value: bounded_message(&value),
        },
        _ if body.is_empty() => protocol(status, &format!("{status}: no body")),
        _ => protocol(status, &format!("{status}: not a FleetLock error: {}", excerpt(&body))),
    }
}

/// The whole body, or nothing if it is larger than [`BODY_BYTES_MAX`].
async fn bounded_body(mut response: Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The beginning of `bytes` on one line.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = line.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character });
    plain.take(EXCERPT_CHARS_MAX).collect()
}

fn protocol(status: StatusCode, detail: &str) -> Answer {
    Answer::Protocol { status: Some(status.as_u16()), detail: bounded_message(detail) }
}

/// A request or body that did not come to its end; `status` is known once headers have come.
fn failure(status: Option<StatusCode>, error: &reqwest::Error) -> Answer {
    let detail = bounded_message(&causes(error));
    if error.is_timeout() || (status.is_none() && !is_malformed(error)) {
        return Answer::Unreachable { detail };
    }
    let status = status.map(|status| status.as_u16());
    Answer::Protocol { status, detail }
}

/// Whether something answered that is not HTTP, as against no or half an answer.
fn is_malformed(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            return error.is_parse();
        }
        source = cause.source();
    }
    false
}

/// The error and its causes on one line, without the URL, which may hold a password and is known anyway.
fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let mut text = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        // Layers often repeat what is below them.
        if !text.ends_with(&message) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&message);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
