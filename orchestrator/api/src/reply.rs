//! What goes out: JSON written straight from borrowed state, and the forms that several endpoints share.

use std::fmt::Debug;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::body::{HostOfRun, ReasonFields, Stamp};
use os_upgrade_kernel::{Accepted, Family, HostStatus, Request, RunHost};
use os_upgrade_protocol::HostName;
use serde::Serialize;

use super::Api;
use super::error::Problem;

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

/// `host` as it is in its run.
pub(super) fn host_of_run<'a>(name: &'a HostName, host: &'a RunHost) -> HostOfRun<'a> {
    HostOfRun {
        hostname: name.as_str(),
        status: HostStatus::as_str(host.status),
        since: Stamp(host.since),
        reason: ReasonFields::of(host.reason.as_ref()),
    }
}
