//! What goes out: JSON written straight from borrowed state, and the forms that several endpoints share.

use std::fmt::Debug;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Accepted, Family, HostStatus, Reason, Request, RunHost};
use os_upgrade_protocol::{HostName, time};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::Api;
use super::error::Problem;
use super::openapi::types::{HostStatusWord, ReasonKindWord};

/// From so many hosts on, an answer is written out off the runtime's threads, on which the run goes on.
const LARGE_HOSTS: usize = 200;
/// As much of an order is logged.
const ORDER_BYTES_MAX: usize = 500;

impl Api {
    /// Answers with what `write` makes of the present, of about `hosts` hosts.
    pub(super) async fn render<W>(&self, hosts: usize, write: W) -> Result<Response, Problem>
    where
        W: FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
    {
        let written = if hosts < LARGE_HOSTS {
            write()
        } else {
            let permit = self.renders.clone().acquire_owned().await;
            // It goes on also when nobody waits for it any more, and has its permit until then.
            let written = tokio::task::spawn_blocking(move || {
                let written = write();
                drop(permit);
                written
            });
            written.await.map_err(|error| Problem::internal(error.to_string()))?
        };
        written.map(json_bytes).map_err(|error| Problem::internal(error.to_string()))
    }

    /// Asks for a change; answered once it is durable, or refused.
    pub(super) async fn change<O>(&self, request: Request<O>) -> Result<StatusCode, Problem>
    where
        O: Family,
        Problem: From<O::Refusal>,
    {
        Ok(granted(&self.site.request(request).await??))
    }

    /// The same for what operators seldom order by hand: it is logged once it has been carried out.
    pub(super) async fn order<O>(&self, request: Request<O>) -> Result<StatusCode, Problem>
    where
        O: Family + Clone + Debug,
        Problem: From<O::Refusal>,
    {
        let order = request.clone();
        let accepted = self.site.request(request).await??;
        if accepted != Accepted::Valid {
            tracing::info!(order = beginning(format!("{order:?}")), "an operator's order was carried out");
        }
        Ok(granted(&accepted))
    }
}

/// As much of an order as a line of the log takes: it may name a thousand hosts, and the history has all of them.
fn beginning(mut order: String) -> String {
    if order.len() > ORDER_BYTES_MAX {
        order.truncate(order.floor_char_boundary(ORDER_BYTES_MAX));
        order.push('…');
    }
    order
}

/// `value` as JSON.
pub(super) fn json(value: &impl Serialize) -> Result<Response, Problem> {
    serde_json::to_vec(value).map(json_bytes).map_err(|error| Problem::internal(error.to_string()))
}

fn json_bytes(bytes: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/json")], bytes).into_response()
}

/// The status of a write that was granted.
pub(super) fn granted(accepted: &Accepted) -> StatusCode {
    match accepted {
        Accepted::Created => StatusCode::CREATED,
        Accepted::Done | Accepted::Valid => StatusCode::NO_CONTENT,
    }
}

/// RFC 3339 in UTC, whole seconds, as everywhere in the specification.
pub(super) struct Stamp(pub(super) DateTime<Utc>);

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time::format(self.0))
    }
}

/// A reason on the wire: the sentence, and the word that tells its kind.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ReasonFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    reason: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReasonKindWord>)]
    reason_kind: Option<&'static str>,
}

/// A reason's sentence.
struct Text<'a>(&'a Reason);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

impl<'a> ReasonFields<'a> {
    /// Both, if there is a reason.
    pub(super) fn of(reason: Option<&'a Reason>) -> Self {
        Self { reason: reason.map(Text), reason_kind: reason.map(Reason::kind) }
    }
}

/// A host of a run: `{"hostname":"h01","status":"waiting","since":"...","reason":"...","reason-kind":"..."}`.
#[derive(Serialize, ToSchema)]
pub(super) struct HostOfRun<'a> {
    hostname: &'a str,
    #[schema(value_type = HostStatusWord)]
    status: &'static str,
    since: Stamp,
    #[serde(flatten)]
    reason: ReasonFields<'a>,
}

impl<'a> HostOfRun<'a> {
    /// `host` as it is in its run.
    pub(super) fn new(name: &'a HostName, host: &'a RunHost) -> Self {
        Self {
            hostname: name.as_str(),
            status: HostStatus::as_str(host.status),
            since: Stamp(host.since),
            reason: ReasonFields::of(host.reason.as_ref()),
        }
    }
}
