//! `os-upgrade lock history`: how operators and FleetLock clients took and gave back slots.

use clap::Args;
use os_upgrade_api_types::routes::slots;
use os_upgrade_console::rows::histories::SlotChange;

use crate::Failure;
use crate::remote::histories;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    page: histories::PageOptions,
    /// Include slots that FleetLock clients were granted and gave back
    #[arg(long)]
    clients: bool,
}

/// Prints the history.
pub(super) async fn run(Options { page, clients }: Options) -> Result<(), Failure> {
    let call = slots::HISTORY.call();
    histories::show::<SlotChange>(page, if clients { call.with("clients", "true") } else { call }).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::{Canvas, View as _};
    use os_upgrade_api_types::body::Page;
    use os_upgrade_console::Zone;
    use serde::Deserialize as _;

    #[test]
    fn history_in_a_table() {
        let fact = |kind: &str| json!({ "type": kind, "group": "default", "id": "h01", "actor": "api", "reason": "it burnt" });
        let item = |kind: &str| json!({ "sequence": 7, "place": 0, "time": "2026-11-21T01:00:00.000Z", "actor": "api", "type": kind, "fact": fact(kind) });
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
        let text = |page| Page::<SlotChange>::deserialize(page).unwrap().text(&canvas);
        assert_eq!(text(page), expected);
        assert_eq!(
            text(json!({ "items": [] })),
            "no operator has held or released a slot; --clients shows what FleetLock clients did"
        );
    }
}
