//! `os-upgrade windows`: when the maintenance windows are open.

use clap::Args;
use os_upgrade_api_types::routes::windows::{self as routes, Occurrence};
use os_upgrade_protocol::text::sanitized;

use super::options::Remote;
use super::run::view::span;
use crate::Failure;
use crate::output::{Canvas, Column, Row, View, Zone};

#[derive(Debug, Args)]
pub(crate) struct Windows {
    /// How many to show
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    count: u32,
    #[command(flatten)]
    remote: Remote,
}

/// Prints the windows.
pub(super) async fn run(Windows { count, remote }: Windows) -> Result<(), Failure> {
    let windows = remote.client()?.call(routes::LIST.call().with("count", count.to_string())).await?;
    remote.output.show::<routes::Windows>(&windows)
}

impl View for routes::Windows {
    fn text(&self, canvas: &Canvas) -> String {
        let problem = self.problem.as_deref().map(|problem| format!("no more: {}", sanitized(problem)));
        // An older version does not say it.
        let zone = Some(&self.site_timezone).filter(|zone| !zone.is_empty());
        let zone = zone
            .map(|zone| format!("windows without a timezone are in that of the site: {}", sanitized(zone)));
        let parts = [problem, denied(self, canvas.zone), zone].into_iter().flatten();
        let notes: Vec<String> = parts.collect();
        let notes = if notes.is_empty() { String::new() } else { format!("\n\n{}", notes.join("\n")) };
        self.windows.text(canvas) + &notes
    }

    fn names(&self) -> Option<Vec<String>> {
        None
    }

    fn none(&self) -> Option<String> {
        let none = self.windows.none()?;
        let parts = [self.problem.as_deref().map(sanitized), denied(self, Zone::Utc)];
        let why: Vec<String> = parts.into_iter().flatten().collect();
        Some(if why.is_empty() { none } else { format!("no maintenance window opens: {}", why.join("; ")) })
    }
}

/// That a deny window is in force, and until when.
fn denied(windows: &routes::Windows, zone: Zone) -> Option<String> {
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

    fn name(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_in_a_table() {
        let windows = json!({
            "windows": [{ "start": "2026-11-27T01:00:00Z", "end": "2026-11-27T05:00:00Z" }],
            "problem": "the calendar ends", "denied-until": "2026-11-22T00:00:00Z", "site-timezone": "Europe/Berlin",
        });
        let canvas = Canvas { is_wide: false, columns: Some(80), zone: Zone::Utc };
        let expected = "\
START                 END                   DURATION
2026-11-27T01:00:00Z  2026-11-27T05:00:00Z  4h

no more: the calendar ends
a deny window is in force until 2026-11-22T00:00:00Z
windows without a timezone are in that of the site: Europe/Berlin";
        assert_eq!(routes::Windows::deserialize(windows).unwrap().text(&canvas), expected);
        let denied = json!({ "windows": [], "denied-until": "2026-11-22T00:00:00Z" });
        let expected = "no maintenance window opens: a deny window is in force until 2026-11-22T00:00:00Z";
        assert_eq!(routes::Windows::deserialize(denied).unwrap().none().as_deref(), Some(expected));
        let denied =
            json!({ "windows": [], "problem": "all are denied", "denied-until": "2026-11-22T00:00:00Z" });
        let expected = "no maintenance window opens: all are denied; a deny window is in force until 2026-11-22T00:00:00Z";
        assert_eq!(routes::Windows::deserialize(denied).unwrap().none().as_deref(), Some(expected));
    }
}
