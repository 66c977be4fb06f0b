//! `/v1/state/os-upgrade`: the configuration in force, and the progress of upgrades.
//!
//! Keys that do not apply are absent: the configuration's keys and `scheduled-workers` without a configuration,
//! `last-upgrade-info` without a past run, `next-upgrade-in` without a future window. Extensions of the specification:
//! `paused`, `last-targeted-info`, `next-upgrade-at`, `next-upgrade-why`, `window-used-by` and `denied-until`, `current-upgrade-info` while a run is active, `id`, `reason` and
//! `counts` of a run, `since` and `why` of a host in it, `reboot-queue`, and `hosts`, which explains why each host is not moving.

use std::borrow::Cow;

use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{Config, HostStatus, KeyState, RunResult, StopCause as Cause, WindowUse};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::body::{Counts, HostOfRun, Progress, Stamp, TwoSided, Why};
use crate::node::HostNode;
use crate::query::Parameters;
use crate::route::{Answer, Method, Route, Shape, Tag, VIEWER};
use crate::routes::config::{ConfigFields, Warning, sample_with};
use crate::routes::runs::StopCause;
use crate::text::{DurationText, HostStatusWord, KeyStateWord, RunResultWord, SiteStatusWord};
use crate::word::{WhyKind, Word};

/// The whole state, or the requested fields.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade",
    VIEWER,
    Tag::Upgrades,
    "read-state",
    "Retrieve the upgrade state",
)
.description(
    "The whole state of 200 hosts or more may be up to a second old, but shows every change that this instance has confirmed. \
        With fields or content it is always new.",
)
.query::<ReadParameters>()
.answers(&[Answer::json(
    "the configuration in force, and the progress of upgrades",
    Shape::of::<State<'static>>(),
    example,
)]);

/// The specification's example, with our extensions.
fn example() -> Value {
    sample_with(json!({
        "status": "idle",
        "next-upgrade-in": "1d4h18s",
        "next-upgrade-at": "2023-03-24T01:00:00Z",
        "scheduled-workers": [
            {"host": "h01", "application": "os-upgrade-debian"},
            {"host": "h02", "application": "os-upgrade-debian"},
        ],
        "not-reached": {"runs": 3, "hosts": 53},
        "oldest-success": {"hostname": "h17", "time": "2023-02-10T01:12:02Z"},
        "last-upgrade-info": {
            "id": "0186ecc9-8080-7000-8000-000000000001",
            "start-time": "2023-03-17T01:00:00Z",
            "end-time": "2023-03-17T01:24:07Z",
            "result": "completed",
            "counts": {"upgraded": 2},
            "hosts": [
                {"hostname": "h01", "status": "upgraded", "since": "2023-03-17T01:12:02Z"},
                {"hostname": "h02", "status": "upgraded", "since": "2023-03-17T01:24:07Z"},
            ],
        },
        "hosts": [
            {
                "hostname": "h01",
                "why": {
                    "kind": "no-run",
                    "text": "no run is active; the next starts automatically at 2023-03-24T01:00:00Z",
                    "until": "2023-03-24T01:00:00Z",
                },
            },
            {
                "hostname": "h02",
                "why": {
                    "kind": "no-run",
                    "text": "no run is active; the next starts automatically at 2023-03-24T01:00:00Z",
                    "until": "2023-03-24T01:00:00Z",
                },
            },
        ],
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReadParameters {
    /// Retrieve only requested fields from the resource: names, nested with `/`, separated by commas. An empty list is
    /// refused, as is an unknown name.
    #[param(min_length = 1, example = "status,last-upgrade-info/result")]
    pub fields: Option<String>,
    /// Filter descendant nodes in the response: only the configuration's, or only the others.
    #[param(inline)]
    pub content: Option<Nodes>,
}

impl Parameters for ReadParameters {
    const NAMES: &'static [&'static str] = &["fields", "content"];
}

/// A pause of the site.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Paused<'a> {
    /// The operator who paused it, or who restored the site.
    pub actor: Cow<'a, str>,
    /// Why, as the operator says; absent if it is because the site was restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    pub since: Stamp,
    /// When it ends by itself; absent if it lasts until somebody resumes the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
}

/// Which nodes to include.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Nodes {
    Config,
    Nonconfig,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct State<'a> {
    /// The fields of the configuration in force; all absent without a configuration.
    #[serde(flatten)]
    #[schema(value_type = ConfigFields)]
    pub config: InForce<'a>,
    #[serde(default)]
    #[schema(required, value_type = SiteStatusWord)]
    pub status: Cow<'static, str>,
    /// The pause of the site, while which nothing further begins there; absent if it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused<'a>>,
    /// Time until the next run starts automatically; absent if none is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DurationText>)]
    pub next_upgrade_in: Option<Duration>,
    /// When the next run starts automatically; absent if none is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_upgrade_at: Option<Stamp>,
    /// Why no run starts automatically, or what prevents it in a window that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_upgrade_why: Option<Why>,
    /// Why the window that is open now starts no run; absent if none is open, or the one that is open still can.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<WindowUsedBy>)]
    pub window_used_by: Option<TwoSided<&'a WindowUse, WindowUsedBy>>,
    /// When the deny window ends that is in force now and keeps runs from starting automatically, or the last of those that follow it
    /// without a gap, which are followed for two years, and 4 096 of them at most; absent if none is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_until: Option<Stamp>,
    /// Every worker of the configured applications on a host that takes part in runs. If a host has several, the one
    /// whose application is configured first handles it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_workers: Option<Vec<ScheduledWorker<'a>>>,
    /// The number of announced hosts that wait for approval; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_hosts: Option<usize>,
    /// The hosts that take part and have not been reached in any of the last runs; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_reached: Option<NotReached>,
    /// The host that takes part and was upgraded longest ago; absent if none has been upgraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_success: Option<OldestSuccess<'a>>,
    /// What an operator should know of the configuration in force; absent if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub config_warnings: Vec<Warning>,
    /// The reboot queue in brief; absent while it is enabled and empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot_queue: Option<QueueInBrief>,
    /// What keeps configuration from hosts; absent if nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryTrouble<'a>>,
    /// What keeps units from running; absent if nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<UnitTrouble<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_upgrade_info: Option<CurrentUpgrade<'a>>,
    /// The last run of the whole site that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_upgrade_info: Option<LastUpgrade<'a>>,
    /// The last run of chosen hosts, if it ended after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_targeted_info: Option<LastUpgrade<'a>>,
    /// Every known host, and why it is not moving.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<HostState>)]
    pub hosts: Option<Vec<HostState<'a>>>,
}

impl State<'_> {
    /// Whether no run starts automatically because the time is in doubt.
    pub fn is_clock_in_doubt(&self) -> bool {
        self.next_upgrade_why.as_ref().and_then(Why::kind).is_some_and(WhyKind::is_of_clock)
    }
}

/// The configuration in force. Clients read it from its own resource.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct InForce<'a>(pub Option<&'a Config>);

impl<'de> Deserialize<'de> for InForce<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(None))
    }
}

/// The reboot queue in brief.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueueInBrief {
    /// Whether entries may start.
    pub enabled: bool,
    /// The number of entries in each status; statuses without entries are absent.
    pub counts: Counts,
    /// Why no entry can start; absent if one can, or none is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// What keeps configuration from hosts.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DeliveryTrouble<'a> {
    /// The providers that fail for every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub failed_providers: Vec<FailedProvider<'a>>,
    /// The configurations that hosts fail to apply, or to revoke, for ten minutes or longer: one of each provider, and one of those that give it
    /// no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub failed_configurations: Vec<FailedConfiguration<'a>>,
    /// How many hosts are not told what they are to have, because the site was restored; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<usize>,
    /// The hosts that have something newer than the site knows of, and are not told either; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<AheadHosts<'a>>,
    /// The other site to which the stream of what hosts are to have belongs, as the leader has found; absent if it does not, and on other instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossed_site: Option<Cow<'a, str>>,
}

/// Hosts that have something newer than the site knows of.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AheadHosts<'a> {
    /// How many.
    pub hosts: usize,
    /// The first one by name.
    pub first: Cow<'a, str>,
}

/// A provider that fails for every host.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FailedProvider<'a> {
    pub name: Cow<'a, str>,
    /// A host about which it was asked.
    pub host: Cow<'a, str>,
    /// How that failed.
    pub failure: String,
    pub since: Stamp,
}

/// Configurations that hosts fail to apply or to revoke.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FailedConfiguration<'a> {
    /// The provider that gave it.
    pub provider: Cow<'a, str>,
    /// The first host by name.
    pub host: Cow<'a, str>,
    /// Why, as the worker there says.
    pub error: String,
    /// Since when that host is to have it; absent if it is to be revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// How many there are, with that one.
    pub count: usize,
}

/// What keeps units from running.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitTrouble<'a> {
    /// The units that are to be loaded or launched, for fifteen minutes or longer, and that no machine has; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unplaced: Option<UnplacedUnits<'a>>,
    /// The units that have failed on a machine, as systemd says; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedUnits<'a>>,
    /// The machines that are lost; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostMachines<'a>>,
    /// That so many agents fell silent together that no unit is moved; absent if they did not, and on instances that do not lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass_silence: Option<MassSilence>,
    /// The machine ids that several hosts announce or have, the first 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub contested: Vec<ContestedMachine<'a>>,
    /// How many further ones there are; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_contested: Option<usize>,
    /// The hosts that run units and take part, and whose machine nobody has approved; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingMachines<'a>>,
}

/// Units that no machine has.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnplacedUnits<'a> {
    /// How many.
    pub units: usize,
    /// The first one by name.
    pub first: Cow<'a, str>,
    /// Since when that one is to be in its state.
    pub since: Stamp,
    /// Why a machine cannot have it, such as the first one.
    pub text: String,
}

/// Units that have failed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedUnits<'a> {
    /// How many.
    pub units: usize,
    /// The first one by name.
    pub first: Cow<'a, str>,
    /// A host on which that one has failed.
    pub host: Cow<'a, str>,
}

/// Machines that are lost.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LostMachines<'a> {
    /// How many.
    pub machines: usize,
    /// The first one's host by name.
    pub first: Cow<'a, str>,
    /// Since when that one is lost.
    pub since: Stamp,
}

/// Agents that fell silent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MassSilence {
    /// How many.
    pub silent: usize,
    /// How many could be reached when they did.
    pub reachable: usize,
}

/// A machine id that several hosts announce or have.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContestedMachine<'a> {
    pub id: Cow<'a, str>,
    /// The hosts, the first 8 by name.
    pub hosts: Vec<Cow<'a, str>>,
    /// How many further ones there are; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
}

/// Hosts whose machine nobody has approved.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingMachines<'a> {
    /// How many.
    pub hosts: usize,
    /// The first one by name.
    pub first: Cow<'a, str>,
}

/// Hosts whose turn has not come for so long that somebody should look.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NotReached {
    /// In how many runs, one after the other, each of them was not reached.
    pub runs: u32,
    /// How many hosts.
    pub hosts: usize,
}

/// The host that was upgraded longest ago.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OldestSuccess<'a> {
    pub hostname: Cow<'a, str>,
    /// When a run last upgraded it.
    pub time: Stamp,
}

/// What a window that starts no further run has had.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WindowUsedBy {
    /// It has started its run.
    Run {
        /// The run that it started.
        run: String,
    },
    /// An operator cancelled a run in it.
    Cancel {
        /// The cancelled run.
        run: String,
    },
    /// An earlier run than the last was started or cancelled in it, or the site was restored in it.
    Earlier,
}

/// A host, and why it is not moving.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HostState<'a> {
    pub hostname: Cow<'a, str>,
    /// Its status in the active run; absent if it takes no part.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HostStatusWord>)]
    pub status: Option<Word<HostStatus>>,
    /// Why it is not moving, what is decisive; absent if nothing keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Why else it is not moving.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub also: Vec<Why>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress<'a>>,
    /// Its Kubernetes node; absent if it has none, or if that is neither cordoned nor being uncordoned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<HostNode<'a>>,
    /// That its key waits for approval, or is another than the approved one, though it takes part; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<KeyStateWord>)]
    pub key: Option<Word<KeyState>>,
    /// What its last reboot should have brought and did not, as its worker says.
    #[serde(rename = "reboot-ineffective", skip_serializing_if = "Option::is_none")]
    pub reboot_ineffective: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduledWorker<'a> {
    pub host: Cow<'a, str>,
    pub application: Cow<'a, str>,
}

/// The active run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CurrentUpgrade<'a> {
    #[serde(default)]
    #[schema(required)]
    pub id: Cow<'a, str>,
    /// Why it was started, as the operator says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    #[serde(default)]
    #[schema(required)]
    pub start_time: Stamp,
    #[serde(default)]
    #[schema(required)]
    pub not_after: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<StopCause>)]
    pub stopping: Option<TwoSided<&'a Cause, StopCause>>,
    #[serde(default)]
    #[schema(required)]
    pub counts: Counts,
    #[serde(default)]
    #[schema(required)]
    pub hosts: Vec<HostOfRun<'a>>,
}

/// The latest run that has ended.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LastUpgrade<'a> {
    #[serde(default)]
    #[schema(required)]
    pub id: Cow<'a, str>,
    /// Why it was started, as the operator says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    #[serde(default)]
    #[schema(required)]
    pub start_time: Stamp,
    #[serde(default)]
    #[schema(required)]
    pub end_time: Stamp,
    #[serde(default)]
    #[schema(required, value_type = RunResultWord)]
    pub result: Word<RunResult>,
    #[serde(default)]
    #[schema(required)]
    pub counts: Counts,
    #[serde(default)]
    #[schema(required)]
    pub hosts: Vec<HostOfRun<'a>>,
}
