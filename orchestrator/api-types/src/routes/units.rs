//! `/v1/state/os-upgrade/units` and `/v1/state/os-upgrade/machines`: which units run where, and why one does not. They are changed with fleet's
//! API. Extensions of the specification.

use std::borrow::Cow;
use std::collections::BTreeMap;

use os_upgrade_scheduler::UnitState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::body::{Fact, Stamp};
use crate::lists::list;
use crate::query::FactList;
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::text::{
    ClosedWord, DurationText, FactKeyText, MachineStateWord, MisfitWord, TakenAwayWord, UnitChangeWord,
    UnitStateWord,
};
use crate::word::{MachineStep, UnitStep, Word};

const NAMES: &[PathName] =
    &[PathName::new("name", "the name of a unit", Shape::inline::<String>(), Some("ping.service"))];

/// The `ActiveState` of systemd of a unit that has failed.
pub const FAILED: &str = "failed";

const MACHINE: &str = "933fbdff1bdc4be0a7b64a9b58c3189d";

/// Every unit, by name, without its contents.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/units",
    VIEWER,
    Tag::Units,
    "list-units",
    "List the units, and where they run",
)
.answers(&[Answer::json(
    "the units",
    Shape::of::<Units<'static>>(),
    || json!({"units": [status("launched")]}),
)]);

/// A unit with its contents, and why each machine on which it is not cannot have it.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/units/{name}",
    VIEWER,
    Tag::Units,
    "read-unit",
    "Read a unit, where it runs, and why it does not run on other machines",
)
.names(NAMES)
.answers(&[
    Answer::json("the unit", Shape::of::<Unit<'static>>(), || {
        let mut unit = status("launched");
        unit["contents"] =
            json!("[Service]\nExecStart=/bin/sleep inf\n\n[X-Fleet]\nMachineMetadata=rack=r1\n");
        unit["hash"] = json!("c6a14e0a5e7e5b1e60d2bbf6a0a2fa1a4d1d7a3c");
        unit["not-on"] = json!([misfit()]);
        unit
    }),
    Answer::new(404, "there is no such unit"),
]);

/// What would follow from a change of a unit. Nothing is changed.
pub const PLAN: Route<PlanUnit> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/units/{name}/plan",
    OPERATOR,
    Tag::Units,
    "plan-unit",
    "Show what would follow if a unit was submitted, or was to be in another state",
)
.names(NAMES)
.body::<PlanUnit>(|| json!({"desired": "launched"}))
.answers(&[
    Answer::json("what would follow", Shape::of::<UnitPlan<'static>>(), || {
        json!({
            "changes": [
                {"kind": "unit-wanted", "unit": "ping.service", "desired": "launched"},
                {"kind": "unit-placed", "unit": "ping.service", "hosts": ["h01"]},
            ],
            "not-on": [misfit()],
        })
    }),
    Answer::new(404, "there is no such unit"),
    Answer::new(
        409,
        "the unit has other contents, or a new one needs contents, or one that is there needs a state",
    ),
    Answer::new(413, "the body, or the file of the unit, is too large, or the site has no room for the unit"),
]);

/// What operators did about units, newest first.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/units/history",
    VIEWER,
    Tag::Units,
    "list-unit-history",
    "List who submitted, started, stopped and destroyed which unit, newest first",
)
.query::<FactList>()
.answers(&[Answer::json("a page of the list", Shape::of::<UnitHistory>(), || {
    let fact = json!({"type": "unit-wanted", "name": "ping.service", "state": "launched", "actor": "anna"});
    json!({"items": [{
        "sequence": 12,
        "place": 0,
        "time": "2026-11-21T01:00:00.000Z",
        "type": "unit-wanted",
        "actor": "anna",
        "fact": fact,
    }]})
})]);

list! {
    /// A page of facts about units, newest first; or of their keys; or their number. The `contents` of submitted units are left empty.
    UnitHistory = page of Fact<'static>, or FactKeyText
}

/// Every host that runs units, or did as a machine, by name.
pub const MACHINES: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/machines",
    VIEWER,
    Tag::Units,
    "list-machines",
    "List the hosts that run units, and whether they get any",
)
.answers(&[Answer::json("the machines", Shape::of::<Machines<'static>>(), || {
    json!({"machines": [
        {
            "host": "h01",
            "id": MACHINE,
            "state": "open",
            "since": "2026-11-21T01:00:00Z",
            "address": "192.0.2.1",
            "metadata": {"rack": "r1"},
            "units": 3,
        },
        {
            "host": "h02",
            "state": "waiting",
            "text": "nobody has approved that it runs units: `os-upgrade hosts approve h02`",
            "announced": {"id": "0f0e0d0c0b0a09080706050403020100", "metadata": {"rack": "r2"}},
            "units": 0,
        },
    ]})
})]);

/// The example of a unit.
fn status(current: &str) -> Value {
    json!({
        "name": "ping.service",
        "desired": "launched",
        "current": current,
        "on": [{
            "host": "h01",
            "machine": MACHINE,
            "state": "launched",
            "load": "loaded",
            "active": "active",
            "sub": "running",
        }],
        "actor": "token anna",
        "since": "2026-11-21T01:00:00Z",
    })
}

/// The example of a machine that cannot have a unit.
fn misfit() -> Value {
    json!({
        "host": "h02",
        "machine": "0f0e0d0c0b0a09080706050403020100",
        "kind": "metadata",
        "text": "it wants rack=r1, and the machine has other metadata",
    })
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = UnitsOfSite)]
pub struct Units<'a> {
    pub units: Vec<UnitStatus<'a>>,
}

/// A unit, and where it is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UnitStatus<'a> {
    pub name: Cow<'a, str>,
    /// The state that operators want.
    #[schema(value_type = UnitStateWord)]
    pub desired: Word<UnitState>,
    /// The state in which it is, as its machines say: the least one of a global unit.
    #[schema(value_type = UnitStateWord)]
    pub current: Word<UnitState>,
    /// Whether it runs on every machine that suits it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub global: bool,
    /// Whether it is to be loaded or launched, and no machine has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub unplaced: bool,
    /// The hosts on which it is, or may still be.
    pub on: Vec<UnitOnHost<'a>>,
    /// Who changed its file or its state last.
    pub actor: Cow<'a, str>,
    /// When that was.
    pub since: Stamp,
}

/// A host on which a unit is, and what its agent says of it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UnitOnHost<'a> {
    pub host: Cow<'a, str>,
    /// The id of the machine.
    pub machine: Cow<'a, str>,
    /// Whether it was taken away there, and may still run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub leaving: bool,
    /// How far the agent has come with it; absent if it says nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UnitStateWord>)]
    pub state: Option<Word<UnitState>>,
    /// The `LoadState` of systemd, such as `loaded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Cow<'a, str>>,
    /// The `ActiveState` of systemd, such as `active`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Cow<'a, str>>,
    /// The `SubState` of systemd, such as `running`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<Cow<'a, str>>,
}

/// A unit with its contents.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = SubmittedUnit)]
#[serde(rename_all = "kebab-case")]
pub struct Unit<'a> {
    #[serde(flatten)]
    pub status: UnitStatus<'a>,
    /// The text of its file.
    pub contents: Cow<'a, str>,
    /// The SHA-1 of that text, `fileHash` of fleet's API.
    pub hash: String,
    /// Why each machine cannot have it; those that can, or have it, are absent.
    pub not_on: Vec<MachineMisfit<'a>>,
    /// The options of `[X-Fleet]` that mean nothing here, and are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub ignored: Vec<IgnoredOption<'a>>,
}

/// An option of a unit file that is ignored.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct IgnoredOption<'a> {
    /// Its line in the file, from 1.
    pub line: u32,
    pub name: Cow<'a, str>,
}

/// A machine that cannot have a unit, and why.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MachineMisfit<'a> {
    /// The host that is the machine.
    pub host: Cow<'a, str>,
    /// Its machine id.
    pub machine: Cow<'a, str>,
    #[schema(value_type = MisfitWord)]
    pub kind: Cow<'a, str>,
    /// Why the machine gets no further unit, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ClosedWord>)]
    pub closed: Option<Cow<'a, str>>,
    /// The sentence.
    pub text: String,
}

/// A change of a unit of which it is asked what would follow.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanUnit {
    /// The text of its file; absent if it is there already, and keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
    /// The state that it is to be in; absent for a new one that is to be inactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UnitStateWord>)]
    pub desired: Option<UnitState>,
}

/// What would follow from a change of a unit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitPlan<'a> {
    /// What would happen at once, in this order, also to other units. One that has to stop first goes elsewhere later.
    pub changes: Vec<UnitChange<'a>>,
    /// Why each machine could not have the unit then; those that could are absent.
    pub not_on: Vec<MachineMisfit<'a>>,
    /// The options of `[X-Fleet]` that mean nothing here, and are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub ignored: Vec<IgnoredOption<'a>>,
}

/// Something that would happen to a unit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = PlannedUnitChange)]
pub struct UnitChange<'a> {
    #[schema(value_type = UnitChangeWord)]
    pub kind: Word<UnitStep>,
    pub unit: Cow<'a, str>,
    /// The hosts on which it would be placed, or from which it would be taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub hosts: Vec<Cow<'a, str>>,
    /// The state that it would have to be in, if that would be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UnitStateWord>)]
    pub desired: Option<Word<UnitState>>,
    /// Why it would be taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TakenAwayWord>)]
    pub why: Option<Cow<'a, str>>,
    /// Why, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = MachinesOfSite)]
pub struct Machines<'a> {
    pub machines: Vec<Machine<'a>>,
}

/// A host that runs units, or did as a machine.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = UnitMachine)]
#[serde(rename_all = "kebab-case")]
pub struct Machine<'a> {
    pub host: Cow<'a, str>,
    /// The machine id that was approved with the host; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    #[schema(value_type = MachineStateWord)]
    pub state: Word<MachineStep>,
    /// Why it gets no further unit, if it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ClosedWord>)]
    pub closed: Option<Cow<'a, str>>,
    /// Why it gets no further unit, or what it announces besides what was approved, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Since when the host is that machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// Since when it is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<Stamp>,
    /// How long its agent has been silent while the leader could have heard it, 30 seconds or whole minutes; absent if it is heard, and on
    /// instances that do not lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DurationText>)]
    pub silent_for: Option<Cow<'a, str>>,
    /// The address that it announced when it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Cow<'a, str>>,
    /// Its metadata: the labels that it announced when it was approved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = HashMap<String, String>, required = false)]
    pub metadata: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// What it announces now and nobody has approved; absent if that is what was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<AnnouncedMachine<'a>>,
    /// How many units are there, those included that may still run there.
    pub units: usize,
}

/// What a host announces that runs units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnnouncedMachine<'a> {
    /// Its machine id.
    pub id: Cow<'a, str>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = HashMap<String, String>, required = false)]
    pub metadata: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}
