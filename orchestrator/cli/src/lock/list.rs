//! `os-upgrade lock list`: who holds slots, since when and why, and who waits for one.

use anyhow::{Context as _, bail};
use clap::Args;
use os_upgrade_api_types::routes::slots;
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;
use serde_json::Value;

use crate::output::{Output, outln, table};
use crate::rest::{self, Server};

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    server: Server,
    /// Only this group
    #[arg(long)]
    group: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The response of `GET /v1/state/fleet-lock`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    provider: String,
    reclaim: String,
    groups: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Group {
    #[serde(rename = "group")]
    name: String,
    slots: Option<u64>,
    held: u64,
    excess: u64,
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Holder {
    id: String,
    since: String,
    on_behalf_of: Vec<String>,
    reason: String,
    stuck: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Waiter {
    id: String,
    kind: String,
    since: String,
    last_asked: Option<String>,
}

/// Prints the slots.
pub(super) async fn run(options: List) -> anyhow::Result<()> {
    let List { server, group, output } = options;
    let mut state = rest::call(&server, &slots::READ).await?;
    if let Some(group) = &group {
        only(&mut state, group)?;
    }
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&state)?),
        Output::Text => {
            let state = State::deserialize(state).context("unexpected response")?;
            outln!("{}", text(&state));
        }
    }
    Ok(())
}

/// Removes all other groups from `state`.
fn only(state: &mut Value, group: &str) -> anyhow::Result<()> {
    let groups = state["groups"].as_array_mut().context("unexpected response")?;
    groups.retain(|entry| entry["group"] == group);
    if groups.is_empty() {
        bail!("there is no group {group}");
    }
    Ok(())
}

fn text(state: &State) -> String {
    let State { provider, reclaim, groups } = state;
    let mut parts = vec![format!("provider: {}, reclaim: {}\n", sanitized(provider), sanitized(reclaim))];
    let heads = ["GROUP", "SLOTS", "HELD", "WAITING", ""];
    parts.push(table(&heads, groups.iter().map(Group::row).collect()));
    let holders = groups.iter().flat_map(|group| group.holders.iter().map(|holder| holder.row(&group.name)));
    let heads = ["GROUP", "HOLDER", "SINCE", "FOR", "REASON"];
    parts.extend(filled(&heads, holders.collect()));
    let waiters = groups.iter().flat_map(|group| group.waiters.iter().map(|waiter| waiter.row(&group.name)));
    let heads = ["GROUP", "WAITER", "KIND", "SINCE", "LAST ASKED"];
    parts.extend(filled(&heads, waiters.collect()));
    parts.join("\n").trim_end().to_owned()
}

fn filled(heads: &[&str], rows: Vec<Vec<String>>) -> Option<String> {
    (!rows.is_empty()).then(|| table(heads, rows))
}

impl Group {
    fn row(&self) -> Vec<String> {
        let slots = self.slots.map_or_else(|| "-".to_owned(), |slots| slots.to_string());
        let excess = if self.excess > 0 { format!("{} too many", self.excess) } else { String::new() };
        vec![self.name.clone(), slots, self.held.to_string(), self.waiters.len().to_string(), excess]
    }
}

impl Holder {
    fn row(&self, group: &str) -> Vec<String> {
        let stuck = if self.stuck { "stuck: " } else { "" };
        let behalf = self.on_behalf_of.join(", ");
        vec![group.to_owned(), self.id.clone(), self.since.clone(), behalf, format!("{stuck}{}", self.reason)]
    }
}

impl Waiter {
    fn row(&self, group: &str) -> Vec<String> {
        let asked = self.last_asked.clone().unwrap_or_else(|| "-".to_owned());
        vec![group.to_owned(), self.id.clone(), self.kind.clone(), self.since.clone(), asked]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Value {
        json!({
            "provider": "embedded", "reclaim": "never", "colour": "red",
            "groups": [
                {
                    "group": "default", "slots": 1, "held": 2, "excess": 1,
                    "holders": [
                        {
                            "id": "h01", "since": "2026-11-21T01:00:00Z", "on-behalf-of": ["run", "operator"],
                            "run": "r-12", "reason": "upgrading in run r-12", "stuck": true,
                            "hold": { "actor": "api", "reason": "x", "since": "2026-11-21T01:00:00Z" },
                        },
                        { "id": "node-7", "since": "2026-11-21T01:02:00Z", "on-behalf-of": ["client"], "reason": "taken" },
                    ],
                    "waiters": [
                        { "id": "node-9", "since": "2026-11-21T01:03:00Z", "last-asked": "2026-11-21T01:08:00Z", "kind": "client" },
                        { "id": "h02", "since": "2026-11-21T01:04:00Z", "kind": "host" },
                    ],
                },
                { "group": "infra" },
            ],
        })
    }

    #[test]
    fn slots_in_tables() {
        let expected = "\
provider: embedded, reclaim: never

GROUP    SLOTS  HELD  WAITING
default  1      2     2        1 too many
infra    -      0     0

GROUP    HOLDER  SINCE                 FOR            REASON
default  h01     2026-11-21T01:00:00Z  run, operator  stuck: upgrading in run r-12
default  node-7  2026-11-21T01:02:00Z  client         taken

GROUP    WAITER  KIND    SINCE                 LAST ASKED
default  node-9  client  2026-11-21T01:03:00Z  2026-11-21T01:08:00Z
default  h02     host    2026-11-21T01:04:00Z  -";
        assert_eq!(text(&State::deserialize(sample()).unwrap()), expected);
    }

    #[test]
    fn one_group_of_several() {
        let mut state = sample();
        only(&mut state, "infra").unwrap();
        assert_eq!(state["groups"], json!([{ "group": "infra" }]));
        assert_eq!(
            text(&State::deserialize(state).unwrap()),
            "provider: embedded, reclaim: never\n\nGROUP  SLOTS  HELD  WAITING\ninfra  -      0     0"
        );
        assert_eq!(only(&mut sample(), "x").unwrap_err().to_string(), "there is no group x");
    }
}
