//! Units as a client of fleet's v1 sees and changes them.

use std::collections::BTreeMap;

use harness::rest::Rest;
use harness::unit_agent::{UnitAgent, UnitLog};
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

/// Options of `[X-Fleet]`.
pub(super) type Asks<'a> = &'a [(&'a str, &'a str)];

/// A client.
pub(super) struct Fleet {
    rest: Rest,
}

impl Fleet {
    pub(super) fn new(rest: &Rest) -> Self {
        Self { rest: rest.clone() }
    }

    /// Asks for a unit with these contents in this state. Returns the status of the answer, or `None` without one.
    pub(super) async fn try_put(&self, name: &str, state: &str, asks: Asks<'_>) -> Option<u16> {
        let option = |(section, name, value): (&str, &str, &str)| json!({ "section": section, "name": name, "value": value });
        let asked = asks.iter().map(|(name, value)| ("X-Fleet", *name, *value));
        let options: Vec<Value> =
            [("Service", "ExecStart", "/usr/bin/app")].into_iter().chain(asked).map(option).collect();
        let body = json!({ "desiredState": state, "options": options });
        let (status, _) = self.rest.try_call(Method::PUT, &at("units", name), &body.to_string()).await?;
        Some(status)
    }

    /// Submits a unit with other contents than it has, if there is one.
    pub(super) async fn submit(&self, name: &str, state: &str, asks: Asks<'_>) {
        assert_eq!(self.try_put(name, state, asks).await, Some(201), "{name}");
    }

    /// Destroys a unit, which must be there.
    pub(super) async fn destroy(&self, name: &str) {
        assert_eq!(
            self.rest.call(Method::DELETE, &at("units", name), "").await,
            (204, Value::Null),
            "{name}"
        );
    }

    /// The entity of a unit, if there is one.
    pub(super) async fn unit(&self, name: &str) -> Option<Value> {
        let (status, unit) = self.rest.try_call(Method::GET, &at("units", name), "").await?;
        (status == 200).then_some(unit)
    }

    /// The entities of `collection`, which fit on one page.
    async fn list(&self, collection: &str, field: &str) -> Vec<Value> {
        let (status, page) = self.rest.get(&format!("/fleet/v1/{collection}")).await;
        assert_eq!((status, page.get("nextPageToken")), (200, None), "{page}");
        page[field].as_array().unwrap().clone()
    }

    /// The current state of each unit.
    pub(super) async fn current_states(&self) -> BTreeMap<String, String> {
        let units = self.list("units", "units").await.into_iter();
        units.map(|unit| (text(&unit, "name"), text(&unit, "currentState"))).collect()
    }

    /// What is known of units on machines.
    pub(super) async fn states(&self) -> Vec<Value> {
        self.list("state", "states").await
    }

    /// What is known of one unit on machines.
    pub(super) async fn states_of(&self, name: &str) -> Vec<Value> {
        let states = self.states().await.into_iter();
        states.filter(|state| state["name"] == name).collect()
    }

    /// The ids of the machines.
    pub(super) async fn machines(&self) -> Vec<String> {
        self.list("machines", "machines").await.iter().map(|machine| text(machine, "id")).collect()
    }

    /// Waits until exactly the machines of these agents are there.
    pub(super) async fn await_machines(&self, agents: &[UnitAgent]) {
        let mut ids: Vec<String> = agents.iter().map(UnitAgent::machine_id).collect();
        ids.sort();
        eventually("the machines", async || (self.machines().await == ids).then_some(())).await;
    }

    /// Waits until the unit is in this state, and returns the id of the machine on which it is.
    pub(super) async fn await_state(&self, name: &str, state: &str) -> String {
        eventually(&format!("{name} to be {state}"), async || {
            let unit = self.unit(name).await?;
            (unit["currentState"] == state).then(|| text(&unit, "machineID"))
        })
        .await
    }

    /// Waits until the unit is launched on this machine.
    pub(super) async fn await_launched_on(&self, name: &str, agent: &UnitAgent) {
        eventually(&format!("{name} to be launched on {}", agent.name()), async || {
            let unit = self.unit(name).await?;
            let is_there = unit["machineID"] == agent.machine_id();
            (is_there && unit["currentState"] == "launched").then_some(())
        })
        .await;
    }
}

fn at(collection: &str, name: &str) -> String {
    format!("/fleet/v1/{collection}/{name}")
}

/// A text of an entity, empty without it.
fn text(entity: &Value, field: &str) -> String {
    entity[field].as_str().unwrap_or_default().to_owned()
}

/// Starts an agent for each of these hosts.
pub(super) fn agents<const COUNT: usize>(
    url: &str,
    hosts: [&str; COUNT],
    log: &UnitLog,
) -> [UnitAgent; COUNT] {
    hosts.map(|host| UnitAgent::start(url, host, log))
}
