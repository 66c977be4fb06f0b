//! The shared state of every handler: the site, its history, who may call, and how the API is served.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_auth::Authenticator;
use os_upgrade_kernel::{Accepted, Family, Request};
use os_upgrade_settings::Settings;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::drain_previews::DrainPreviews;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::host_reports::HostReports;
use os_upgrade_site::provider_tests::ProviderTests;
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_store::History;
use os_upgrade_tls::server_files::Tls;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Metrics;
use tokio::sync::Semaphore;

use crate::description::Description;
use crate::feed::Feed;
use crate::http::call_back_rate::CallBackRate;
use crate::http::error::Problem;
use crate::http::listener::Limits;
use crate::http::reply::{granted, json_bytes};
use crate::http::shared_answer::SharedAnswer;
use crate::sites::Sites;

/// The answers that are counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    /// Those to FleetLock clients: labels `operation` and `kind`, which is `granted`, `nothing_held` or an error kind.
    pub(crate) fleet_lock: Metrics<[(&'static str, &'static str); 2], Counter>,
    /// Those to providers that called back with a valid token: labels `provider` and `outcome`.
    pub(crate) call_backs: Metrics<[(&'static str, String); 2], Counter>,
}

/// Answers about at least this many hosts are serialized off the runtime's threads, which also drive the run.
pub(crate) const LARGE_HOSTS: usize = 200;
/// Longest request in a log line, in bytes; the rest is cut off.
const LOGGED_BYTES_MAX: usize = 500;

/// How long to wait until the history has caught up. After that it is read as it is.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of the router, passed to every handler.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) site: SiteHandle,
    pub(crate) history: History,
    pub(crate) feed: Feed,
    pub(crate) renders: Arc<Semaphore>,
    /// The whole state of the site, as it was last rendered.
    pub(crate) whole_state: SharedAnswer,
    pub(crate) answers: Answers,
    pub(crate) call_back_rate: CallBackRate,
    pub(crate) authenticator: Authenticator,
    pub(crate) options: Options,
    pub(crate) description: &'static LazyLock<Description>,
}

impl Api {
    /// The current state of the site.
    ///
    /// # Errors
    /// 503 until the state has been read once after the start; an empty state would be mistaken for the site's.
    pub(crate) fn published(&self) -> Result<Arc<PublishedState>, Problem> {
        let published = self.site.published_for_display(chrono::Utc::now());
        match published.readiness.reason_not_ready() {
            Some(why) if !published.is_read => Err(Problem::unavailable(why)),
            Some(_) | None => Ok(published),
        }
    }

    /// The current state, for a handler that is about to request a change.
    ///
    /// # Errors
    /// As [`Self::published`]; the error also reports that nothing was changed.
    pub(crate) fn published_for_change(&self) -> Result<Arc<PublishedState>, Problem> {
        self.published().map_err(|problem| NotDone::unchanged(problem.into_message()).into())
    }

    /// The history, once it contains everything that the current state shows, so that a run seen there is found here.
    pub(crate) async fn history(&self) -> &History {
        let caught_up = self.history.wait_for(self.site.published().recorded);
        if tokio::time::timeout(HISTORY_TIMEOUT, caught_up).await.is_err() {
            tracing::debug!("the history is behind");
        }
        &self.history
    }

    /// How many messages of the journal the history is behind.
    pub(crate) fn history_behind(&self) -> u64 {
        self.history.behind(self.site.published().recorded)
    }
}

impl Api {
    /// Answers with the JSON that `write` produces. `hosts` is about how many hosts it contains.
    pub(crate) async fn render<W>(&self, hosts: usize, write: W) -> Result<Response, Problem>
    where
        W: FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
    {
        self.render_bytes(hosts, write).await.map(json_bytes)
    }

    /// The JSON that `write` produces. `hosts` is about how many hosts it contains.
    pub(crate) async fn render_bytes<W>(&self, hosts: usize, write: W) -> Result<Vec<u8>, Problem>
    where
        W: FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
    {
        if hosts < LARGE_HOSTS {
            return write().map_err(|error| Problem::internal(error.to_string()));
        }
        let written = self.apart(write).await?;
        written.map_err(|error| Problem::internal(error.to_string()))
    }

    /// What `work` returns, which takes long: it runs off the runtime's threads, once there is a permit.
    pub(crate) async fn apart<T, W>(&self, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let permit = Arc::clone(&self.renders).acquire_owned().await;
        // The blocking task continues after its request is dropped, and keeps the permit until it ends.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        done.await.map_err(|error| Problem::internal(error.to_string()))
    }

    /// Requests a change and waits until it is durable or refused.
    pub(crate) async fn change<O>(&self, request: Request<O>) -> Result<StatusCode, Problem>
    where
        O: Family,
        Problem: From<O::Refusal>,
    {
        Ok(granted(&self.site.request(request).await??))
    }

    /// As [`Self::change`], for rare operator actions: an applied change is logged.
    pub(crate) async fn change_and_log<O>(&self, request: Request<O>) -> Result<StatusCode, Problem>
    where
        O: Family + Clone + Debug,
        Problem: From<O::Refusal>,
    {
        let copy = request.clone();
        let accepted = self.site.request(request).await??;
        if accepted != Accepted::Valid {
            tracing::info!(request = truncated(format!("{copy:?}")), "an operator's request was applied");
        }
        Ok(granted(&accepted))
    }
}

/// Shortens a request for the log: it may name a thousand hosts. The history has the whole request.
fn truncated(mut text: String) -> String {
    if text.len() > LOGGED_BYTES_MAX {
        text.truncate(text.floor_char_boundary(LOGGED_BYTES_MAX));
        text.push('…');
    }
    text
}

/// How the API is served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// TLS of the listener; `None` serves plain HTTP.
    pub tls: Option<Tls>,
    /// How many connections and requests are accepted.
    pub limits: Limits,
    /// The site's secrets, with or without the key to them.
    pub strongbox: Strongbox,
    /// Other sites, reached with `?site=`; none by default.
    pub sites: Sites,
    /// What hosts' commands have printed; nothing by default.
    pub reports: HostReports,
    /// What drains would do; nothing by default.
    pub drains: DrainPreviews,
    /// What providers say; nobody is asked by default.
    pub provider_tests: ProviderTests,
    /// The file whose time is that of the last backup; none by default.
    pub last_backup: PathBuf,
}

impl Options {
    /// What the settings alone say of it.
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            limits: Limits::from_settings(&settings.api),
            last_backup: settings.store.last_backup(),
            ..Self::default()
        }
    }
}
