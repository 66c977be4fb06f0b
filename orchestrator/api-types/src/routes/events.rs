//! `/v1/state/os-upgrade/events`: what happens on the site, as Server-Sent Events. An extension of the specification.
//!
//! The shapes here are public, and do not follow the journal's.

mod event_id;

use std::str::FromStr;

use os_upgrade_kernel::node::NodeStepKind;
use os_upgrade_kernel::reboot_queue::EntryStep;
use os_upgrade_kernel::run::{HostStep, StopKind, TriggerKind};
use os_upgrade_kernel::{HostStatus, RestoreSource, RunResult};
use os_upgrade_protocol::{Action, HostName, RunId};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::json;
use strum::VariantNames as _;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::{IntoParams, PartialSchema as _, ToSchema};

use crate::body::{Counts, Millis, Stamp, Why};
use crate::query::Parameters;
use crate::route::{Answer, Content, Method, Route, Shape, Tag, VIEWER};
use crate::text::{
    ActionWord, AuditReasonText, BehalfWord, EventIdText, HostStatusWord, KindsText, NameText, NodeStepWord,
    RebootStepWord, RunIdText, RunResultWord, StepWord, StopWord, TriggerWord,
};
use crate::word::{Behalf, Word};

pub use self::event_id::{BadEventId, EventId};

/// The media type of Server-Sent Events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The request header with the id after which a client goes on.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// A stream without an end; 503 until the journal has been read, and while there are too many subscribers.
pub const FOLLOW: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/events",
    VIEWER,
    Tag::Upgrades,
    "follow-events",
    "Follow what happens on the site, as Server-Sent Events",
)
.description(
    "Each block has the event's kind in `event`, its id in `id`, and this JSON object in `data`. Ids are the same on \
     every instance. Send the last one back in `Last-Event-ID`, or in `after`, to go on without a gap; without either \
     the stream begins now. A block with an `id` alone only moves that position. `progress` and `reset` have no id. \
     After `reset`, earlier events are not available. Comments are sent when nothing else is.",
)
.headers::<ResumeHeader>()
.query::<FollowParameters>()
.answers(&[Answer {
    json: Some(Content::new(EVENT_STREAM, Shape::of::<Event>(), example)),
    ..Answer::new(200, "events, until the client or the instance ends the stream")
}]);

pub(crate) fn example() -> serde_json::Value {
    json!({
        "id": "18790f3d1c8a0000.42.0",
        "time": "2026-11-21T01:24:07.120Z",
        "kind": "run-ended",
        "run": "019aa3f0-0000-7000-8000-000000000001",
        "result": "completed",
        "counts": { "skipped": 1, "upgraded": 59 },
    })
}

/// The header with which a client resumes.
#[derive(Debug)]
pub struct ResumeHeader;

impl IntoParams for ResumeHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let meaning = "The id of the last event that was received. Takes precedence over `after`.";
        let header = ParameterBuilder::new().name("Last-Event-ID").parameter_in(ParameterIn::Header);
        vec![header.description(Some(meaning)).schema(Some(EventIdText::schema())).build()]
    }
}

/// Which events to send, and from where on.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FollowParameters {
    /// Only these kinds, separated by commas. `reset` is always sent.
    #[param(value_type = Option<KindsText>, inline)]
    pub kinds: Option<Kinds>,
    /// Only events about this run.
    #[param(value_type = Option<RunIdText>)]
    pub run: Option<RunId>,
    /// Only events about this host.
    #[param(value_type = Option<NameText>)]
    pub host: Option<HostName>,
    /// The id of an event: begin after it.
    #[param(value_type = Option<EventIdText>)]
    pub after: Option<EventId>,
}

impl Parameters for FollowParameters {
    const NAMES: &'static [&'static str] = &["kinds", "run", "host", "after"];
}

/// Some kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds(Vec<&'static str>);

impl Kinds {
    /// Whether `kind` is one of them.
    pub fn has(&self, kind: &str) -> bool {
        self.0.contains(&kind)
    }
}

impl FromStr for Kinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |name: &str| SiteEvent::VARIANTS.iter().find(|known| **known == name).copied();
        let kind = |name: &str| {
            known(name).ok_or_else(|| {
                format!("{name:?} is not a kind of event; known are {}", SiteEvent::VARIANTS.join(", "))
            })
        };
        text.split(',').map(|name| kind(name.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl<'de> Deserialize<'de> for Kinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// An event as it is sent: the `data` of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The event's id; absent for `progress` and `reset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<EventIdText>)]
    pub id: Option<EventId>,
    /// When it happened, in RFC 3339 and UTC; absent for `progress` and `reset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Stamp>)]
    pub time: Option<Millis>,
    /// What happened.
    #[serde(flatten)]
    pub what: SiteEvent,
}

/// What happens on a site, as operators see it.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SiteEvent {
    /// A run started.
    RunStarted {
        #[schema(value_type = RunIdText)]
        run: String,
        /// What started it.
        #[schema(value_type = TriggerWord)]
        trigger: Word<TriggerKind>,
        /// The operator, if one started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AuditReasonText>)]
        reason: Option<String>,
        /// When it ends at the latest.
        #[serde(rename = "not-after")]
        not_after: Stamp,
        /// The number of hosts that take part.
        hosts: u64,
        /// The number of hosts that are skipped.
        skipped: u64,
        /// Whether it is a run of chosen hosts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        targeted: bool,
    },
    /// Every host of a run is prepared; upgrades begin.
    RunUpgrading {
        #[schema(value_type = RunIdText)]
        run: String,
    },
    /// A run starts no further host.
    RunStopping {
        #[schema(value_type = RunIdText)]
        run: String,
        /// Why it stops.
        #[schema(value_type = StopWord)]
        cause: Word<StopKind>,
        /// The host whose failure was one too many, if that is the cause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// The operator, if one stopped it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AuditReasonText>)]
        reason: Option<String>,
    },
    /// A run is over.
    RunEnded {
        #[schema(value_type = RunIdText)]
        run: String,
        #[schema(value_type = RunResultWord)]
        result: Word<RunResult>,
        /// How many of its hosts ended as what.
        #[serde(default, skip_serializing_if = "Counts::is_empty")]
        counts: Counts,
    },
    /// A run was due in a maintenance window, and can no longer start in it.
    RunMissed {
        /// When the window opened.
        #[serde(rename = "window-start")]
        window_start: Stamp,
        /// Until when the run could have started.
        #[serde(rename = "latest-start")]
        latest_start: Stamp,
        /// When the window closed, or will close.
        #[serde(rename = "window-end")]
        window_end: Stamp,
        /// Why it did not start.
        why: Why,
        /// How many runs were missed before it of which no event tells; absent if none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unrecorded: Option<u64>,
    },
    /// A host of a run takes a step.
    Host {
        #[schema(value_type = RunIdText)]
        run: String,
        host: String,
        /// Its status after the step.
        #[schema(value_type = HostStatusWord)]
        status: Word<HostStatus>,
        #[schema(value_type = StepWord)]
        step: Word<HostStep>,
        /// The command that was sent, with the step `command-sent`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<ActionWord>)]
        action: Option<Word<Action>>,
        /// The number of the attempt, from 1, with the step `command-sent`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// The group of its slot, with the step `slot-granted`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Why it waits or did not succeed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
        /// The operator, if one caused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A client or an operator holds a slot. A host of a run gets its slot with the step `slot-granted` of `host`.
    SlotHeld {
        group: String,
        /// The id of the holder.
        holder: String,
        #[schema(value_type = BehalfWord)]
        behalf: Word<Behalf>,
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A slot is free, or an operator has ended that a client waits for one.
    SlotReleased {
        /// Absent for a slot of a run, whose host has the group.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// The id of the holder; a host's name for a slot of a run.
        holder: String,
        /// For whom it was released: by its run, its client, or an operator.
        #[schema(value_type = BehalfWord)]
        behalf: Word<Behalf>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<RunIdText>)]
        run: Option<String>,
        /// The host, for a slot of a run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Why: a word for a slot of a run, otherwise as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The lock server has not granted the slot that a host waits for; it is asked again.
    SlotNotGranted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<RunIdText>)]
        run: Option<String>,
        host: String,
        /// Why not.
        why: Why,
    },
    /// The lock server has not released a host's slot; it is asked again.
    SlotNotReleased {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<RunIdText>)]
        run: Option<String>,
        host: String,
        /// Why not.
        why: Why,
    },
    /// The configuration was replaced or deleted.
    ConfigChanged {
        actor: String,
        /// Whether it was deleted.
        deleted: bool,
        /// The first fields that were changed, such as `rollout/max-failures`; an empty path is the whole configuration.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false, max_items = 16)]
        changed: Vec<String>,
        /// How many more were changed; absent if none.
        #[serde(rename = "changed-more", default, skip_serializing_if = "Option::is_none")]
        changed_more: Option<u64>,
    },
    /// The leader's settings file has other settings for the site.
    SettingsChanged,
    /// Hosts take part in every run from here on.
    HostsApproved { hosts: Vec<String>, actor: String },
    /// Configuration for the host is sealed to this key from here on.
    KeyPinned {
        host: String,
        key: String,
        /// Who approved it; absent if it was the first one of a host that is approved automatically.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A host is to have what a provider has given for it.
    ItemStored { host: String, provider: String },
    /// A host is to have nothing of a provider any more, as the provider says.
    ItemRevoked { host: String, provider: String },
    /// An operator had a provider asked.
    PollRequested {
        provider: String,
        /// About which host; absent if about all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        actor: String,
    },
    /// Hosts are told again what they are to have.
    DeliveryResumed {
        /// The host; absent if all are told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        actor: String,
    },
    /// Hosts have something from before the last restoration of which the site knows nothing: they are to have nothing.
    UnknownItemsFound { hosts: Vec<String> },
    /// No host gets an answer of a provider any more.
    ProviderFailed {
        provider: String,
        /// A host about which it was asked.
        host: String,
        /// How that failed.
        failure: String,
    },
    /// A provider that had failed answers again.
    ProviderRecovered { provider: String },
    /// A provider of kind `hooks` has got a token with which it may call back.
    HookTokenDrawn { provider: String },
    /// A provider may not call back with the tokens that it had.
    HookTokensRevoked { provider: String, actor: String },
    /// Hosts have other metadata than a provider was told.
    HookMetadataChanged { provider: String, hosts: Vec<String> },
    /// A provider has called back: it has something new for hosts.
    CallbackReceived { provider: String, hosts: Vec<String> },
    /// There is a new unit, or one has other contents.
    UnitSubmitted {
        unit: String,
        /// The state that it is to be in.
        desired: String,
        actor: String,
    },
    /// A unit is to be in another state.
    UnitWanted { unit: String, state: String, actor: String },
    /// There is no such unit any more.
    UnitDestroyed { unit: String, actor: String },
    /// A host may run units, as the machine of this id.
    MachineJoined {
        host: String,
        machine: String,
        /// Who approved it; absent if it is the first one of a host that is approved automatically.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A machine's agent is silent: its units go elsewhere.
    MachineLost { host: String },
    /// The agent of a lost machine is heard again.
    MachineFound { host: String },
    /// A unit belongs on these hosts, too.
    UnitPlaced { unit: String, hosts: Vec<String> },
    /// A unit no longer belongs on these hosts.
    UnitTaken {
        unit: String,
        hosts: Vec<String>,
        /// Why it was taken away.
        reason: String,
    },
    /// A unit no longer runs on a host from which it was taken.
    UnitStopped { unit: String, host: String },
    /// A host no longer takes part.
    HostWithdrawn { host: String, actor: String, reason: String },
    /// A host is gone.
    HostRemoved { host: String, actor: String, reason: String },
    /// A host begins nothing for now.
    HostDeferred {
        host: String,
        actor: String,
        reason: String,
        /// When that ends by itself; absent if it lasts until an operator ends it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Stamp>,
    },
    /// A host is no longer deferred.
    DeferralEnded {
        host: String,
        /// The operator; absent if the end of the deferral had come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AuditReasonText>)]
        reason: Option<String>,
    },
    /// Hosts are to reboot.
    RebootsQueued {
        hosts: Vec<String>,
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AuditReasonText>)]
        reason: Option<String>,
    },
    /// An entry of the reboot queue takes a step.
    Reboot {
        /// The entry's index.
        index: String,
        host: String,
        #[schema(value_type = RebootStepWord)]
        step: Word<EntryStep>,
        /// The boot that the host is to leave, with the step `reboot-began`.
        #[serde(rename = "boot-id", default, skip_serializing_if = "Option::is_none")]
        boot_id: Option<String>,
        /// Why it waits, backs off or failed, or why it is not known whether it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
        /// Why it was cancelled or given up, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The operator, if one caused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// Something happens to the Kubernetes node of a host. That it is drained for a run is a step of the host there.
    Node {
        /// The run for which it is drained; absent if it is for none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<RunIdText>)]
        run: Option<String>,
        host: String,
        #[schema(value_type = NodeStepWord)]
        step: Word<NodeStepKind>,
        /// Why it waits or is uncordoned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
        /// Why it is to be uncordoned, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The operator, if one caused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// The site is paused: nothing further begins there.
    SitePaused {
        /// The operator who paused it, or who restored the site.
        actor: String,
        /// Why, as the operator says; absent if it is because the site was restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AuditReasonText>)]
        reason: Option<String>,
        /// When it ends by itself; absent if it lasts until somebody resumes the site.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Stamp>,
    },
    /// The site is no longer paused.
    SiteResumed {
        /// The operator; absent if the end of the pause had come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AuditReasonText>)]
        reason: Option<String>,
    },
    /// Entries of the reboot queue start from here on, or no longer do.
    RebootQueueSwitched {
        /// Whether they start.
        enabled: bool,
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<AuditReasonText>)]
        reason: Option<String>,
    },
    /// Entries of the reboot queue that have backed off may start again at once.
    RebootBackoffReset { actor: String },
    /// A secret was stored.
    SecretStored { name: String, actor: String },
    /// A secret was removed.
    SecretRemoved { name: String, actor: String },
    /// The strongbox got a new key.
    StrongboxKeySet,
    /// The site was restored.
    Restored {
        /// What it was restored from.
        #[schema(value_type = String)]
        source: Word<RestoreSource>,
        actor: String,
    },
    /// A worker has reported how far it is. Of several reports in a second the last is sent.
    Progress {
        #[schema(value_type = RunIdText)]
        run: String,
        host: String,
        #[schema(value_type = ActionWord)]
        action: Word<Action>,
        /// How much is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(maximum = 100)]
        percent: Option<u8>,
        /// What is being done.
        text: String,
    },
    /// Events are missing between what was asked for, or sent before, and what follows.
    Reset {
        /// The earliest id: every event from there on follows. Absent if there is none yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<EventIdText>)]
        earliest: Option<EventId>,
    },
}

impl SiteEvent {
    /// The event's kind, as in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The run that it is about, if any.
    pub fn run(&self) -> Option<&str> {
        match self {
            Self::RunStarted { run, .. }
            | Self::RunUpgrading { run }
            | Self::RunStopping { run, .. }
            | Self::RunEnded { run, .. }
            | Self::Host { run, .. }
            | Self::Progress { run, .. } => Some(run),
            Self::SlotReleased { run, .. }
            | Self::SlotNotGranted { run, .. }
            | Self::SlotNotReleased { run, .. }
            | Self::Node { run, .. } => run.as_deref(),
            Self::RunMissed { .. }
            | Self::SlotHeld { .. }
            | Self::ConfigChanged { .. }
            | Self::SettingsChanged
            | Self::HostsApproved { .. }
            | Self::KeyPinned { .. }
            | Self::ItemStored { .. }
            | Self::ItemRevoked { .. }
            | Self::PollRequested { .. }
            | Self::DeliveryResumed { .. }
            | Self::UnknownItemsFound { .. }
            | Self::ProviderFailed { .. }
            | Self::ProviderRecovered { .. }
            | Self::HookTokenDrawn { .. }
            | Self::HookTokensRevoked { .. }
            | Self::HookMetadataChanged { .. }
            | Self::CallbackReceived { .. }
            | Self::UnitSubmitted { .. }
            | Self::UnitWanted { .. }
            | Self::UnitDestroyed { .. }
            | Self::MachineJoined { .. }
            | Self::MachineLost { .. }
            | Self::MachineFound { .. }
            | Self::UnitPlaced { .. }
            | Self::UnitTaken { .. }
            | Self::UnitStopped { .. }
            | Self::HostWithdrawn { .. }
            | Self::HostRemoved { .. }
            | Self::HostDeferred { .. }
            | Self::DeferralEnded { .. }
            | Self::RebootsQueued { .. }
            | Self::Reboot { .. }
            | Self::SitePaused { .. }
            | Self::SiteResumed { .. }
            | Self::RebootQueueSwitched { .. }
            | Self::RebootBackoffReset { .. }
            | Self::SecretStored { .. }
            | Self::SecretRemoved { .. }
            | Self::StrongboxKeySet
            | Self::Restored { .. }
            | Self::Reset { .. } => None,
        }
    }

    /// Whether it is about the host of this name.
    pub fn is_about(&self, name: &str) -> bool {
        match self {
            Self::Host { host, .. }
            | Self::SlotNotGranted { host, .. }
            | Self::SlotNotReleased { host, .. }
            | Self::KeyPinned { host, .. }
            | Self::ItemStored { host, .. }
            | Self::ItemRevoked { host, .. }
            | Self::MachineJoined { host, .. }
            | Self::MachineLost { host }
            | Self::MachineFound { host }
            | Self::UnitStopped { host, .. }
            | Self::HostWithdrawn { host, .. }
            | Self::HostRemoved { host, .. }
            | Self::HostDeferred { host, .. }
            | Self::DeferralEnded { host, .. }
            | Self::Reboot { host, .. }
            | Self::Node { host, .. }
            | Self::Progress { host, .. } => host == name,
            Self::RunStopping { host, .. }
            | Self::SlotReleased { host, .. }
            | Self::PollRequested { host, .. }
            | Self::DeliveryResumed { host, .. } => host.as_deref() == Some(name),
            Self::HostsApproved { hosts, .. }
            | Self::RebootsQueued { hosts, .. }
            | Self::UnknownItemsFound { hosts }
            | Self::HookMetadataChanged { hosts, .. }
            | Self::CallbackReceived { hosts, .. }
            | Self::UnitPlaced { hosts, .. }
            | Self::UnitTaken { hosts, .. } => hosts.iter().any(|host| host == name),
            Self::RunStarted { .. }
            | Self::RunUpgrading { .. }
            | Self::RunEnded { .. }
            | Self::RunMissed { .. }
            | Self::SlotHeld { .. }
            | Self::ConfigChanged { .. }
            | Self::SettingsChanged
            | Self::ProviderFailed { .. }
            | Self::ProviderRecovered { .. }
            | Self::HookTokenDrawn { .. }
            | Self::HookTokensRevoked { .. }
            | Self::UnitSubmitted { .. }
            | Self::UnitWanted { .. }
            | Self::UnitDestroyed { .. }
            | Self::SitePaused { .. }
            | Self::SiteResumed { .. }
            | Self::RebootQueueSwitched { .. }
            | Self::RebootBackoffReset { .. }
            | Self::SecretStored { .. }
            | Self::SecretRemoved { .. }
            | Self::StrongboxKeySet
            | Self::Restored { .. }
            | Self::Reset { .. } => false,
        }
    }
}
