//! Drains a node: evicts the pods that have to go, until a fresh list shows none.
//!
//! [`super::plan`] decides about each pod. A drain is a check and then rounds, each of which begins with a list; whoever drains
//! repeats them. Where a pod would have to stay, the check says so, and nothing is evicted. After that, a pod that is refused is
//! tried again later and holds up no other one.

mod attempt;
mod progress;
mod report;
mod session;

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Pod, PodObstacle, Volumes};
use os_upgrade_protocol::limits::bounded_message;
use tokio::time::Instant;

use self::attempt::{Attempt, attempt};
pub use self::progress::Progress;
use self::report::blocks;
pub use self::report::{Checked, NamedPod, Preview, Round};
pub use self::session::Pace;
use self::session::Session;
use super::client::Client;
use super::error::Error;
use super::mark::{Claim, Standing};
use super::node::{self, NodeState};
use super::objects;
use super::permit::{Interrupted, NotLeading, Permit};
use super::plan::{Action, Namespaces, PlannedPod, Policy, plan};

/// The most evictions after one list. A pod that was replaced since costs its budget a disruption, so lists are not to be old.
const EVICTIONS_PER_LIST: usize = 20;
/// How long the dry run of one check may be repeated. Whoever checks does not wait for ever.
const CHECK_WITHIN: Duration = Duration::from_secs(30);
/// How many pods are named in a line of the log: anybody can make more.
const NAMED_MAX: usize = 5;

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

/// What a look at a cordoned node shows.
enum Look {
    NotCordoned(Standing),
    Drained { boot_id: Option<String> },
    PodsLeft,
    VolumesInUse(Volumes),
}

impl Drainer<'_> {
    /// What a drain would do, whether or not the node is cordoned. Nothing is changed.
    ///
    /// # Errors
    /// A request fails, among them that of a node that is not there.
    pub async fn preview(&self, node: &str) -> Result<Preview, Error> {
        let (mut session, mut progress) = self.begin();
        let node = node::read(self.client, node).await?;
        self.list(&node, &mut session, &mut progress).await?;
        let deleted = judge(&mut session, &mut progress).await?;
        let mut preview = Preview::default();
        for (planned, pod) in progress.remaining(Utc::now()) {
            if blocks(&pod.obstacle) {
                preview.blocked.push(pod);
            } else if planned.action == Action::Await {
                preview.awaited.push(planned.into());
            } else if deleted.contains(&planned.pod.uid) {
                preview.deleted.push(planned.into());
            } else {
                preview.evicted.push(planned.into());
            }
        }
        preview.own = progress.own().map(NamedPod::from).collect();
        Ok(preview)
    }

    /// Asks for all evictions of a node that is cordoned for `claim`, without carrying any out. The node is as it was read last.
    ///
    /// # Errors
    /// A request fails.
    pub async fn check(&self, mut node: NodeState, claim: &Claim) -> Result<Checked, Error> {
        let (mut session, mut progress) = self.begin();
        let end = Instant::now() + CHECK_WITHIN;
        let mut retries = self.pace.retries;
        loop {
            match self.look(&node, claim, &mut session, &mut progress).await? {
                Look::NotCordoned(standing) => return Ok(Checked::NotCordoned(standing)),
                Look::Drained { boot_id } => return Ok(Checked::Drained { boot_id }),
                // There is nothing to ask about, and the rounds wait for them.
                Look::VolumesInUse(_) => return Ok(Checked::Clear),
                Look::PodsLeft => {}
            }
            // What begins later stands beside pods that were evicted already: it is waited for.
            if progress.must_not_begin() {
                return Ok(Checked::Refused(progress.blocked(Utc::now())));
            }
            judge(&mut session, &mut progress).await?;
            if !progress.is_refused() {
                let pending = progress.pending(Utc::now());
                if !pending.is_empty() {
                    return Ok(Checked::Pending(pending));
                }
                log_losses(&node.name, &progress);
                return Ok(Checked::Clear);
            }
            if retries == 0 || Instant::now() + self.pace.retry > end {
                return Ok(Checked::Refused(progress.blocked(Utc::now())));
            }
            retries -= 1;
            tokio::time::sleep(self.pace.retry).await;
            node = node::read(self.client, &node.name).await?;
        }
    }

    /// One look at a node that is cordoned for `claim`, and one attempt for each pod that is due. What came of earlier rounds is
    /// in `progress`. The node is as it was read last.
    ///
    /// # Errors
    /// Nothing may be written, or a request fails. Pods may have been evicted before it failed.
    pub async fn round(
        &self,
        node: &NodeState,
        claim: &Claim,
        permit: Permit<'_>,
        progress: &mut Progress,
    ) -> Result<Round, Interrupted> {
        let (mut session, _) = self.begin();
        match self.look(node, claim, &mut session, progress).await? {
            Look::NotCordoned(standing) => return Ok(Round::NotCordoned(standing)),
            Look::Drained { boot_id } => return Ok(Round::Drained { boot_id }),
            Look::VolumesInUse(volumes) => return Ok(Round::VolumesInUse(volumes)),
            Look::PodsLeft => {}
        }
        let due = progress.due(Instant::now());
        let mut has_written = false;
        for (pod, fallback) in due.iter().take(EVICTIONS_PER_LIST) {
            match attempt(&mut session, pod, *fallback, permit).await {
                Ok(attempt) => has_written |= self.settle(progress, pod, attempt)?,
                // What was done is told all the same.
                Err(NotLeading) if has_written => break,
                Err(NotLeading) => return Err(Interrupted::NotLeading),
            }
        }
        let remaining: Vec<Pod> = progress.remaining(Utc::now()).map(|(_, pod)| pod).collect();
        Ok(Round::Remaining(remaining))
    }

    fn begin(&self) -> (Session<'_>, Progress) {
        (Session::new(self.client, self.pace), Progress::default())
    }

    /// Lists the pods of the node, if it is cordoned.
    async fn look(
        &self,
        node: &NodeState,
        claim: &Claim,
        session: &mut Session<'_>,
        progress: &mut Progress,
    ) -> Result<Look, Error> {
        let standing = claim.standing(&node.cordon);
        if standing != Standing::Ours {
            return Ok(Look::NotCordoned(standing));
        }
        self.list(node, session, progress).await?;
        if !progress.is_drained() {
            return Ok(Look::PodsLeft);
        }
        let (volumes, staying) = (&node.volumes_in_use, progress.volumes_staying());
        // Nobody unmounts them where the kubelet is silent.
        if volumes.count > staying && self.skipped_since(node).is_none() {
            let volumes = Volumes { count: volumes.count, first: volumes.first.clone(), staying };
            return Ok(Look::VolumesInUse(volumes));
        }
        let name = |own: &PlannedPod| format!("{}/{}", own.pod.namespace, own.pod.name);
        let own: Vec<String> = progress.own().take(NAMED_MAX).map(name).collect();
        if !own.is_empty() {
            let (pods, first) = (progress.own().count(), own.join(", "));
            tracing::info!(node = node.name, pods, "pods of os-upgrade stay on the drained node: {first}");
        }
        Ok(Look::Drained { boot_id: node.boot_id.clone() })
    }

    /// Lists the pods of the node, and the namespaces if something depends on them.
    async fn list(
        &self,
        node: &NodeState,
        session: &mut Session<'_>,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let mut pods = session.pods(&node.name).await?;
        self.leave_out_abandoned(node, &mut pods);
        let needs_namespaces = self.policy.needs_namespaces() && !pods.is_empty();
        let namespaces = if needs_namespaces { session.namespaces().await? } else { Namespaces::default() };
        progress.update(plan(pods, &namespaces, self.policy), Utc::now());
        Ok(())
    }

    /// What has ended, or was to end, before this time is not waited for on `node`: absent unless its kubelet has been silent since.
    fn skipped_since(&self, node: &NodeState) -> Option<DateTime<Utc>> {
        let since = Utc::now() - self.pace.skip_terminating_after?;
        node.is_silent_since(since).then_some(since)
    }

    /// Leaves out pods that are terminating for too long on a node whose kubelet is silent: nobody ends them.
    fn leave_out_abandoned(&self, node: &NodeState, pods: &mut Vec<objects::Pod>) {
        let Some(since) = self.skipped_since(node) else { return };
        let before = pods.len();
        pods.retain(|pod| !is_terminating_since(pod, since));
        let pods = before - pods.len();
        if pods > 0 {
            tracing::info!(
                node = node.name,
                pods,
                "pods are terminating, and the kubelet is silent: they are not waited for"
            );
        }
    }

    /// Takes what came of an attempt. Returns whether something was written, or why the other pods would fare likewise.
    fn settle(&self, progress: &mut Progress, pod: &PlannedPod, attempt: Attempt) -> Result<bool, Error> {
        let (obstacle, due, result) = match attempt {
            Attempt::Evicted | Attempt::Deleted => (PodObstacle::Requested, self.pace.retry, Ok(true)),
            // The next list says what is there instead.
            Attempt::Gone => (PodObstacle::Requested, Duration::ZERO, Ok(false)),
            Attempt::Refused { obstacle, retry } => (obstacle, retry, Ok(false)),
            Attempt::Failed(error) => {
                let detail = bounded_message(&error.to_string());
                (PodObstacle::Failed { detail }, Duration::ZERO, Err(error))
            }
        };
        progress.record(&pod.pod, obstacle, Utc::now(), Some(Instant::now() + due));
        result
    }
}

/// Says which pods nothing brings back, and which lose data, before they are evicted.
fn log_losses(node: &str, progress: &Progress) {
    let named = |is_lost: fn(&NamedPod) -> bool| {
        let name = |pod: NamedPod| format!("{}/{}", pod.namespace, pod.name);
        let lost = progress.losses().filter(is_lost);
        let names: Vec<String> = lost.map(name).take(NAMED_MAX).collect();
        names.join(", ")
    };
    let (bare, with_data) = (named(|pod| pod.is_bare), named(|pod| pod.has_empty_dir));
    if !bare.is_empty() {
        tracing::info!(node, "pods without a controller are evicted, and nothing replaces them: {bare}");
    }
    if !with_data.is_empty() {
        tracing::info!(node, "pods with data in an emptyDir are evicted, and lose it: {with_data}");
    }
}

/// Whether the time that `pod` has to end is over since before `since`.
fn is_terminating_since(pod: &objects::Pod, since: DateTime<Utc>) -> bool {
    let ends = pod.metadata.deletion_timestamp.as_deref();
    ends.and_then(|at| at.parse::<DateTime<Utc>>().ok()).is_some_and(|ends| ends <= since)
}

/// Asks for the evictions of all pods without carrying any out. Returns the uids of those that would be deleted.
async fn judge(session: &mut Session<'_>, progress: &mut Progress) -> Result<BTreeSet<String>, Error> {
    let mut deleted = BTreeSet::new();
    for (pod, fallback) in progress.due(Instant::now()) {
        match attempt::judge(session, &pod, fallback).await {
            Attempt::Failed(error) => return Err(error),
            Attempt::Refused { obstacle, .. } => {
                progress.record(&pod.pod, obstacle, Utc::now(), Some(Instant::now()));
            }
            Attempt::Deleted => {
                progress.forget(&pod.pod);
                deleted.insert(pod.pod.uid);
            }
            Attempt::Evicted | Attempt::Gone => progress.forget(&pod.pod),
        }
    }
    Ok(deleted)
}
