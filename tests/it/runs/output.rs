//! What a host's commands printed, as operators read it.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use serde_json::json;

fn path(run: &str, host: &str) -> String {
    format!("/v1/state/os-upgrade/runs/{run}/hosts/{host}/output")
}

#[tokio::test]
async fn output_of_a_failed_host_is_read_until_it_is_lost() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let mut hosts = [site.host("h01")];
    hosts[0].fail("upgrade", "E: /boot is full");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));
    let read = async || rest.get(&path(&id, "h01")).await;
    let (status, shown) = read().await;
    assert_eq!(status, 200, "{shown}");
    let last = shown["items"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["action"], &last["attempt"]), (&json!("upgrade"), &json!(1)));
    assert!(last["text"].as_str().unwrap().ends_with("E: /boot is full\n"), "{shown}");

    let (code, printed, _) = site.orchestrator.ask(&["run", "logs", "--utc"], "").await;
    assert_eq!(code, Some(0), "{printed}");
    let (kept, silent) = printed.split_once("\n\n").unwrap();
    assert!(kept.starts_with("==> h01: upgrade, ") && kept.ends_with("<==\nE: /boot is full"), "{printed}");
    assert_eq!(silent, "==> h01: prepare: it printed nothing, or that is no longer kept <==");

    // It is in NATS, and so survives the orchestrator.
    site.orchestrator.kill().await;
    site.orchestrator.start_ready().await;
    assert_eq!(read().await, (200, shown));

    // Losing it is no alarm; the stream is created again.
    site.jetstream().delete_stream(subject::OUTPUT_STREAM).await.unwrap();
    assert_eq!(read().await.0, 404);
    let stream = async || site.jetstream().get_stream(subject::OUTPUT_STREAM).await.ok();
    let stream = eventually("the stream", stream).await;
    // What bounds its growth.
    let config = &stream.cached_info().config;
    assert_eq!((config.max_messages_per_subject, config.max_age), (3, Duration::from_hours(720)));
    assert_eq!((config.max_bytes, config.max_message_size), (1 << 30, 68 << 10));
    assert_eq!(config.discard, DiscardPolicy::Old);
    assert_eq!(site.orchestrator.readiness().await.as_deref(), Some(""));
    let next = rest.start_run().await;
    assert_eq!(rest.await_end(&next).await.result(), Some("failed"));
    assert_eq!(rest.get(&path(&next, "h01")).await.0, 200);

    // One with other settings is neither used nor changed, and is no alarm.
    let unbounded = Config { max_bytes: -1, ..config.clone() };
    site.orchestrator.kill().await;
    site.jetstream().delete_stream(subject::OUTPUT_STREAM).await.unwrap();
    site.jetstream().create_stream(unbounded).await.unwrap();
    site.orchestrator.start_ready().await;
    let last = rest.start_run().await;
    assert_eq!(rest.await_end(&last).await.result(), Some("failed"));
    let (status, shown) = rest.get(&path(&last, "h01")).await;
    let is_named = |text: &str| text.contains("os-upgrade:output has max-bytes = 0; 1073741824 is needed");
    assert!(status == 503 && is_named(&shown.to_string()), "{status} {shown}");
    eventually("a warning", async || is_named(&site.orchestrator.log()).then_some(())).await;
    let found = site.jetstream().get_stream(subject::OUTPUT_STREAM).await.unwrap();
    assert_eq!(found.cached_info().config.max_bytes, -1);
    assert_eq!(site.orchestrator.readiness().await.as_deref(), Some(""));
}
