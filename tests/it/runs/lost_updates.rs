//! Concurrent changes of the configuration.

use futures::future::join_all;
use harness::host::APPLICATION;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::wait::eventually;
use serde_json::json;

const ROUNDS: u32 = 10;
const WRITERS: u32 = 50;

/// Of the clients that have read the same configuration, one changes it: whether they send their requests to both the
/// leader and a follower or, in every other round, all to the follower.
#[tokio::test]
async fn concurrent_patches_one_wins() {
    let nats = NatsServer::start().await;
    let [mut first, mut second] = [(); 2].map(|()| Orchestrator::new(&nats.url(), ""));
    first.start_ready().await;
    second.start();
    second.await_following(&first).await;
    let clients = [&first.rest, &second.rest];
    first.rest.configure(APPLICATION).await;
    for round in 1..=ROUNDS {
        let tag = &first.rest.configuration_tag().await;
        let change = async |writer: u32| {
            let failures = round * 1_000 + writer;
            let client = if round % 2 == 0 { &second.rest } else { clients[writer as usize % clients.len()] };
            (
                failures,
                client.change_configuration(tag, &json!({"rollout": {"max-failures": failures}})).await,
            )
        };
        let answers = join_all((0..WRITERS).map(change)).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(_, status)| *status == 204);
        assert!(lost.iter().all(|(_, status)| *status == 412), "round {round}: {won:?} {lost:?}");
        let [(winner, _)] = won[..] else { panic!("round {round}: {won:?}") };
        for client in clients {
            eventually("the winner's configuration is seen", async || {
                let (_, config) = client.get("/v1/config/os-upgrade").await;
                (config["rollout"]["max-failures"] == winner).then_some(())
            })
            .await;
        }
    }
    // The history has exactly the winners.
    eventually("every change is listed", async || {
        let (_, number) = first.rest.get("/v1/state/os-upgrade/config-history?count=true").await;
        (number == json!({"count": ROUNDS + 1})).then_some(())
    })
    .await;
}
