//! Nodes: what they say of themselves, and their cordons. [`super::mark`] decides, this module writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::api::PatchKind;
use super::client::Client;
use super::error::Error;
use super::mark::{Claim, Cordon, Cordoned, Marking, Refenced, Standing, Step, Uncordoned};
use super::objects::{Names, Node};
use super::permit::{Interrupted, Permit};

/// How often a node is read and written in one attempt to change it: others write nodes too, kubelets every few seconds.
const ATTEMPTS_MAX: usize = 6;
/// How often it is tried while there is no answer. Whoever wants the change asks again later.
const UNANSWERED_MAX: usize = 3;
/// The pause after an answer that does not say whether the write was carried out. Doubles each time.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause that is waited for here. A server that asks for a longer one is asked again by whoever wants the change.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    pub name: String,
    /// Its uid. A node that was deleted and added again has another one.
    pub uid: String,
    /// The version of the object.
    pub version: String,
    /// Whether it takes pods, and why not.
    pub cordon: Cordon,
    /// The id of the boot that its kubelet runs in; absent before the kubelet has said so.
    pub boot_id: Option<String>,
    /// Whether its kubelet is ready.
    pub readiness: Readiness,
    /// Since when that has been so; absent where the API server does not say.
    pub readiness_since: Option<DateTime<Utc>>,
    /// The volumes that are in use on it, as its kubelet says.
    pub volumes_in_use: Names,
    pub labels: BTreeMap<String, String>,
}

/// The condition `Ready` of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It takes pods, unless it is cordoned.
    Ready,
    /// The kubelet says that it is not.
    NotReady,
    /// The kubelet has not been heard of.
    Unknown,
}

/// Whether a change of a node was sent that was carried out, or may have been. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<AtomicBool>);

impl Sent {
    fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, is_sent: bool) {
        self.0.store(is_sent, Ordering::SeqCst);
    }
}

impl NodeState {
    /// Whether its kubelet has not been heard of since `since`, or longer.
    pub(super) fn is_silent_since(&self, since: DateTime<Utc>) -> bool {
        self.readiness == Readiness::Unknown && self.readiness_since.is_some_and(|silent| silent <= since)
    }
}

impl From<Node> for NodeState {
    fn from(node: Node) -> Self {
        let metadata = node.metadata;
        let (spec, status) = (node.spec.unwrap_or_default(), node.status.unwrap_or_default());
        let ready = status.ready.0.as_ref();
        let since = ready.and_then(|ready| ready.since.as_deref()?.parse().ok());
        let readiness = match ready.map(|ready| ready.status.as_str()) {
            Some("True") => Readiness::Ready,
            Some("False") => Readiness::NotReady,
            _ => Readiness::Unknown,
        };
        Self {
            cordon: Cordon {
                is_unschedulable: spec.unschedulable.unwrap_or_default(),
                marking: Marking::read(metadata.annotations.and_then(|all| all.mark).as_deref()),
            },
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            version: metadata.resource_version.unwrap_or_default(),
            boot_id: status.node_info.map(|info| info.boot_id).filter(|id| !id.is_empty()),
            readiness,
            readiness_since: since,
            volumes_in_use: status.volumes_in_use,
            labels: metadata.labels.unwrap_or_default(),
        }
    }
}

/// Reads a node.
///
/// # Errors
/// The request fails, or there is no such node.
pub async fn read(client: &Client, name: &str) -> Result<NodeState, Error> {
    client.node(name).await.map(NodeState::from)
}

/// Cordons a node for `owner`. What an administrator has done before is remembered, unless the node is unschedulable because of this
/// site alone (`is_ours`). Returns the node as it then is, too.
///
/// # Errors
/// The work is to stop, or a request fails for good.
pub async fn cordon(
    client: &Client,
    name: &str,
    claim: &Claim,
    owner: &str,
    is_ours: bool,
    permit: Permit<'_>,
) -> Result<(Cordoned, NodeState), Interrupted> {
    let now = Utc::now();
    let step = |node: &NodeState, _: bool| claim.cordon(owner, &node.cordon, is_ours, &node.version, now);
    change(client, name, permit, &Sent::default(), step).await
}

/// Writes the fence of the claim into the mark of a node that is cordoned for the site, and looks whether it still is. Returns
/// the node as it then is, too.
///
/// # Errors
/// The work is to stop, or a request fails for good.
pub async fn keep(
    client: &Client,
    name: &str,
    claim: &Claim,
    permit: Permit<'_>,
) -> Result<(Standing, NodeState), Interrupted> {
    change(client, name, permit, &Sent::default(), |node, _| claim.keep(&node.cordon)).await
}

/// Leaves a node as it was before the site has cordoned it, if `may_end` says so of the node; otherwise it returns nothing.
///
/// An administrator's cordon that came after ours cannot be told apart, and ends too. One that is unschedulable because of this site
/// alone (`is_ours`) is made schedulable even if somebody has removed its mark. Once the site may have removed the mark itself (`sent`),
/// which it does with the cordon, a node that is unschedulable is so because of somebody else.
///
/// # Errors
/// The work is to stop, or a request fails for good.
pub async fn uncordon(
    client: &Client,
    name: &str,
    claim: &Claim,
    permit: Permit<'_>,
    is_ours: bool,
    sent: &Sent,
    may_end: impl Fn(&NodeState) -> bool,
) -> Result<Option<Uncordoned>, Interrupted> {
    let step = |node: &NodeState, was_sent: bool| {
        if !may_end(node) {
            return Step::Done(None);
        }
        claim.uncordon(&node.cordon, &node.version, is_ours && !was_sent).map(Some)
    };
    change(client, name, permit, sent, step).await.map(|(uncordoned, _)| uncordoned)
}

/// Writes the fence of the claim into its mark.
///
/// # Errors
/// The work is to stop, or a request fails for good.
pub async fn refence(
    client: &Client,
    name: &str,
    claim: &Claim,
    permit: Permit<'_>,
) -> Result<Refenced, Interrupted> {
    let step = |node: &NodeState, _: bool| claim.refence(&node.cordon);
    change(client, name, permit, &Sent::default(), step).await.map(|(refenced, _)| refenced)
}

/// Reads the node and takes steps until there is none left. `step` is told whether something was sent before the node was read. Returns
/// the node as it then is, too: whoever goes on from there need not read it again.
async fn change<T>(
    client: &Client,
    name: &str,
    permit: Permit<'_>,
    sent: &Sent,
    step: impl Fn(&NodeState, bool) -> Step<T>,
) -> Result<(T, NodeState), Interrupted> {
    let mut pause = RETRY_PAUSE;
    let mut attempt = 1;
    loop {
        // Without an answer only the node itself shows whether the patch was applied, so each attempt begins by reading it.
        let error = match attempt_once(client, name, permit, sent, &step).await {
            Err(Interrupted::Failed(error)) if error.is_passing() => error,
            result => return result,
        };
        // The node has changed: there is nothing to wait for.
        let has_changed = is_of_changed_node(&error);
        let asked = error.retry_after().unwrap_or(pause);
        let attempts = if has_changed { ATTEMPTS_MAX } else { UNANSWERED_MAX };
        if attempt >= attempts || asked > RETRY_PAUSE_MAX {
            return Err(error.into());
        }
        attempt += 1;
        if !has_changed {
            tokio::time::sleep(asked).await;
            pause *= 2;
        }
    }
}

async fn attempt_once<T>(
    client: &Client,
    name: &str,
    permit: Permit<'_>,
    sent: &Sent,
    step: impl Fn(&NodeState, bool) -> Step<T>,
) -> Result<(T, NodeState), Interrupted> {
    let node = read(client, name).await?;
    let was_sent = sent.get();
    let (kind, patch) = match step(&node, was_sent) {
        Step::Done(outcome) => return Ok((outcome, node)),
        Step::Merge(patch) => (PatchKind::Merge, patch),
        Step::Json(patch) => (PatchKind::Json, patch),
    };
    let turn = client.turn().await;
    permit.check()?;
    // If this is cut off, nobody knows.
    sent.set(true);
    let answer = client.patch_node(turn, name, kind, &patch).await;
    if answer.as_ref().is_err_and(|error| !error.leaves_outcome_unknown()) {
        sent.set(was_sent);
    }
    let written = NodeState::from(answer?);
    match step(&written, was_sent) {
        Step::Done(outcome) => Ok((outcome, written)),
        // An admission webhook may have changed what was written.
        Step::Merge(_) | Step::Json(_) => {
            let detail = "the patch was accepted and has not had its effect".to_owned();
            Err(Error::Malformed { detail }.into())
        }
    }
}

/// Whether a patch was not carried out because the node is not as it was when it was read.
const fn is_of_changed_node(error: &Error) -> bool {
    matches!(error, Error::Conflict { .. } | Error::Inapplicable { .. })
}
