//! The pause of a site.

use chrono::{TimeDelta, Utc};
use os_upgrade_api_types::routes::state::State;
use serde_json::{Value, json};

use super::*;

const PAUSE: &str = "POST /v1/state/os-upgrade/pause";
const RESUME: &str = "POST /v1/state/os-upgrade/resume";
const TRIGGER: &str = "POST /v1/state/os-upgrade/trigger-upgrade-site";

#[tokio::test]
async fn paused_site_starts_no_run() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let config = r#"{"worker-applications":[{"name":"os-upgrade-debian"}]}"#;
    assert_eq!(api.call("PUT /v1/config/os-upgrade", config).await.0, 201);
    for wrong in [json!({}), json!({"reason": " "}), json!({"reason": "a", "until": "Friday"})] {
        assert_eq!(api.call(PAUSE, &wrong.to_string()).await.0, 400, "{wrong}");
    }
    let too_late = api.call(PAUSE, r#"{"reason":"a fair","until":"2026-11-21T00:00:00Z"}"#).await;
    assert_eq!((too_late.0, &too_late.1["errors"][0]["error-info"]["kind"]), (409, &json!("until-passed")));
    assert_eq!(api.call(&format!("{PAUSE}?validate=true"), r#"{"reason":"a fair"}"#).await.0, 204);

    let state = async || api.read::<State<'static>>("GET /v1/state/os-upgrade").await;
    assert!(state().await.paused.is_none());
    let until = Utc::now() + TimeDelta::days(3);
    let body = json!({"reason": " a fair ", "until": until.to_rfc3339()});
    assert_eq!(api.call(PAUSE, &body.to_string()).await, (204, Value::Null));
    let paused = state().await.paused.unwrap();
    assert_eq!((&*paused.actor, paused.reason.as_deref()), ("api", Some("a fair")));
    assert_eq!(paused.until.map(|end| end.0.timestamp()), Some(until.timestamp()));

    let (status, refused) = api.call(TRIGGER, "").await;
    let info = json!({"kind": "paused", "cause": "operator", "actor": "api", "reason": "a fair"});
    assert_eq!((status, &refused["errors"][0]["error-info"]), (409, &info));
    let text = refused["errors"][0]["error-message"].as_str().unwrap();
    assert_eq!(text, "the site is paused by api: a fair; `os-upgrade resume` ends that");

    assert_eq!(api.call(RESUME, r#"{"reason":"it is over"}"#).await, (204, Value::Null));
    assert_eq!(api.call(RESUME, "").await, (204, Value::Null));
    assert!(state().await.paused.is_none());
    assert_eq!(api.call(TRIGGER, "").await, (204, Value::Null));
}
