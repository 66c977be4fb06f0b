//! Units that move from one machine to another, or must not.

use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::streams;
use harness::unit_agent::{Step, UnitLog, machine_id};
use harness::wait::eventually;
use os_upgrade_protocol::{HostName, subject};

use super::shared::{Fleet, agents};

/// A machine that does not stop a unit keeps it: it is started elsewhere only once the machine has reported that it is gone.
#[tokio::test]
async fn units_start_elsewhere_once_they_have_stopped() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let agents = agents(&site.nats.url(), ["h01", "h02"], &log);
    let [first, second] = &agents;
    fleet.await_machines(&agents).await;
    let (on_first, on_second) = (machine_id("h01"), machine_id("h02"));
    fleet.submit("app.service", "launched", &[("MachineID", on_first.as_str())]).await;
    fleet.await_launched_on("app.service", first).await;

    first.hold(Step::Stops, "app.service");
    let before = eventually("the report", async || first.reported()).await;
    fleet.submit("app.service", "launched", &[("MachineID", on_second.as_str())]).await;
    eventually("the machine to be told", async || first.reported().filter(|it| *it > before)).await;
    // One that comes later is placed in the meantime.
    fleet.submit("next.service", "launched", &[("MachineID", on_second.as_str())]).await;
    fleet.await_launched_on("next.service", second).await;
    assert_eq!(log.lines_of("app.service"), ["h01 starts app.service"]);
    let unit = fleet.unit("app.service").await.unwrap();
    assert_eq!(unit.get("machineID"), None);
    assert_eq!(unit["currentState"], "inactive");

    first.release(Step::Stops, "app.service");
    fleet.await_launched_on("app.service", second).await;
    assert_eq!(
        log.lines_of("app.service"),
        ["h01 starts app.service", "h01 stops app.service", "h02 starts app.service"]
    );
}

/// A destroyed unit is gone at once for clients. One of its name is started once it has stopped.
#[tokio::test]
async fn destroyed_units_stop_before_others_of_their_name() {
    let (site, log) = (Site::start().await, UnitLog::default());
    let fleet = Fleet::new(&site.rest());
    let agents = agents(&site.nats.url(), ["h01"], &log);
    let [agent] = &agents;
    fleet.submit("app.service", "launched", &[]).await;
    fleet.await_launched_on("app.service", agent).await;
    agent.hold(Step::Stops, "app.service");
    fleet.destroy("app.service").await;
    assert_eq!(fleet.unit("app.service").await, None);
    fleet.submit("app.service", "launched", &[]).await;
    agent.release(Step::Stops, "app.service");
    fleet.await_launched_on("app.service", agent).await;
    let line = |step: &str| format!("h01 {step} app.service");
    assert_eq!(log.lines(), [line("starts"), line("stops"), line("starts")]);
}

/// After a restoration the units are in the state, and hosts go on as they are until an operator resumes the delivery.
#[tokio::test]
async fn restored_units_wait_for_an_operator() {
    let (mut site, log) = (Site::start().await, UnitLog::default());
    let agents = agents(&site.nats.url(), ["h01"], &log);
    let [agent] = &agents;
    let fleet = Fleet::new(&site.rest());
    fleet.submit("app.service", "launched", &[]).await;
    fleet.await_launched_on("app.service", agent).await;
    let (code, _, stderr) = site.orchestrator.command(&["backup", "site.tar.gz"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    site.orchestrator.terminate().await;

    let nats = NatsServer::start().await;
    let mut elsewhere = Orchestrator::new(&nats.url(), "");
    let file = site.orchestrator.directory().join("site.tar.gz");
    let (code, _, stderr) = elsewhere.command(&["restore", file.to_str().unwrap(), "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    elsewhere.start_ready().await;
    elsewhere.await_leading().await;
    let fleet = Fleet::new(&elsewhere.rest);
    assert_eq!(fleet.unit("app.service").await.unwrap()["desiredState"], "launched");
    agent.move_to(&nats.url());
    eventually("the host's report", async || {
        let states = fleet.states_of("app.service").await;
        (states.len() == 1 && states[0]["systemdActiveState"] == "active").then_some(())
    })
    .await;
    fleet.submit("next.service", "launched", &[]).await;
    fleet.await_machines(&agents).await;
    let host = HostName::new("h01").unwrap();
    let jetstream = async_nats::jetstream::new(nats.client().await);
    let manifests = async || {
        let at = subject::desired_manifest(&host);
        streams::stored(&jetstream, subject::DESIRED_STREAM, &at).await.len()
    };
    assert_eq!(manifests().await, 0);

    elsewhere.done(&["desired", "resume"]).await;
    // Manifests since the restoration have an epoch.
    eventually("the manifest", async || agent.reported().filter(|revision| revision.epoch > 0)).await;
    assert_eq!(manifests().await, 1);
    elsewhere.done(&["resume"]).await;
    fleet.await_launched_on("next.service", agent).await;
    fleet.await_launched_on("app.service", agent).await;
    assert_eq!(log.lines(), ["h01 starts app.service", "h01 starts next.service"], "the first runs on");
}
