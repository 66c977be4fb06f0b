//! What the drain of a host's Kubernetes node would do, asked on demand of the cluster. It is neither journaled nor in the
//! published state.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use os_upgrade_kernel::Pod;
use os_upgrade_protocol::HostName;
use tokio::sync::Semaphore;

/// What a drain would do. Each pod is judged on its own, so a budget may allow each of several evictions and not all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainPreview {
    /// The pods that would be evicted.
    pub evicted: Vec<PodName>,
    /// The pods that would be deleted, since a budget refuses their eviction and their namespace is not protected.
    pub deleted: Vec<PodName>,
    /// The pods that are terminating, whose end would be waited for.
    pub awaited: Vec<PodName>,
    /// The pods that would keep the node from being drained as things are.
    pub blocked: Vec<Pod>,
    /// Pods of this project, which stay.
    pub own: Vec<PodName>,
}

/// A pod by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
    /// Its controller, as in `StatefulSet/db`; absent if it has none.
    pub owner: Option<String>,
    /// Whether no controller replaces it.
    pub is_bare: bool,
    /// Whether it has data in an `emptyDir`, which end with it.
    pub has_empty_dir: bool,
}

/// Why there is no preview, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPreview {
    /// The host has no node.
    #[error("{0}")]
    NoNode(String),
    /// The cluster cannot be asked now.
    #[error("{0}")]
    Unavailable(String),
}

/// What asking for a preview returns.
pub type PreviewRead<'a> = Pin<Box<dyn Future<Output = Result<DrainPreview, NoPreview>> + Send + 'a>>;

/// Who can ask the cluster.
pub trait PreviewsDrains: fmt::Debug + Send + Sync {
    /// What the drain of the node of `host` would do. Nothing is changed.
    fn preview<'a>(&'a self, host: &'a HostName) -> PreviewRead<'a>;
}

/// How many previews are made at once: each asks the API server for every pod of a node.
const PREVIEWS_MAX: usize = 2;

/// The previews of drains; without a cluster there are none. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DrainPreviews(Option<Arc<Limited>>);

#[derive(Debug)]
struct Limited {
    cluster: Box<dyn PreviewsDrains>,
    turns: Semaphore,
}

impl DrainPreviews {
    /// The previews that `cluster` makes.
    pub fn new(cluster: impl PreviewsDrains + 'static) -> Self {
        Self(Some(Arc::new(Limited { cluster: Box::new(cluster), turns: Semaphore::new(PREVIEWS_MAX) })))
    }

    /// What the drain of the node of `host` would do.
    ///
    /// # Errors
    /// The host has no node, or the cluster cannot be asked now.
    pub async fn of(&self, host: &HostName) -> Result<DrainPreview, NoPreview> {
        let Some(previews) = &self.0 else {
            let why = "the settings of this instance name no Kubernetes cluster";
            return Err(NoPreview::NoNode(why.to_owned()));
        };
        let _turn = previews.turns.acquire().await.expect("it is never closed");
        previews.cluster.preview(host).await
    }
}
