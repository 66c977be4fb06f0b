//! Waiting until units are in the state that they are to be in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::anyhow;
use os_upgrade_api_types::routes::units::{FAILED, LIST, UnitStatus, Units};
use os_upgrade_protocol::text::sanitized;
use os_upgrade_scheduler::{UnitName, UnitState};
use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::output::Output;
use crate::rest::{self, Client};

/// How often units are read.
const EVERY: Duration = Duration::from_secs(1);
/// How long they are waited for.
const WITHIN: Duration = Duration::from_mins(5);
/// How often one after the other a unit may be read that no machine has. The leader places units each second.
const UNPLACED_READS_MAX: u32 = 5;

/// How far units are, one of which is waited for.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// All are in the state.
    Done,
    /// This one has failed on this host.
    Failed(String, String),
    /// No machine has this one.
    Unplaced(String),
    Pending,
}

/// Waits until each of `names` is in `state`, and shows how far it is.
///
/// # Errors
/// One has failed, no machine can have it, or it takes too long.
pub(super) async fn until(
    client: &Client,
    names: &[UnitName],
    state: UnitState,
    output: Output,
) -> Result<(), Failure> {
    let names: BTreeSet<&str> = names.iter().map(UnitName::as_str).collect();
    let begun = Instant::now();
    let mut shown = BTreeMap::new();
    let mut unplaced = 0;
    loop {
        let read = match client.read::<Units<'_>>(&LIST).await {
            // An instance may be replaced by another meanwhile.
            Err(error) if rest::may_pass(&error) => None,
            read => Some(read?),
        };
        let units = read.map(|list| list.units).unwrap_or_default();
        let units: Vec<_> = units.into_iter().filter(|unit| names.contains(&*unit.name)).collect();
        for unit in &units {
            let line = line(unit);
            if shown.insert(unit.name.to_string(), line.clone()).as_ref() != Some(&line) {
                output.aside(&line);
            }
        }
        match progress(&units, names.len(), state) {
            Progress::Done => return Ok(()),
            Progress::Failed(unit, host) => return Err(anyhow!("{unit} has failed on {host}").into()),
            Progress::Unplaced(unit) if unplaced >= UNPLACED_READS_MAX => {
                let show = format!("`os-upgrade units show {unit}` says why");
                return Err(anyhow!("no machine can have {unit} now: {show}").into());
            }
            Progress::Unplaced(_) => unplaced += 1,
            Progress::Pending => unplaced = 0,
        }
        if begun.elapsed() >= WITHIN {
            return Err(anyhow!("not every unit is {state} after {} s", WITHIN.as_secs()).into());
        }
        sleep(EVERY).await;
    }
}

/// How far `units` are, of which there should be `count`.
fn progress(units: &[UnitStatus<'_>], count: usize, state: UnitState) -> Progress {
    // What a unit did before it was to be started again does not count.
    let failed = units.iter().filter(|unit| is_in(unit, state)).find_map(|unit| {
        let failed = unit.on.iter().find(|on| !on.leaving && on.active.as_deref() == Some(FAILED))?;
        Some((unit.name.to_string(), failed.host.to_string()))
    });
    let unplaced = || units.iter().find(|unit| unit.unplaced);
    if let Some((unit, host)) = failed {
        Progress::Failed(unit, host)
    } else if units.len() == count && units.iter().all(|unit| is_in(unit, state)) {
        Progress::Done
    } else {
        unplaced().map_or(Progress::Pending, |unit| Progress::Unplaced(unit.name.to_string()))
    }
}

fn is_in(unit: &UnitStatus<'_>, state: UnitState) -> bool {
    unit.current.is(|current| current == state)
}

/// How far a unit is.
fn line(unit: &UnitStatus<'_>) -> String {
    let hosts: Vec<&str> = unit.on.iter().map(|on| on.host.as_ref()).collect();
    let on =
        if hosts.is_empty() { "on no machine yet".to_owned() } else { format!("on {}", hosts.join(", ")) };
    sanitized(&format!("{}: {} {on}", unit.name, unit.current))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn units_are_waited_for_until_they_run() {
        let unit = |current: &str, more: Value| {
            let mut unit = json!({
                "name": "a.service", "desired": "launched", "current": current, "actor": "anna", "on": [],
                "since": "2026-11-21T01:00:00Z",
            });
            unit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            unit
        };
        let on = |active: &str| json!({ "on": [{ "host": "h01", "machine": "0f", "active": active }] });
        let failed = || Progress::Failed("a.service".to_owned(), "h01".to_owned());
        for (found, expected) in [
            (unit("launched", on("active")), Progress::Done),
            (unit("launched", on("failed")), failed()),
            (unit("loaded", on("failed")), Progress::Pending),
            (unit("inactive", on("inactive")), Progress::Pending),
            (unit("inactive", json!({ "unplaced": true })), Progress::Unplaced("a.service".to_owned())),
        ] {
            let units = [UnitStatus::deserialize(&found).unwrap()];
            assert_eq!(progress(&units, 1, UnitState::Launched), expected, "{found}");
        }
        assert_eq!(progress(&[], 1, UnitState::Launched), Progress::Pending);
        // One that still runs is more than loaded.
        for (current, expected) in [("launched", Progress::Pending), ("loaded", Progress::Done)] {
            let units = [UnitStatus::deserialize(unit(current, on("active"))).unwrap()];
            assert_eq!(progress(&units, 1, UnitState::Loaded), expected, "{current}");
        }
        let found = unit("inactive", on("activating"));
        assert_eq!(line(&UnitStatus::deserialize(&found).unwrap()), "a.service: inactive on h01");
    }
}
