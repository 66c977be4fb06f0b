//! `os-upgrade windows`: when the maintenance windows are open.

use clap::Args;
use os_upgrade_api_types::routes::windows as routes;
use os_upgrade_console::rows::windows;

use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View};

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
        let notes = windows::notes(self, canvas.zone);
        let notes = if notes.is_empty() { String::new() } else { format!("\n\n{}", notes.join("\n")) };
        self.windows.text(canvas) + &notes
    }

    fn names(&self) -> Option<Vec<String>> {
        None
    }

    fn none(&self) -> Option<String> {
        self.windows.is_empty().then(|| windows::none(self))
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
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
