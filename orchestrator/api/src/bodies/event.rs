//! What a fact is to operators: each fact answers here, in one match, for the stream of events and for runs.

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{Millis, Stamp};
use os_upgrade_api_types::routes::events::{Event, EventId, SiteEvent};
use os_upgrade_api_types::word::{Behalf, Word};
use os_upgrade_console::describe;
use os_upgrade_kernel::fact::{
    ConfigFact, ControlFact, DesiredFact, EnrolmentFact, LockFact, NodeFact, PauseFact, QueueFact,
    RestorationFact, RunFact, SecretFact, SlotFact, UnitFact,
};
use os_upgrade_kernel::node::NodeStepKind;
use os_upgrade_kernel::reboot_queue::{EntryEvent, EntryStep};
use os_upgrade_kernel::run::{HostStep, StopKind, TriggerKind};
use os_upgrade_kernel::{
    Difference, Enlisted, EntryBlocker, Fact, HostEvent, HostStatus, MissedRun, NodeStep, Owner, StopCause,
    Trigger, Why,
};
use os_upgrade_protocol::{Action, HostName, RunId};
use os_upgrade_store::FactRow;
use serde::de::Error as _;

use super::why::why as said;

/// The most changed fields of a configuration that an event names.
const PATHS_MAX: usize = 16;
/// The longest path of a changed field, in characters; the rest is cut off.
const PATH_CHARS_MAX: usize = 128;

/// The event that tells of the fact in `row`, with an id if the `epoch` of the journal is known; `None` for bookkeeping.
pub(crate) fn event(epoch: Option<i64>, row: &FactRow) -> serde_json::Result<Option<Event>> {
    let fact = serde_json::from_str(row.fact.get()).map_err(|error| {
        serde_json::Error::custom(format!("fact {} of the store cannot be read: {error}", row.cursor()))
    })?;
    let id = epoch.map(|epoch| EventId { epoch, fact: row.cursor() });
    let event = |what| Event { id, time: Some(Millis(row.at)), what };
    Ok(site_event(fact, row.run.as_deref()).map(event))
}

/// What `fact` is to operators; `None` for bookkeeping. `about` is the run to which the fact belongs, if any.
pub(crate) fn site_event(fact: Fact, about: Option<&str>) -> Option<SiteEvent> {
    let run_of_slot = about.map(ToOwned::to_owned);
    match fact {
        Fact::Run(fact) => Some(of_run(fact)),
        Fact::Slot(fact) => of_slot(fact, run_of_slot),
        Fact::Lock(fact) => of_lock(fact),
        Fact::Queue(fact) => Some(of_queue(fact)),
        Fact::Node(NodeFact::Step { host, step }) => node(run_of_slot, &host, &step),
        Fact::Enrolment(fact) => of_enrolment(fact),
        Fact::Desired(fact) => of_desired(fact),
        Fact::Pause(fact) => Some(of_pause(fact)),
        Fact::Config(fact) => Some(of_config(fact)),
        Fact::Secret(fact) => Some(of_secret(fact)),
        Fact::Unit(fact) => Some(of_unit(fact)),
        Fact::Restoration(RestorationFact::Restored { source, actor, .. }) => {
            Some(SiteEvent::Restored { source: source.into(), actor })
        }
        Fact::Control(
            ControlFact::Fenced { .. }
            | ControlFact::FencePassed { .. }
            | ControlFact::LateCommandSeen { .. }
            | ControlFact::CommandRetracted { .. }
            | ControlFact::Ignored { .. },
        ) => None,
    }
}

fn of_run(fact: RunFact) -> SiteEvent {
    match fact {
        RunFact::Started { run, trigger, not_after, hosts, .. } => started(&run, &trigger, not_after, &hosts),
        RunFact::UpgradesBegan { run } => SiteEvent::RunUpgrading { run: run.to_string() },
        RunFact::Stopping { run, cause } => stopping(&run, &cause),
        RunFact::Ended { run, result, counts } => {
            SiteEvent::RunEnded { run: run.to_string(), result: result.into(), counts: (&counts).into() }
        }
        RunFact::Missed(run) => missed(&run),
        RunFact::Host { run, host, event } => step(&run, &host, &event),
    }
}

fn of_slot(fact: SlotFact, run_of_slot: Option<String>) -> Option<SiteEvent> {
    Some(match fact {
        SlotFact::Released { host, why } => SiteEvent::SlotReleased {
            group: None,
            holder: host.to_string(),
            behalf: behalf_of(run_of_slot.as_deref()).into(),
            run: run_of_slot,
            host: Some(host.to_string()),
            actor: None,
            reason: Some(why.as_str().to_owned()),
        },
        SlotFact::Refused { host, refusal } => {
            SiteEvent::SlotNotGranted { run: run_of_slot, host: host.to_string(), why: said(refusal) }
        }
        SlotFact::ReleaseRefused { host, refusal } => {
            SiteEvent::SlotNotReleased { run: run_of_slot, host: host.to_string(), why: said(refusal) }
        }
        SlotFact::Requested { .. }
        | SlotFact::ReleaseDue { .. }
        | SlotFact::InDoubt { .. }
        | SlotFact::Unlocked { .. } => return None,
    })
}

fn of_lock(fact: LockFact) -> Option<SiteEvent> {
    Some(match fact {
        LockFact::Granted { group, id, actor } => SiteEvent::SlotHeld {
            group: group.to_string(),
            holder: id.to_string(),
            behalf: Behalf::Client.into(),
            actor,
            reason: None,
        },
        LockFact::HoldPlaced { group, id, actor, reason } => SiteEvent::SlotHeld {
            group: group.to_string(),
            holder: id.to_string(),
            behalf: Behalf::Operator.into(),
            actor,
            reason: Some(reason),
        },
        LockFact::Released { group, id, actor } => SiteEvent::SlotReleased {
            group: Some(group.to_string()),
            holder: id.to_string(),
            behalf: Behalf::Client.into(),
            run: None,
            host: None,
            actor: Some(actor),
            reason: None,
        },
        LockFact::HolderReleased { group, id, actor, reason } => SiteEvent::SlotReleased {
            group: Some(group.to_string()),
            holder: id.to_string(),
            behalf: Behalf::Operator.into(),
            run: None,
            host: None,
            actor: Some(actor),
            reason,
        },
        LockFact::Awaited { .. } | LockFact::WaitEnded { .. } => return None,
    })
}

fn of_queue(fact: QueueFact) -> SiteEvent {
    match fact {
        QueueFact::RebootsQueued { hosts, actor, reason, window: _ } => {
            SiteEvent::RebootsQueued { hosts: names(&hosts), actor, reason }
        }
        QueueFact::Reboot { index, host, event } => reboot(index, &host, &event),
        QueueFact::Switched { enabled, actor, reason } => {
            SiteEvent::RebootQueueSwitched { enabled, actor, reason }
        }
        QueueFact::BackoffReset { actor } => SiteEvent::RebootBackoffReset { actor },
    }
}

fn of_pause(fact: PauseFact) -> SiteEvent {
    match fact {
        PauseFact::Paused { cause, until } => SiteEvent::SitePaused {
            actor: cause.actor().to_owned(),
            reason: cause.reason().map(ToOwned::to_owned),
            until: until.map(Stamp),
        },
        PauseFact::Resumed { actor, reason } => SiteEvent::SiteResumed { actor, reason },
    }
}

fn of_enrolment(fact: EnrolmentFact) -> Option<SiteEvent> {
    Some(match fact {
        EnrolmentFact::HostsApproved { hosts, actor } => {
            SiteEvent::HostsApproved { hosts: names(&hosts), actor }
        }
        EnrolmentFact::KeyPinned { host, key, actor } => {
            SiteEvent::KeyPinned { host: host.to_string(), key: key.to_string(), actor }
        }
        EnrolmentFact::HostWithdrawn { host, actor, reason, .. } => {
            SiteEvent::HostWithdrawn { host: host.to_string(), actor, reason }
        }
        EnrolmentFact::HostRemoved { host, actor, reason, .. } => {
            SiteEvent::HostRemoved { host: host.to_string(), actor, reason }
        }
        EnrolmentFact::HostDeferred { host, actor, reason, until } => {
            SiteEvent::HostDeferred { host: host.to_string(), actor, reason, until: until.map(Stamp) }
        }
        EnrolmentFact::DeferralEnded { host, actor, reason } => {
            SiteEvent::DeferralEnded { host: host.to_string(), actor, reason }
        }
        EnrolmentFact::HostPurged { .. } => return None,
    })
}

fn of_desired(fact: DesiredFact) -> Option<SiteEvent> {
    Some(match fact {
        DesiredFact::ItemStored { host, provider, .. } => {
            SiteEvent::ItemStored { host: host.to_string(), provider: provider.to_string() }
        }
        DesiredFact::ItemRevoked { host, provider } => {
            SiteEvent::ItemRevoked { host: host.to_string(), provider: provider.to_string() }
        }
        DesiredFact::PollRequested { provider, host, actor } => SiteEvent::PollRequested {
            provider: provider.to_string(),
            host: host.map(|host| host.to_string()),
            actor,
        },
        DesiredFact::DeliveryResumed { host, actor, .. } => {
            SiteEvent::DeliveryResumed { host: host.map(|host| host.to_string()), actor }
        }
        DesiredFact::UnknownItemsFound { hosts } => SiteEvent::UnknownItemsFound { hosts: names(&hosts) },
        DesiredFact::ProviderFailed { provider, host, failure } => SiteEvent::ProviderFailed {
            provider: provider.to_string(),
            host: host.to_string(),
            failure: describe(&failure).to_string(),
        },
        DesiredFact::ProviderRecovered { provider } => {
            SiteEvent::ProviderRecovered { provider: provider.to_string() }
        }
        DesiredFact::HookTokenDrawn { provider, .. } => {
            SiteEvent::HookTokenDrawn { provider: provider.to_string() }
        }
        DesiredFact::HookTokensRevoked { provider, actor } => {
            SiteEvent::HookTokensRevoked { provider: provider.to_string(), actor }
        }
        DesiredFact::HookMetadataChanged { provider, hosts } => {
            SiteEvent::HookMetadataChanged { provider: provider.to_string(), hosts: names(&hosts) }
        }
        DesiredFact::CallbackReceived { provider, hosts } => {
            SiteEvent::CallbackReceived { provider: provider.to_string(), hosts: names(&hosts) }
        }
        DesiredFact::ManifestStored { .. } | DesiredFact::HookAnswered { .. } => return None,
    })
}

fn of_config(fact: ConfigFact) -> SiteEvent {
    match fact {
        ConfigFact::Replaced { config, actor, difference } => {
            config_changed(actor, config.is_none(), &difference)
        }
        ConfigFact::SettingsAdopted { .. } => SiteEvent::SettingsChanged,
    }
}

fn of_secret(fact: SecretFact) -> SiteEvent {
    match fact {
        SecretFact::Stored { name, actor, .. } => SiteEvent::SecretStored { name: name.to_string(), actor },
        SecretFact::Removed { name, actor } => SiteEvent::SecretRemoved { name: name.to_string(), actor },
        SecretFact::KeySet { .. } => SiteEvent::StrongboxKeySet,
    }
}

fn of_unit(fact: UnitFact) -> SiteEvent {
    match fact {
        UnitFact::Submitted { name, contents: _, desired, actor } => {
            SiteEvent::UnitSubmitted { unit: name.to_string(), desired: desired.to_string(), actor }
        }
        UnitFact::Wanted { name, state, actor } => {
            SiteEvent::UnitWanted { unit: name.to_string(), state: state.to_string(), actor }
        }
        UnitFact::Destroyed { name, actor } => SiteEvent::UnitDestroyed { unit: name.to_string(), actor },
        UnitFact::MachineJoined { host, machine, metadata: _, address: _, actor } => {
            SiteEvent::MachineJoined { host: host.to_string(), machine: machine.to_string(), actor }
        }
        UnitFact::MachineLost { host } => SiteEvent::MachineLost { host: host.to_string() },
        UnitFact::MachineFound { host } => SiteEvent::MachineFound { host: host.to_string() },
        UnitFact::Placed { unit, hosts } => {
            SiteEvent::UnitPlaced { unit: unit.to_string(), hosts: names(&hosts) }
        }
        UnitFact::Taken { unit, hosts, why } => SiteEvent::UnitTaken {
            unit: unit.to_string(),
            hosts: names(&hosts),
            reason: describe(&why).to_string(),
        },
        UnitFact::Stopped { unit, host } => {
            SiteEvent::UnitStopped { unit: unit.to_string(), host: host.to_string() }
        }
    }
}

fn started(run: &RunId, trigger: &Trigger, not_after: DateTime<Utc>, hosts: &[Enlisted]) -> SiteEvent {
    let skipped = hosts.iter().filter(|host| host.skipped.is_some()).count();
    SiteEvent::RunStarted {
        run: run.to_string(),
        trigger: TriggerKind::from(trigger).into(),
        actor: trigger.actor().map(ToOwned::to_owned),
        reason: trigger.reason().map(ToOwned::to_owned),
        not_after: Stamp(not_after),
        hosts: (hosts.len() - skipped) as u64,
        skipped: skipped as u64,
        targeted: trigger.is_targeted(),
    }
}

fn stopping(run: &RunId, cause: &StopCause) -> SiteEvent {
    let host = match cause {
        StopCause::Failed { host } => Some(host.to_string()),
        StopCause::Cancelled { .. } | StopCause::Restored { .. } => None,
    };
    let (actor, reason) = (cause.actor().map(ToOwned::to_owned), cause.reason().map(ToOwned::to_owned));
    SiteEvent::RunStopping { run: run.to_string(), cause: StopKind::from(cause).into(), host, actor, reason }
}

fn config_changed(actor: String, deleted: bool, difference: &[Difference]) -> SiteEvent {
    let paths = difference.iter().filter(|_| !deleted).map(|difference| &difference.path);
    let path = |path: &String| path.chars().take(PATH_CHARS_MAX).collect();
    let more = paths.clone().count().saturating_sub(PATHS_MAX) as u64;
    let changed = paths.take(PATHS_MAX).map(path).collect();
    SiteEvent::ConfigChanged { actor, deleted, changed, changed_more: Some(more).filter(|more| *more > 0) }
}

fn missed(missed: &MissedRun) -> SiteEvent {
    SiteEvent::RunMissed {
        window_start: Stamp(missed.start),
        latest_start: Stamp(missed.latest),
        window_end: Stamp(missed.end),
        why: said(missed.reason.clone()),
        unrecorded: Some(missed.unrecorded).filter(|count| *count > 0),
    }
}

fn node(run_of_slot: Option<String>, host: &HostName, step: &NodeStep) -> Option<SiteEvent> {
    let run = run_of_slot.filter(|run| !is_entry(run));
    // The step of the host says so, once, and not again when the node is looked at before the reboot.
    if run.is_some() && matches!(step, NodeStep::Drained { .. }) {
        return None;
    }
    let (host, kind) = (host.to_string(), NodeStepKind::from(step).into());
    let actor = step.actor().map(ToOwned::to_owned);
    let (why, reason) = match step {
        NodeStep::Waiting { waits } => (Some(said(waits.clone())), None),
        NodeStep::UncordonDue { reason, .. } => (reason.clone().map(said), None),
        NodeStep::UncordonRequested { reason, .. } => (None, Some(reason.clone())),
        NodeStep::Cordoned { .. }
        | NodeStep::EvictionBegan
        | NodeStep::RecheckBegan
        | NodeStep::Drained { .. }
        | NodeStep::Uncordoned => (None, None),
    };
    Some(SiteEvent::Node { run, host, step: kind, why, reason, actor })
}

fn reboot(index: u64, host: &HostName, event: &EntryEvent) -> SiteEvent {
    let why = if let EntryEvent::BackedOff { until, reason } = event {
        Some(said(EntryBlocker::BackedOff { until: *until, reason: reason.clone() }))
    } else {
        event.reason().cloned().map(said)
    };
    let reason = event.operators_reason().map(ToOwned::to_owned);
    let boot_id = if let EntryEvent::RebootBegan { boot_id }
    | EntryEvent::AttemptDue { boot_id: Some(boot_id), .. } = event
    {
        Some(boot_id.clone())
    } else {
        None
    };
    let (index, host, step) = (index.to_string(), host.to_string(), EntryStep::from(event).into());
    SiteEvent::Reboot { index, host, step, boot_id, why, reason, actor: event.actor().map(ToOwned::to_owned) }
}

fn step(run: &RunId, host: &HostName, event: &HostEvent) -> SiteEvent {
    let (mut sent, mut slot) = (None, None);
    let (status, why): (HostStatus, Option<Why>) = match event {
        HostEvent::CommandSent { action, attempt, .. } => {
            sent = Some((Word::from(*action), *attempt));
            (status_of(*action), None)
        }
        HostEvent::SlotGranted { group, drain, .. } => {
            slot = Some(group.to_string());
            (if *drain { HostStatus::Draining } else { HostStatus::Upgrading }, None)
        }
        HostEvent::Drained => (HostStatus::Upgrading, None),
        HostEvent::PrepareBegan => (HostStatus::Pending, None),
        HostEvent::PrepareFailed { until, reason } => {
            let why = Why { until: Some(*until), ..reason.clone().into() };
            (HostStatus::Pending, Some(why))
        }
        HostEvent::BackedOff { until, reason } => {
            let why = Why { until: Some(*until), ..reason.clone().into() };
            (HostStatus::Prepared, Some(why))
        }
        HostEvent::Overdue { after } => {
            (HostStatus::Upgrading, Some(os_upgrade_kernel::Reason::UpgradeTimeout { after: *after }.into()))
        }
        HostEvent::Recovering => (HostStatus::Recovering, None),
        HostEvent::Prepared | HostEvent::TurnLost => (HostStatus::Prepared, None),
        HostEvent::Waiting { reason } => (HostStatus::Waiting, Some(reason.clone().into())),
        HostEvent::RebootRequired => (HostStatus::Rebooting, None),
        HostEvent::Upgraded => (HostStatus::Upgraded, None),
        HostEvent::Failed { reason } => (HostStatus::Failed, Some(reason.clone().into())),
        HostEvent::TimedOut { reason } => (HostStatus::TimedOut, Some(reason.clone().into())),
        HostEvent::Skipped { reason } => (HostStatus::Skipped, Some(reason.clone().into())),
        HostEvent::Cancelled { reason } => (HostStatus::Cancelled, Some(reason.clone().into())),
        HostEvent::NotReached { reason } => (HostStatus::NotReached, Some(reason.clone().into())),
    };
    let (action, attempt) = sent.unzip();
    SiteEvent::Host {
        run: run.to_string(),
        host: host.to_string(),
        status: status.into(),
        step: HostStep::from(event).into(),
        action,
        attempt,
        group: slot,
        why: why.map(said),
        actor: event.actor().map(ToOwned::to_owned),
    }
}

fn names(hosts: &[HostName]) -> Vec<String> {
    hosts.iter().map(ToString::to_string).collect()
}

/// On whose behalf a host's slot was held, by the id for which it was.
fn behalf_of(run: Option<&str>) -> Behalf {
    if run.is_some_and(is_entry) { Behalf::RebootQueue } else { Behalf::Run }
}

/// Whether an id in place of a run's is that of an entry of the reboot queue.
fn is_entry(run: &str) -> bool {
    RunId::new(run).is_ok_and(|run| Owner::from(run).entry().is_some())
}

/// The status of a host to which a command was sent.
const fn status_of(action: Action) -> HostStatus {
    match action {
        Action::Prepare => HostStatus::Preparing,
        Action::Upgrade => HostStatus::Upgrading,
        Action::Reboot => HostStatus::Rebooting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_held_for_runs_and_entries() {
        for (run, behalf) in [
            (None, Behalf::Run),
            (Some("019aa3f0-0000-7000-8000-000000000001"), Behalf::Run),
            (Some("rq-7-1795222800"), Behalf::RebootQueue),
        ] {
            assert_eq!(behalf_of(run), behalf, "{run:?}");
        }
    }

    #[test]
    fn changed_fields_are_bounded() {
        let difference = |path: String| Difference { path, before: None, after: None };
        let changed = |deleted: bool, paths: &[String]| {
            let difference: Vec<_> = paths.iter().cloned().map(difference).collect();
            let event = config_changed("eve".to_owned(), deleted, &difference);
            let SiteEvent::ConfigChanged { changed, changed_more, .. } = event else { panic!("{event:?}") };
            (changed, changed_more)
        };
        let two = ["rollout/max-failures".to_owned(), "start-jitter".to_owned()];
        assert_eq!(changed(false, &two), (two.to_vec(), None));
        assert_eq!(changed(true, &[String::new()]), (Vec::new(), None));
        let (named, more) = changed(false, &vec!["ö".repeat(500); 20]);
        assert_eq!((named.len(), named[0].chars().count(), more), (16, 128, Some(4)));
    }
}
