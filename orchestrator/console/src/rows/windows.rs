//! Maintenance windows.

use os_upgrade_api_types::routes::windows::{Occurrence, Windows};
use os_upgrade_protocol::text::sanitized;

use crate::row::{Column, Row};
use crate::zone::{Zone, span};

/// What is said below the windows.
pub fn notes(windows: &Windows, zone: Zone) -> Vec<String> {
    let problem = windows.problem.as_deref().map(|problem| format!("no more: {}", sanitized(problem)));
    // An older version does not say it.
    let of_site = Some(&windows.site_timezone).filter(|name| !name.is_empty());
    let of_site = of_site
        .map(|name| format!("windows without a timezone are in that of the site: {}", sanitized(name)));
    [problem, denied(windows, zone), of_site].into_iter().flatten().collect()
}

/// Why no window opens, where there is none, with times in UTC.
pub fn none(windows: &Windows) -> String {
    let parts = [windows.problem.as_deref().map(sanitized), denied(windows, Zone::Utc)];
    let why: Vec<String> = parts.into_iter().flatten().collect();
    if why.is_empty() {
        Occurrence::NONE.to_owned()
    } else {
        format!("no maintenance window opens: {}", why.join("; "))
    }
}

/// That a deny window is in force, and until when.
fn denied(windows: &Windows, zone: Zone) -> Option<String> {
    let end = windows.denied_until?;
    Some(format!("a deny window is in force until {}", zone.stamp(end)))
}

impl Row for Occurrence {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("START", |window, zone| zone.stamp(window.start)),
        Column::whole("END", |window, zone| zone.stamp(window.end)),
        Column::new("DURATION", |window, _| span(window.start.0, window.end.0)),
    ];
    const NONE: &'static str =
        "no maintenance window opens; os-upgrade config set --help shows how to configure one";
}
