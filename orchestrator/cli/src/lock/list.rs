//! `os-upgrade lock list`: who holds slots, since when and why, and who waits for one.

use anyhow::Context as _;
use clap::Args;
use os_upgrade_api_types::routes::slots::{self, Slots};
use os_upgrade_console::Row;
use os_upgrade_console::rows::slots::{holders, waiters};
use os_upgrade_protocol::text::sanitized;
use serde_json::Value;

use crate::Failure;
use crate::output::{Canvas, View, table};
use crate::remote::options::Remote;

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only this group
    #[arg(long)]
    group: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Prints the slots.
pub(super) async fn run(List { group, remote }: List) -> Result<(), Failure> {
    let mut state = remote.client()?.call(&slots::READ).await?;
    if let Some(group) = &group {
        only(&mut state, group)?;
    }
    remote.output.show::<Slots<'_>>(&state)
}

/// Removes all other groups from `state`.
fn only(state: &mut Value, group: &str) -> anyhow::Result<()> {
    let groups = state["groups"].as_array_mut().context("unexpected response")?;
    groups.retain(|entry| entry["group"] == group);
    Ok(())
}

impl View for Slots<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let Slots { provider, reclaim, groups } = self;
        let provider =
            format!("provider: {}, reclaim: {}\n", sanitized(provider.as_str()), sanitized(reclaim));
        let mut parts = vec![provider, table(groups, canvas)];
        parts.extend(filled(&holders(self), canvas));
        parts.extend(filled(&waiters(self), canvas));
        parts.join("\n").trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        let holders = self.groups.iter().flat_map(|group| &group.holders);
        Some(holders.map(|holder| holder.id.to_string()).collect())
    }

    fn none(&self) -> Option<String> {
        self.groups.none()
    }
}

fn filled<R: Row>(rows: &[R], canvas: &Canvas) -> Option<String> {
    (!rows.is_empty()).then(|| table(rows, canvas))
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    const CANVAS: Canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };

    fn infra() -> Value {
        json!({ "group": "infra", "held": 0, "excess": 0, "holders": [], "waiters": [] })
    }

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
                        { "id": "node-7", "since": "2026-11-21T01:02:00Z", "on-behalf-of": ["client"], "reason": "taken", "stuck": false },
                    ],
                    "waiters": [
                        { "id": "node-9", "since": "2026-11-21T01:03:00Z", "last-asked": "2026-11-21T01:08:00Z", "kind": "client" },
                        { "id": "h02", "since": "2026-11-21T01:04:00Z", "kind": "host" },
                    ],
                },
                infra(),
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
        assert_eq!(Slots::deserialize(sample()).unwrap().text(&CANVAS), expected);
    }

    #[test]
    fn one_group_of_several() {
        let mut state = sample();
        only(&mut state, "infra").unwrap();
        assert_eq!(state["groups"], json!([infra()]));
        assert_eq!(
            Slots::deserialize(state).unwrap().text(&CANVAS),
            "provider: embedded, reclaim: never\n\nGROUP  SLOTS  HELD  WAITING\ninfra  -      0     0"
        );
        let mut state = sample();
        only(&mut state, "x").unwrap();
        assert_eq!(Slots::deserialize(state).unwrap().none().as_deref(), Some("there is no such group"));
    }
}
