//! `os-upgrade lock history`: how operators and FleetLock clients took and gave back slots.

use clap::Args;
use os_upgrade_api_types::routes::slots;
use serde::Deserialize;

use crate::remote::histories::{self, Shown};

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
pub(super) async fn run(Options { page, clients }: Options) -> anyhow::Result<()> {
    let call = slots::HISTORY.call();
    histories::show::<Fact>(page, if clients { call.with("clients", "true") } else { call }).await
}

impl Shown for Fact {
    const HEADS: &'static [&'static str] = &["ACTION", "HOLDER", "GROUP", "REASON"];
    const NONE: &'static str = "no slot has been held or released";

    fn row(&self) -> Vec<String> {
        let did = match self.r#type.as_str() {
            "hold-placed" => "held",
            "holder-released" => "released",
            "lock-granted" => "locked",
            "lock-released" => "unlocked",
            other => other,
        };
        let reason = match (self.r#type.as_str(), self.reason.as_deref()) {
            ("holder-released", None) => "it has left the inventory",
            (_, reason) => reason.unwrap_or_default(),
        };
        [did, &self.id, &self.group, reason].map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::remote::histories::Page;

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
TIME                      WHO  ACTION    HOLDER  GROUP    REASON
2026-11-21T01:00:00.000Z  api  released  h01     default  it burnt
2026-11-21T01:00:00.000Z  api  released  h01     default  it has left the inventory
2026-11-21T01:00:00.000Z  api  held      h01     default  it burnt
2026-11-21T01:00:00.000Z       locked    h01     default";
        let text = |page| histories::text(&Page::<Fact>::deserialize(page).unwrap());
        assert_eq!(text(page), expected);
        assert_eq!(text(json!({ "items": [] })), "no slot has been held or released");
    }
}
