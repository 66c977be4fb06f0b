//! Histories of what operators did: facts, newest first.

use os_upgrade_api_types::body::Fact;
use os_upgrade_protocol::HostName;
use serde::Deserialize;

use crate::history::Entry;
use crate::row::{Column, Row};

/// What an entry of a history says; of a fact that only a newer orchestrator knows, its name.
fn entry<'a>(fact: &'a Fact<'static>) -> Entry<'a> {
    let name = || Entry { action: fact.name.clone(), ..Entry::default() };
    fact.fact.read().and_then(Entry::of).unwrap_or_else(name)
}

/// Who caused it; empty in entries of older versions.
fn who(fact: &Fact<'static>) -> String {
    fact.actor.as_deref().unwrap_or_default().to_owned()
}

/// The hosts that it was done to.
fn hosts(fact: &Fact<'static>) -> String {
    entry(fact).hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", ")
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
