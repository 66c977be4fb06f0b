//! What is done for each order.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use os_upgrade_console::describe;
use os_upgrade_kernel::{NodeJob, NodeOrder, NodeOutcome, Owner};
use os_upgrade_settings::NodeFrom;

use super::failure::Failure;
use super::memory::Memory;
use super::node_from::{cordoned_node_of, node_of};
use super::outcome::{found, lost, of_other_site, remaining, superseded, unreadable, with_mark};
use crate::kubernetes::client::Client;
use crate::kubernetes::drain::{Checked, Drainer, Round};
use crate::kubernetes::error::Error;
use crate::kubernetes::mark::{Claim, Cordoned, Marking, Refenced, Standing, Uncordoned};
use crate::kubernetes::node::{self, NodeState, Readiness};
use crate::kubernetes::node_event::{NodeEvent, NodeEvents};
use crate::kubernetes::permit::{Interrupted, Permit};

/// Why there is no outcome.
#[derive(Debug)]
pub(super) enum Halt {
    /// Nothing more may be written.
    NotLeading,
    /// The cluster could not be asked, or refused.
    Failed(Failure),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Interrupted> for Halt {
    fn from(interrupted: Interrupted) -> Self {
        match interrupted {
            Interrupted::NotLeading => Self::NotLeading,
            Interrupted::Failed(error) => error.into(),
        }
    }
}

/// One job, and what it needs.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) job: &'a NodeJob,
    pub(super) site: &'a str,
    /// When the journal of the site was created, if that is known.
    pub(super) journal: Option<DateTime<Utc>>,
    pub(super) node_from: &'a NodeFrom,
    pub(super) client: &'a Client,
    pub(super) drainer: Drainer<'a>,
    pub(super) permit: Permit<'a>,
    pub(super) memory: &'a Memory,
    pub(super) events: &'a NodeEvents,
}

impl Work<'_> {
    pub(super) async fn carry_out(&self) -> Result<NodeOutcome, Halt> {
        match &self.job.order {
            NodeOrder::Check { owner, is_cordoned } => {
                self.memory.forget_drain(&self.job.host);
                self.check(owner, *is_cordoned).await
            }
            NodeOrder::Evict { owner, is_cordoned, is_ours } => {
                self.evict(owner, *is_cordoned, *is_ours).await
            }
            NodeOrder::Hold => {
                self.memory.forget_drain(&self.job.host);
                self.memory.forget_uncordon(&self.job.host);
                unless_gone(self.hold().await, NodeOutcome::Unmarked)
            }
            NodeOrder::Uncordon { ready, left, is_ours, takes_over: _ } => {
                self.memory.forget_drain(&self.job.host);
                let uncordoned = self.uncordon(*ready, left.as_deref(), *is_ours).await;
                unless_gone(uncordoned, NodeOutcome::Uncordoned)
            }
        }
    }

    fn claim(&self) -> Claim {
        let takes_over = match self.job.order {
            NodeOrder::Uncordon { takes_over, .. } => takes_over,
            NodeOrder::Check { .. } | NodeOrder::Evict { .. } | NodeOrder::Hold => None,
        };
        let (site, host) = (self.site.to_owned(), self.job.host.clone());
        Claim { site, host, fence: self.job.fence, journal: self.journal, takes_over }
    }

    async fn check(&self, owner: &Owner, is_cordoned: bool) -> Result<NodeOutcome, Halt> {
        let node = node_of(self.node_from, self.client, &self.job.host).await?;
        let state = match self.cordon(&node, owner, is_cordoned, false).await? {
            Ok(state) => state,
            Err(outcome) => return Ok(outcome),
        };
        let outcome = match self.drainer.check(state.clone(), &self.claim()).await? {
            Checked::NotCordoned(standing) => return Ok(not_cordoned(&node, standing)),
            Checked::Drained { boot_id } => self.drained(&state, boot_id),
            Checked::Clear => NodeOutcome::Clear,
            Checked::Refused(pods) => {
                let pods = remaining(state.readiness, pods);
                self.report(&state, &NodeEvent::DrainRefused { why: describe(&pods).to_string() });
                NodeOutcome::Remaining { pods }
            }
            Checked::Pending(pods) => NodeOutcome::Remaining { pods: remaining(state.readiness, pods) },
        };
        Ok(with_mark(&state, outcome))
    }

    async fn evict(&self, owner: &Owner, is_cordoned: bool, is_ours: bool) -> Result<NodeOutcome, Halt> {
        let host = &self.job.host;
        let node = node_of(self.node_from, self.client, host).await?;
        let state = match self.cordon(&node, owner, is_cordoned, is_ours).await? {
            Ok(state) => state,
            Err(outcome) => return Ok(outcome),
        };
        let progress = self.memory.drain(host);
        let mut progress = progress.lock().await;
        let outcome = match self.drainer.round(&state, &self.claim(), self.permit, &mut progress).await? {
            Round::NotCordoned(standing) => return Ok(not_cordoned(&node, standing)),
            Round::Drained { boot_id } => {
                self.memory.forget_drain(host);
                self.drained(&state, boot_id)
            }
            Round::Remaining(pods) => NodeOutcome::Remaining { pods: remaining(state.readiness, pods) },
            Round::VolumesInUse(volumes) => NodeOutcome::VolumesInUse { volumes },
        };
        Ok(with_mark(&state, outcome))
    }

    fn drained(&self, node: &NodeState, boot_id: Option<String>) -> NodeOutcome {
        self.report(node, &NodeEvent::Drained);
        NodeOutcome::Drained { boot_id }
    }

    fn report(&self, node: &NodeState, event: &NodeEvent) {
        if self.permit.check().is_ok() {
            self.events.report(self.client, node, event);
        }
    }

    /// Cordons the node, or looks whether it still is. Returns the node as it then is, or the outcome if it cannot be drained.
    async fn cordon(
        &self,
        node: &str,
        owner: &Owner,
        is_cordoned: bool,
        is_ours: bool,
    ) -> Result<Result<NodeState, NodeOutcome>, Halt> {
        self.memory.forget_uncordon(&self.job.host);
        if is_cordoned {
            let (standing, state) = node::keep(self.client, node, &self.claim(), self.permit).await?;
            return Ok(lost(node, standing).map_or(Ok(state), Err));
        }
        let owner = owner.to_string();
        let (cordoned, state) =
            node::cordon(self.client, node, &self.claim(), &owner, is_ours, self.permit).await?;
        Ok(match cordoned {
            Cordoned::Ours { .. } => {
                self.report(&state, &NodeEvent::Cordoned);
                Ok(state)
            }
            Cordoned::Superseded(mark) => Err(superseded(&mark)),
            Cordoned::OtherSite(mark) => Err(of_other_site(node, &mark.site)),
            Cordoned::Unreadable { detail } => Err(unreadable(node, &detail)),
        })
    }

    async fn hold(&self) -> Result<NodeOutcome, Halt> {
        let Some(node) = cordoned_node_of(self.node_from, self.client, self.site, &self.job.host).await?
        else {
            return Ok(NodeOutcome::Unmarked);
        };
        Ok(match node::refence(self.client, &node, &self.claim(), self.permit).await? {
            Refenced::Done { was_unschedulable } => found(was_unschedulable, NodeOutcome::Held),
            Refenced::Unmarked | Refenced::OtherSite(_) => NodeOutcome::Unmarked,
            Refenced::Superseded(mark) => superseded(&mark),
            Refenced::Unreadable { detail } => unreadable(&node, &detail),
        })
    }

    async fn uncordon(&self, ready: bool, left: Option<&str>, is_ours: bool) -> Result<NodeOutcome, Halt> {
        let Some(node) = cordoned_node_of(self.node_from, self.client, self.site, &self.job.host).await?
        else {
            return Ok(NodeOutcome::Uncordoned);
        };
        let marked = Mutex::new(None);
        let may_end = |node: &NodeState| {
            if matches!(node.cordon.marking, Marking::Marked { .. }) {
                *marked.lock().unwrap_or_else(PoisonError::into_inner) = Some(node.clone());
            }
            !ready || is_ready(node, left)
        };
        let sent = self.memory.uncordon(&self.job.host);
        let uncordoned =
            node::uncordon(self.client, &node, &self.claim(), self.permit, is_ours, &sent, may_end).await?;
        Ok(match uncordoned {
            None => NodeOutcome::NotReady,
            Some(Uncordoned::Unmarked { is_unschedulable }) => {
                if let Some(before) = marked.into_inner().unwrap_or_else(PoisonError::into_inner) {
                    self.report(&before, &NodeEvent::Uncordoned);
                }
                if is_unschedulable {
                    tracing::warn!(
                        node,
                        "the node stays cordoned, as it was before, or as somebody has cordoned it"
                    );
                }
                NodeOutcome::Uncordoned
            }
            Some(Uncordoned::OtherSite(_)) => NodeOutcome::Uncordoned,
            Some(Uncordoned::Superseded(mark)) => superseded(&mark),
            Some(Uncordoned::Unreadable { detail }) => unreadable(&node, &detail),
        })
    }
}

fn not_cordoned(node: &str, standing: Standing) -> NodeOutcome {
    let ours = || NodeOutcome::Refused { detail: format!("{node} is cordoned, and was not drained") };
    lost(node, standing).unwrap_or_else(ours)
}

/// Whether the kubelet reports that the node is ready, in another boot than `left`.
fn is_ready(node: &NodeState, left: Option<&str>) -> bool {
    let has_left = left.is_none_or(|left| node.boot_id.as_deref().is_some_and(|boot_id| boot_id != left));
    node.readiness == Readiness::Ready && has_left
}

/// `outcome` where the node is gone.
fn unless_gone(result: Result<NodeOutcome, Halt>, outcome: NodeOutcome) -> Result<NodeOutcome, Halt> {
    match result {
        Err(Halt::Failed(failure)) if failure.is_node_gone() => Ok(outcome),
        result => result,
    }
}
