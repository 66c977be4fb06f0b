//! The Kubernetes nodes of hosts: cordoned and drained for a slot, and uncordoned before it is released.

mod api_servers;
mod backing_off;
mod fact;
mod fence;
mod fold;
mod job;
pub(crate) mod request;
mod rules;
mod settings;
mod state;
mod steps;
mod wait;

pub(crate) use self::api_servers::{ApiServerRule, api_server_rule, server_under_way};
pub use self::fact::NodeFact;
pub use self::fence::NodeFence;
pub use self::job::{NodeJob, NodeOrder, NodeOutcome};
pub use self::request::{NodeOperation, NodeRefusal};
pub(crate) use self::rules::uncordon_due;
pub use self::settings::KubernetesSettings;
pub use self::state::{Node, NodeProgress, NodeStage, NodeStageKind, NodeStep, NodeStepKind};
pub(crate) use self::steps::{sweep, time_out_drains};
pub use self::wait::{NodeWait, NodeWaitKind, PODS_NAMED_MAX, Pod, PodObstacle, Pods, Volumes};
