//! What the tasks of an instance share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use os_upgrade_bus::PendingBus;
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::Settings;
use os_upgrade_site::instances::Cluster;
use os_upgrade_site::published_state::PublishedState;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the tasks of an instance share. Clones share all of it.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// The bus, once it is connected.
    pub(crate) bus: PendingBus,
    /// The published state, which the API reads. Until the driver runs, it says why the instance is not ready.
    pub(crate) published: Arc<ArcSwap<PublishedState>>,
    /// The instances of the site.
    pub(crate) cluster: Cluster,
    /// Reloaded settings.
    pub(crate) changes: watch::Receiver<Settings>,
    /// The rules of time zones.
    pub(crate) zones: watch::Receiver<Zones>,
    /// Counts the iterations of the driver's loop, at least one per 100 ms. If it stands still, the driver is stuck.
    pub(crate) iterations: Arc<AtomicU64>,
    /// Stops every task gracefully.
    pub(crate) shutdown: CancellationToken,
}
