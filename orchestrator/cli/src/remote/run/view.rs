//! One run with its hosts, as a terminal shows it.

use os_upgrade_api_types::routes::runs::RunInFull;
use os_upgrade_console::rows::runs;

use crate::output::{Canvas, View, details, table};

/// The width of the names of details.
pub(super) const HEAD_COLUMNS: usize = 9;

impl View for RunInFull<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let details = details(runs::details(&self.run, canvas.zone), HEAD_COLUMNS);
        format!("{details}\n\n{}", table(&self.hosts, canvas)).trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        self.hosts.names()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::body::Page;
    use os_upgrade_api_types::routes::runs::MissedRun;
    use os_upgrade_console::Zone;
    use os_upgrade_console::rows::runs::Listed;
    use serde_json::json;

    use super::*;

    #[test]
    fn missed_run_in_the_list() {
        let opened = "2026-11-26T00:00:00Z";
        let missed = json!({
            "window-start": opened, "latest-start": opened, "window-end": opened, "recorded-at": opened,
            "why": { "kind": "no-hosts", "text": "no host is there" },
        });
        let rows = vec![Listed::Missed(serde_json::from_value(missed).unwrap())];
        let text = rows.text(&Canvas { is_wide: false, columns: Some(80), zone: Zone::Utc });
        let expected = "RUN  BY      STARTED               TOOK  RESULT  UPGRADED\n-    window  2026-11-26T00:00:00Z  -     missed  -";
        assert_eq!(text, expected);
    }

    #[test]
    fn missed_runs_in_a_table() {
        let missed = |day: u8, reason: &str| {
            json!({
                "window-start": format!("2026-11-{day}T01:00:00Z"), "latest-start": format!("2026-11-{day}T04:00:00Z"),
                "window-end": format!("2026-11-{day}T05:00:00Z"), "recorded-at": "2026-11-23T09:12:31Z",
                "why": { "kind": "no-leader", "text": reason },
            })
        };
        let mut page = json!({ "items": [missed(23, "no orchestrator led"), missed(22, &"no host is there ".repeat(9))] });
        page["items"][0]["unrecorded"] = json!(3);
        let shown = |is_wide, columns| {
            let page: Page<MissedRun> = serde_json::from_value(page.clone()).unwrap();
            page.text(&Canvas { is_wide, columns, zone: Zone::Utc })
        };
        let narrow = shown(false, Some(80));
        assert!(
            narrow.starts_with(
                "WINDOW                WHY\n\
                 2026-11-23T01:00:00Z  no orchestrator led; after that too little of the window\n\
                 \x20                     was left (and 3 more before it)\n"
            ),
            "{narrow}"
        );
        assert!(narrow.lines().all(|line| console::measure_text_width(line) <= 80), "{narrow}");
        let wide = shown(true, None);
        assert_eq!(
            wide.lines().nth(1).unwrap(),
            "2026-11-23T01:00:00Z  2026-11-23T05:00:00Z  2026-11-23T04:00:00Z  2026-11-23T09:12:31Z  \
             no orchestrator led; after that too little of the window was left (and 3 more before it)"
        );
        let none: Page<MissedRun> = serde_json::from_value(json!({ "items": [] })).unwrap();
        assert_eq!(
            none.text(&Canvas { is_wide: false, columns: None, zone: Zone::Utc }),
            "no run was missed"
        );
    }
}
