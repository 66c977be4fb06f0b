//! Units while orchestrators and nats-servers are away.

use harness::host::APPLICATION;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::unit_agent::UnitLog;
use harness::wait::eventually;

use super::shared::{Fleet, agents};

/// A unit that was accepted by a follower is placed by the next leader, and runs on while the bus is away.
#[tokio::test]
async fn accepted_units_survive_leader_and_bus() {
    let (mut nats, log) = (NatsServer::start().await, UnitLog::default());
    let mut instances = [0, 1].map(|_| Orchestrator::new(&nats.url(), ""));
    for instance in &mut instances {
        instance.start_ready().await;
    }
    let [leader, follower] = &mut instances;
    leader.await_leading().await;
    follower.await_following(leader).await;
    leader.rest.configure(APPLICATION).await;
    let fleet = Fleet::new(&follower.rest);
    fleet.submit("app.service", "launched", &[]).await;
    // There is no machine yet, so this leader cannot place it.
    leader.kill().await;
    follower.await_leading().await;
    let agents = agents(&nats.url(), ["h01"], &log);
    fleet.await_launched_on("app.service", &agents[0]).await;

    nats.kill();
    nats.start_again().await;
    eventually("another unit to be accepted", async || {
        let status = fleet.try_put("next.service", "launched", &[]).await?;
        // One that was not answered may have been accepted.
        (status == 201 || status == 204).then_some(())
    })
    .await;
    fleet.await_launched_on("next.service", &agents[0]).await;
    assert_eq!(log.lines(), ["h01 starts app.service", "h01 starts next.service"], "the first runs on");
    leader.start_ready().await;
    let fleet = Fleet::new(&leader.rest);
    fleet.await_launched_on("app.service", &agents[0]).await;
    fleet.await_launched_on("next.service", &agents[0]).await;
}
