//! `os-upgrade lock hold`, `release` and `forget`: slots held and released by operators.

use clap::Args;
use os_upgrade_api_types::route::Route;
use os_upgrade_api_types::routes::slots::{self, AboutSlot};
use os_upgrade_kernel::ClientId;
use os_upgrade_protocol::GroupName;

use crate::Failure;
use crate::remote::options::Remote;

#[derive(Debug, Args)]
pub(crate) struct Slot {
    /// The group
    #[arg(long, default_value = "default")]
    group: GroupName,
    /// The holder of the slot: the name of a host or the id of a FleetLock client
    #[arg(long, value_parser = ClientId::new)]
    id: ClientId,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Order {
    #[command(flatten)]
    slot: Slot,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Holds a slot until it is released.
pub(super) async fn hold(order: Order) -> Result<(), Failure> {
    send(order, &slots::HOLD, "held").await
}

/// Releases a slot, whoever holds it.
pub(super) async fn release(order: Order) -> Result<(), Failure> {
    send(order, &slots::RELEASE, "released").await
}

async fn send(order: Order, route: &Route<AboutSlot>, done: &str) -> Result<(), Failure> {
    let Order { slot: Slot { group, id, remote }, reason } = order;
    let body = AboutSlot { group, id: id.clone(), reason };
    remote.client()?.call_with_body(route, &body).await?;
    remote.output.done(done, &[id.as_str()])
}

/// Releases the slot of a host that has left the inventory.
pub(super) async fn forget(slot: Slot) -> Result<(), Failure> {
    let Slot { group, id, remote } = slot;
    remote.client()?.call(slots::RECLAIM.named([group.as_str(), id.as_str()])).await?;
    remote.output.done("released", &[id.as_str()])
}
