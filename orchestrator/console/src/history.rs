//! Entries of histories: what operators, clients and the reboot queue did, in the columns of a table.

use std::borrow::Cow;

use os_upgrade_kernel::fact::{DesiredFact, EnrolmentFact, LockFact, NodeFact, QueueFact, UnitFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{ClientId, Fact, NodeStep};
use os_upgrade_protocol::{GroupName, HostName, time};

use crate::describe::describe;

/// A fact of a history.
#[derive(Debug, Default)]
pub(crate) struct Entry<'a> {
    /// What was done, such as `approved`.
    pub action: Cow<'static, str>,
    /// The hosts it was done to.
    pub hosts: &'a [HostName],
    /// The entry of the reboot queue.
    pub index: Option<u64>,
    /// The holder of the slot, and the slot's group.
    pub holder: Option<(&'a ClientId, &'a GroupName)>,
    /// Why it was done, or happened.
    pub reason: Option<Cow<'a, str>>,
}

impl<'a> Entry<'a> {
    /// What a history says of `fact`; `None` for what no history has.
    pub(crate) fn of(fact: &'a Fact) -> Option<Self> {
        let (entry, because) = (Self::named, Self::because);
        let slot = |action, id, group| Self { holder: Some((id, group)), ..entry(action) };
        let reason = |reason: &'a Option<String>| reason.as_deref().map(Cow::from);
        Some(match fact {
            Fact::Lock(fact) => match fact {
                LockFact::HoldPlaced { group, id, reason, .. } => {
                    Self { reason: Some(reason.into()), ..slot("held", id, group) }
                }
                LockFact::HolderReleased { group, id, reason, .. } => {
                    let why = reason.as_deref().unwrap_or("it has left the inventory");
                    Self { reason: Some(why.into()), ..slot("released", id, group) }
                }
                LockFact::Granted { group, id, .. } => slot("locked", id, group),
                LockFact::Released { group, id, .. } => slot("unlocked", id, group),
                LockFact::Awaited { .. } | LockFact::WaitEnded { .. } => return None,
            },
            Fact::Queue(fact) => match fact {
                QueueFact::RebootsQueued { hosts, reason: why, .. } => {
                    Self { hosts, reason: reason(why), ..entry("queued") }
                }
                QueueFact::Switched { enabled, reason: why, .. } => {
                    Self { reason: reason(why), ..entry(if *enabled { "enabled" } else { "disabled" }) }
                }
                QueueFact::BackoffReset { .. } => entry("backoff reset"),
                QueueFact::Reboot { index, host, event } => Self {
                    action: event.name().replace('-', " ").into(),
                    hosts: std::slice::from_ref(host),
                    index: Some(*index),
                    reason: entry_reason(event),
                    ..Self::default()
                },
            },
            Fact::Node(fact) => match fact {
                NodeFact::Step { host, step: NodeStep::UncordonRequested { reason, .. } } => {
                    Self { hosts: std::slice::from_ref(host), ..because("uncordoned", reason) }
                }
                NodeFact::Step { .. } => return None,
            },
            Fact::Enrolment(fact) => match fact {
                EnrolmentFact::HostsApproved { hosts, .. } => Self { hosts, ..entry("approved") },
                EnrolmentFact::KeyPinned { host, key, .. } => Self {
                    hosts: std::slice::from_ref(host),
                    reason: Some(key.to_string().into()),
                    ..entry("key approved")
                },
                EnrolmentFact::HostWithdrawn { host, reason, forgotten, .. } => {
                    let action = if *forgotten { "forgot" } else { "withdrew" };
                    Self { hosts: std::slice::from_ref(host), ..because(action, reason) }
                }
                EnrolmentFact::HostRemoved { host, reason, .. } => {
                    Self { hosts: std::slice::from_ref(host), ..because("removed", reason) }
                }
                EnrolmentFact::HostDeferred { host, reason, until, .. } => {
                    let until = until.map(|until| format!("until {}: {reason}", time::format(until)));
                    Self {
                        hosts: std::slice::from_ref(host),
                        reason: Some(until.map_or(Cow::from(reason), Cow::from)),
                        ..entry("deferred")
                    }
                }
                EnrolmentFact::DeferralEnded { host, reason, .. } => Self {
                    hosts: std::slice::from_ref(host),
                    reason: reason.as_deref().map(Cow::from),
                    ..entry("deferral ended")
                },
                EnrolmentFact::HostPurged { .. } => return None,
            },
            Fact::Desired(fact) => match fact {
                DesiredFact::PollRequested { provider, host, .. } => Self {
                    hosts: host.as_ref().map_or(&[], std::slice::from_ref),
                    reason: Some(provider.as_str().into()),
                    ..entry("provider asked")
                },
                DesiredFact::DeliveryResumed { host, .. } => Self {
                    hosts: host.as_ref().map_or(&[], std::slice::from_ref),
                    ..entry("delivery resumed")
                },
                DesiredFact::HookTokensRevoked { provider, .. } => because("new token", provider.as_str()),
                DesiredFact::ItemStored { .. }
                | DesiredFact::ItemRevoked { .. }
                | DesiredFact::ManifestStored { .. }
                | DesiredFact::UnknownItemsFound { .. }
                | DesiredFact::ProviderFailed { .. }
                | DesiredFact::ProviderRecovered { .. }
                | DesiredFact::HookTokenDrawn { .. }
                | DesiredFact::HookAnswered { .. }
                | DesiredFact::HookMetadataChanged { .. }
                | DesiredFact::CallbackReceived { .. } => return None,
            },
            Fact::Unit(fact) => return Self::of_unit(fact),
            Fact::Run(_)
            | Fact::Slot(_)
            | Fact::Pause(_)
            | Fact::Config(_)
            | Fact::Secret(_)
            | Fact::Control(_)
            | Fact::Restoration(_) => return None,
        })
    }

    fn of_unit(fact: &'a UnitFact) -> Option<Self> {
        Some(match fact {
            UnitFact::Submitted { name, .. } => Self::because("submitted", name.as_str()),
            UnitFact::Wanted { name, state, .. } => {
                Self { reason: Some(format!("{name} {state}").into()), ..Self::named("wanted") }
            }
            UnitFact::Destroyed { name, .. } => Self::because("destroyed", name.as_str()),
            UnitFact::MachineJoined { host, machine, .. } => Self {
                hosts: std::slice::from_ref(host),
                reason: Some(machine.to_string().into()),
                ..Self::named("machine approved")
            },
            UnitFact::MachineLost { .. }
            | UnitFact::MachineFound { .. }
            | UnitFact::Placed { .. }
            | UnitFact::Taken { .. }
            | UnitFact::Stopped { .. } => return None,
        })
    }

    fn named(action: &'static str) -> Self {
        Self { action: action.into(), ..Self::default() }
    }

    fn because(action: &'static str, reason: &'a str) -> Self {
        Self { reason: Some(reason.into()), ..Self::named(action) }
    }
}

/// Why something happened to an entry of the reboot queue, if there is a reason.
fn entry_reason(event: &EntryEvent) -> Option<Cow<'_, str>> {
    let described = event.reason().map(|reason| describe(reason).to_string().into());
    described.or_else(|| event.operators_reason().map(Cow::from))
}
