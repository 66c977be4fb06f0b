//! `os-upgrade lock history`: how operators and FleetLock clients took and gave back slots.

use clap::Args;
use os_upgrade_api_types::routes::slots;
use serde::Deserialize;

use crate::Failure;
use crate::output::{Column, Row};
use crate::remote::histories::{self, Entry};

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    page: histories::PageOptions,
    /// Include slots that FleetLock clients were granted and gave back
    #[arg(long)]
    clients: bool,
}

#[derive(Debug, Deserialize)]
struct Fact {
    r#type: String,
    group: String,
    id: String,
    #[serde(default)]
    reason: Option<String>,
}

/// Prints the history.
pub(super) async fn run(Options { page, clients }: Options) -> Result<(), Failure> {
    let call = slots::HISTORY.call();
    histories::show::<Fact>(page, if clients { call.with("clients", "true") } else { call }).await
}

impl Row for Entry<Fact> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |entry, zone| zone.show(entry.time.0)),
        Column::new("WHO", |entry, _| entry.actor.clone()),
        Column::new("ACTION", |entry, _| entry.fact.action().to_owned()),
        Column::new("HOLDER", |entry, _| entry.fact.id.clone()),
        Column::new("GROUP", |entry, _| entry.fact.group.clone()),
        Column::text("REASON", |entry, _| entry.fact.reason().to_owned()),
    ];
    const NONE: &'static str =
        "no operator has held or released a slot; --clients shows what FleetLock clients did";

    fn name(&self) -> Option<String> {
        None
    }
}

impl Fact {
    fn action(&self) -> &str {
        match self.r#type.as_str() {
            "hold-placed" => "held",
            "holder-released" => "released",
            "lock-granted" => "locked",
            "lock-released" => "unlocked",
            other => other,
        }
    }

    fn reason(&self) -> &str {
        match (self.r#type.as_str(), self.reason.as_deref()) {
            ("holder-released", None) => "it has left the inventory",
            (_, reason) => reason.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::{Canvas, View as _, Zone};
    use os_upgrade_api_types::body::Page;

    #[test]
    fn history_in_a_table() {
        let fact = |kind: &str| json!({ "type": kind, "group": "default", "id": "h01", "actor": "api", "reason": "it burnt" });
        let item = |kind: &str| json!({ "time": "2026-11-21T01:00:00.000Z", "actor": "api", "type": kind, "fact": fact(kind) });
        let mut old = item("lock-granted");
        // Older versions recorded no actor.
        old.as_object_mut().unwrap().remove("actor");
        old["fact"].as_object_mut().unwrap().remove("reason");
        let mut reclaimed = item("holder-released");
        reclaimed["fact"].as_object_mut().unwrap().remove("reason");
        let items = [item("holder-released"), reclaimed, item("hold-placed"), old];
        let page = json!({ "items": items, "next": "9.0" });
        let expected = "\
TIME                  WHO  ACTION    HOLDER  GROUP    REASON
2026-11-21T01:00:00Z  api  released  h01     default  it burnt
2026-11-21T01:00:00Z  api  released  h01     default  it has left the inventory
2026-11-21T01:00:00Z  api  held      h01     default  it burnt
2026-11-21T01:00:00Z       locked    h01     default";
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let text = |page| Page::<Entry<Fact>>::deserialize(page).unwrap().text(&canvas);
        assert_eq!(text(page), expected);
        assert_eq!(
            text(json!({ "items": [] })),
            "no operator has held or released a slot; --clients shows what FleetLock clients did"
        );
    }
}
