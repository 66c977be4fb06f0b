//! One host, or a stranger, sends as much as it can. `make floods` does the same for longer, and also measures by how much
//! runs are slowed down.

use std::time::Duration;

use harness::floods::{self, Flood, Kind};
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use reqwest::Method;
use serde_json::json;

/// The most messages a second: a program without optimizations, on a machine that runs other tests too, keeps up with them.
const PER_SECOND_MAX: u32 = 2_000;

async fn check(kind: Kind) {
    let lasts = Duration::from_secs(2);
    let per_second = kind.per_second().min(PER_SECOND_MAX);
    let cost = floods::run(Flood { kind, lasts, per_second, hosts: 3 }).await;
    assert_eq!(cost.harm(), [""; 0]);
}

#[tokio::test]
async fn announcements_of_one_host_harm_no_other() {
    check(Kind::Announcements).await;
}

#[tokio::test]
async fn heartbeats_of_one_host_harm_no_other() {
    check(Kind::Heartbeats).await;
}

#[tokio::test]
async fn replies_of_one_host_harm_no_other() {
    check(Kind::Replies).await;
}

#[tokio::test]
async fn sixteen_applications_of_a_host_count() {
    let site = Site::start().await;
    let rest = site.rest();
    for number in 1..=40 {
        site.announce(&format!("a{number:02}"), "h01").await;
    }
    site.announce("a01", "h02").await;
    let stored = async || {
        let stream = site.jetstream().get_stream(subject::WORKERS_STREAM).await.ok()?;
        Some(stream.cached_info().state.messages)
    };
    eventually("the others to be deleted", async || (stored().await? == 17).then_some(())).await;
    let named = |from: usize, to: usize| json!((from..=to).map(|n| format!("a{n:02}")).collect::<Vec<_>>());
    let host = rest.try_host("h01").await.unwrap();
    assert_eq!((&host["applications"], &host["refused-applications"]), (&named(1, 16), &named(17, 32)));
    assert!(rest.get_as("/metrics", "*/*").await.contains("messages_unused_total{kind=\"message\"} 24\n"));
    // There is a place once one is withdrawn, for one that is announced again.
    let to = "os-upgrade:workers.a03.h01";
    site.jetstream().publish(to, "".into()).await.unwrap().await.unwrap();
    eventually("the application to be withdrawn", async || {
        let host = rest.try_host("h01").await?;
        (host["applications"].as_array()?.len() == 15).then_some(())
    })
    .await;
    site.announce("a40", "h01").await;
    eventually("the application to count", async || {
        let host = rest.try_host("h01").await?;
        host["applications"].as_array()?.contains(&json!("a40")).then_some(())
    })
    .await;
}

/// A message is deleted, and nothing that its subject would match as a filter. Nor do other spellings of a name fill the
/// stream.
#[tokio::test]
async fn strays_take_no_announcement_with_them() {
    let site = Site::start().await;
    let rest = site.rest();
    site.announce("a01", "h02").await;
    let client = site.nats.client().await;
    client.publish("os-upgrade:workers.>.h01", "{}".into()).await.unwrap();
    let announcement = r#"{"host":"h01","application":"app"}"#;
    for spelling in ["app", "%61pp", "a%70p", "ap%70"] {
        client.publish(format!("os-upgrade:workers.{spelling}.h01"), announcement.into()).await.unwrap();
    }
    client.flush().await.unwrap();
    eventually("the strays to be counted", async || {
        let metrics = rest.get_as("/metrics", "*/*").await;
        metrics.contains("messages_unused_total{kind=\"message\"} 4\n").then_some(())
    })
    .await;
    let stream = async || site.jetstream().get_stream(subject::WORKERS_STREAM).await.ok();
    eventually("one announcement of each host to be left", async || {
        (stream().await?.cached_info().state.messages == 2).then_some(())
    })
    .await;
    let of_another =
        stream().await.unwrap().get_last_raw_message_by_subject("os-upgrade:workers.a01.h02").await;
    assert!(of_another.is_ok(), "{of_another:?}");
    assert_eq!(rest.try_host("h01").await.unwrap()["applications"], json!(["app"]));
}

/// The most bytes that a flood of refused requests may add to the log.
const LOG_BYTES_MAX: usize = 200_000;

#[tokio::test]
async fn refused_requests_leave_a_small_log() {
    let mut orchestrator = Orchestrator::managed();
    orchestrator.set_environment("RUST_LOG", "info");
    orchestrator.start_ready().await;
    let before = orchestrator.log().len();
    let long = format!("/v1/{}", "x".repeat(30_000));
    for (method, path, status) in [
        (Method::GET, long.as_str(), 404),
        (Method::GET, "/v1/nothing", 404),
        (Method::DELETE, "/v1/state/os-upgrade", 405),
    ] {
        for _ in 0..500 {
            let answer = orchestrator.rest.try_call(method.clone(), path, "").await;
            assert_eq!(answer.map(|(status, _)| status), Some(status), "{method}");
        }
    }
    eventually("the requests to be logged", async || {
        orchestrator.log().contains("request refused").then_some(())
    })
    .await;
    let written = orchestrator.log().len() - before;
    assert!(written < LOG_BYTES_MAX, "{written} bytes");
}
