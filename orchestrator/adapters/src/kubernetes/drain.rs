//! Drains a node: evicts the pods that have to go, and waits until a fresh list shows none.
//!
//! [`super::plan`] decides about each pod. A drain goes in rounds, each of which begins with a list. It begins with a dry run:
//! where a pod would have to stay, nothing is evicted. After that, a pod that is refused is tried again later and holds up no
//! other one.

mod attempt;
mod progress;
mod report;
mod session;

use std::time::Duration;

use chrono::Utc;
use tokio::time::Instant;

use self::attempt::{Attempt, attempt, pause};
use self::progress::Progress;
pub use self::report::{DrainOutcome, DrainReport, Reason, RemainingPod};
pub use self::session::Pace;
use self::session::Session;
use super::api::Mode;
use super::client::Client;
use super::error::Error;
use super::mark::{Claim, Standing};
use super::permit::{Interrupted, Permit, Stop};
use super::plan::{Namespaces, PlannedPod, PodRef, Policy, plan};

/// The most evictions after one list. A pod that was replaced since costs its budget a disruption, so lists are not to be old.
const EVICTIONS_PER_LIST: usize = 20;

/// The outcome of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The pods that would keep the node from being drained as things are.
    pub blocked: Vec<RemainingPod>,
    /// Pods of this project on the node, which stay.
    pub own: Vec<PodRef>,
}

/// Drains nodes of one cluster.
#[derive(Debug, Clone, Copy)]
pub struct Drainer<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// Which pods are treated with care.
    pub policy: &'a Policy,
    /// How fast it goes.
    pub pace: Pace,
}

impl Drainer<'_> {
    /// Asks for all evictions without carrying any out.
    ///
    /// # Errors
    /// The work is to stop, or a request fails for good, among them that of a node that is not there.
    pub async fn dry_run(&self, node: &str, permit: &Permit<'_>) -> Result<Preview, Interrupted> {
        let mut work = Work::new(*self, node, permit);
        work.session.node(node).await?;
        work.list().await?;
        work.judge().await?;
        let mut blocked = work.progress.remaining();
        blocked.retain(|pod| !matches!(pod.reason, Reason::NotTried | Reason::Terminating { .. }));
        Ok(Preview { blocked, own: work.progress.own() })
    }

    /// Drains a node that is cordoned for `claim`.
    pub async fn drain(&self, node: &str, claim: &Claim, permit: &Permit<'_>) -> DrainReport {
        let mut work = Work::new(*self, node, permit);
        let outcome = work.drain(claim).await;
        let (remaining, own) = (work.progress.remaining(), work.progress.own());
        DrainReport { outcome, remaining, own, evicted: work.evicted, deleted: work.deleted }
    }
}

/// How far a drain has come.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Nothing has been evicted.
    Judging {
        /// How often the dry run may be repeated.
        retries: u32,
    },
    /// The dry run was not refused.
    Evicting,
}

/// One drain.
struct Work<'a> {
    drainer: Drainer<'a>,
    node: &'a str,
    session: Session<'a>,
    progress: Progress,
    phase: Phase,
    evicted: usize,
    deleted: usize,
}

/// What follows a round.
enum Next {
    /// The drain has ended.
    End(DrainOutcome),
    /// Another round after a pause.
    Round(Duration),
}

impl<'a> Work<'a> {
    fn new(drainer: Drainer<'a>, node: &'a str, permit: &'a Permit<'a>) -> Self {
        let session = Session::new(drainer.client, permit, drainer.pace);
        let phase = Phase::Judging { retries: drainer.pace.retries };
        Self { drainer, node, session, progress: Progress::default(), phase, evicted: 0, deleted: 0 }
    }

    async fn drain(&mut self, claim: &Claim) -> DrainOutcome {
        loop {
            let rest = match self.round(claim).await {
                Ok(Next::End(outcome)) => return outcome,
                Ok(Next::Round(rest)) => rest,
                Err(Interrupted::Stopped(stop)) => return self.stopped(claim, stop).await,
                Err(Interrupted::Failed(error)) if error.is_passing() => {
                    tracing::debug!(node = self.node, %error, "a drain pauses");
                    pause(error.retry_after(), self.drainer.pace.retry)
                }
                Err(Interrupted::Failed(error)) => return DrainOutcome::Unknown(error),
            };
            if let Err(stop) = self.session.pause(rest).await {
                return self.stopped(claim, stop).await;
            }
        }
    }

    /// The outcome when the work is to stop.
    async fn stopped(&mut self, claim: &Claim, stop: Stop) -> DrainOutcome {
        match stop {
            Stop::Cancelled => DrainOutcome::Cancelled,
            Stop::NotLeading => DrainOutcome::NotLeading,
            // A node that is empty is drained, however late. Reading changes nothing.
            Stop::DeadlinePassed => match self.look(claim).await {
                Ok(Some(outcome)) => outcome,
                Ok(None) => DrainOutcome::TimedOut,
                Err(error) => DrainOutcome::Unknown(error),
            },
        }
    }

    /// The last look at the node, after the deadline. Returns the outcome, unless pods are left.
    async fn look(&mut self, claim: &Claim) -> Result<Option<DrainOutcome>, Error> {
        let Drainer { client, policy, .. } = self.drainer;
        let standing = claim.standing(&super::node::read(client, self.node).await?.cordon);
        if standing != Standing::Ours {
            return Ok(Some(DrainOutcome::NotCordoned(standing)));
        }
        // Which namespaces are protected is of no interest any more.
        let pods = client.pods_of(self.node).await?;
        self.progress.update(plan(pods, &Namespaces::default(), policy), Utc::now());
        Ok(self.progress.is_drained().then_some(DrainOutcome::Drained))
    }

    /// One look at the node and its pods, and one attempt for each pod that is due.
    async fn round(&mut self, claim: &Claim) -> Result<Next, Interrupted> {
        let standing = claim.standing(&self.session.node(self.node).await?.cordon);
        if standing != Standing::Ours {
            return Ok(Next::End(DrainOutcome::NotCordoned(standing)));
        }
        self.list().await?;
        if self.progress.is_drained() {
            return Ok(Next::End(DrainOutcome::Drained));
        }
        match self.phase {
            Phase::Judging { retries } => self.begin(retries).await,
            Phase::Evicting => self.evict().await,
        }
    }

    /// The dry run under the cordon.
    async fn begin(&mut self, retries: u32) -> Result<Next, Interrupted> {
        // A job that begins later stands beside pods that were evicted already: it is waited for.
        if self.progress.waits_for_job() {
            return Ok(Next::End(DrainOutcome::Blocked));
        }
        self.judge().await?;
        if !self.progress.is_refused() {
            self.phase = Phase::Evicting;
            // The dry run takes its time, and evictions need a fresh list.
            return Ok(Next::Round(Duration::ZERO));
        }
        let Some(retries) = retries.checked_sub(1) else { return Ok(Next::End(DrainOutcome::Blocked)) };
        self.phase = Phase::Judging { retries };
        Ok(Next::Round(self.drainer.pace.retry))
    }

    /// Asks for the evictions of all pods without carrying any out.
    async fn judge(&mut self) -> Result<(), Interrupted> {
        for (pod, fallback) in self.progress.due(Instant::now()) {
            loop {
                match attempt(&mut self.session, &pod, fallback, Mode::DryRun).await? {
                    Attempt::Interrupted { pause, .. } => self.session.pause(pause).await?,
                    Attempt::Refused { reason, .. } => {
                        break self.progress.record(&pod.pod, reason, Utc::now(), Some(Instant::now()));
                    }
                    Attempt::Evicted | Attempt::Deleted | Attempt::Gone => {
                        break self.progress.forget(&pod.pod);
                    }
                }
            }
        }
        Ok(())
    }

    async fn evict(&mut self) -> Result<Next, Interrupted> {
        let due = self.progress.due(Instant::now());
        for (pod, fallback) in due.iter().take(EVICTIONS_PER_LIST) {
            let attempt = attempt(&mut self.session, pod, *fallback, Mode::Real).await?;
            if let Some(rest) = self.settle(pod, attempt) {
                return Ok(Next::Round(rest));
            }
        }
        if self.progress.is_hopeless() {
            return Ok(Next::End(DrainOutcome::Blocked));
        }
        let has_more = due.len() > EVICTIONS_PER_LIST;
        Ok(Next::Round(if has_more { Duration::ZERO } else { self.drainer.pace.round }))
    }

    /// Takes what came of an attempt. Returns a pause if the other pods would fare likewise.
    fn settle(&mut self, pod: &PlannedPod, attempt: Attempt) -> Option<Duration> {
        let retry = self.drainer.pace.retry;
        let (reason, due, rest) = match attempt {
            Attempt::Evicted => {
                self.evicted += 1;
                (Reason::Requested, Some(retry), None)
            }
            Attempt::Deleted => {
                self.deleted += 1;
                (Reason::Requested, Some(retry), None)
            }
            // The next list says what is there instead.
            Attempt::Gone => (Reason::Requested, Some(Duration::ZERO), None),
            Attempt::Refused { reason, retry } => (reason, retry, None),
            Attempt::Interrupted { error, pause } => {
                (Reason::Failed(error), Some(Duration::ZERO), Some(pause))
            }
        };
        self.progress.record(&pod.pod, reason, Utc::now(), due.map(|pause| Instant::now() + pause));
        rest
    }

    /// Lists the pods of the node, and the namespaces if something depends on them.
    async fn list(&mut self) -> Result<(), Interrupted> {
        let pods = self.session.pods(self.node).await?;
        let needs_namespaces = self.drainer.policy.needs_namespaces() && !pods.is_empty();
        let namespaces =
            if needs_namespaces { self.session.namespaces().await? } else { Namespaces::default() };
        self.progress.update(plan(pods, &namespaces, self.drainer.policy), Utc::now());
        Ok(())
    }
}
