//! Facts in a few words, and how much they matter to people.

use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{Fact, HostEvent, MissedRun, NodeStep, Reason, StopCause};
use os_upgrade_protocol::{HostName, time};

use crate::describe::describe;

/// How important a fact is to an operator, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    /// The course of a run, or what applies to the whole site.
    Site,
    /// How a host ended, or an operator's decision.
    Outcome,
    /// A host's or client's step.
    Step,
    /// A command or its reply.
    Command,
    /// Internal bookkeeping, of no interest to operators.
    Bookkeeping,
}

/// A fact in a few words, and its importance.
pub fn summary(fact: &Fact) -> (Importance, String) {
    use Importance::{Bookkeeping, Command, Outcome, Site, Step};
    match fact {
        Fact::SettingsAdopted { .. } => (Site, "settings adopted".to_owned()),
        Fact::ConfigReplaced { actor, .. } => (Site, format!("configuration changed by {actor}")),
        Fact::RunStarted { run, trigger, .. } => {
            (Site, format!("run {run} started by {}", trigger.actor().unwrap_or("its maintenance window")))
        }
        Fact::RunStopping { run, cause } => (
            Site,
            match cause {
                StopCause::Failed { host } => format!("run {run} stopped because {host} failed"),
                StopCause::Cancelled { actor, .. } => format!("run {run} cancelled by {actor}"),
                StopCause::Restored { actor } => format!("run {run} given up by {actor}"),
            },
        ),
        Fact::RunEnded { run, result } => (Site, format!("run {run} ended {}", result.as_str())),
        Fact::RunMissed(MissedRun { start, reason, .. }) => {
            (Site, format!("run of {} missed: {}", time::format(*start), describe(reason)))
        }
        Fact::Restored { source, actor, .. } => {
            (Site, format!("site restored from a {} by {actor}", source.as_str()))
        }
        Fact::Host { host, event, .. } => match event {
            HostEvent::TimedOut { reason: Reason::GivenUp { actor, .. } }
            | HostEvent::Cancelled { reason: Reason::GivenUp { actor, .. } } => {
                (Outcome, format!("{host} given up by {actor}"))
            }
            HostEvent::Upgraded => (Outcome, format!("{host} upgraded")),
            HostEvent::Failed { .. } => (Outcome, format!("{host} failed")),
            HostEvent::TimedOut { .. } => (Outcome, format!("{host} timed out")),
            HostEvent::SlotGranted { .. } => (Step, format!("{host} got its slot")),
            HostEvent::Drained => (Step, format!("{host} drained")),
            HostEvent::BackedOff { .. } => (Step, format!("drain of {host} given up")),
            HostEvent::Recovering => (Step, format!("{host} recovers")),
            HostEvent::RebootRequired => (Step, format!("{host} requires a reboot")),
            HostEvent::Cancelled { .. } => (Step, format!("{host} cancelled")),
            HostEvent::CommandSent { action, .. } => (Command, format!("{} sent to {host}", action.as_str())),
            HostEvent::Prepared => (Command, format!("{host} prepared")),
            HostEvent::Waiting { .. } => (Bookkeeping, format!("{host} waits")),
            HostEvent::TurnLost => (Bookkeeping, format!("{host} lost its turn")),
        },
        Fact::HoldPlaced { id, actor, .. } => (Outcome, format!("slot held for {id} by {actor}")),
        Fact::HolderReleased { id, actor, reason: Some(_), .. } => {
            (Outcome, format!("slot of {id} released by {actor}"))
        }
        Fact::HolderReleased { id, actor, reason: None, .. } => {
            (Outcome, format!("slot of {id}, which has left the inventory, released by {actor}"))
        }
        Fact::SecretStored { name, actor, .. } => (Outcome, format!("secret {name} stored by {actor}")),
        Fact::SecretRemoved { name, actor } => (Outcome, format!("secret {name} removed by {actor}")),
        Fact::HostsApproved { hosts, actor } => (Outcome, format!("{} approved by {actor}", some_of(hosts))),
        Fact::RebootsQueued { hosts, actor, .. } => {
            (Outcome, format!("reboot of {} queued by {actor}", some_of(hosts)))
        }
        Fact::Reboot { index, host, event } => reboot_summary(*index, host, event),
        Fact::RebootQueueSwitched { enabled, actor, .. } => {
            let switched = if *enabled { "enabled" } else { "disabled" };
            (Site, format!("reboot queue {switched} by {actor}"))
        }
        Fact::RebootBackoffReset { actor } => {
            (Outcome, format!("backoff of the reboot queue reset by {actor}"))
        }
        Fact::HostWithdrawn { host, actor, .. } => (Outcome, format!("{host} withdrawn by {actor}")),
        Fact::HostRemoved { host, actor, .. } => (Outcome, format!("{host} removed by {actor}")),
        Fact::Node { host, step } => node_summary(host, step),
        Fact::HostPurged { host } => (Bookkeeping, format!("what was stored of {host} deleted")),
        Fact::SlotReleased { host, .. } => (Step, format!("slot of {host} released")),
        Fact::SlotReleaseRefused { host, .. } => (Step, format!("slot of {host} not released")),
        Fact::SlotRequested { host, .. } => (Step, format!("slot of {host} requested")),
        Fact::LateCommandSeen { host, .. } => (Step, format!("late command of {host} seen")),
        Fact::LockGranted { id, .. } => (Step, format!("slot granted to {id}")),
        Fact::LockReleased { id, .. } => (Step, format!("slot of {id} released")),
        Fact::LockAwaited { id, .. } => (Bookkeeping, format!("{id} waits for a slot")),
        Fact::LockWaitEnded { id, .. } => (Bookkeeping, format!("{id} no longer waits for a slot")),
        Fact::SlotInDoubt { host } => (Bookkeeping, format!("slot of {host} in doubt")),
        Fact::SlotUnlocked { host } => (Bookkeeping, format!("slot of {host} to be released once more")),
        Fact::SlotReleaseDue { host, .. } => (Bookkeeping, format!("slot of {host} to be released")),
        Fact::UpgradesBegan { run } => (Bookkeeping, format!("upgrades of {run} began")),
        Fact::StrongboxKeySet { .. } => (Bookkeeping, "strongbox got a new key".to_owned()),
        Fact::Fenced { sequence, leader } => (Bookkeeping, format!("fence {sequence} of {leader}")),
        Fact::FencePassed { sequence } => (Bookkeeping, format!("fence {sequence} passed")),
        Fact::CommandRetracted { host, sequence, deleted } => {
            let what = if *deleted { "deleted" } else { "already delivered" };
            (Bookkeeping, format!("command {sequence} of {host} {what}"))
        }
        Fact::Ignored { sequence, .. } => (Bookkeeping, format!("message {sequence} ignored")),
    }
}

/// What happened to an entry of the reboot queue in a few words, and its importance.
fn reboot_summary(index: u64, host: &HostName, event: &EntryEvent) -> (Importance, String) {
    use Importance::{Bookkeeping, Command, Outcome, Step};
    match event {
        EntryEvent::Rebooted => (Outcome, format!("{host} rebooted")),
        EntryEvent::Failed { .. } => (Outcome, format!("reboot of {host} failed")),
        EntryEvent::GivenUp { actor, .. } => {
            (Outcome, format!("reboot {index} of {host} given up by {actor}"))
        }
        EntryEvent::Cancelled { actor, .. } => {
            (Outcome, format!("reboot {index} of {host} cancelled by {actor}"))
        }
        EntryEvent::Started { .. } => (Step, format!("reboot of {host} started")),
        EntryEvent::BackedOff { .. } => (Step, format!("drain of {host} given up for now")),
        EntryEvent::RebootBegan { .. } => (Step, format!("{host} is told to reboot")),
        EntryEvent::AttemptDue { .. } => (Step, format!("{host} is to be rebooted by command")),
        EntryEvent::AttemptBegan => (Command, format!("reboot command of {host} is being run")),
        EntryEvent::AttemptSucceeded => (Step, format!("reboot command of {host} succeeded")),
        EntryEvent::AttemptUnknown { .. } => {
            (Outcome, format!("outcome of the reboot command of {host} is unknown"))
        }
        EntryEvent::CommandSent { .. } => (Command, format!("reboot sent to {host}")),
        EntryEvent::Waiting { .. } => (Bookkeeping, format!("reboot of {host} waits")),
        EntryEvent::Booted { .. } => (Step, format!("{host} is back")),
        EntryEvent::NotRebooted => (Step, format!("{host} has not rebooted, and is not to any more")),
        EntryEvent::Removed => (Bookkeeping, format!("reboot {index} of {host} removed")),
    }
}

/// What happened to the node of a host in a few words, and its importance.
fn node_summary(host: &HostName, step: &NodeStep) -> (Importance, String) {
    use Importance::{Bookkeeping, Outcome, Step};
    match step {
        NodeStep::UncordonRequested { actor, .. } => {
            (Outcome, format!("uncordon of {host} requested by {actor}"))
        }
        NodeStep::Cordoned { .. } => (Step, format!("{host} cordoned")),
        NodeStep::EvictionBegan => (Step, format!("eviction from {host} began")),
        NodeStep::RecheckBegan => (Step, format!("{host} is drained once more")),
        NodeStep::Drained { .. } => (Step, format!("node of {host} drained")),
        NodeStep::Uncordoned => (Step, format!("{host} uncordoned")),
        NodeStep::Waiting { .. } => (Bookkeeping, format!("node of {host} waits")),
        NodeStep::UncordonDue { .. } => (Bookkeeping, format!("{host} is to be uncordoned")),
    }
}

/// The first of the hosts, and how many more there are.
fn some_of(hosts: &[HostName]) -> String {
    let named = hosts.first().map(HostName::as_str).unwrap_or_default();
    match hosts.len() {
        0 | 1 => named.to_owned(),
        all => format!("{named} and {} more", all - 1),
    }
}
