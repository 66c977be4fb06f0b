//! `config history`: the changes of the configuration, and one of them with what it changed.

use anyhow::bail;
use clap::Args;
use os_upgrade_api_types::body::{Page, TwoSided};
use os_upgrade_api_types::routes::config::{self as routes, Change};
use os_upgrade_console::rows::config::{number_of, who};
use os_upgrade_kernel::{Difference, FactCursor};
use os_upgrade_protocol::text::sanitized;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::histories::note_older;
use super::super::options::Remote;
use super::difference;
use crate::Failure;
use crate::output::{Canvas, View};
use crate::rest::Client;

/// The place in a record after all others.
const AFTER_ALL_PLACES: u64 = 999_999_999_999_999_999;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The change to show, by its number
    #[arg(value_name = "N", value_parser = change_number)]
    change: Option<FactCursor>,
    /// How many to list, newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    #[command(flatten)]
    remote: Remote,
}

/// Parses the number of a change: the sequence of its record, and its place there unless it is the last.
pub(super) fn change_number(text: &str) -> Result<FactCursor, String> {
    let whole = if text.contains('.') { text.to_owned() } else { format!("{text}.{AFTER_ALL_PLACES}") };
    whole.parse().map_err(|_| "the number of a change is expected, such as 12".to_owned())
}

/// A change, and the configuration before it; null if there was none.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    pub(super) change: Change<'static>,
    before: Value,
    /// The number of the change before it, which made `before`; absent if it is the first.
    #[serde(skip)]
    pub(super) earlier: Option<String>,
}

/// The configuration after it; `None` if it was deleted.
pub(super) fn configuration<'a>(change: &'a Change<'_>) -> Option<&'a Value> {
    change.configuration.as_ref().and_then(TwoSided::read)
}

/// The configuration before it, as what it changed says; null if there was none.
fn undone(change: &Change<'_>) -> Value {
    let mut before = configuration(change).cloned().unwrap_or_default();
    for Difference { path, before: value, after: _ } in &change.difference {
        set(&mut before, path, value.as_ref());
    }
    before
}

/// Sets the field at `path`, or removes it.
fn set(document: &mut Value, path: &str, value: Option<&Value>) {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    if path.is_empty() {
        *document = value.cloned().unwrap_or_default();
    } else if let Some(fields) = field(document, parent).and_then(Value::as_object_mut) {
        match value {
            Some(value) => fields.insert(name.to_owned(), value.clone()),
            None => fields.remove(name),
        };
    }
}

/// The field at `path`; the document itself if that is empty.
fn field<'a>(document: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('/').filter(|name| !name.is_empty()).try_fold(document, |found, name| found.get_mut(name))
}

impl View for Shown {
    fn text(&self, canvas: &Canvas) -> String {
        let Self { change, before, earlier: _ } = self;
        let after = configuration(change).cloned().unwrap_or_default();
        let difference = difference::between(before, &after, console::colors_enabled());
        let (time, actor) = (canvas.zone.show(change.time.0), sanitized(who(change)));
        format!("change {} at {time} by {actor}\n{difference}", number_of(change))
    }
}

/// Lists the changes, or shows one.
pub(super) async fn run(Options { change, limit, remote }: Options) -> Result<(), Failure> {
    let client = remote.client()?;
    if let Some(number) = change {
        let shown = find(&client, number).await?;
        return remote.output.show::<Shown>(&serde_json::to_value(shown).map_err(anyhow::Error::from)?);
    }
    let page = client.call(routes::HISTORY.call().with("limit", limit.to_string())).await?;
    remote.output.show::<Page<Change<'static>>>(&page)?;
    note_older(&page, remote.output);
    Ok(())
}

/// Finds a change by its number.
pub(super) async fn find(client: &Client, number: FactCursor) -> anyhow::Result<Shown> {
    // The change itself is the first that is older than the place after it.
    let after = FactCursor { place: number.place.saturating_add(1).min(AFTER_ALL_PLACES), ..number };
    let call = routes::HISTORY.call().with("limit", "2").with("after", after.to_string());
    let page: Page<Change<'static>> = client.read(call).await?;
    let mut items = page.items.into_iter();
    let is_wanted = |change: &Change<'_>| {
        change.sequence == number.sequence
            && (number.place == AFTER_ALL_PLACES || change.place == number.place)
    };
    let Some(change) = items.next().filter(is_wanted) else {
        bail!("there is no such change: `os-upgrade config history` lists them");
    };
    let earlier = items.next();
    let number = earlier.as_ref().filter(|earlier| earlier.configuration.is_some()).map(number_of);
    // Earlier changes may be older than the history is kept.
    let before = earlier
        .map_or_else(|| undone(&change), |earlier| configuration(&earlier).cloned().unwrap_or_default());
    Ok(Shown { change, before, earlier: number })
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_in_a_table() {
        let page = Page::<Change<'_>>::deserialize(json!({"items": [
            {"sequence": 14, "place": 0, "time": "2026-11-21T02:00:00.000Z", "actor": "eve", "difference": []},
            {"sequence": 12, "place": 1, "time": "2026-11-21T01:00:00.000Z", "actor": "eve", "configuration": {},
             "difference": [{"path": "rollout/max-failures"}, {"path": "start-jitter"}]},
            {"sequence": 9, "place": 0, "time": "2026-11-21T00:00:00.000Z", "actor": "eve", "configuration": {},
             "difference": [{"path": ""}]},
        ]}))
        .unwrap();
        let expected = "\
CHANGE  TIME                  WHO  CHANGED
14      2026-11-21T02:00:00Z  eve  deleted
12.1    2026-11-21T01:00:00Z  eve  rollout/max-failures, start-jitter
9       2026-11-21T00:00:00Z  eve  created";
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        assert_eq!(page.text(&canvas), expected);
        assert_eq!(Vec::<Change<'_>>::new().text(&canvas), "the configuration has not been changed");
    }

    /// The first change of a history that was shortened has no change before it, and does not create everything.
    #[test]
    fn change_is_undone_by_what_it_changed() {
        let undone = |difference: Value, configuration: Value| {
            let change = json!({
                "sequence": 1, "place": 0, "time": "2026-11-21T02:00:00.000Z",
                "difference": difference, "configuration": configuration,
            });
            undone(&Change::deserialize(change).unwrap())
        };
        let after = json!({ "rollout": { "max-concurrent": 3, "max-failures": 1 }, "start-jitter": "1m" });
        let difference = json!([
            { "path": "rollout/max-concurrent", "before": 2, "after": 3 },
            { "path": "rollout/max-failures", "after": 1 },
            { "path": "worker-applications", "before": [] },
        ]);
        let before =
            json!({ "rollout": { "max-concurrent": 2 }, "start-jitter": "1m", "worker-applications": [] });
        assert_eq!(undone(difference, after.clone()), before);
        assert_eq!(undone(json!([{ "path": "", "after": after }]), after.clone()), Value::Null);
        assert_eq!(undone(json!([{ "path": "", "before": after }]), Value::Null), after);
    }

    #[test]
    fn numbers_of_changes_are_read() {
        assert_eq!(change_number("12").unwrap(), FactCursor { sequence: 12, place: AFTER_ALL_PLACES });
        assert_eq!(change_number("12.1").unwrap(), FactCursor { sequence: 12, place: 1 });
        for wrong in ["", "x", "12.", "-1"] {
            assert!(change_number(wrong).is_err(), "{wrong}");
        }
    }
}
