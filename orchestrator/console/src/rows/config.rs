//! Changes of the configuration.

use os_upgrade_api_types::routes::config::Change;

use crate::event::first_of;
use crate::row::{Column, Row};

/// The number of a change, as `config history` takes it.
pub fn number_of(change: &Change<'_>) -> String {
    match change.place {
        0 => change.sequence.to_string(),
        place => format!("{}.{place}", change.sequence),
    }
}

/// Who made it; empty if that was not recorded.
pub fn who<'a>(change: &'a Change<'_>) -> &'a str {
    change.actor.as_deref().unwrap_or_default()
}

/// What changed, in a few words.
fn summary(change: &Change<'_>) -> String {
    if change.configuration.is_none() {
        return "deleted".to_owned();
    }
    match change.difference.iter().map(|difference| difference.path.as_str()).collect::<Vec<_>>().as_slice() {
        [""] => "created".to_owned(),
        paths => first_of(paths, 0).unwrap_or_default(),
    }
}

impl Row for Change<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("CHANGE", |change, _| number_of(change)),
        Column::whole("TIME", |change, zone| zone.show(change.time.0)),
        Column::new("WHO", |change, _| who(change).to_owned()),
        Column::text("CHANGED", |change, _| summary(change)),
    ];
    const NONE: &'static str = "the configuration has not been changed";

    fn name(&self) -> Option<String> {
        Some(number_of(self))
    }
}
