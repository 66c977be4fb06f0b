//! Histories of what operators did: facts, newest first.

use std::borrow::Cow;

use os_upgrade_api_types::body::Fact;
use os_upgrade_protocol::HostName;
use serde::Deserialize;
use serde_json::Value;

use crate::history::Entry;
use crate::row::{Column, Row};

/// What an entry of a history says.
fn entry<'a>(fact: &'a Fact<'static>) -> Entry<'a> {
    fact.fact.read().and_then(Entry::of).unwrap_or_else(|| of_a_newer_version(fact))
}

/// What can be said of a fact that is new, or has something new in it.
fn of_a_newer_version<'a>(fact: &'a Fact<'static>) -> Entry<'a> {
    let field = |name: &str| fact.fact.other().and_then(|fact| fact.get(name));
    let event = field("event");
    let kind = event.and_then(|event| event["kind"].as_str());
    let reason = field("reason").or_else(|| event?.get("reason"));
    let word = |reason: &'a Value| reason.as_str().or_else(|| reason["kind"].as_str());
    Entry {
        action: kind.map_or_else(|| fact.name.clone(), |kind| kind.replace('-', " ").into()),
        index: field("index").and_then(Value::as_u64),
        reason: reason.and_then(word).map(Cow::from),
        ..Entry::default()
    }
}

/// Who caused it; empty in entries of older versions.
fn who(fact: &Fact<'static>) -> String {
    fact.actor.as_deref().unwrap_or_default().to_owned()
}

/// The hosts that it was done to.
fn hosts(fact: &Fact<'static>) -> String {
    match entry(fact).hosts {
        [] => fact.host.as_deref().unwrap_or_default().to_owned(),
        hosts => hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", "),
    }
}

/// Why it was done; empty if that is not known.
fn reason(fact: &Fact<'static>) -> String {
    entry(fact).reason.unwrap_or_default().into_owned()
}

/// What was decided about hosts.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct HostChange(Fact<'static>);

impl Row for HostChange {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |Self(fact), zone| zone.show(fact.time.0)),
        Column::new("WHO", |Self(fact), _| who(fact)),
        Column::new("ACTION", |Self(fact), _| entry(fact).action.into_owned()),
        Column::text("HOSTS", |Self(fact), _| hosts(fact)),
        Column::text("REASON", |Self(fact), _| reason(fact)),
    ];
    const NONE: &'static str = "no host has been approved or withdrawn";
}

/// How a slot was taken or given back.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct SlotChange(Fact<'static>);

impl Row for SlotChange {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |Self(fact), zone| zone.show(fact.time.0)),
        Column::new("WHO", |Self(fact), _| who(fact)),
        Column::new("ACTION", |Self(fact), _| entry(fact).action.into_owned()),
        Column::new("HOLDER", |Self(fact), _| {
            entry(fact).holder.map(|(id, _)| id.to_string()).unwrap_or_default()
        }),
        Column::new("GROUP", |Self(fact), _| {
            entry(fact).holder.map(|(_, group)| group.to_string()).unwrap_or_default()
        }),
        Column::text("REASON", |Self(fact), _| reason(fact)),
    ];
    const NONE: &'static str =
        "no operator has held or released a slot; --clients shows what FleetLock clients did";
}

/// What an operator did about a unit.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct UnitDecision(Fact<'static>);

impl Row for UnitDecision {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |Self(fact), zone| zone.show(fact.time.0)),
        Column::new("WHO", |Self(fact), _| who(fact)),
        Column::new("ACTION", |Self(fact), _| entry(fact).action.into_owned()),
        // With the state, if that is what was decided.
        Column::text("UNIT", |Self(fact), _| reason(fact)),
    ];
    const NONE: &'static str = "no unit has been submitted";
}

/// What was done to the queue, or happened to one of its entries.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct QueueChange(Fact<'static>);

impl Row for QueueChange {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |Self(fact), zone| zone.show(fact.time.0)),
        Column::new("WHO", |Self(fact), _| who(fact)),
        Column::new("ACTION", |Self(fact), _| entry(fact).action.into_owned()),
        Column::new("ENTRY", |Self(fact), _| {
            entry(fact).index.map(|index| index.to_string()).unwrap_or_default()
        }),
        Column::text("NODES", |Self(fact), _| hosts(fact)),
        Column::text("REASON", |Self(fact), _| reason(fact)),
    ];
    const NONE: &'static str = "no reboot has been queued";
}
