//! Facts in a few words, and how much they matter to people.

use os_upgrade_kernel::fact::{
    ConfigFact, ControlFact, DesiredFact, EnrolmentFact, LockFact, NodeFact, PauseFact, QueueFact,
    RestorationFact, RunFact, SecretFact, SlotFact, UnitFact,
};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{Fact, HostEvent, MissedRun, NodeStep, Reason, StopCause};
use os_upgrade_protocol::{HostName, time};

use crate::describe::describe;
use crate::progress::with_counts;

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
    match fact {
        Fact::Run(fact) => run(fact),
        Fact::Slot(fact) => slot(fact),
        Fact::Lock(fact) => lock(fact),
        Fact::Queue(fact) => queue(fact),
        Fact::Node(fact) => node(fact),
        Fact::Enrolment(fact) => enrolment(fact),
        Fact::Desired(fact) => desired(fact),
        Fact::Pause(fact) => pause(fact),
        Fact::Config(fact) => config(fact),
        Fact::Secret(fact) => secret(fact),
        Fact::Unit(fact) => unit(fact),
        Fact::Control(fact) => control(fact),
        Fact::Restoration(fact) => restoration(fact),
    }
}

fn run(fact: &RunFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Command, Outcome, Site, Step};
    match fact {
        RunFact::Started { run, trigger, .. } => {
            (Site, format!("run {run} started by {}", trigger.actor().unwrap_or("its maintenance window")))
        }
        RunFact::Stopping { run, cause } => (
            Site,
            match cause {
                StopCause::Failed { host } => format!("run {run} stopped because {host} failed"),
                StopCause::Cancelled { actor, .. } => format!("run {run} cancelled by {actor}"),
                StopCause::Restored { actor } => format!("run {run} given up by {actor}"),
            },
        ),
        RunFact::Ended { run, result, counts } => {
            (Site, format!("run {run} ended {}{}", result.as_str(), with_counts(&counts.into())))
        }
        RunFact::Missed(MissedRun { start, reason, .. }) => {
            (Site, format!("run of {} missed: {}", time::format(*start), describe(reason)))
        }
        RunFact::Host { host, event, .. } => match event {
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
            HostEvent::Overdue { after } => {
                (Outcome, format!("{host} overdue: no reply to upgrade within {after}"))
            }
            HostEvent::RebootRequired => (Step, format!("{host} requires a reboot")),
            HostEvent::Skipped { .. } => (Step, format!("{host} skipped")),
            HostEvent::Cancelled { .. } => (Step, format!("{host} cancelled")),
            HostEvent::NotReached { .. } => (Outcome, format!("{host} not reached")),
            HostEvent::CommandSent { action, .. } => (Command, format!("{} sent to {host}", action.as_str())),
            HostEvent::PrepareBegan => (Bookkeeping, format!("{host} is prepared next")),
            HostEvent::PrepareFailed { .. } => {
                (Step, format!("{host} failed to prepare, and is prepared again"))
            }
            HostEvent::Prepared => (Command, format!("{host} prepared")),
            HostEvent::Waiting { .. } => (Bookkeeping, format!("{host} waits")),
            HostEvent::TurnLost => (Bookkeeping, format!("{host} lost its turn")),
        },
        RunFact::UpgradesBegan { run } => (Bookkeeping, format!("upgrades of {run} began")),
    }
}

fn slot(fact: &SlotFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Step};
    match fact {
        SlotFact::Released { host, .. } => (Step, format!("slot of {host} released")),
        SlotFact::Refused { host, .. } => (Step, format!("slot of {host} not granted")),
        SlotFact::ReleaseRefused { host, .. } => (Step, format!("slot of {host} not released")),
        SlotFact::Requested { host, .. } => (Step, format!("slot of {host} requested")),
        SlotFact::InDoubt { host } => (Bookkeeping, format!("slot of {host} in doubt")),
        SlotFact::Unlocked { host } => (Bookkeeping, format!("slot of {host} to be released once more")),
        SlotFact::ReleaseDue { host, .. } => (Bookkeeping, format!("slot of {host} to be released")),
    }
}

fn lock(fact: &LockFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Outcome, Step};
    match fact {
        LockFact::HoldPlaced { id, actor, .. } => (Outcome, format!("slot held for {id} by {actor}")),
        LockFact::HolderReleased { id, actor, reason: Some(_), .. } => {
            (Outcome, format!("slot of {id} released by {actor}"))
        }
        LockFact::HolderReleased { id, actor, reason: None, .. } => {
            (Outcome, format!("slot of {id}, which has left the inventory, released by {actor}"))
        }
        LockFact::Granted { id, .. } => (Step, format!("slot granted to {id}")),
        LockFact::Released { id, .. } => (Step, format!("slot of {id} released")),
        LockFact::Awaited { id, .. } => (Bookkeeping, format!("{id} waits for a slot")),
        LockFact::WaitEnded { id, .. } => (Bookkeeping, format!("{id} no longer waits for a slot")),
    }
}

fn queue(fact: &QueueFact) -> (Importance, String) {
    use Importance::{Outcome, Site};
    match fact {
        QueueFact::RebootsQueued { hosts, actor, .. } => {
            (Outcome, format!("reboot of {} queued by {actor}", some_of(hosts)))
        }
        QueueFact::Reboot { index, host, event } => reboot_summary(*index, host, event),
        QueueFact::Switched { enabled, actor, .. } => {
            let switched = if *enabled { "enabled" } else { "disabled" };
            (Site, format!("reboot queue {switched} by {actor}"))
        }
        QueueFact::BackoffReset { actor } => {
            (Outcome, format!("backoff of the reboot queue reset by {actor}"))
        }
    }
}

fn pause(fact: &PauseFact) -> (Importance, String) {
    let summary = match fact {
        PauseFact::Paused { cause, .. } => format!("site paused by {}", cause.actor()),
        PauseFact::Resumed { actor: Some(actor), .. } => format!("site resumed by {actor}"),
        PauseFact::Resumed { actor: None, .. } => "pause of the site over".to_owned(),
    };
    (Importance::Site, summary)
}

fn node(fact: &NodeFact) -> (Importance, String) {
    match fact {
        NodeFact::Step { host, step } => node_summary(host, step),
    }
}

fn enrolment(fact: &EnrolmentFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Outcome};
    match fact {
        EnrolmentFact::HostsApproved { hosts, actor } => {
            (Outcome, format!("{} approved by {actor}", some_of(hosts)))
        }
        EnrolmentFact::KeyPinned { host, actor: Some(actor), .. } => {
            (Outcome, format!("key of {host} approved by {actor}"))
        }
        EnrolmentFact::KeyPinned { host, actor: None, .. } => {
            (Outcome, format!("first key of {host} approved"))
        }
        EnrolmentFact::HostWithdrawn { host, actor, .. } => (Outcome, format!("{host} withdrawn by {actor}")),
        EnrolmentFact::HostRemoved { host, actor, .. } => (Outcome, format!("{host} removed by {actor}")),
        EnrolmentFact::HostDeferred { host, actor, .. } => (Outcome, format!("{host} deferred by {actor}")),
        EnrolmentFact::DeferralEnded { host, actor: Some(actor), .. } => {
            (Outcome, format!("deferral of {host} ended by {actor}"))
        }
        EnrolmentFact::DeferralEnded { host, actor: None, .. } => {
            (Outcome, format!("deferral of {host} is over"))
        }
        EnrolmentFact::HostPurged { host } => (Bookkeeping, format!("what was stored of {host} deleted")),
    }
}

fn desired(fact: &DesiredFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Outcome, Step};
    match fact {
        DesiredFact::ItemStored { host, provider, .. } => {
            (Step, format!("{host} is to have what {provider} gives now"))
        }
        DesiredFact::ItemRevoked { host, provider } => {
            (Step, format!("{host} is to have nothing of {provider} any more"))
        }
        DesiredFact::ManifestStored { host, .. } => (Bookkeeping, format!("manifest of {host} stored")),
        DesiredFact::PollRequested { provider, host, actor } => {
            let about = host.as_ref().map(|host| format!(" about {host}")).unwrap_or_default();
            (Outcome, format!("{provider} asked{about} for {actor}"))
        }
        DesiredFact::DeliveryResumed { host, actor, .. } => {
            let to = host.as_ref().map_or_else(|| "all hosts".to_owned(), ToString::to_string);
            (Outcome, format!("delivery to {to} resumed by {actor}"))
        }
        DesiredFact::UnknownItemsFound { hosts } => {
            (Outcome, format!("{} hosts have what is unknown here, and are to have nothing", hosts.len()))
        }
        DesiredFact::ProviderFailed { provider, host, failure } => {
            (Outcome, format!("{provider} fails for every host, as for {host}: {}", describe(failure)))
        }
        DesiredFact::ProviderRecovered { provider } => (Outcome, format!("{provider} answers again")),
        DesiredFact::HookTokenDrawn { provider, .. } => {
            (Step, format!("token for call-backs of {provider} drawn"))
        }
        DesiredFact::HookTokensRevoked { provider, actor } => {
            (Outcome, format!("tokens for call-backs of {provider} revoked by {actor}"))
        }
        DesiredFact::HookAnswered { provider, host, event, .. } => {
            (Bookkeeping, format!("{provider} has answered to {} of {host}", event.as_str()))
        }
        DesiredFact::HookMetadataChanged { provider, hosts } => {
            (Step, format!("{provider} is to be told the metadata of {} hosts", hosts.len()))
        }
        DesiredFact::CallbackReceived { provider, hosts } => {
            (Step, format!("{provider} has called back about {} hosts", hosts.len()))
        }
    }
}

fn config(fact: &ConfigFact) -> (Importance, String) {
    use Importance::Site;
    match fact {
        ConfigFact::SettingsAdopted { .. } => (Site, "settings adopted".to_owned()),
        ConfigFact::Replaced { actor, .. } => (Site, format!("configuration changed by {actor}")),
    }
}

fn secret(fact: &SecretFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Outcome};
    match fact {
        SecretFact::Stored { name, actor, .. } => (Outcome, format!("secret {name} stored by {actor}")),
        SecretFact::Removed { name, actor } => (Outcome, format!("secret {name} removed by {actor}")),
        SecretFact::KeySet { .. } => (Bookkeeping, "strongbox got a new key".to_owned()),
    }
}

fn unit(fact: &UnitFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Outcome, Step};
    match fact {
        UnitFact::Submitted { name, desired, actor, .. } => {
            (Outcome, format!("unit {name} submitted by {actor}, to be {desired}"))
        }
        UnitFact::Wanted { name, state, actor } => {
            (Outcome, format!("unit {name} is to be {state}, says {actor}"))
        }
        UnitFact::Destroyed { name, actor } => (Outcome, format!("unit {name} destroyed by {actor}")),
        UnitFact::MachineJoined { host, actor: Some(actor), .. } => {
            (Outcome, format!("machine {host} approved by {actor}"))
        }
        UnitFact::MachineJoined { host, actor: None, .. } => (Outcome, format!("{host} is a machine")),
        UnitFact::MachineLost { host } => (Outcome, format!("machine {host} lost: its agent is silent")),
        UnitFact::MachineFound { host } => (Outcome, format!("machine {host} found: its agent is heard")),
        UnitFact::Placed { unit, hosts } => (Step, format!("unit {unit} placed on {}", some_of(hosts))),
        UnitFact::Taken { unit, hosts, why } => {
            (Step, format!("unit {unit} taken from {}: {}", some_of(hosts), describe(why)))
        }
        UnitFact::Stopped { unit, host } => (Bookkeeping, format!("unit {unit} stopped on {host}")),
    }
}

fn control(fact: &ControlFact) -> (Importance, String) {
    use Importance::{Bookkeeping, Step};
    match fact {
        ControlFact::LateCommandSeen { host, .. } => (Step, format!("late command of {host} seen")),
        ControlFact::Fenced { sequence, leader } => (Bookkeeping, format!("fence {sequence} of {leader}")),
        ControlFact::FencePassed { sequence } => (Bookkeeping, format!("fence {sequence} passed")),
        ControlFact::CommandRetracted { host, sequence, deleted } => {
            let what = if *deleted { "deleted" } else { "already delivered" };
            (Bookkeeping, format!("command {sequence} of {host} {what}"))
        }
        ControlFact::Ignored { sequence, .. } => (Bookkeeping, format!("message {sequence} ignored")),
    }
}

fn restoration(fact: &RestorationFact) -> (Importance, String) {
    use Importance::Site;
    match fact {
        RestorationFact::Restored { source, actor, .. } => {
            (Site, format!("site restored from a {} by {actor}", source.as_str()))
        }
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
