//! The formats of records and snapshots: which one a payload needs, and reading without losing anything.
//!
//! A payload has the oldest format with a word for everything in it. So an instance of an older version reads on until
//! something appears that it does not know, and then it can tell. A new kind, field or value of anything that is stored
//! belongs to a format newer than the last released one, and has a line here.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clock::ClockDoubt;
use crate::config::Settings;
use crate::fact::{Fact, IgnoreCause};
use crate::no_answer::NoAnswer;
use crate::node::{Node, NodeStage, NodeStep, NodeWait, PodObstacle, Pods};
use crate::reason::{LastWait, Reason};
use crate::reboot_queue::{ApiServerOrder, Backoff, Entry, EntryEvent};
use crate::record::Record;
use crate::run::{Enlisted, HostEvent, HostStatus, Run, RunHost, StopCause, Trigger, Turns};
use crate::slot::{ReleaseCause, Semaphore, Slot, SlotState, Waiter};
use crate::start::MissedReason;
use crate::state::State;

/// The oldest format that is read and written.
pub const OLDEST: u32 = 2;
/// The newest format that is read and written.
pub const NEWEST: u32 = 11;

/// Something that is stored in the journal.
pub trait Stored {
    /// The oldest format with a word for everything in it, from [`OLDEST`] to [`NEWEST`].
    fn format(&self) -> u32;
}

impl Stored for Record {
    fn format(&self) -> u32 {
        let Self { at: _, control: _, facts } = self;
        newest(facts.iter().map(Fact::format))
    }
}

impl Stored for State {
    fn format(&self) -> u32 {
        let Self {
            settings,
            config: _,
            config_revision: _,
            semaphores,
            strongbox: _,
            enrolment,
            slots,
            run,
            last_run,
            watermark: _,
            missed,
            retractions: _,
            fence: _,
            control: _,
            last_upgrades,
            ignored_replies,
            reboot_queue,
            nodes,
            restored,
            turns,
        } = self;
        newest(
            [
                since(3, !ignored_replies.is_empty()),
                since(4, !missed.is_empty()),
                since(5, !last_upgrades.is_empty() || !enrolment.removed.is_empty()),
                since(6, !reboot_queue.is_unused()).max(of_settings(settings)),
                since(7, !nodes.is_empty() || *restored != 0),
                since(10, !reboot_queue.requests.is_empty()),
                since(9, *turns != Turns::default()),
            ]
            .into_iter()
            .chain(reboot_queue.entries.values().map(of_queued))
            .chain(nodes.values().map(of_node))
            .chain(slots.values().map(of_slot))
            .chain(semaphores.iter().map(|(_, semaphore)| of_semaphore(semaphore)))
            .chain(run.iter().chain(last_run).map(of_run)),
        )
    }
}

impl Fact {
    /// The oldest format with a word for everything in it.
    pub fn format(&self) -> u32 {
        match self {
            Self::SlotReleaseRefused { .. } | Self::SlotInDoubt { .. } | Self::SlotUnlocked { .. } => 3,
            Self::RunMissed(missed) => of_missed(&missed.reason),
            Self::LockWaitEnded { .. } => 11,
            Self::HostRemoved { .. } | Self::HostPurged { .. } => 5,
            Self::RunStarted { trigger, hosts, .. } => {
                of_trigger(trigger).max(newest(hosts.iter().map(of_entry)))
            }
            Self::RunStopping { cause, .. } => of_cause(cause),
            Self::Host { event, .. } => of_event(event),
            Self::Node { step, .. } => of_step(step),
            Self::Reboot { event, .. } => of_entry_event(event),
            Self::RebootsQueued { .. }
            | Self::RebootQueueSwitched { .. }
            | Self::RebootBackoffReset { .. } => 6,
            Self::SettingsAdopted { settings } => of_settings(settings),
            Self::SlotReleaseDue { why, .. } | Self::SlotReleased { why, .. } => of_release(*why),
            Self::ConfigReplaced { .. }
            | Self::Fenced { .. }
            | Self::FencePassed { .. }
            | Self::UpgradesBegan { .. }
            | Self::RunEnded { .. }
            | Self::SlotRequested { .. }
            | Self::LockGranted { .. }
            | Self::LockAwaited { .. }
            | Self::LockReleased { .. }
            | Self::HoldPlaced { .. }
            | Self::HolderReleased { .. }
            | Self::StrongboxKeySet { .. }
            | Self::SecretStored { .. }
            | Self::SecretRemoved { .. }
            | Self::HostsApproved { .. }
            | Self::HostWithdrawn { .. }
            | Self::LateCommandSeen { .. }
            | Self::CommandRetracted { .. }
            | Self::Restored { .. } => OLDEST,
            Self::Ignored { why, .. } => since(10, matches!(why, IgnoreCause::TooLate { .. })),
        }
    }
}

fn of_event(event: &HostEvent) -> u32 {
    match event {
        HostEvent::Waiting { reason }
        | HostEvent::Failed { reason }
        | HostEvent::TimedOut { reason }
        | HostEvent::Cancelled { reason } => of_reason(reason),
        HostEvent::SlotGranted { drain, .. } => since(7, *drain),
        HostEvent::BackedOff { reason, .. } => of_reason(reason).max(7),
        HostEvent::Drained | HostEvent::Recovering => 7,
        HostEvent::CommandSent { .. }
        | HostEvent::Prepared
        | HostEvent::TurnLost
        | HostEvent::RebootRequired
        | HostEvent::Upgraded => OLDEST,
    }
}

fn of_entry_event(event: &EntryEvent) -> u32 {
    match event {
        EntryEvent::NotRebooted => 9,
        EntryEvent::AttemptDue { .. }
        | EntryEvent::AttemptBegan
        | EntryEvent::AttemptSucceeded
        | EntryEvent::Booted { checked: true } => 8,
        EntryEvent::AttemptUnknown { reason } => of_reason(reason).max(8),
        EntryEvent::Failed { reason } => of_reason(reason).max(6),
        EntryEvent::BackedOff { reason: Some(reason), .. } => of_reason(reason).max(7),
        EntryEvent::Started { drain: true, .. } | EntryEvent::Booted { checked: false } => 7,
        EntryEvent::Started { drain: false, .. } | EntryEvent::BackedOff { reason: None, .. } => 6,
        EntryEvent::Waiting { .. }
        | EntryEvent::RebootBegan { .. }
        | EntryEvent::CommandSent { .. }
        | EntryEvent::Cancelled { .. }
        | EntryEvent::Removed
        | EntryEvent::Rebooted
        | EntryEvent::GivenUp { .. } => 6,
    }
}

fn of_step(step: &NodeStep) -> u32 {
    match step {
        NodeStep::Cordoned { was_unschedulable, .. } => since(10, *was_unschedulable).max(7),
        NodeStep::Waiting { waits } => of_wait(waits),
        NodeStep::UncordonDue { reason: Some(reason), .. } => of_reason(reason).max(7),
        NodeStep::EvictionBegan
        | NodeStep::RecheckBegan
        | NodeStep::Drained { .. }
        | NodeStep::UncordonDue { reason: None, .. }
        | NodeStep::UncordonRequested { .. }
        | NodeStep::Uncordoned => 7,
    }
}

fn of_wait(waits: &NodeWait) -> u32 {
    match waits {
        NodeWait::ForeignMark { .. } | NodeWait::Volumes { .. } => 10,
        NodeWait::Pods { pods } => of_pods(pods),
        NodeWait::NotReady | NodeWait::Unreachable { .. } | NodeWait::Refused { .. } => 7,
    }
}

fn of_pods(pods: &Pods) -> u32 {
    newest(pods.first.iter().map(|pod| of_obstacle(&pod.obstacle))).max(since(10, pods.kubelet_silent)).max(7)
}

fn of_node(node: &Node) -> u32 {
    let of_stage = match &node.stage {
        NodeStage::Uncordoning { reason: Some(reason), .. } => of_reason(reason),
        NodeStage::Uncordoning { reason: None, .. }
        | NodeStage::Checking
        | NodeStage::Evicting
        | NodeStage::Drained
        | NodeStage::Rechecking => 7,
    };
    let is_newer = node.was_unschedulable || node.takes_over.is_some();
    node.waits.as_ref().map_or(7, of_wait).max(of_stage).max(since(10, is_newer))
}

fn of_queued(entry: &Entry) -> u32 {
    entry.reason.as_ref().map_or(6, of_reason).max(since(8, entry.attempt.is_some()))
}

fn of_reason(reason: &Reason) -> u32 {
    match reason {
        Reason::RebootCommandFailed { output, .. } | Reason::RebootUnknown { output, .. } => {
            since(10, output.is_some()).max(8)
        }
        Reason::RebootCommandNotStarted { .. } => 9,
        Reason::DrainRefused { pods } => of_pods(pods),
        Reason::DrainTimedOut { waits, .. } => waits.as_ref().map_or(7, of_wait),
        Reason::CordonLost { .. }
        | Reason::ApiServerUnderWay { .. }
        | Reason::ApiServerWaits { .. }
        | Reason::ClusterUnseen => 7,
        Reason::Clock(ClockDoubt::ClockBehind { .. }) => 9,
        Reason::Clock(ClockDoubt::ClockSkew { .. }) => OLDEST,
        Reason::Clock(
            ClockDoubt::ClockUnmeasured | ClockDoubt::ClockDisputed { .. } | ClockDoubt::ClockStepped,
        ) => 3,
        Reason::SlotUnreachable { why: NoAnswer::NotSent { .. }, .. } => 3,
        Reason::Unhealthy { .. } => 5,
        Reason::NoReply { unreachable, .. } => since(5, *unreachable),
        Reason::RunTimedOut { waited_for } => waited_for.as_ref().map_or(OLDEST, of_last_wait),
        Reason::SlotUnreachable {
            why:
                NoAnswer::NotConfigured | NoAnswer::Sealed { .. } | NoAnswer::TimedOut | NoAnswer::Failed { .. },
            ..
        }
        | Reason::AskingForSlot { .. }
        | Reason::SlotDenied { .. }
        | Reason::SlotProtocol { .. }
        | Reason::Unreachable
        | Reason::WorkerError { .. }
        | Reason::BootTimeout { .. }
        | Reason::GivenUp { .. }
        | Reason::NotSent { .. }
        | Reason::RunFailed { .. }
        | Reason::RunCancelled { .. }
        | Reason::Restored { .. }
        | Reason::AwaitsApproval { .. }
        | Reason::HostWithdrawn { .. } => OLDEST,
    }
}

fn of_last_wait(wait: &LastWait) -> u32 {
    match wait {
        LastWait::HostsUnprepared { .. } | LastWait::HostUnderWay { .. } => 10,
        LastWait::NodeUndrained { waits } => waits.as_ref().map_or(11, |waits| of_wait(waits).max(11)),
        LastWait::Recorded(reason) => of_reason(reason).max(10),
    }
}

fn of_obstacle(obstacle: &PodObstacle) -> u32 {
    match obstacle {
        PodObstacle::UnreadBudget { .. }
        | PodObstacle::BudgetPending { .. }
        | PodObstacle::Finalizers { .. }
        | PodObstacle::Awaited => 10,
        PodObstacle::NotTried
        | PodObstacle::Requested
        | PodObstacle::Terminating
        | PodObstacle::JobRunning
        | PodObstacle::Budget { .. }
        | PodObstacle::UncountedPods { .. }
        | PodObstacle::SeveralBudgets { .. }
        | PodObstacle::Denied { .. }
        | PodObstacle::MissingRight { .. }
        | PodObstacle::NamespaceEnds
        | PodObstacle::Failed { .. } => 7,
    }
}

fn of_entry(entry: &Enlisted) -> u32 {
    entry.skipped.as_ref().map_or(OLDEST, of_reason).max(since(3, entry.unheard))
}

fn of_run(run: &Run) -> u32 {
    let of_host = |host: &RunHost| {
        let is_newer =
            host.backoff.is_some() || matches!(host.status, HostStatus::Draining | HostStatus::Recovering);
        let of_reason = host.reason.as_ref().map_or(OLDEST, of_reason);
        let of_late = since(10, host.late_answer.is_some());
        of_reason
            .max(since(3, host.unheard))
            .max(since(7, is_newer))
            .max(since(9, host.last_turn != 0))
            .max(of_late)
    };
    let of_stopping = run.stopping.as_ref().map_or(OLDEST, of_cause);
    let of_number = since(9, run.number != 0);
    of_number.max(of_trigger(&run.trigger)).max(of_stopping).max(newest(run.hosts().values().map(of_host)))
}

fn of_missed(reason: &MissedReason) -> u32 {
    let behind = matches!(reason, MissedReason::Blocked(by) if by.is_clock_behind());
    since(9, behind).max(4)
}

fn of_trigger(trigger: &Trigger) -> u32 {
    since(4, trigger.reason().is_some())
}

fn of_cause(cause: &StopCause) -> u32 {
    match cause {
        StopCause::Cancelled { reason, .. } => since(4, reason.is_some()),
        StopCause::Failed { .. } | StopCause::Restored { .. } => OLDEST,
    }
}

fn of_slot(slot: &Slot) -> u32 {
    let of_state = match slot.state {
        SlotState::Releasing { why } => of_release(why),
        SlotState::Requested | SlotState::Held => OLDEST,
    };
    since(3, slot.refusal.is_some() || slot.in_doubt || slot.unlocked_at.is_some()).max(of_state)
}

fn of_release(why: ReleaseCause) -> u32 {
    match why {
        ReleaseCause::DrainGivenUp => 7,
        ReleaseCause::Rebooted => 6,
        ReleaseCause::Upgraded
        | ReleaseCause::Failed
        | ReleaseCause::NeverSent
        | ReleaseCause::NotNeeded
        | ReleaseCause::LateDone
        | ReleaseCause::Operator => OLDEST,
    }
}

fn of_settings(settings: &Settings) -> u32 {
    let reboot = &settings.reboot;
    let is_newer = reboot.backoff != Backoff::DEFAULT || reboot.api_servers != ApiServerOrder::First;
    since(6, !reboot.is_default())
        .max(since(7, is_newer || settings.kubernetes.is_some()))
        .max(since(8, reboot.command.is_some()))
}

fn of_semaphore(semaphore: &Semaphore) -> u32 {
    let of_waiter = |waiter: &Waiter| since(3, waiter.interval_secs.is_some());
    newest(semaphore.waiters.all().map(of_waiter))
}

/// The format that introduced something, if it is there.
const fn since(format: u32, is_there: bool) -> u32 {
    if is_there { format } else { OLDEST }
}

fn newest(formats: impl Iterator<Item = u32>) -> u32 {
    formats.max().unwrap_or(OLDEST)
}

/// Why a stored value cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no value of its type.
    #[error("it is not valid")]
    Invalid(#[from] serde_json::Error),
    /// It has something that this version does not know, and would lose.
    #[error("it has {0}, which this version does not know")]
    Unknown(String),
}

/// Reads a stored value from JSON. Nothing in it is ignored: what is read must say again what was written.
///
/// # Errors
/// It is not valid, or has something that this version does not know.
pub fn read<T: DeserializeOwned + Serialize>(json: &[u8]) -> Result<T, ReadError> {
    let value: T = serde_json::from_slice(json)?;
    let mut left = Left(json);
    if serde_json::to_writer(&mut left, &value).is_ok() && left.0.is_empty() {
        return Ok(value);
    }
    // Other versions and other programs may have written it in another order, or with other spaces.
    let mut path = Vec::new();
    if has_all(&serde_json::from_slice(json)?, &serde_json::to_value(&value)?, &mut path) {
        Ok(value)
    } else {
        Err(ReadError::Unknown(path.join("/")))
    }
}

/// The bytes that are still to be written; others are refused.
struct Left<'a>(&'a [u8]);

impl io::Write for Left<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether `read` has every field and element of `written`; otherwise `path` leads to the first that it lacks.
fn has_all(written: &Value, read: &Value, path: &mut Vec<String>) -> bool {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => written.iter().all(|(name, written)| {
            path.push(name.clone());
            let has = read.get(name).map_or(written.is_null(), |read| has_all(written, read, path));
            if has {
                path.pop();
            }
            has
        }),
        (Value::Array(written), Value::Array(read)) => {
            written.len() == read.len()
                && written.iter().zip(read).all(|(written, read)| has_all(written, read, path))
        }
        (Value::Object(_) | Value::Array(_), _) => false,
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => true,
    }
}
