//! A nats-server that takes only small messages is named, and not used until that is changed.

use harness::nats_cluster::NatsCluster;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::secured_nats::SecuredNats;
use harness::wait::eventually;

const SMALL: &str = "max_payload: 64KB";
const REASON: &str = "takes messages of 65536 bytes at most, and 1048576 are needed: raise max_payload";

async fn await_reason(orchestrator: &Orchestrator) {
    eventually("it to name the limit", async || {
        orchestrator.readiness().await.filter(|reason| reason.contains(REASON))
    })
    .await;
}

#[tokio::test]
async fn small_messages_are_waited_out() {
    let mut nats = NatsServer::start_with(SMALL).await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start();
    await_reason(&orchestrator).await;
    let (code, printed, _) = orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("problem  messages: the nats-server ") && printed.contains(REASON), "{printed}");
    nats.restart_with("").await;
    orchestrator.ready().await;
    orchestrator.rest.configure("a").await;

    nats.restart_with(SMALL).await;
    await_reason(&orchestrator).await;
    nats.restart_with("").await;
    orchestrator.ready().await;
    orchestrator.rest.configure("b").await;
    let (_, printed, _) = orchestrator.command(&["doctor"]).await;
    assert!(printed.contains("ok       messages: of 1048576 bytes are taken"), "{printed}");
}

/// The configuration of a cluster is changed server by server.
#[tokio::test]
async fn servers_that_take_small_messages_are_left() {
    let mut nats = NatsCluster::start().await;
    let mut orchestrator = Orchestrator::new(&nats.urls(), "replicas = 3");
    orchestrator.start_ready().await;
    for server in [0, 1] {
        nats.restart_adding(server, SMALL).await;
    }
    // Whichever it was connected to.
    nats.kill(2);
    await_reason(&orchestrator).await;
    nats.start_again(2).await;
    orchestrator.ready().await;
    orchestrator.rest.configure("a").await;
    orchestrator.kill().await;
    orchestrator.start();
    orchestrator.ready().await;
}

/// The client is not told the limit of an account.
#[tokio::test]
async fn small_messages_of_the_account_are_waited_out() {
    let nats = SecuredNats::start(1).await;
    limit(&nats, 64 * 1024).await;
    let mut orchestrator = nats.orchestrator();
    orchestrator.start();
    let reason = "raise the payload limit of this user and of its account";
    let named = async |orchestrator: &Orchestrator| {
        eventually("it to name the limit", async || {
            orchestrator.readiness().await.filter(|found| found.contains(reason))
        })
        .await;
    };
    named(&orchestrator).await;
    let (code, printed, _) = orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("problem  messages: NATS ends the connection ") && printed.contains(reason),
        "{printed}"
    );
    limit(&nats, -1).await;
    orchestrator.ready().await;
}

/// Limits the messages of all accounts; -1 is no limit.
async fn limit(nats: &SecuredNats, bytes: i64) {
    nats.edit_accounts(|claims| claims["limits"]["payload"] = bytes.into()).await;
}
