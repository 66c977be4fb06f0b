//! `os-upgrade lock list`: who holds slots, since when and why, and who waits for one.

use anyhow::Context as _;
use clap::Args;
use os_upgrade_api_types::routes::slots;
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;
use serde_json::Value;

use crate::Failure;
use crate::output::{Canvas, Column, Row, View, table};
use crate::remote::options::Remote;

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only this group
    #[arg(long)]
    group: Option<String>,
    #[command(flatten)]
    remote: Remote,
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

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Holder {
    id: String,
    since: String,
    on_behalf_of: Vec<String>,
    reason: String,
    stuck: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Waiter {
    id: String,
    kind: String,
    since: String,
    last_asked: Option<String>,
}

/// Prints the slots.
pub(super) async fn run(List { group, remote }: List) -> Result<(), Failure> {
    let mut state = remote.client()?.call(&slots::READ).await?;
    if let Some(group) = &group {
        only(&mut state, group)?;
    }
    remote.output.show::<State>(&state)
}

/// Removes all other groups from `state`.
fn only(state: &mut Value, group: &str) -> anyhow::Result<()> {
    let groups = state["groups"].as_array_mut().context("unexpected response")?;
    groups.retain(|entry| entry["group"] == group);
    Ok(())
}

impl View for State {
    fn text(&self, canvas: &Canvas) -> String {
        let State { provider, reclaim, groups } = self;
        let provider = format!("provider: {}, reclaim: {}\n", sanitized(provider), sanitized(reclaim));
        let mut parts = vec![provider, table(groups, canvas)];
        let of = |group: &Group| group.name.clone();
        let holders = groups.iter().flat_map(|group| {
            group.holders.iter().map(move |holder| InGroup { group: of(group), entry: holder.clone() })
        });
        parts.extend(filled::<InGroup<Holder>>(&holders.collect::<Vec<_>>(), canvas));
        let waiters = groups.iter().flat_map(|group| {
            group.waiters.iter().map(move |waiter| InGroup { group: of(group), entry: waiter.clone() })
        });
        parts.extend(filled::<InGroup<Waiter>>(&waiters.collect::<Vec<_>>(), canvas));
        parts.join("\n").trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        let holders = self.groups.iter().flat_map(|group| &group.holders);
        Some(holders.map(|holder| holder.id.clone()).collect())
    }

    fn none(&self) -> Option<String> {
        self.groups.none()
    }
}

fn filled<R: Row>(rows: &[R], canvas: &Canvas) -> Option<String> {
    (!rows.is_empty()).then(|| table(rows, canvas))
}

/// A holder or waiter, with the name of its group.
#[derive(Debug)]
struct InGroup<E> {
    group: String,
    entry: E,
}

impl Row for Group {
    const COLUMNS: &'static [Column<Self>] =
        &[
            Column::new("GROUP", |group, _| group.name.clone()),
            Column::new("SLOTS", |group, _| {
                group.slots.map_or_else(|| "-".to_owned(), |slots| slots.to_string())
            }),
            Column::new("HELD", |group, _| group.held.to_string()),
            Column::new("WAITING", |group, _| group.waiters.len().to_string()),
            Column::new("", |group, _| {
                if group.excess > 0 { format!("{} too many", group.excess) } else { String::new() }
            }),
        ];
    const NONE: &'static str = "there is no such group";

    fn name(&self) -> Option<String> {
        Some(self.name.clone())
    }
}

impl Row for InGroup<Holder> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("GROUP", |row, _| row.group.clone()),
        Column::new("HOLDER", |row, _| row.entry.id.clone()),
        Column::whole("SINCE", |row, zone| zone.time(&row.entry.since)),
        Column::new("FOR", |row, _| row.entry.on_behalf_of.join(", ")),
        Column::text("REASON", |row, _| {
            format!("{}{}", if row.entry.stuck { "stuck: " } else { "" }, row.entry.reason)
        }),
    ];
    const NONE: &'static str = "nobody holds a slot";

    fn name(&self) -> Option<String> {
        Some(self.entry.id.clone())
    }
}

impl Row for InGroup<Waiter> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("GROUP", |row, _| row.group.clone()),
        Column::new("WAITER", |row, _| row.entry.id.clone()),
        Column::new("KIND", |row, _| row.entry.kind.clone()),
        Column::whole("SINCE", |row, zone| zone.time(&row.entry.since)),
        Column::whole("LAST ASKED", |row, zone| zone.time_or_dash(row.entry.last_asked.as_deref())),
    ];
    const NONE: &'static str = "nobody waits for a slot";

    fn name(&self) -> Option<String> {
        Some(self.entry.id.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::Zone;

    const CANVAS: Canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };

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
        assert_eq!(State::deserialize(sample()).unwrap().text(&CANVAS), expected);
    }

    #[test]
    fn one_group_of_several() {
        let mut state = sample();
        only(&mut state, "infra").unwrap();
        assert_eq!(state["groups"], json!([{ "group": "infra" }]));
        assert_eq!(
            State::deserialize(state).unwrap().text(&CANVAS),
            "provider: embedded, reclaim: never\n\nGROUP  SLOTS  HELD  WAITING\ninfra  -      0     0"
        );
        let mut state = sample();
        only(&mut state, "x").unwrap();
        assert_eq!(State::deserialize(state).unwrap().none().as_deref(), Some("there is no such group"));
    }
}
