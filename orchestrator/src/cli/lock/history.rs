//! `os-upgrade lock history`: what operators, and FleetLock clients, did about slots.

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;

use super::super::output::{Output, outln, table};
use super::super::rest::{self, Server};
use super::STATE;

#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    server: Server,
    /// How many to show, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Also the slots that FleetLock clients were granted and gave back
    #[arg(long)]
    clients: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    time: String,
    #[serde(default)]
    actor: String,
    fact: Fact,
}

#[derive(Debug, Deserialize)]
struct Fact {
    r#type: String,
    group: String,
    id: String,
    #[serde(default)]
    reason: String,
}

/// Prints what there is.
pub(super) async fn run(options: Options) -> anyhow::Result<()> {
    let Options { server, limit, clients, output } = options;
    let clients = if clients { "&clients=true" } else { "" };
    let page = rest::get(&server, &format!("{STATE}/history?limit={limit}{clients}")).await?;
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&page)?),
        Output::Text => {
            let page = Page::deserialize(page).context("an unexpected answer")?;
            outln!("{}", text(&page));
        }
    }
    Ok(())
}

fn text(page: &Page) -> String {
    if page.items.is_empty() {
        return "nobody has held or released a slot".to_owned();
    }
    let row = |Item { time, actor, fact }: &Item| {
        let did = match fact.r#type.as_str() {
            "hold-placed" => "held",
            "holder-released" => "released",
            "lock-granted" => "locked",
            "lock-released" => "unlocked",
            other => other,
        };
        [time, actor, did, &fact.id, &fact.group, &fact.reason].map(ToString::to_string).to_vec()
    };
    let heads = ["TIME", "WHO", "DID", "HOLDER", "GROUP", "REASON"];
    table(&heads, page.items.iter().map(row).collect()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table() {
        let fact = |kind: &str| json!({ "type": kind, "group": "default", "id": "h01", "actor": "api", "reason": "it burnt" });
        let item = |kind: &str| json!({ "time": "2026-11-21T01:00:00.000Z", "actor": "api", "type": kind, "fact": fact(kind) });
        let mut old = item("lock-granted");
        // A version that did not say who asked.
        old.as_object_mut().unwrap().remove("actor");
        old["fact"].as_object_mut().unwrap().remove("reason");
        let page = json!({ "items": [item("holder-released"), item("hold-placed"), old], "next": "9.0" });
        let expected = "\
TIME                      WHO  DID       HOLDER  GROUP    REASON
2026-11-21T01:00:00.000Z  api  released  h01     default  it burnt
2026-11-21T01:00:00.000Z  api  held      h01     default  it burnt
2026-11-21T01:00:00.000Z       locked    h01     default";
        assert_eq!(text(&Page::deserialize(page).unwrap()), expected);
        assert_eq!(text(&Page { items: Vec::new() }), "nobody has held or released a slot");
    }
}
