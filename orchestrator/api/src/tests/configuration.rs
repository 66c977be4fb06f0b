//! The configuration resource: methods, conditions, patches, fields.

use chrono::{Datelike as _, Utc};
use os_upgrade_api_types::routes::state::State;
use os_upgrade_kernel::{Config, config as kernel};

use super::*;

const PATH: &str = "/v1/config/os-upgrade";
const ONE: &str = r#"{"worker-applications":[{"name":"a"}]}"#;

/// A request with headers.
fn request(method: &str, query: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(format!("{PATH}{query}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

impl TestApi {
    async fn etag(&self, accept: &str) -> String {
        let (status, headers, _) = self.send(request("GET", "", &[("accept", accept)], "")).await;
        assert_eq!(status, 200);
        headers["etag"].to_str().unwrap().to_owned()
    }

    async fn configuration(&self) -> Value {
        self.call(&format!("GET {PATH}"), "").await.1
    }
}

async fn configured(config: &str) -> TestApi {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    assert_eq!(api.call(&format!("PUT {PATH}"), config).await.0, 201);
    api
}

/// Warnings are in headers, or in the body under `Prefer`; a write that takes effect has them in its headers too.
#[tokio::test]
async fn writes_warn_of_what_follows() {
    let api = configured(ONE).await;
    let always = r#"{"worker-applications":[{"name":"os-upgrade-debian"},{"name":"l\u00f6v"}],
        "maintenance-windows":[{"cron":"0 0 * * * *","duration":"1h"}]}"#;
    let json = ("content-type", "application/json");
    let prefer = ("prefer", "return=representation");
    let starts = "a window is open now: this starts a run of 1 host at once";
    for (method, query, body, headers, expected, warnings) in [
        ("PUT", "?validate=true", always, &[json][..], 204, &[starts, "no host announces l\\u{f6}v"][..]),
        ("PUT", "?validate=true", always, &[json, prefer], 200, &[]),
        (
            "PUT",
            "?validate=true",
            ONE,
            &[json],
            204,
            &["nothing changes: this is the configuration in force", "no host announces a"],
        ),
        (
            "PATCH",
            "?validate=true",
            r#"{"worker-applications":[{"name":"b"}]}"#,
            &[json],
            204,
            &["no host announces b"],
        ),
        (
            "DELETE",
            "?validate=true",
            "",
            &[],
            204,
            &["without a configuration no run starts, neither in a window nor on an operator's trigger"],
        ),
        ("PATCH", "", r#"{"rollout":{"max-failures":1}}"#, &[json, prefer], 204, &["no host announces a"]),
        ("PUT", "", always, &[json, prefer], 204, &[starts, "no host announces l\\u{f6}v"]),
    ] {
        let (status, answered, text) = api.send(request(method, query, headers, body)).await;
        assert_eq!(status, expected, "{method}{query}: {text}");
        let found = answered.get_all("os-upgrade-warning").iter();
        let found: Vec<_> = found.map(|value| value.to_str().unwrap()).collect();
        assert_eq!(found, warnings, "{method}{query}");
        let applied = answered.get("preference-applied").is_some();
        assert_eq!(applied, status == 200);
        if status == 200 {
            let body: Value = serde_json::from_str(&text).unwrap();
            let warnings = body["warnings"].as_array().unwrap();
            assert_eq!((&warnings[0]["kind"], &warnings[0]["hosts"]), (&json!("starts-run"), &json!(1)));
            let unknown =
                json!({"kind": "not-announced", "application": "löv", "message": "no host announces löv"});
            assert_eq!(warnings[1..], [unknown]);
            assert_eq!(body["configuration"]["worker-applications"][1]["name"], "löv");
        } else {
            assert_eq!(text, "");
        }
    }
}

/// With an answer in the body, also when the next run starts before and after.
#[tokio::test]
async fn validated_writes_have_the_next_start_before_and_after() {
    let windows = |day: &str| {
        json!({
            "worker-applications": [{"name": "os-upgrade-debian"}],
            "maintenance-windows": [{"cron": format!("0 0 1 {day} * *"), "duration": "1h"}],
        })
        .to_string()
    };
    // On a day of the month that cannot be today.
    let [first, second] = if Utc::now().day() < 15 { ["20", "25"] } else { ["5", "10"] };
    let api = configured(&windows(first)).await;
    let headers = [("content-type", "application/json"), ("prefer", "return=representation")];
    let next = async |method: &str, body: &str| {
        let (status, _, text) = api.send(request(method, "?validate=true", &headers, body)).await;
        assert_eq!(status, 200, "{text}");
        let body: Value = serde_json::from_str(&text).unwrap();
        let day = |at: &Value| Some(at.as_str()?[8..10].trim_start_matches('0').to_owned());
        (day(&body["next-upgrade-at"]["before"]), day(&body["next-upgrade-at"]["after"]))
    };
    let day = |day: &str| Some(day.to_owned());
    assert_eq!(next("PUT", &windows(second)).await, (day(first), day(second)));
    assert_eq!(next("PUT", ONE).await, (day(first), None));
    assert_eq!(next("DELETE", "").await, (day(first), None));
}

#[tokio::test]
async fn options_lists_methods_and_patch_types() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let (status, headers, body) = api.send(request("OPTIONS", "", &[], "")).await;
    assert_eq!((status, body.as_str()), (204, ""));
    assert_eq!(headers["allow"], "GET, HEAD, PUT, PATCH, DELETE, OPTIONS");
    assert_eq!(headers["accept-patch"], patch::ACCEPTED);
}

type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, u16, u16);

/// Method, query, headers, body; the status with a configuration, and without one.
#[tokio::test]
async fn statuses_with_and_without_configuration() {
    const JSON: (&str, &str) = ("content-type", "application/json");
    const STEPS: (&str, &str) = ("content-type", "application/json-patch+json");
    let failing = r#"[{"op":"test","path":"/worker-applications/0/name","value":"b"}]"#;
    let impossible = r#"[{"op":"remove","path":"/rollout"}]"#;
    let cases: &[Case] = &[
        ("GET", "", &[], "", 200, 404),
        ("HEAD", "", &[], "", 200, 404),
        ("GET", "?validate=true", &[], "", 200, 404),
        ("GET", "?validate=false", &[], "", 400, 400),
        ("GET", "?content=config", &[], "", 400, 400),
        ("GET", "?fields=rollout", &[], "", 200, 404),
        ("GET", "?fields=colour", &[], "", 400, 400),
        ("GET", "", &[("accept", "text/html")], "", 406, 406),
        ("GET", "", &[("if-match", "\"x\"")], "", 412, 404),
        ("GET", "", &[("if-match", "*")], "", 200, 404),
        ("GET", "", &[("if-none-match", "*")], "", 304, 404),
        ("GET", "", &[("if-none-match", "x")], "", 400, 400),
        ("PUT", "", &[], ONE, 204, 201),
        ("PUT", "?validate=true", &[], ONE, 204, 204),
        ("PUT", "?validate=true", &[], r#"{"rollout":{"max-concurrent":0}}"#, 400, 400),
        ("PUT", "", &[("if-none-match", "*")], ONE, 412, 201),
        ("PUT", "", &[("if-match", "*")], ONE, 204, 412),
        ("PUT", "", &[("if-match", "\"x\", \"y\"")], ONE, 412, 412),
        ("PUT", "", &[("if-none-match", "\"x\"")], ONE, 204, 201),
        ("PUT", "?validate=true", &[("if-match", "*")], ONE, 204, 412),
        ("PUT", "", &[("content-type", "text/plain")], ONE, 415, 415),
        ("PATCH", "", &[JSON], "{}", 204, 404),
        ("PATCH", "", &[JSON], r#"{"rollout":{"max-failures":1}}"#, 204, 404),
        ("PATCH", "?validate=true", &[JSON], r#"{"rollout":{"max-concurrent":0}}"#, 400, 404),
        ("PATCH", "", &[JSON], r#"{"colour":"red"}"#, 400, 404),
        ("PATCH", "", &[JSON], "[]", 400, 400),
        ("PATCH", "", &[JSON], "", 400, 400),
        ("PATCH", "", &[JSON, ("if-match", "*")], "{}", 204, 404),
        ("PATCH", "", &[JSON, ("if-match", "\"x\"")], "{}", 412, 404),
        ("PATCH", "", &[JSON, ("if-none-match", "*")], "{}", 412, 404),
        ("PATCH", "", &[STEPS], "[]", 204, 404),
        ("PATCH", "", &[STEPS], failing, 412, 404),
        ("PATCH", "", &[STEPS], impossible, 400, 404),
        ("PATCH", "", &[STEPS], r#"[{"op":"remove","path":"/worker-applications/0"}]"#, 204, 404),
        ("PATCH", "", &[("content-type", "text/plain")], "{}", 415, 415),
        ("PATCH", "", &[("content-type", "application/json-patch+yaml")], "{}", 415, 415),
        ("PATCH", "", &[("content-type", "application/merge-patch+yaml")], "{}", 415, 415),
        ("PATCH", "", &[("content-type", "application/strategic-merge-patch+json")], "{}", 415, 415),
        ("DELETE", "", &[], "", 204, 404),
        ("DELETE", "?validate=true", &[], "", 204, 404),
        ("DELETE", "", &[("if-match", "\"x\"")], "", 412, 404),
        ("DELETE", "", &[("if-match", "*")], "", 204, 404),
        ("DELETE", "", &[("if-none-match", "*")], "", 412, 404),
        ("DELETE", "", &[("if-none-match", "\"x\"")], "", 204, 404),
        ("OPTIONS", "", &[], "", 204, 204),
        ("POST", "", &[], "{}", 405, 405),
    ];
    for (method, query, headers, body, with, without) in cases {
        for (api, expected) in
            [(configured(ONE).await, with), (TestApi::new(TestSite::new(["h01"]), &[]).await, without)]
        {
            let (status, _, answer) = api.send(request(method, query, headers, body)).await;
            assert_eq!(status, *expected, "{method} {query} {headers:?} {body}: {answer}");
        }
    }
}

#[tokio::test]
async fn validation_changes_nothing() {
    let api = configured(ONE).await;
    let before = api.configuration().await;
    for (method, body) in [("PUT", "{}"), ("PATCH", r#"{"rollout":{"max-failures":1}}"#), ("DELETE", "")] {
        assert_eq!(api.send(request(method, "?validate=true", &[], body)).await.0, 204, "{method}");
        assert_eq!(api.configuration().await, before, "{method}");
    }
}

#[tokio::test]
async fn if_none_match_reports_existing_configuration() {
    let api = configured(ONE).await;
    for method in ["PUT", "PATCH", "DELETE"] {
        let (status, _, body) = api.send(request(method, "", &[("if-none-match", "*")], ONE)).await;
        let expected =
            "a configuration exists, and If-None-Match: * requires that there is none: leave it out";
        assert!(status == 412 && body.contains(expected), "{method}: {status} {body}");
    }
}

#[tokio::test]
async fn json_and_yaml_have_own_tags() {
    let api = configured(ONE).await;
    let (json, yaml) = (api.etag("application/json").await, api.etag("application/yaml").await);
    assert_ne!(json, yaml);
    assert!(json.starts_with('"') && json.ends_with('"'), "{json}");
    for (accept, known, status) in [
        ("application/json", &json, 304),
        ("application/yaml", &yaml, 304),
        ("application/json", &yaml, 200),
        ("application/yaml", &json, 200),
    ] {
        let (found, headers, body) =
            api.send(request("GET", "", &[("accept", accept), ("if-none-match", known)], "")).await;
        assert_eq!((found, body.is_empty()), (status, status == 304), "{accept} {known}");
        assert_eq!((&headers["vary"], headers.contains_key("etag")), (&"accept".parse().unwrap(), true));
    }
    let weak = format!("W/{json}");
    assert_eq!(api.send(request("GET", "", &[("if-none-match", &weak)], "")).await.0, 304);
    assert_eq!(api.send(request("PUT", "", &[("if-match", &weak)], "{}")).await.0, 412);

    // A write accepts the tag of either form, until the configuration changes.
    let other = format!("\"x\", {yaml}");
    assert_eq!(
        api.send(request("PATCH", "", &[("if-match", &other)], r#"{"rollout":{"max-failures":1}}"#)).await.0,
        204
    );
    assert_ne!(api.etag("application/json").await, json);
    for method in ["PUT", "PATCH", "DELETE"] {
        let (status, _, body) = api.send(request(method, "", &[("if-match", &json)], "{}")).await;
        assert_eq!(status, 412, "{method} {body}");
    }
    let current = api.etag("*/*").await;
    assert_eq!(api.send(request("PUT", "", &[("if-none-match", &current)], "{}")).await.0, 412);
    assert_eq!(api.send(request("DELETE", "", &[("if-match", &current)], "")).await.0, 204);
    assert_eq!(api.send(request("GET", "", &[], "")).await.0, 404);
    // The same configuration, created again, has another tag.
    assert_eq!(api.send(request("PUT", "", &[], ONE)).await.0, 201);
    assert_ne!(api.etag("*/*").await, json);
}

/// The windows were valid when they were configured, because a longer one was still to come. It is over now, but
/// patches that leave the windows alone are accepted.
#[tokio::test]
async fn patch_ignores_unchanged_windows() {
    let config = r#"{"minimum-remaining":"2h","maintenance-windows":[{"cron":"0 0 1 * * *","duration":"1h"},
        {"cron":"0 0 1 * * *","duration":"4h","not-after":"2026-11-30"}]}"#;
    let mut site = TestSite::new(["h01"]);
    let put = os_upgrade_kernel::ConfigOperation::Put {
        config: serde_json::from_str(config).unwrap(),
        expected: os_upgrade_kernel::Expected::Anything,
    };
    let put = os_upgrade_kernel::Request::new("api", put).into();
    let records = [site.decide_record(&[Input::Request(put)])];
    site.now = "2026-12-24T05:00:00Z".parse().unwrap();
    let api = TestApi::new(site, &records).await;
    let current = api.etag("*/*").await;
    let merge = ("content-type", "application/merge-patch+json");
    let steps = ("content-type", "application/json-patch+json");
    let failing = r#"[{"op":"test","path":"/minimum-remaining","value":"1h"}]"#;
    let impossible = r#"[{"op":"remove","path":"/colour"}]"#;
    for (headers, patch, expected) in [
        ([merge, ("if-match", "\"x\"")], r#"{"rollout":{"max-failures":1}}"#, 412),
        ([merge, ("if-match", &current)], r#"{"colour":"red"}"#, 400),
        ([steps, ("if-match", &current)], failing, 412),
        ([steps, ("if-match", &current)], impossible, 400),
        ([merge, ("if-match", &current)], r#"{"start-jitter":"1m","rollout":{"max-failures":1}}"#, 204),
    ] {
        let (status, _, answer) = api.send(request("PATCH", "", &headers, patch)).await;
        assert_eq!(status, expected, "{patch}: {answer}");
        assert!(!answer.contains("no occurrence of the maintenance windows"), "{patch}: {answer}");
    }
    let later = r#"{"deny-windows":[{"cron":"0 0 0 24 12 *","duration":"1d"}]}"#;
    let (status, _, answer) = api.send(request("PATCH", "", &[merge], later)).await;
    assert!(
        status == 400 && answer.contains("no occurrence of the maintenance windows"),
        "{status} {answer}"
    );
}

#[tokio::test]
async fn patches_change_only_their_fields() {
    let merge = "application/merge-patch+json";
    let config = r#"{"worker-applications":[{"name":"a"},{"name":"b"}],"rollout":{"max-concurrent":3,"max-failures":1}}"#;
    let rollout = |concurrent: u32, failures: u32| {
        rollout(json!({"max-concurrent": concurrent, "max-failures": failures}))
    };
    let both = json!([{"name": "a"}, {"name": "b"}]);
    for (content_type, patch, expected) in [
        // Lists are replaced whole, objects field by field.
        (
            merge,
            r#"{"worker-applications":[{"name":"c"}]}"#,
            json!({"worker-applications": [{"name": "c"}], "rollout": rollout(3, 1)}),
        ),
        (
            merge,
            r#"{"rollout":{"max-failures":2}}"#,
            json!({"worker-applications": both, "rollout": rollout(3, 2)}),
        ),
        (merge, r#"{"rollout":null}"#, json!({"worker-applications": both})),
        (
            "application/yaml",
            "rollout:\n  max-concurrent: 4\n",
            json!({"worker-applications": both, "rollout": rollout(4, 1)}),
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"test","path":"/rollout/max-failures","value":1},{"op":"remove","path":"/worker-applications/0"}]"#,
            json!({"worker-applications": [{"name": "b"}], "rollout": rollout(3, 1)}),
        ),
    ] {
        let api = configured(config).await;
        let (status, _, body) =
            api.send(request("PATCH", "", &[("content-type", content_type)], patch)).await;
        assert_eq!((status, body.as_str()), (204, ""), "{patch}");
        assert_eq!(api.configuration().await, expected, "{patch}");
    }
    let api = configured(config).await;
    let (status, headers, _) = api.send(request("PATCH", "", &[("content-type", "text/plain")], "{}")).await;
    assert_eq!((status, headers["accept-patch"].to_str().unwrap()), (415, patch::ACCEPTED));
    let (_, _, body) =
        api.send(request("PATCH", "", &[], r#"{"worker-applications":[{"name":"a"},{"name":""}]}"#)).await;
    let expected = error_with(
        "worker-applications/1/name: a name must not be empty",
        &json!({"place": "worker-applications/1/name"}),
    );
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
}

#[tokio::test]
async fn fields_selects_parts() {
    let api = configured(r#"{"worker-applications":[{"name":"a"}],"rollout":{"max-concurrent":3}}"#).await;
    for (fields, expected) in [
        ("worker-applications", json!({"worker-applications": [{"name": "a"}]})),
        ("rollout/max-concurrent,maintenance-windows", json!({"rollout": {"max-concurrent": 3}})),
        (
            "worker-applications/name,rollout/unreachable",
            json!({"worker-applications": [{"name": "a"}], "rollout": {"unreachable": "skip"}}),
        ),
    ] {
        let (status, headers, body) = api.send(request("GET", &format!("?fields={fields}"), &[], "")).await;
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (200, expected), "{fields}");
        assert_eq!(headers["etag"].to_str().unwrap(), api.etag("*/*").await);
    }
}

#[tokio::test]
async fn config_history_is_newest_first() {
    const HISTORY: &str = "GET /v1/state/os-upgrade/config-history";
    let api = configured(ONE).await;
    assert_eq!(api.send(request("PATCH", "", &[], r#"{"rollout":{"max-failures":1}}"#)).await.0, 204);
    assert_eq!(
        api.send(request("PATCH", "?validate=true", &[], r#"{"rollout":{"max-failures":2}}"#)).await.0,
        204
    );
    assert_eq!(api.send(request("DELETE", "", &[], "")).await.0, 204);
    let one = json!({"worker-applications": [{"name": "a"}]});
    let rollout = rollout(json!({"max-failures": 1}));
    let both = json!({"worker-applications": [{"name": "a"}], "rollout": rollout});
    let change = |sequence: u64, difference: Value| {
        let time = format!("2026-11-21T05:00:{sequence:02}.000Z");
        json!({"sequence": sequence, "place": 0, "time": time, "actor": "api", "difference": difference})
    };
    let deleted = change(4, json!([{"path": "", "before": both}]));
    let mut changed = change(2, json!([{"path": "rollout", "after": rollout}]));
    changed["configuration"] = both.clone();
    let mut created = change(1, json!([{"path": "", "after": one}]));
    created["configuration"] = one;
    assert_eq!(api.call(HISTORY, "").await, (200, json!({"items": [deleted, changed, created]})));
    let page = api.call(&format!("{HISTORY}?limit=1"), "").await;
    assert_eq!(page, (200, json!({"items": [deleted], "next": "4.0"})));
    let page = api.call(&format!("{HISTORY}?limit=1&after=4.0"), "").await;
    assert_eq!(page, (200, json!({"items": [changed], "next": "2.0"})));
    let page = api.call(&format!("{HISTORY}?after=2.0"), "").await;
    assert_eq!(page, (200, json!({"items": [created]})));
    for query in ["limit=0", "limit=501", "after=x", "colour=red"] {
        assert_eq!(api.call(&format!("{HISTORY}?{query}"), "").await.0, 400, "{query}");
    }
}

/// Of concurrent patches with the same tag one wins. Those without a tag are all applied.
#[tokio::test]
async fn concurrent_patches_lose_nothing() {
    let api = configured(ONE).await;
    for round in 0..5 {
        let tag = api.etag("*/*").await;
        let patches = (0..50).map(|number| {
            let patch = json!({"rollout": {"max-failures": 100 + 100 * round + number}}).to_string();
            api.send(request("PATCH", "", &[("if-match", &tag)], &patch))
        });
        let statuses: Vec<u16> =
            futures::future::join_all(patches).await.into_iter().map(|(status, ..)| status).collect();
        assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 49, "{statuses:?}");
    }
    let append = |number: u32| {
        let steps =
            json!([{"op": "add", "path": "/worker-applications/-", "value": {"name": format!("w{number}")}}]);
        request("PATCH", "", &[("content-type", "application/json-patch+json")], &steps.to_string())
    };
    let answers = futures::future::join_all((0..20).map(|number| api.send(append(number)))).await;
    assert!(answers.iter().all(|(status, ..)| *status == 204), "{answers:?}");
    assert_eq!(api.configuration().await["worker-applications"].as_array().unwrap().len(), 21);
}

#[tokio::test]
async fn run_is_unaffected_by_configuration_changes() {
    let api = configured(r#"{"worker-applications":[{"name":"os-upgrade-debian"}]}"#).await;
    assert_eq!(api.call("POST /v1/state/os-upgrade/trigger-upgrade-site", "").await.0, 204);
    let run = api.site.published().state.run.clone().unwrap();
    assert_eq!(api.send(request("PATCH", "", &[], r#"{"rollout":{"max-concurrent":9}}"#)).await.0, 204);
    assert_eq!(api.send(request("DELETE", "", &[], "")).await.0, 204);
    let now = api.site.published().state.run.clone().unwrap();
    assert_eq!((&now.id, &now.rollout, now.not_after), (&run.id, &run.rollout, run.not_after));
    assert_eq!(api.read::<State<'_>>("GET /v1/state/os-upgrade").await.status, "preparing");
}

/// The names of all fields of `T`, which refuses others.
fn fields_of<T: DeserializeOwned>() -> Vec<String> {
    let refused = serde_json::from_str::<T>(r#"{"?": 0}"#).err().unwrap().to_string();
    refused.split('`').skip(3).step_by(2).map(ToOwned::to_owned).collect()
}

/// The description has every field of the kernel's configuration: `fields` selects it, and `null` removes it, so that its default applies.
#[tokio::test]
async fn every_field_is_selected_and_removed() {
    let (mut selected, mut removed) = (Vec::new(), Vec::new());
    for (parent, fields, is_in_list) in [
        ("", fields_of::<Config>(), false),
        ("rollout/", fields_of::<kernel::Rollout>(), false),
        ("rollout/retries/", fields_of::<kernel::Retries>(), false),
        ("worker-applications/", fields_of::<kernel::WorkerApplication>(), true),
        ("config-providers/", fields_of::<kernel::ConfigProvider>(), true),
        ("config-providers/selector/", fields_of::<kernel::Selector>(), true),
    ] {
        assert!(!fields.is_empty(), "{parent}");
        for field in fields {
            let path = format!("{parent}{field}");
            removed.extend((!is_in_list).then(|| path.clone()));
            selected.push(path);
        }
    }
    assert!(selected.iter().any(|path| path == "config-providers/poll-interval"), "{selected:?}");
    let api = configured(ONE).await;
    for path in selected {
        for resource in ["/v1/config/os-upgrade", "/v1/state/os-upgrade"] {
            let (status, answer) = api.call(&format!("GET {resource}?fields={path}"), "").await;
            assert_eq!(status, 200, "{resource} {path}: {answer}");
        }
    }
    for path in removed {
        let patch = path.rsplit('/').fold(Value::Null, |inner, name| json!({ name: inner }));
        let (status, _, answer) = api.send(request("PATCH", "", &[], &patch.to_string())).await;
        assert_eq!((status, answer.as_str()), (204, ""), "{path}");
    }
    let app = json!([{"name": "app", "kind": "http", "url": "https://files.example/"}]);
    let given = json!({ "config-providers": app }).to_string();
    assert_eq!(api.send(request("PATCH", "", &[], &given)).await.0, 204);
    assert_eq!(api.configuration().await["config-providers"], app);
    assert_eq!(api.send(request("PATCH", "", &[], r#"{"config-providers":null}"#)).await.0, 204);
    assert_eq!(api.configuration().await["config-providers"], Value::Null);
}

/// The document and the server agree on what a patch may be.
#[tokio::test]
async fn patches_are_accepted_as_described() {
    let merge = ("application/merge-patch+json", json!({"$ref": "#/components/schemas/ConfigPatch"}));
    let step = json!({"$ref": "#/components/schemas/PatchStep"});
    let steps = ("application/json-patch+json", json!({"type": "array", "items": step}));
    let name = "/worker-applications/0/name";
    for ((media_type, schema), body, accepted) in [
        (&merge, json!({}), true),
        (&merge, json!({"rollout": {"max-concurrent": 2}, "minimum-remaining": "1h"}), true),
        (&merge, json!({"rollout": {"max-failures": null}, "minimum-remaining": null}), true),
        (&merge, json!({"rollout": null, "maintenance-windows": null, "worker-applications": []}), true),
        (&merge, json!({"rollouts": {}}), false),
        (&merge, json!({"config-providers": null, "rollout": {"provider-wait": null}}), true),
        (&merge, json!({"config-providers": [{"name": "app", "kind": "http", "url": "https://a/"}]}), true),
        (&merge, json!({"config-providers": [{"name": "app", "kind": "ftp", "url": "https://a/"}]}), false),
        (&merge, json!({"config-providers": {"app": null}}), false),
        (&merge, json!({"worker-applications": {"0": {"name": "a"}}}), false),
        (&merge, json!({"maintenance-window": null}), false),
        (&merge, json!({"rollout": {"max-concurent": 2}}), false),
        (&merge, json!({"rollout": {"max-concurent": null}}), false),
        (&merge, json!({"worker-applications": "os-upgrade-debian"}), false),
        (&merge, json!({"worker-applications": [{"name": null}]}), false),
        (&steps, json!([{"op": "test", "path": name, "value": "os-upgrade-debian", "from": "/a"}]), true),
        (
            &steps,
            json!([{"op": "copy", "path": "/worker-applications/-", "from": "/worker-applications/0"}]),
            false,
        ),
        (&steps, json!([{"op": "remove", "path": "/worker-applications/0", "from": 7}]), false),
        (&steps, json!([{"op": "copy", "path": "/worker-applications/-", "from": {}}]), false),
    ] {
        let api = configured(r#"{"worker-applications":[{"name":"os-upgrade-debian"}]}"#).await;
        let request = build("PATCH /v1/config/os-upgrade", media_type, &body.to_string());
        let (status, _, answer) = api.send(request).await;
        let repeats = answer.contains("twice");
        assert_eq!(status, if accepted { 204 } else { 400 }, "{body}: {answer}");
        // That a name is given twice is beyond a schema.
        let faults = conformance::faults(schema, &body);
        assert_eq!(faults.is_empty(), accepted || repeats, "{body}: {faults:?}");
    }
}

#[tokio::test]
async fn empty_list_of_fields_is_refused_as_described() {
    let api = configured(ONE).await;
    let document: Value = serde_json::from_str(description()).unwrap();
    for path in ["/v1/config/os-upgrade", "/v1/state/os-upgrade"] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        let fields = parameters.iter().find(|parameter| parameter["name"] == "fields").unwrap();
        assert_eq!(fields["schema"]["minLength"], 1, "{fields}");
        assert_eq!(api.call(&format!("GET {path}?fields="), "").await.0, 400, "{path}");
    }
}
