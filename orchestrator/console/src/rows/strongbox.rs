//! Secrets, and what was done to them.

use os_upgrade_api_types::routes::strongbox::{Secret, StrongboxChange};
use os_upgrade_api_types::word::StrongboxStep;

use crate::row::{Column, Row};

impl Row for Secret<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("NAME", |secret, _| secret.name.to_string()),
        Column::new("FOR", |secret, _| secret.origin.as_deref().unwrap_or_default().to_owned()),
        Column::new("STORED BY", |secret, _| secret.actor.to_string()),
        Column::whole("SINCE", |secret, zone| zone.stamp(secret.since)),
    ];
    const NONE: &'static str = "there is no secret";

    fn name(&self) -> Option<String> {
        Some(self.name.to_string())
    }
}

impl Row for StrongboxChange<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |change, zone| zone.show(change.time.0)),
        Column::new("WHO", |change, _| change.actor.as_deref().unwrap_or_default().to_owned()),
        Column::new("ACTION", |change, _| {
            let word = match change.kind.known() {
                Some(StrongboxStep::SecretKept) => "stored",
                Some(StrongboxStep::SecretRemoved) => "removed",
                Some(StrongboxStep::StrongboxMade) => "new key",
                None => change.kind.as_str(),
            };
            word.to_owned()
        }),
        Column::new("SECRET", |change, _| change.name.clone().unwrap_or_default()),
    ];
    const NONE: &'static str = "no secret has been stored or removed";
}
