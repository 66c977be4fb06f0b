//! The API's handle to the running orchestrator: reads the published state and requests changes.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use os_upgrade_console::describe;
use os_upgrade_kernel::{Answer, Clock, Family, Request, View};
use os_upgrade_shell::not_done::NotDone;
use tokio::sync::mpsc;

use crate::call::Call;
use crate::instances::Cluster;
use crate::published_state::PublishedState;

/// How long a request may take before the caller is told that its outcome is unknown.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// A handle to the running orchestrator. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SiteHandle {
    published: Arc<ArcSwap<PublishedState>>,
    calls: mpsc::Sender<Call>,
    // Shared, because a handle is cloned for every request.
    cluster: Arc<Cluster>,
    timeout: Duration,
}

impl SiteHandle {
    /// A handle that reads from `published` and sends to `calls`.
    pub fn new(published: Arc<ArcSwap<PublishedState>>, calls: mpsc::Sender<Call>) -> Self {
        Self { published, calls, cluster: Arc::default(), timeout: REQUEST_TIMEOUT }
    }

    /// Sets how long requests may take.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Adds the other instances of the site.
    #[must_use]
    pub fn with_cluster(self, cluster: Cluster) -> Self {
        Self { cluster: Arc::new(cluster), ..self }
    }

    /// The instances of the site.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The published state. It contains only what is durable.
    pub fn published(&self) -> Arc<PublishedState> {
        self.published.load_full()
    }

    /// The published state with what the leader says of its clock, and of the next start, if another instance leads. It is only
    /// for display.
    pub fn published_for_display(&self, now: DateTime<Utc>) -> Arc<PublishedState> {
        let published = self.published();
        let Some(leader) = self.cluster.leader(&published.leadership, now) else { return published };
        let published = published.as_ref().clone();
        let leader_startable = Some(leader.blocker.map_or(Ok(()), Err));
        let clock = Clock { doubt: leader.clock_doubt, ..published.view.clock };
        Arc::new(PublishedState { view: View { leader_startable, clock, ..published.view }, ..published })
    }

    /// Requests a change and waits until it is durable or refused.
    ///
    /// # Errors
    /// The bus or the journal is not available, or there was no answer in time.
    pub async fn request<O: Family>(&self, request: Request<O>) -> Result<Answer<O::Refusal>, NotDone> {
        self.request_within(request, self.timeout).await
    }

    /// As [`Self::request`], for a caller that waits no longer than `limit`.
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
            // The driver has ended, and may have begun the request.
            outcome.await.unwrap_or_else(|_| Err(NotDone::unknown(stopped)))
        };
        let in_time = tokio::time::timeout(limit.min(self.timeout), ask).await;
        // The request may have been begun.
        let outcome = in_time.unwrap_or_else(|_| Err(NotDone::unknown(self.why_silent())));
        match outcome?.answer {
            Ok(accepted) => Ok(Ok(accepted)),
            Err(refusal) => match refusal.try_into() {
                Ok(refusal) => Ok(Err(refusal)),
                Err(other) => {
                    Err(NotDone::unknown(format!("the answer is to another request ({})", describe(&other))))
                }
            },
        }
    }

    fn why_silent(&self) -> String {
        let published = self.published();
        published
            .readiness
            .reason_not_ready()
            .unwrap_or("the journal did not confirm the change in time")
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::{ClockDoubt, WindowBlocker};
    use os_upgrade_shell::instance::Leadership;
    use os_upgrade_shell::lease::LeaseHolder;

    use super::*;
    use crate::instances::{About, Heartbeat, Role};

    /// A follower judges neither the clock nor the next start; what decides is what the leader says.
    #[test]
    fn followers_show_what_the_leader_says() {
        let now = DateTime::UNIX_EPOCH;
        let doubted = |doubt: Option<ClockDoubt>| {
            let view = View { clock: Clock { doubt, ..Clock::TRUSTED }, ..View::default() };
            let leadership = Leadership::At(LeaseHolder::new("a", ""));
            PublishedState { view, leadership, ..PublishedState::default() }
        };
        let own = Some(ClockDoubt::ClockUnmeasured);
        let published = Arc::new(ArcSwap::from_pointee(doubted(own.clone())));
        let cluster = Cluster::new(About { instance: "b".to_owned(), ..About::default() });
        let handle = SiteHandle::new(published, mpsc::channel(1).0).with_cluster(cluster.clone());
        let shown = || handle.published_for_display(now).view.clone();
        assert_eq!((shown().clock.doubt, shown().leader_startable), (own.clone(), None));
        for doubt in [Some(ClockDoubt::ClockStepped), None] {
            let (blocker, role) = (Some(WindowBlocker::HostsAwaited { hosts: 3 }), Role::Leader);
            let said = Heartbeat {
                role,
                blocker: blocker.clone(),
                ..cluster.heartbeat(&doubted(doubt.clone()), now)
            };
            cluster.record(Heartbeat { instance: "a".to_owned(), ..said }, now);
            assert_eq!((shown().clock.doubt, shown().leader_startable), (doubt, blocker.map(Err)));
            assert_eq!(handle.published().view.clock.doubt, own, "what it measures itself is in its metrics");
        }
    }
}
