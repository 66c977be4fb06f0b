//! A client of a FleetLock server: asks for a slot, gives it back, and distinguishes why it was not granted.
//!
//! It sends each request once; retries are up to the caller. [`os_upgrade_shell::fleet_lock`] interprets answers; this
//! module interprets failed requests.

use std::fmt::Display;
use std::time::Duration;

use chrono::Utc;
use os_upgrade_api_types::routes::fleet_lock::{ClaimBody, LOCK, PROTOCOL_HEADER, UNLOCK};
use os_upgrade_kernel::{LockOutcome, NoAnswer, SlotOrder};
use os_upgrade_protocol::GroupName;
use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_settings::{FleetLock, HttpUrl};
use os_upgrade_shell::dispatch::JOB_LEASE_LEFT;
use os_upgrade_shell::fleet_lock::{ANSWER_BYTES_MAX, HttpAnswer, RetryAfter, read_answer, read_retry_after};
use os_upgrade_site::strongbox::Secret;
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::{self, BuildError, causes, read_up_to};
use reqwest::header::HeaderValue;
use reqwest::{Client, Response, Url, header};

use crate::http_error::is_malformed;

/// How long connecting may take, TLS included: no longer than the time left on the lease when it begins.
pub const CONNECT_TIMEOUT: Duration = JOB_LEASE_LEFT;
/// How long a request may take in total.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);

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

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether the slot was granted or given back, or why not.
    pub outcome: LockOutcome,
    /// The pause that the server asks for, if any.
    pub retry_after: Option<RetryAfter>,
    /// The HTTP status; `None` without an HTTP answer.
    pub status: Option<u16>,
}

impl From<LockOutcome> for Reply {
    fn from(outcome: LockOutcome) -> Self {
        Self { outcome, retry_after: None, status: None }
    }
}

/// A client of one FleetLock server. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct FleetLockClient {
    http: Client,
    lock: Endpoint,
    unlock: Endpoint,
    credentials: Option<Secret>,
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
    /// it are sent as HTTP Basic authentication. Without `files` the system's certificate authorities are trusted.
    ///
    /// # Errors
    /// A file cannot be read or used, or TLS cannot be set up.
    pub fn new(base: &HttpUrl, timeouts: Timeouts, files: Option<&TlsFiles>) -> Result<Self, BuildError> {
        let mut builder = http_client::builder(base.url());
        if let Some(files) = files {
            builder = files.apply_to(builder)?;
        }
        let http = builder
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.total)
            .build()
            .map_err(|source| BuildError::Other { url: base.clone(), source })?;
        Ok(Self {
            http,
            lock: endpoint(base.url(), LOCK.path()),
            unlock: endpoint(base.url(), UNLOCK.path()),
            credentials: None,
        })
    }

    /// A client of the lock server in the settings, with the certificates they name; `None` if they name no server.
    ///
    /// # Errors
    /// A file cannot be read or used, or TLS cannot be set up.
    pub fn from_settings(settings: &FleetLock) -> Result<Option<Self>, BuildError> {
        let Some(base) = &settings.url else { return Ok(None) };
        Self::new(base, Timeouts::default(), Some(&files(settings))).map(Some)
    }

    /// The same client, which sends `credentials` (`user:password`) as HTTP Basic authentication. They are opened for each
    /// request.
    #[must_use]
    pub fn with_credentials(self, credentials: Option<Secret>) -> Self {
        Self { credentials, ..self }
    }

    /// Asks for a slot of `group` for `id`. A repeated request is granted while the slot is held.
    pub async fn lock(&self, group: &GroupName, id: &(impl Display + ?Sized)) -> LockOutcome {
        self.request(SlotOrder::Lock, group, id).await.outcome
    }

    /// Gives back the slot of `group` held for `id`. It is granted too if the slot was not held.
    pub async fn unlock(&self, group: &GroupName, id: &(impl Display + ?Sized)) -> LockOutcome {
        self.request(SlotOrder::Unlock, group, id).await.outcome
    }

    /// Sends one request. The reply also has the pause that the server asks for.
    pub async fn request(&self, order: SlotOrder, group: &GroupName, id: &(impl Display + ?Sized)) -> Reply {
        let endpoint = match order {
            SlotOrder::Lock => &self.lock,
            SlotOrder::Unlock => &self.unlock,
        };
        let claim = ClaimBody::new(id.to_string(), group.as_str());
        let request = self.http.post(endpoint.0.clone()).header(PROTOCOL_HEADER, "true").json(&claim);
        let request = match self.credentials.as_ref().map(Secret::open) {
            None => request,
            Some(Ok(credentials)) => {
                let (user, password) = credentials.split_once(':').unwrap_or((&credentials, ""));
                request.basic_auth(user, Some(password))
            }
            // No request is sent, so the slot is as before.
            Some(Err(sealed)) => {
                return LockOutcome::Unreachable { why: NoAnswer::Sealed { why: sealed } }.into();
            }
        };
        match request.send().await {
            Ok(response) => read_response(response).await,
            Err(error) => failure(false, &error).into(),
        }
    }
}

/// `path` below `base`, whose own path is kept.
fn endpoint(base: &Url, path: &str) -> Endpoint {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    Endpoint(url)
}

async fn read_response(response: Response) -> Reply {
    let status = response.status();
    let headers = response.headers().clone();
    let named = |name| headers.get(name).map(HeaderValue::as_bytes);
    let mut answer = HttpAnswer {
        status: status.as_u16(),
        location: named(header::LOCATION),
        retry_after: named(header::RETRY_AFTER),
        date: named(header::DATE),
        body: &[],
    };
    let retry_after = read_retry_after(&answer, Utc::now());
    let is_error = status.is_client_error() || status.is_server_error();
    // Only errors have a body of interest; others need not even be complete.
    let body = if is_error { read_up_to(response, ANSWER_BYTES_MAX).await } else { Ok(Vec::new()) };
    let outcome = match &body {
        Ok(body) => {
            answer.body = body;
            read_answer(&answer)
        }
        Err(error) => failure(true, error),
    };
    Reply { outcome, retry_after, status: Some(status.as_u16()) }
}

/// The outcome of a failed request or incomplete body; `begun` once headers have arrived.
fn failure(begun: bool, error: &reqwest::Error) -> LockOutcome {
    let detail = bounded_message(&causes(error));
    // Connecting includes TLS; the request is sent after it.
    if error.is_connect() {
        return LockOutcome::Unreachable { why: NoAnswer::NotSent { detail } };
    }
    if error.is_timeout() {
        return LockOutcome::Unreachable { why: NoAnswer::TimedOut };
    }
    if !begun && !is_malformed(error) {
        return LockOutcome::Unreachable { why: NoAnswer::Failed { detail } };
    }
    LockOutcome::Protocol { detail }
}

/// The files that `[fleet-lock]` names.
fn files(settings: &FleetLock) -> TlsFiles {
    let FleetLock { ca, certificate, key, .. } = settings.clone();
    let roles = ["`ca` of [fleet-lock]", "`certificate` of [fleet-lock]", "`key` of [fleet-lock]"];
    TlsFiles { ca, certificate, key, roles, pipes: false }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
