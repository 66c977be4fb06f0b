//! What every resource has at hand: the site, its history, who may call, and how the API is served.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_auth::Gate;
use os_upgrade_kernel::{Accepted, Family, Request};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::snapshot::SiteSnapshot;
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_store::History;
use os_upgrade_tls::server_files::Tls;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Metrics;
use tokio::sync::Semaphore;

use crate::description::Description;
use crate::http::error::Problem;
use crate::http::listener::Limits;
use crate::http::reply::{granted, json_bytes};
use crate::sites::Sites;

/// How often FleetLock clients were answered what: labels `operation` and `kind`, which is `granted`, or an error's.
pub(crate) type Answers = Metrics<[(&'static str, &'static str); 2], Counter>;

/// From so many hosts on, an answer is written out off the runtime's threads, on which the run goes on.
const LARGE_HOSTS: usize = 200;
/// As much of an order is logged.
const ORDER_BYTES_MAX: usize = 500;

/// How long the history is waited for; a store that cannot be written is read as it is.
const HISTORY_WITHIN: Duration = Duration::from_secs(2);

/// What every endpoint has at hand.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) site: SiteHandle,
    pub(crate) history: History,
    pub(crate) renders: Arc<Semaphore>,
    pub(crate) answers: Answers,
    pub(crate) gate: Gate,
    pub(crate) options: Options,
    pub(crate) description: &'static LazyLock<Description>,
}

impl Api {
    /// The present state.
    ///
    /// # Errors
    /// It has not been read since the start: an empty one would be taken for the site's.
    pub(crate) fn snapshot(&self) -> Result<Arc<SiteSnapshot>, Problem> {
        let present = self.site.shown(chrono::Utc::now());
        match present.readiness.why_not() {
            Some(why) if !present.is_read => Err(Problem::unavailable(why)),
            Some(_) | None => Ok(present),
        }
    }

    /// The same for who asks for a change, which has not been made where there is none.
    ///
    /// # Errors
    /// As [`Self::present`].
    pub(crate) fn snapshot_for_change(&self) -> Result<Arc<SiteSnapshot>, Problem> {
        self.snapshot().map_err(|problem| NotDone::unchanged(problem.into_message()).into())
    }

    /// The history, with everything that the present state shows: who has read there of a run finds it here.
    pub(crate) async fn history(&self) -> &History {
        let has = self.history.has(self.site.snapshot().recorded);
        if tokio::time::timeout(HISTORY_WITHIN, has).await.is_err() {
            tracing::debug!("the history is behind");
        }
        &self.history
    }
}

impl Api {
    /// Answers with what `write` makes of the present, of about `hosts` hosts.
    pub(crate) async fn render<W>(&self, hosts: usize, write: W) -> Result<Response, Problem>
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
    pub(crate) async fn change<O>(&self, request: Request<O>) -> Result<StatusCode, Problem>
    where
        O: Family,
        Problem: From<O::Refusal>,
    {
        Ok(granted(&self.site.request(request).await??))
    }

    /// The same for what operators seldom order by hand: it is logged once it has been carried out.
    pub(crate) async fn order<O>(&self, request: Request<O>) -> Result<StatusCode, Problem>
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

/// How the API is served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// With TLS, if there is any; whoever builds the router alone does without.
    pub tls: Option<Tls>,
    /// How many requests.
    pub limits: Limits,
    /// With the key to the site's secrets, or without.
    pub strongbox: Strongbox,
    /// With other sites behind `?site=`, or without any.
    pub sites: Sites,
}
