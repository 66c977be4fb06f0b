//! A Kubernetes cluster: nodes are cordoned and drained before their hosts are upgraded or rebooted.
//!
//! [`node`] cordons and uncordons, [`drain`] evicts pods, [`plan`] decides which. [`client`] and [`api`] send requests, each
//! once; [`objects`] is what is read of answers; [`rights`] is what they need of the cluster. What to do with an outcome is up to the caller, such as [`crate::cluster`].
//!
//! # Pods
//!
//! A node is drained when a fresh list shows none of the pods that have to go, and its kubelet reports no more volumes in use than
//! the pods that stay may have:
//!
//! | pod | what a drain does |
//! |---|---|
//! | that the settings say is waited for, not finished | does not begin, or waits if it has begun, whoever controls the pod |
//! | that the settings say is waited for, finished | nothing |
//! | of a daemon set, or the mirror of a static pod | nothing: it would come back |
//! | of this project, by its label `app.kubernetes.io/part-of` | nothing, and names it |
//! | of a job, not running | nothing |
//! | of a job, running | does not begin, or waits if it has begun; evicts it if the policy does not protect it |
//! | terminating | waits |
//! | any other, finished ones and those without a controller included | evicts it, by its uid |
//!
//! A pod that a budget holds stays where its namespace is protected, and is deleted where it is not. A budget that is still being
//! computed is waited for. Other refusals, such as throttling or an admission webhook's, lead to no deletion. All evictions are
//! asked for in a dry run first, under the cordon: where a pod would have to stay because of a budget, an admission webhook or a
//! missing right, nothing is evicted. Evictions have no fence, so one that
//! was sent right before another instance began to lead may be carried out after that.
//!
//! # Cordons
//!
//! One patch makes a node unschedulable and writes the annotation [`mark::ANNOTATION`]: site, owner, host, the leader's fence,
//! whether the node was unschedulable before, and, for people, since when and for what. Site and fence say who may change it; the owner is for people. Nothing without
//! that annotation is uncordoned. An administrator's cordon that was there before is there afterwards; a later one cannot be told
//! apart and ends with ours. Sites that share a cluster leave each other's nodes alone, as long as their names differ.
//!
//! # Rights
//!
//! `config/kubernetes/rbac.yaml` grants exactly [`rights::RIGHTS`].

mod answer;
pub mod api;
pub mod client;
pub mod drain;
pub mod error;
pub mod eviction;
pub mod mark;
pub mod node;
pub(crate) mod node_event;
pub mod objects;
pub mod permit;
pub mod plan;
pub mod request_rate;
pub mod rights;
mod token_file;
