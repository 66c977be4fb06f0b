//! What the API needs of the running orchestrator: the present state to read, and a way to ask for changes.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_kernel::{Answer, Family, Forecast, Request, State, View, forecast};
use os_upgrade_protocol::{HostName, Progress};
pub use os_upgrade_shell::inventory::HostVersions;
use os_upgrade_shell::node::Leadership;
use os_upgrade_shell::not_done::NotDone;
use tokio::sync::mpsc;

use crate::call::Call;
use crate::cluster::Cluster;

/// How long a request may take before its asker is told that the orchestrator is not available.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// Everything that can be read at a moment: committed state, and what is seen of the site. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Present {
    /// The committed state.
    pub state: State,
    /// What is seen of the site.
    pub view: View,
    /// The last versions of every host that published some.
    pub versions: OrdMap<HostName, HostVersions>,
    /// What every host's worker said last of how far it is; see [`Self::progress_of`].
    pub progress: OrdMap<HostName, Progress>,
    /// Whether a write can be taken, or passed on, or why not.
    pub readiness: Readiness,
    /// Whether the journal has been read to its end since the start: before, the state is none that the site is in.
    pub is_read: bool,
    /// Who leads.
    pub leadership: Leadership,
    /// The sequence up to which this instance has the journal.
    pub position: u64,
    /// The sequence of the last record that the history was given; 0 when it was given none.
    pub recorded: u64,
}

impl Present {
    /// How far a host's worker says that it is with the command that it has been sent and has not answered.
    pub fn progress_of(&self, host: &HostName) -> Option<&Progress> {
        let command = self.state.run.as_ref()?.host(host)?.unanswered()?;
        self.progress.get(host).filter(|progress| Some(progress.command) == command.sequence)
    }

    /// When the next run starts by itself, as it looks at `now`.
    pub fn forecast(&self, now: DateTime<Utc>) -> Forecast {
        forecast(&self.state, &self.view, now)
    }
}

/// Whether this instance can take a write, or pass it on to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// It cannot, for this reason.
    NotReady(String),
    /// It cannot until an operator has looked, for this reason.
    Halted(String),
}

impl Readiness {
    /// Why it cannot, if so.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::NotReady(reason) | Self::Halted(reason) => Some(reason),
        }
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::NotReady("starting".to_owned())
    }
}

/// A handle to the running orchestrator. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SiteHandle {
    present: Arc<ArcSwap<Present>>,
    calls: mpsc::Sender<Call>,
    // Behind one pointer, because a handle is cloned for every request.
    cluster: Arc<Cluster>,
    timeout: Duration,
}

impl SiteHandle {
    /// A handle that reads from `present` and sends to `calls`.
    pub fn new(present: Arc<ArcSwap<Present>>, calls: mpsc::Sender<Call>) -> Self {
        Self { present, calls, cluster: Arc::default(), timeout: REQUEST_TIMEOUT }
    }

    /// The same handle, whose requests may take `timeout` before their asker is told that nothing was heard.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The same handle, which also shows the other instances.
    #[must_use]
    pub fn with_cluster(self, cluster: Cluster) -> Self {
        Self { cluster: Arc::new(cluster), ..self }
    }

    /// The instances of the site.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The present state. It never shows what is not durable yet.
    pub fn present(&self) -> Arc<Present> {
        self.present.load_full()
    }

    /// The same with what the leader says of it, where another leads: to be shown, and for nothing else.
    pub fn shown(&self, now: DateTime<Utc>) -> Arc<Present> {
        let present = self.present();
        let leader_says = self.cluster.leader_says(&present.leadership, now);
        if leader_says.is_none() {
            return present;
        }
        let present = present.as_ref().clone();
        Arc::new(Present { view: View { leader_says, ..present.view }, ..present })
    }

    /// Asks for a change and waits until it is durable, or refused.
    ///
    /// # Errors
    /// The bus or the journal is away, or nothing was heard in time.
    pub async fn request<O: Family>(&self, request: Request<O>) -> Result<Answer<O::Refusal>, NotDone> {
        self.request_within(request, self.timeout).await
    }

    /// As [`Self::request`], for an asker who waits no longer than `limit`.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub async fn request_within<O: Family>(
        &self,
        request: Request<O>,
        limit: Duration,
    ) -> Result<Answer<O::Refusal>, NotDone> {
        let stopped = "the orchestrator has stopped";
        let ask = async {
            let (call, outcome) = Call::new(request.into(), None);
            self.calls.send(call).await.map_err(|_| NotDone::unchanged(stopped))?;
            // Whoever had it is gone, and may have begun with it.
            outcome.await.unwrap_or_else(|_| Err(NotDone::unknown(stopped)))
        };
        let in_time = tokio::time::timeout(limit.min(self.timeout), ask).await;
        // It may have been begun, whatever is the matter now.
        let outcome = in_time.unwrap_or_else(|_| Err(NotDone::unknown(self.why_silent())));
        match outcome?.answer {
            Ok(accepted) => Ok(Ok(accepted)),
            Err(refusal) => match refusal.try_into() {
                Ok(refusal) => Ok(Err(refusal)),
                Err(other) => Err(NotDone::unknown(format!("the answer is to another request ({other})"))),
            },
        }
    }

    fn why_silent(&self) -> String {
        let present = self.present();
        present.readiness.why_not().unwrap_or("the journal did not confirm the change in time").to_owned()
    }
}
