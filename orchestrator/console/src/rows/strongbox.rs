//! Secrets, and what was done to them.

use os_upgrade_api_types::routes::strongbox::{Secret, StrongboxChange};

use crate::row::{Column, Row};

impl Row for Secret<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("NAME", |secret, _| secret.name.to_string()),
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
            let word = match change.kind.as_ref() {
                "secret-kept" => "stored",
                "secret-removed" => "removed",
                "strongbox-made" => "new key",
                other => other,
            };
            word.to_owned()
        }),
        Column::new("SECRET", |change, _| change.name.clone().unwrap_or_default()),
    ];
    const NONE: &'static str = "no secret has been stored or removed";
}
