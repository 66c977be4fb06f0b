//! A Kubernetes cluster: nodes are cordoned and drained before their hosts are upgraded or rebooted.
//!
//! [`node`] cordons and uncordons, [`drain`] evicts pods, [`plan`] decides which. [`client`] and [`api`] send requests, each
//! once; [`rights`] is what they need of the cluster. What to do with an outcome is up to the caller.

mod answer;
pub mod api;
pub mod client;
pub mod drain;
pub mod error;
pub mod eviction;
pub mod mark;
pub mod node;
pub mod permit;
pub mod plan;
pub mod rights;
