//! Descriptions of strings in bodies: words of fixed sets, and formats such as names and durations. The types that
//! read and write them are in the kernel and the protocol, which do not depend on HTTP. A test checks real answers
//! against these descriptions.

use std::borrow::Cow;

use os_upgrade_kernel::node::NodeStepKind;
use os_upgrade_kernel::reboot_queue::{EntryStatus, EntryStep};
use os_upgrade_kernel::run::{HostStep, StopKind};
use os_upgrade_kernel::unit::TakenAway;
use os_upgrade_kernel::{
    Cause, Closed, HostStatus, KeyState, NodeStage, NodeWait, PodObstacle, Retry, RunResult, Trigger, Warning,
};
use os_upgrade_scheduler::{Misfit, UnitState};
use strum::VariantNames as _;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::word::{
    Behalf, CallBackRefusal, Enrolment, ItemStep, MachineStep, StrongboxStep, TestOutcome, UnitStep,
};

/// Whether a host takes part in runs: all words for it.
pub const ENROLMENTS: &[&str] = Enrolment::VARIANTS;

/// How far what a provider gave for a host is: all words for it.
pub const ITEM_STATES: &[&str] = ItemStep::VARIANTS;

/// Whether a host that runs units is a machine, and gets units: all words for it.
pub const MACHINE_STATES: &[&str] = MachineStep::VARIANTS;

/// The states of units: all words for them.
pub const UNIT_STATES: [UnitState; 3] = [UnitState::Inactive, UnitState::Loaded, UnitState::Launched];

/// The events of which a provider of kind `hooks` is told, in the order of delivery.
pub const HOOK_EVENTS: [&str; 5] = [
    "ON_ENROLLMENT_REQUEST",
    "ON_FLEET_JOIN",
    "ON_DEVICE_METADATA_UPDATE",
    "ON_DEVICE_SPEC_UPDATE",
    "ON_DEVICE_POLL",
];

/// One entry per set: its description, its name in the document, and its words.
macro_rules! words {
    ($(#[doc = $meaning:literal] $name:ident = $words:expr;)*) => {
        $(
            #[doc = $meaning]
            pub struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let object = ObjectBuilder::new().schema_type(Type::String).enum_values(Some($words));
                    object.description(Some($meaning.trim())).into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
            }
        )*
    };
}

words! {
    /// The status of a host in a run.
    HostStatusWord = HostStatus::ALL.map(HostStatus::as_str);
    /// The result of a run.
    RunResultWord = RunResult::ALL.map(RunResult::as_str);
    /// The result of a run in the history; `unknown` if it ended while this instance was away for long.
    PastRunResultWord = RunResult::ALL.map(RunResult::as_str).into_iter().chain(["unknown"]).collect::<Vec<_>>();
    /// The phase of a run, or its last phase.
    PhaseWord = ["preparing", "upgrading"];
    /// How the part of a host in its last run ended.
    RetryWord = Retry::VARIANTS.iter().copied();
    /// The state of upgrades on the site.
    SiteStatusWord = ["idle", "preparing", "upgrading", "paused"];
    /// What an operator should know before a configuration takes effect.
    WarningWord = Warning::kinds();
    /// Whether a host's worker was heard of recently.
    ReachabilityWord = ["unknown", "awaited", "reachable", "unreachable"];
    /// Whether a host takes part in runs: approved, or automatically; or not yet, or no longer.
    EnrolmentWord = ENROLMENTS.iter().copied();
    /// Whether configuration can be sealed for a host: its key is approved, waits for approval, or is another than the approved one.
    KeyStateWord = KeyState::ALL.map(KeyState::as_str);
    /// How far what a provider gave for a host is.
    ItemStateWord = ITEM_STATES.iter().copied();
    /// What a provider says about a host when it is tested: a content, that it is to have nothing, or nothing that counts.
    TestOutcomeWord = TestOutcome::VARIANTS.iter().copied();
    /// An event of which a provider of kind `hooks` is told, as the protocol names it.
    HookEventWord = HOOK_EVENTS.iter().copied();
    /// Why a member of a call-back, or a device that it names, is refused.
    CallBackRefusalWord = CallBackRefusal::VARIANTS.iter().copied();
    /// Why something does not go on, or did not.
    WhyWord = Cause::kinds();
    /// A command to a worker.
    ActionWord = ["prepare", "upgrade", "reboot"];
    /// What grants slots to hosts of runs: the embedded semaphores, or an external lock server.
    LockProviderWord = ["embedded", "external"];
    /// Whose slots a `DELETE` releases: never any, or those of hosts that have left the inventory.
    ReclaimWord = ["never", "inventory"];
    /// For whom a slot is held.
    BehalfWord = Behalf::VARIANTS.iter().copied();
    /// What started a run: an operator, or a maintenance window.
    TriggerWord = Trigger::KINDS.iter().copied();
    /// Why a run stops: too many failures, an operator, or a restoration of the site.
    StopWord = StopKind::VARIANTS.iter().copied();
    /// What happened to a host of a run.
    StepWord = HostStep::VARIANTS.iter().copied();
    /// What happened to an entry of the reboot queue.
    RebootStepWord = EntryStep::VARIANTS.iter().copied();
    /// What happened to the Kubernetes node of a host.
    NodeStepWord = NodeStepKind::VARIANTS.iter().copied();
    /// How far the work on the Kubernetes node of a host is.
    NodeStageWord = NodeStage::kinds();
    /// What the work on a Kubernetes node waits for.
    NodeWaitWord = NodeWait::VARIANTS.iter().copied();
    /// Why a pod is still on a Kubernetes node.
    PodObstacleWord = PodObstacle::VARIANTS.iter().copied();
    /// The status of an entry of the reboot queue.
    EntryStatusWord = EntryStatus::ALL.map(EntryStatus::as_str);
    /// What waits: a host of a run, or a FleetLock client.
    WaiterWord = ["host", "client"];
    /// The role of an instance.
    RoleWord = ["leader", "follower"];
    /// A change of the strongbox.
    StrongboxWord = StrongboxStep::VARIANTS.iter().copied();
    /// The operation of a step of a JSON Patch.
    PatchWord = ["add", "remove", "replace", "move", "copy", "test"];
    /// What happens to a host that is unreachable when a run starts: it is skipped, or fails.
    UnreachableWord = ["skip", "fail"];
    /// How a provider is asked: by a GET for each host, or by a POST of events.
    ProviderKindWord = ["http", "hooks"];
    /// What becomes of what a host has once its provider has nothing for it any more: the host keeps it, or it is removed.
    OnRemovalWord = ["keep", "remove"];
    /// The state that a unit is in, or is to be in.
    UnitStateWord = UNIT_STATES.map(UnitState::as_str);
    /// Whether a host that runs units is a machine, and gets units.
    MachineStateWord = MACHINE_STATES.iter().copied();
    /// Why a machine gets no further unit.
    ClosedWord = Closed::VARIANTS.iter().copied();
    /// Why a unit cannot be on a machine.
    MisfitWord = Misfit::VARIANTS.iter().copied();
    /// What would happen to a unit.
    UnitChangeWord = UnitStep::VARIANTS.iter().copied();
    /// Why a unit is taken away from a machine.
    TakenAwayWord = TakenAway::VARIANTS.iter().copied();
}

/// One entry per format: its description, its name in the document, its pattern, and its length in characters.
macro_rules! texts {
    ($(#[doc = $meaning:literal] $name:ident = $pattern:literal, $lengths:expr;)*) => {
        $(
            #[doc = $meaning]
            pub struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let object = ObjectBuilder::new().schema_type(Type::String).pattern(Some($pattern));
                    let (min, max) = $lengths;
                    let object = object.min_length(min).max_length(max);
                    object.description(Some($meaning.trim())).into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
            }
        )*
    };
}

texts! {
    /// A name: 1 to 255 bytes without control characters.
    NameText = r"^[^\x00-\x1f\x7f-\x9f]+$", (Some(1), Some(255));
    /// The id of a slot's holder: 1 to 256 bytes without control characters.
    ClientText = r"^[^\x00-\x1f\x7f-\x9f]+$", (Some(1), Some(256));
    /// `*`, or tags as in `ETag`, separated by commas.
    TagsText = r#"^(\*|(W/)?"[\x21\x23-\x7e]*"(\s*,\s*(W/)?"[\x21\x23-\x7e]*")*)?$"#, (None, None);
    /// An operator's reason: one line of 1 to 1000 bytes, not blank.
    AuditReasonText = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$", (Some(1), Some(1_000));
    /// The id of a run.
    RunIdText = "^[A-Za-z0-9_-]+$", (Some(1), Some(64));
    /// The position of a fact in the journal, `<sequence>.<place>`.
    FactKeyText = r"^[0-9]{1,18}\.[0-9]{1,18}$", (Some(3), Some(37));
    /// The id of an event, `<epoch>.<sequence>.<place>`.
    EventIdText = r"^[0-9a-f]{1,16}\.[0-9]{1,18}\.[0-9]{1,18}$", (Some(5), Some(54));
    /// Kinds of events, separated by commas.
    KindsText = "^[a-z]+(-[a-z]+)*( *, *[a-z]+(-[a-z]+)*)*$", (Some(1), Some(500));
    /// The index of an entry of the reboot queue: a number from 0.
    EntryIndexText = "^(0|[1-9][0-9]{0,18})$", (Some(1), Some(19));
    /// The name of a lock group.
    GroupText = "^[a-zA-Z0-9.-]+$", (Some(1), Some(255));
    /// The name of a secret.
    SecretNameText = "^[a-zA-Z0-9_-][a-zA-Z0-9._-]*$", (Some(1), Some(64));
    /// The permissions of a file in octal, such as `0640`.
    FileModeText = "^0?[0-7]{3}$", (Some(3), Some(4));
    /// A secret: 1 to 8192 bytes.
    SecretText = r"^[\s\S]+$", (Some(1), Some(8_192));
    /// 32 bytes in base64, as `os-upgrade strongbox key` prints them.
    KeyText = "^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$", (Some(44), Some(44));
    /// The key of a host: 32 bytes in base64url without padding.
    HostKeyText = "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$", (Some(43), Some(43));
    /// `[<n>y][<n>d][<n>h][<n>m][<n>s]`, such as `4h` or `1d12h`; 1 s to 100 years.
    TimeoutText = "^(?=.*[1-9])([0-9]{1,2}y)?([0-9]{1,3}d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$", (Some(1), Some(25));
    /// `[<n>d][<n>h][<n>m][<n>s]`, such as `4h` or `1d12h`; 1 s to 366 days.
    WindowDurationText = "^(?=.*[1-9])((36[0-6]|3[0-5][0-9]|[12]?[0-9]{1,2})d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$", (Some(1), Some(25));
    /// A percentage from `0%` to `100%`.
    PercentText = "^(100|[0-9]{1,2})%$", (Some(2), Some(4));
    /// Days of the week and ranges of days, separated by commas, such as `Friday, Saturday` or `Mon-Fri`.
    DaysText = r"^(Mon(day)?|Tue(sday)?|Wed(nesday)?|Thu(rsday)?|Fri(day)?|Sat(urday)?|Sun(day)?)( *- *(Mon(day)?|Tue(sday)?|Wed(nesday)?|Thu(rsday)?|Fri(day)?|Sat(urday)?|Sun(day)?))?(, *(Mon(day)?|Tue(sday)?|Wed(nesday)?|Thu(rsday)?|Fri(day)?|Sat(urday)?|Sun(day)?)( *- *(Mon(day)?|Tue(sday)?|Wed(nesday)?|Thu(rsday)?|Fri(day)?|Sat(urday)?|Sun(day)?))?)*$", (Some(1), Some(80));
    /// A local time of day, `HH:MM`.
    TimeText = "^([01][0-9]|2[0-3]):[0-5][0-9]$", (Some(1), Some(5));
    /// A day, `YYYY-MM-DD`.
    DateText = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$", (Some(1), Some(10));
    /// `[<n>y][<n>d][<n>h][<n>m][<n>s]`, such as `4h` or `1d12h`; at most 100 years.
    DurationText = "^(?=.)([0-9]{1,2}y)?([0-9]{1,3}d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$", (Some(1), Some(25));
}
