//! Machines: which hosts are ones, and what becomes of their units when they fall silent, are withdrawn, or reboot.

use std::time::Duration;

use harness::site::Site;
use harness::unit_agent::{Step, UnitAgent, UnitLog, machine_id};
use harness::wait::{PATIENCE, eventually, within};
use os_upgrade_protocol::{HostName, subject};
use serde_json::{Value, json};

use super::shared::{Fleet, agents};

/// How long an agent may be silent.
const GRACE: Duration = Duration::from_secs(30);

/// The machine that runs the unit, and the other one.
async fn by_unit<'a>(
    fleet: &Fleet,
    unit: &str,
    agents: &'a [UnitAgent; 2],
) -> (&'a UnitAgent, &'a UnitAgent) {
    let [first, second] = agents;
    let id = fleet.await_state(unit, "launched").await;
    if id == first.machine_id() { (first, second) } else { (second, first) }
}

/// A machine that falls silent goes on running its unit, which is nevertheless started elsewhere, and stops it when it is back.
#[tokio::test]
async fn units_of_a_silent_machine_start_elsewhere() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let agents = agents(&site.nats.url(), ["h01", "h02"], &log);
    fleet.await_machines(&agents).await;
    fleet.submit("app.service", "launched", &[]).await;
    let (lost, other) = by_unit(&fleet, "app.service", &agents).await;

    let silent_since = lost.fall_silent();
    let line = format!("{} starts app.service", other.name());
    let started = within(GRACE + PATIENCE, &line, async || log.at(&line)).await;
    assert!(started - silent_since >= GRACE, "{:?}", started - silent_since);
    fleet.await_launched_on("app.service", other).await;
    assert_eq!(fleet.machines().await, [other.machine_id()]);
    assert!(lost.is_running("app.service"), "nobody could tell it");

    lost.speak();
    log.await_line(&format!("{} stops app.service", lost.name())).await;
    fleet.await_machines(&agents).await;
    fleet.submit("next.service", "launched", &[]).await;
    fleet.await_launched_on("next.service", lost).await;
    fleet.await_launched_on("app.service", other).await;
    let (lost, other) = (lost.name(), other.name());
    let expected = [
        format!("{lost} starts app.service"),
        format!("{other} starts app.service"),
        format!("{lost} stops app.service"),
        format!("{lost} starts next.service"),
    ];
    assert_eq!(log.lines(), expected);
}

#[tokio::test]
async fn withdrawn_machines_run_nothing() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let withdrawn = agents(&site.nats.url(), ["h01"], &log);
    fleet.await_machines(&withdrawn).await;
    fleet.submit("app.service", "launched", &[]).await;
    fleet.await_launched_on("app.service", &withdrawn[0]).await;
    site.orchestrator.done(&["hosts", "withdraw", "h01", "--reason", "sold"]).await;
    log.await_line("h01 stops app.service").await;
    let desired = site.jetstream().get_stream(subject::DESIRED_STREAM).await.unwrap();
    let at = subject::desired_manifest(&HostName::new("h01").unwrap());
    let manifest = desired.get_last_raw_message_by_subject(&at).await.unwrap();
    let manifest: Value = serde_json::from_slice(&manifest.payload).unwrap();
    assert_eq!(manifest["items"], json!([]));
    fleet.await_machines(&[]).await;
    assert_eq!(fleet.await_state("app.service", "inactive").await, "", "it is on no machine");

    let next = agents(&site.nats.url(), ["h02"], &log);
    fleet.await_launched_on("app.service", &next[0]).await;
    assert_eq!(log.lines(), ["h01 starts app.service", "h01 stops app.service", "h02 starts app.service"]);
}

/// Two hosts that were made from one image have one machine id. The first is that machine, and the second none until it has an id of its own.
#[tokio::test]
async fn machine_ids_count_once() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let first = agents(&site.nats.url(), ["h01"], &log);
    fleet.await_machines(&first).await;
    let twin = UnitAgent::start_as(&site.nats.url(), "h02", &machine_id("h01"), &log);
    eventually("the second host to be seen", async || site.rest().try_host("h02").await).await;
    // Each of these is placed by a later look at the machines.
    for unit in ["a.service", "b.service", "c.service"] {
        fleet.submit(unit, "launched", &[]).await;
        log.await_line(&format!("h01 starts {unit}")).await;
    }
    fleet.await_machines(&first).await;
    assert_eq!(log.lines().len(), 3, "{:?}", log.lines());

    twin.become_machine(&machine_id("h02"));
    eventually("two machines", async || (fleet.machines().await.len() == 2).then_some(())).await;
    fleet.submit("d.service", "launched", &[]).await;
    fleet.await_launched_on("d.service", &twin).await;
}

/// What has run before a reboot runs again, without being placed again.
#[tokio::test]
async fn rebooted_machines_start_their_units() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let agents = agents(&site.nats.url(), ["h01"], &log);
    fleet.submit("app.service", "launched", &[]).await;
    fleet.submit("idle.service", "loaded", &[]).await;
    fleet.await_launched_on("app.service", &agents[0]).await;
    fleet.await_state("idle.service", "loaded").await;
    let placements = async || {
        let facts = site.journal().await;
        facts.iter().filter(|fact| fact["type"] == "unit-placed").count()
    };
    let before = placements().await;
    agents[0].hold(Step::Starts, "app.service");
    agents[0].reboot();
    fleet.await_state("app.service", "loaded").await;
    agents[0].release(Step::Starts, "app.service");
    fleet.await_launched_on("app.service", &agents[0]).await;
    let line = |step: &str| format!("h01 {step} app.service");
    assert_eq!(log.lines(), [line("starts"), line("stops"), line("starts")]);
    assert_eq!(placements().await, before);
}

/// Too slow for `make test`: `make test-at-length` runs these, and so does `make soak`.
mod at_length {
    use std::time::Instant;

    use super::*;

    /// Silence counts only while the leader is connected: nobody can be heard without the bus.
    #[tokio::test]
    async fn silence_without_the_bus_does_not_count() {
        let (mut site, log) = (Site::start().await, UnitLog::default());
        let fleet = Fleet::new(&site.rest());
        let agents = agents(&site.nats.url(), ["h01", "h02"], &log);
        fleet.await_machines(&agents).await;
        fleet.submit("app.service", "launched", &[]).await;
        let (lost, other) = by_unit(&fleet, "app.service", &agents).await;
        lost.fall_silent();
        site.nats.kill();
        tokio::time::sleep(GRACE).await;
        let back = Instant::now();
        site.nats.start_again().await;
        let line = format!("{} starts app.service", other.name());
        let started = within(GRACE + PATIENCE, &line, async || log.at(&line)).await;
        assert!(started - back >= GRACE, "{:?}", started - back);
    }
}
