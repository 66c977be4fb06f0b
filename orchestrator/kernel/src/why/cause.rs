//! The one shape of "why not", and how everything that is shown gets it.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;
use strum::VariantNames as _;

use super::host::HostBlocker;
use crate::in_seconds::in_seconds;
use crate::node::{NodeProgress, NodeWait};
use crate::reason::{LockRefusal, Reason};
use crate::reboot_queue::{EntryBlocker, NotReady, QueueBlocker};
use crate::start::{MissedReason, WindowBlocker};

/// Why something does not go on, or did not: a host, an entry of the reboot queue, a start, a slot or a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Why {
    pub cause: Cause,
    /// When time alone ends it at the latest; absent if time does not end it, or it is not known when.
    pub until: Option<DateTime<Utc>>,
    /// Since when, as far as is known.
    pub since: Option<DateTime<Utc>>,
}

/// A kind of cause with its data: `{"kind": ..., }` in JSON, with the data in further fields. What a reboot command printed is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cause {
    /// It keeps a host, and follows from the current state and view.
    Host(HostBlocker),
    /// It was recorded, or keeps a host from taking part.
    Recorded(Reason),
    /// It keeps an entry of the reboot queue.
    Entry(EntryBlocker),
    /// It keeps every entry of the reboot queue.
    Queue(QueueBlocker),
    /// No run starts automatically.
    Window(WindowBlocker),
    /// A run cannot start in an open window.
    #[serde(rename_all = "kebab-case")]
    OpenWindow {
        /// What blocks it.
        #[serde(flatten)]
        by: WindowBlocker,
        /// When the window closes.
        #[serde(serialize_with = "in_seconds")]
        open_until: DateTime<Utc>,
    },
    /// A run that was due did not start.
    Missed(MissedReason),
    /// A drain, or the end of a cordon, waits for it.
    Node(NodeWait),
    /// A lock server has not granted or released a slot.
    Lock(LockRefusal),
}

impl Why {
    /// Why, if time alone ends it at `until`.
    pub(crate) fn until(why: impl Into<Self>, until: impl Into<Option<DateTime<Utc>>>) -> Self {
        Self { until: until.into(), ..why.into() }
    }

    const fn of(cause: Cause) -> Self {
        Self { cause, until: None, since: None }
    }
}

impl Cause {
    /// The `kind` in its JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Host(by) => by.into(),
            Self::Recorded(reason) => reason.kind(),
            Self::Entry(by) => by.kind(),
            Self::Queue(by) => by.kind(),
            Self::Window(by) | Self::OpenWindow { by, .. } => by.kind(),
            Self::Missed(reason) => reason.kind(),
            Self::Node(wait) => wait.kind(),
            Self::Lock(refusal) => refusal.into(),
        }
    }

    /// Every kind. Some kinds keep things of several sorts.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let kinds =
            HostBlocker::VARIANTS.iter().chain(NodeWait::VARIANTS).chain(LockRefusal::VARIANTS).copied();
        let kinds = kinds.chain(Reason::kinds()).chain(EntryBlocker::kinds());
        let kinds = kinds.chain(WindowBlocker::kinds()).chain(MissedReason::kinds());
        kinds.collect::<BTreeSet<_>>().into_iter()
    }
}

/// Why, if time alone does not end it, and it is not known since when it is so.
impl From<Cause> for Why {
    fn from(cause: Cause) -> Self {
        Self::of(cause)
    }
}

impl From<HostBlocker> for Cause {
    fn from(by: HostBlocker) -> Self {
        Self::Host(stripped(by, HostBlocker::reason_mut))
    }
}

impl From<Reason> for Cause {
    fn from(mut reason: Reason) -> Self {
        reason.strip_output();
        Self::Recorded(reason)
    }
}

impl From<WindowBlocker> for Cause {
    fn from(by: WindowBlocker) -> Self {
        Self::Window(by)
    }
}

impl From<HostBlocker> for Why {
    fn from(by: HostBlocker) -> Self {
        let since = match &by {
            HostBlocker::SlotHeld { since, .. } => Some(*since),
            HostBlocker::NodeUnderWay { node } => Some(node.since),
            HostBlocker::CommandUnsent { .. }
            | HostBlocker::ReplyAwaited { .. }
            | HostBlocker::HostsUnprepared { .. }
            | HostBlocker::HostsPreparing { .. }
            | HostBlocker::TurnAwaited
            | HostBlocker::HostUnderWay { .. }
            | HostBlocker::HostFirst { .. }
            | HostBlocker::SlotStuck { .. }
            | HostBlocker::EarlierCommand
            | HostBlocker::EarlierSlot { .. }
            | HostBlocker::RebootUnderWay { .. }
            | HostBlocker::NodeCordoned { .. }
            | HostBlocker::ApprovedLate
            | HostBlocker::AppearedLate
            | HostBlocker::LeavesAfterRun
            | HostBlocker::Silent
            | HostBlocker::HeartbeatAwaited
            | HostBlocker::WorkerClockSkew { .. }
            | HostBlocker::NotAnnounced
            | HostBlocker::NotServed
            | HostBlocker::ApplicationRefused { .. }
            | HostBlocker::NoRun
            | HostBlocker::WindowUsed(_)
            | HostBlocker::SlotReleasing { .. } => None,
        };
        Self { since, ..Self::of(by.into()) }
    }
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        Self::of(reason.into())
    }
}

impl From<WindowBlocker> for Why {
    fn from(by: WindowBlocker) -> Self {
        Self::of(by.into())
    }
}

impl From<MissedReason> for Why {
    fn from(reason: MissedReason) -> Self {
        Self::of(Cause::Missed(reason))
    }
}

impl From<NodeWait> for Why {
    fn from(wait: NodeWait) -> Self {
        Self::of(Cause::Node(wait))
    }
}

impl From<LockRefusal> for Why {
    fn from(refusal: LockRefusal) -> Self {
        Self::of(Cause::Lock(refusal))
    }
}

impl From<QueueBlocker> for Why {
    fn from(by: QueueBlocker) -> Self {
        let (since, until) = match &by {
            QueueBlocker::BackedOff { until } => (None, Some(*until)),
            QueueBlocker::NotReady { why, .. } => times_of(why),
            QueueBlocker::NothingQueued
            | QueueBlocker::Disabled
            | QueueBlocker::Paused(_)
            | QueueBlocker::ApiServerUnderWay { .. }
            | QueueBlocker::ApiServerWaits { .. }
            | QueueBlocker::Full { .. }
            | QueueBlocker::Unreachable { .. }
            | QueueBlocker::Clock(_)
            | QueueBlocker::ClusterUnseen
            | QueueBlocker::NoWindow
            | QueueBlocker::NoTimeLeft { .. }
            | QueueBlocker::UnclearWindows { .. } => (None, None),
        };
        Self { cause: Cause::Queue(by), until, since }
    }
}

impl From<EntryBlocker> for Why {
    fn from(by: EntryBlocker) -> Self {
        let (since, until) = match &by {
            EntryBlocker::Queue(by) => return by.clone().into(),
            EntryBlocker::Slot(reason) => return reason.clone().into(),
            EntryBlocker::NotReady(why) => times_of(why),
            EntryBlocker::BackedOff { until, .. } | EntryBlocker::CancelAwaited { until } => {
                (None, Some(*until))
            }
            EntryBlocker::NodeUnderWay(NodeProgress { since, .. })
            | EntryBlocker::ReplyAwaited { since }
            | EntryBlocker::CommandRuns { since }
            | EntryBlocker::BootAwaited { since }
            | EntryBlocker::AttemptUnknown { since, .. } => (Some(*since), None),
            EntryBlocker::RetryAwaited { since, at, .. } => (Some(*since), Some(*at)),
            EntryBlocker::Behind { .. }
            | EntryBlocker::CommandUnsent
            | EntryBlocker::CheckAwaited { .. }
            | EntryBlocker::NoCommand
            | EntryBlocker::Failed { .. } => (None, None),
        };
        Self { cause: Cause::Entry(stripped(by, EntryBlocker::reason_mut)), until, since }
    }
}

/// `by` without what a reboot command printed: whoever may read sees a cause.
fn stripped<B>(mut by: B, reason: impl FnOnce(&mut B) -> Option<&mut Reason>) -> B {
    if let Some(reason) = reason(&mut by) {
        reason.strip_output();
    }
    by
}

/// Since when an entry is not ready, and until when.
const fn times_of(why: &NotReady) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
    match why {
        NotReady::SlotHeld { since, .. } => (Some(*since), None),
        NotReady::HostDeferred { until, .. } => (None, *until),
        NotReady::TakesNoPart
        | NotReady::NoWorker
        | NotReady::NoNode
        | NotReady::ForeignMark { .. }
        | NotReady::NoBoot
        | NotReady::BootUnknown
        | NotReady::InRun { .. }
        | NotReady::EarlierSlot
        | NotReady::SlotDenied { .. } => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::{GroupName, HostName};

    use super::*;
    use crate::clock::ClockDoubt;
    use crate::node::NodeStage;
    use crate::owner::Owner;
    use crate::reboot_queue::EntryStatus;
    use crate::slot::{Denied, HostDenied};
    use crate::start::StartBlocker;

    /// Details are for everybody who may read.
    #[test]
    fn no_details_show_what_a_reboot_command_printed() {
        let secret = || Reason::RebootUnknown { detail: "killed".to_owned(), output: "hunter2".to_owned() };
        let failed =
            || Reason::RebootCommandFailed { detail: "status 1".to_owned(), output: "hunter2".to_owned() };
        let (host, group) = (HostName::new("h1").unwrap(), GroupName::new("default").unwrap());
        let (since, until) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
        let whys: Vec<Why> = [secret(), failed()]
            .into_iter()
            .flat_map(|reason| {
                let some = Some(reason.clone());
                let by = reason.clone();
                [
                    reason.clone().into(),
                    HostBlocker::HostFirst { host: host.clone(), by }.into(),
                    HostBlocker::SlotStuck { host: host.clone(), reason: reason.clone() }.into(),
                    HostBlocker::RebootUnderWay {
                        index: 1,
                        status: EntryStatus::Rebooting,
                        reason: some.clone(),
                    }
                    .into(),
                    HostBlocker::SlotHeld {
                        group: group.clone(),
                        entry: None,
                        since,
                        reason: some.clone(),
                        late_answer: None,
                        kept_by: None,
                    }
                    .into(),
                    EntryBlocker::BackedOff { until, reason: some }.into(),
                    EntryBlocker::Slot(reason.clone()).into(),
                    EntryBlocker::AttemptUnknown { reason: reason.clone(), since }.into(),
                    EntryBlocker::RetryAwaited { reason: reason.clone(), since, at: until }.into(),
                    EntryBlocker::CheckAwaited { reason: reason.clone() }.into(),
                    EntryBlocker::Failed { reason }.into(),
                ]
            })
            .collect();
        for Why { cause, .. } in whys {
            let json = serde_json::to_string(&cause).unwrap();
            assert!(!json.contains("hunter2") && json.contains(r#""output":"""#), "{json}");
            assert!(!format!("{cause:?}").contains("hunter2"), "{cause:?}");
        }
    }

    /// The kinds in the first column of the tables under `heading` in the documentation, up to the next table.
    fn documented(heading: &str) -> BTreeSet<&'static str> {
        let document = include_str!("../../../../docs/operations.md");
        let (_, section) = document.split_once("\n## Why something does not go on\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let (_, table) = section.split_once(heading).unwrap();
        let rows =
            table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        let kinds = rows.filter(|row| row.starts_with("| `")).filter_map(|row| row.split('|').nth(1));
        kinds.flat_map(|kinds| kinds.split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn every_cause_is_documented() {
        let of_hosts = HostBlocker::VARIANTS.iter().copied().chain(Reason::kinds()).collect();
        assert_eq!(documented("Hosts, and hosts in runs:"), of_hosts);
        let doubts: BTreeSet<&str> = ClockDoubt::VARIANTS.iter().copied().collect();
        let of_starts = WindowBlocker::kinds().chain(MissedReason::kinds());
        let of_starts = of_starts.filter(|kind| !doubts.contains(kind)).collect();
        assert_eq!(documented("Why no run starts automatically"), of_starts);
        let of_entries = EntryBlocker::kinds().filter(|kind| !doubts.contains(kind));
        let of_slots = ["asking-for-slot", "slot-unreachable", "slot-protocol"];
        assert_eq!(documented("Entries of the reboot queue"), of_entries.chain(of_slots).collect());
        let of_nodes = NodeWait::VARIANTS.iter().chain(LockRefusal::VARIANTS).copied().collect();
        assert_eq!(documented("Nodes that are drained or uncordoned"), of_nodes);
    }

    /// Their JSON is flattened into the object that has these names already.
    #[test]
    fn causes_have_a_kind_and_no_name_of_a_why() {
        let (host, since) = (HostName::new("h1").unwrap(), DateTime::UNIX_EPOCH);
        let node = || NodeProgress { stage: NodeStage::Evicting, since, waits: Some(NodeWait::NotReady) };
        let blocker = || WindowBlocker::Any(StartBlocker::NoConfiguration);
        let held = || NotReady::SlotHeld { owner: Owner::Entry { index: 3, added_at: 0 }, since };
        let denied = HostDenied::Any(Denied::OtherLockServer);
        let denied = NotReady::SlotDenied { group: GroupName::new("default").unwrap(), denied };
        let whys: [Why; 14] = [
            Cause::OpenWindow { by: blocker(), open_until: since }.into(),
            MissedReason::Blocked(blocker()).into(),
            blocker().into(),
            NodeWait::NotReady.into(),
            LockRefusal::Protocol { detail: "HTML".to_owned() }.into(),
            HostBlocker::NodeUnderWay { node: node() }.into(),
            EntryBlocker::NodeUnderWay(node()).into(),
            EntryBlocker::Behind { index: 7 }.into(),
            EntryBlocker::ReplyAwaited { since }.into(),
            EntryBlocker::NotReady(denied).into(),
            EntryBlocker::NotReady(held()).into(),
            QueueBlocker::NotReady { host: host.clone(), why: held() }.into(),
            QueueBlocker::NotReady { host: host.clone(), why: NotReady::ForeignMark { host } }.into(),
            QueueBlocker::Clock(ClockDoubt::ClockStepped).into(),
        ];
        for Why { cause, .. } in whys {
            let text = serde_json::to_string(&cause).unwrap();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["kind"], cause.kind(), "{text}");
            assert!(Cause::kinds().any(|kind| kind == cause.kind()), "{text}");
            assert!(["text", "until", "since"].iter().all(|name| json.get(name).is_none()), "{text}");
            // Nothing is there twice.
            assert_eq!(json.to_string().len(), text.len(), "{text}");
        }
    }
}
