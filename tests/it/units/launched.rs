//! What the current state of a unit promises.

use std::collections::BTreeSet;

use futures::future::join_all;
use harness::site::Site;
use harness::unit_agent::{Step, UnitLog};
use harness::wait::PATIENCE;
use serde_json::json;

use super::shared::{Fleet, agents};

/// How many units start at once.
const UNITS: usize = 20;

/// Clients that wait until a unit is launched read its state then, and do not ask again.
#[tokio::test]
async fn launched_is_said_once_the_state_can_be_read() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let _agents = agents(&site.nats.url(), ["h01", "h02"], &log);
    let names: Vec<String> = (0..UNITS).map(|number| format!("app@{number}.service")).collect();
    let submit = join_all(names.iter().map(|name| fleet.submit(name, "launched", &[])));
    let watch = async {
        loop {
            let current = fleet.current_states().await;
            let states = fleet.states().await;
            let active: BTreeSet<&str> = states
                .iter()
                .filter(|state| state["systemdActiveState"] == "active")
                .filter_map(|state| state["name"].as_str())
                .collect();
            let launched: Vec<&String> =
                current.iter().filter(|(_, state)| *state == "launched").map(|(name, _)| name).collect();
            for name in &launched {
                assert!(active.contains(name.as_str()), "{name} is launched, and its state unknown");
            }
            if launched.len() == UNITS {
                return;
            }
        }
    };
    let both = async { tokio::join!(submit, watch) };
    tokio::time::timeout(PATIENCE, both).await.expect("all units to be launched");
    assert_eq!(log.lines().len(), UNITS, "each was started once: {:?}", log.lines());
}

/// A unit that its machine has not started yet is loaded, whatever it is to be.
#[tokio::test]
async fn units_are_in_the_state_that_is_reported() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let agents = agents(&site.nats.url(), ["h01"], &log);
    fleet.await_machines(&agents).await;
    agents[0].hold(Step::Starts, "app.service");
    fleet.submit("app.service", "launched", &[]).await;
    assert_eq!(fleet.await_state("app.service", "loaded").await, agents[0].machine_id());
    let unit = fleet.unit("app.service").await.unwrap();
    assert_eq!(unit["desiredState"], "launched");
    let states = fleet.states_of("app.service").await;
    let words = ["systemdLoadState", "systemdActiveState", "systemdSubState"].map(|word| &states[0][word]);
    assert_eq!(json!(words), json!(["loaded", "inactive", "dead"]));
    assert!(log.lines().is_empty());

    agents[0].release(Step::Starts, "app.service");
    fleet.await_launched_on("app.service", &agents[0]).await;
    let states = fleet.states_of("app.service").await;
    let words = ["systemdLoadState", "systemdActiveState", "systemdSubState"].map(|word| &states[0][word]);
    assert_eq!(json!(words), json!(["loaded", "active", "running"]));
    assert_eq!(states[0]["machineID"], agents[0].machine_id());
    assert_eq!(log.lines(), ["h01 starts app.service"]);
}
