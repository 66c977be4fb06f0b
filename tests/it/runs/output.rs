//! What a host's commands printed, as operators read it.

use std::time::Duration;

use async_nats::jetstream::stream::DiscardPolicy;
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
    assert!(
        printed.starts_with("==> h01: upgrade, ") && printed.trim_end().ends_with("<==\nE: /boot is full"),
        "{printed}"
    );

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
}
