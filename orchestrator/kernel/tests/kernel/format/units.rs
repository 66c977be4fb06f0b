//! Facts about units and machines as JSON.

use os_upgrade_kernel::Fact;
use os_upgrade_kernel::fact::UnitFact;
use os_upgrade_kernel::unit::TakenAway;
use os_upgrade_scheduler::{MachineId, Misfit, UnitName, UnitState};
use strum::VariantNames as _;

use super::check;
use crate::common::host;

fn unit(name: &str) -> UnitName {
    UnitName::new(name).unwrap()
}

fn machine() -> MachineId {
    MachineId::new(&"0f".repeat(16)).unwrap()
}

/// One line for each fact.
pub(super) fn facts() -> Vec<(Fact, &'static str)> {
    let (name, actor) = (unit("a.service"), "eve".to_owned());
    let one = || vec![host("h1")];
    let joined = |actor, address: &str, metadata: &[(&str, &str)]| UnitFact::MachineJoined {
        host: host("h1"),
        machine: machine(),
        metadata: metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        address: address.to_owned(),
        actor,
    };
    let table = [
        (
            UnitFact::Submitted {
                name: name.clone(),
                contents: "[Service]\n".to_owned(),
                desired: UnitState::Launched,
                actor: actor.clone(),
            },
            r#"{"type":"unit-submitted","name":"a.service","contents":"[Service]\n","desired":"launched","actor":"eve"}"#,
        ),
        (
            UnitFact::Wanted { name: name.clone(), state: UnitState::Loaded, actor: actor.clone() },
            r#"{"type":"unit-wanted","name":"a.service","state":"loaded","actor":"eve"}"#,
        ),
        (
            UnitFact::Destroyed { name: name.clone(), actor: actor.clone() },
            r#"{"type":"unit-destroyed","name":"a.service","actor":"eve"}"#,
        ),
        (
            joined(Some(actor), "10.0.0.7", &[("edge", "north")]),
            r#"{"type":"machine-joined","host":"h1","machine":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f","metadata":{"edge":"north"},"address":"10.0.0.7","actor":"eve"}"#,
        ),
        (
            joined(None, "", &[]),
            r#"{"type":"machine-joined","host":"h1","machine":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"}"#,
        ),
        (UnitFact::MachineLost { host: host("h1") }, r#"{"type":"machine-lost","host":"h1"}"#),
        (UnitFact::MachineFound { host: host("h1") }, r#"{"type":"machine-found","host":"h1"}"#),
        (
            UnitFact::Placed { unit: name.clone(), hosts: one() },
            r#"{"type":"unit-placed","unit":"a.service","hosts":["h1"]}"#,
        ),
        (
            UnitFact::Taken { unit: name.clone(), hosts: one(), why: TakenAway::NotWanted },
            r#"{"type":"unit-taken","unit":"a.service","hosts":["h1"],"why":{"kind":"not-wanted"}}"#,
        ),
        (
            UnitFact::Stopped { unit: name, host: host("h1") },
            r#"{"type":"unit-stopped","unit":"a.service","host":"h1"}"#,
        ),
    ];
    table.into_iter().map(|(fact, json)| (Fact::from(fact), json)).collect()
}

fn taken_variant(taken: &TakenAway) -> usize {
    match taken {
        TakenAway::NotWanted => 0,
        TakenAway::Destroyed => 1,
        TakenAway::MachineLost => 2,
        TakenAway::NoLongerFits { .. } => 3,
        TakenAway::ReplacedBy { .. } => 4,
        TakenAway::Evacuated => 5,
        TakenAway::NoLongerGlobal => 6,
    }
}

#[test]
fn why_units_are_taken() {
    let table = [
        (TakenAway::NotWanted, r#"{"kind":"not-wanted"}"#),
        (TakenAway::Destroyed, r#"{"kind":"destroyed"}"#),
        (TakenAway::MachineLost, r#"{"kind":"machine-lost"}"#),
        (
            TakenAway::NoLongerFits { misfit: Misfit::Template },
            r#"{"kind":"no-longer-fits","misfit":{"kind":"template"}}"#,
        ),
        (TakenAway::ReplacedBy { unit: unit("a.service") }, r#"{"kind":"replaced-by","unit":"a.service"}"#),
        (TakenAway::Evacuated, r#"{"kind":"evacuated"}"#),
        (TakenAway::NoLongerGlobal, r#"{"kind":"no-longer-global"}"#),
    ];
    check(&table, taken_variant, TakenAway::VARIANTS.len());
}

fn misfit_variant(misfit: &Misfit) -> usize {
    match misfit {
        Misfit::NoSuchUnit => 0,
        Misfit::NoSuchMachine => 1,
        Misfit::Template => 2,
        Misfit::Leaving { .. } => 3,
        Misfit::OtherMachine { .. } => 4,
        Misfit::Metadata { .. } => 5,
        Misfit::Lost => 6,
        Misfit::Closed => 7,
        Misfit::PeerMissing { .. } => 8,
        Misfit::PeerElsewhere { .. } => 9,
        Misfit::Conflict { .. } => 10,
        Misfit::ReplacedBy { .. } => 11,
        Misfit::Circle { .. } => 12,
    }
}

/// The scheduler's words are journaled.
#[test]
fn why_units_do_not_fit() {
    let other = || unit("a.service");
    let table = [
        (Misfit::NoSuchUnit, r#"{"kind":"no-such-unit"}"#),
        (Misfit::NoSuchMachine, r#"{"kind":"no-such-machine"}"#),
        (Misfit::Template, r#"{"kind":"template"}"#),
        (
            Misfit::Leaving { machine: machine() },
            r#"{"kind":"leaving","machine":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"}"#,
        ),
        (
            Misfit::OtherMachine { wanted: machine() },
            r#"{"kind":"other-machine","wanted":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"}"#,
        ),
        (
            Misfit::Metadata { key: "rack".to_owned(), wanted: ["r7".to_owned()].into() },
            r#"{"kind":"metadata","key":"rack","wanted":["r7"]}"#,
        ),
        (Misfit::Lost, r#"{"kind":"lost"}"#),
        (Misfit::Closed, r#"{"kind":"closed"}"#),
        (Misfit::PeerMissing { peer: other() }, r#"{"kind":"peer-missing","peer":"a.service"}"#),
        (
            Misfit::PeerElsewhere { peer: other(), machine: Some(machine()) },
            r#"{"kind":"peer-elsewhere","peer":"a.service","machine":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"}"#,
        ),
        (Misfit::Conflict { unit: other() }, r#"{"kind":"conflict","unit":"a.service"}"#),
        (Misfit::ReplacedBy { unit: other() }, r#"{"kind":"replaced-by","unit":"a.service"}"#),
        (Misfit::Circle { unit: other() }, r#"{"kind":"circle","unit":"a.service"}"#),
    ];
    check(&table, misfit_variant, Misfit::VARIANTS.len());
}
