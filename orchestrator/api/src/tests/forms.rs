//! JSON and YAML, in requests and answers.

use os_upgrade_api_types::body::Page;
use os_upgrade_test_site::put_config;

use super::*;

const CONFIG: &str = "PUT /v1/config/os-upgrade";
const TRIGGER: &str = "POST /v1/state/os-upgrade/trigger-upgrade-site";

/// An API with one configured host.
async fn configured() -> TestApi {
    let mut site = TestSite::new(["h01"]);
    let records = [site.decide_record(&[put_config()])];
    TestApi::new(site, &records).await
}

fn accepting(request: &str, accept: &str) -> Request<Body> {
    let mut request = build(request, "application/json", "");
    request.headers_mut().insert("accept", accept.parse().unwrap());
    request
}

#[tokio::test]
async fn content_types() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let refused =
        error("only JSON and YAML are supported: send Content-Type application/json or application/yaml")
            .to_string();
    let (json, yaml) = (r#"{"worker-applications":[]}"#, "worker-applications: []");
    for (content_type, body, status) in [
        ("text/plain", json, 415),
        ("application/x-www-form-urlencoded", json, 415),
        // A patch must not replace the whole configuration.
        ("application/merge-patch+json", json, 415),
        ("application/json-patch+json", json, 415),
        ("application/json; charset=utf-8", json, 201),
        ("Application/JSON", json, 204),
        ("application/vnd.example+json", json, 204),
        ("*/*", json, 204),
        ("application/json", yaml, 400),
        ("application/yaml", yaml, 204),
        ("application/x-yaml", yaml, 204),
        ("text/yaml; charset=utf-8", yaml, 204),
        ("text/x-yaml", yaml, 204),
        ("application/vnd.example+yaml", yaml, 204),
        ("application/yaml", json, 204),
    ] {
        let (found, _, answer) = api.send(build(CONFIG, content_type, body)).await;
        assert_eq!(found, status, "{content_type} {body} {answer}");
        if status == 415 {
            assert_eq!(answer, refused, "{content_type}");
        }
    }
    let untyped = Request::put("/v1/config/os-upgrade").body(Body::from("{}")).unwrap();
    assert_eq!(api.send(untyped).await.0, 204);
}

/// Written by programs without integers.
#[tokio::test]
async fn floats_without_fraction_are_integers() {
    let api = configured().await;
    let get = "GET /v1/config/os-upgrade";
    for (request, content_type, body, kept) in [
        (CONFIG, "application/json", r#"{"rollout":{"max-concurrent":2.0,"max-failures":1e1}}"#, [2, 10]),
        (CONFIG, "application/yaml", "rollout:\n  max-concurrent: 3.0\n", [3, 0]),
        ("PATCH /v1/config/os-upgrade", "application/json", r#"{"rollout":{"max-failures":4.0}}"#, [3, 4]),
    ] {
        let (status, _, answer) = api.send(build(request, content_type, body)).await;
        assert_eq!(status, 204, "{body}: {answer}");
        let (_, config) = api.call(get, "").await;
        let expected = rollout(json!({"max-concurrent": kept[0], "max-failures": kept[1]}));
        assert_eq!(config["rollout"], expected, "{body}");
    }
    for (content_type, body) in [
        ("application/json", r#"{"rollout":{"max-concurrent":2.5}}"#),
        ("application/yaml", "rollout:\n  max-concurrent: 2.5\n"),
    ] {
        let (status, _, answer) = api.send(build(CONFIG, content_type, body)).await;
        let wrong = "rollout/max-concurrent: invalid value: floating point `2.5`, expected a whole number from 0 to \
                     4294967295";
        assert!(status == 400 && answer.contains(wrong), "{body}: {status} {answer}");
    }
}

#[tokio::test]
async fn invalid_yaml_is_refused() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let placed = |place: &str, message: &str| error_with(message, &json!({ "place": place }));
    let laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                  c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                  e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n";
    for (request, body, expected) in [
        (CONFIG, "", error("the body is empty; a JSON or YAML object is expected")),
        // A document of comments is not an empty configuration.
        (CONFIG, "# nothing\n", placed("", "invalid type: null, expected an object")),
        (CONFIG, "[a]", placed("", "invalid type: sequence, expected an object")),
        (
            CONFIG,
            "worker-applications:\n  - name: a\n  - name: ''\n",
            placed("worker-applications/1/name", "worker-applications/1/name: a name must not be empty"),
        ),
        (
            CONFIG,
            "worker-applications:\n",
            placed(
                "worker-applications",
                "worker-applications: invalid type: null, expected a list, [...], even of one",
            ),
        ),
        (
            CONFIG,
            "rollout: {}\nrollout: {}",
            placed("", "duplicate mapping key `rollout` is not allowed here at line 2, column 1"),
        ),
        (
            CONFIG,
            "{}\n---\n{}",
            placed("", "only single YAML document expected but multiple found at line 3, column 1"),
        ),
        (CONFIG, "rollout: {", placed("rollout", "rollout: unclosed bracket '{' at line 1, column 10")),
        (
            TRIGGER,
            "timeout: 5x",
            placed(
                "timeout",
                "timeout: \"5x\" is not a duration: expected [<n>y][<n>d][<n>h][<n>m][<n>s] of at most 100 years, \
                 such as 4h or 1d12h",
            ),
        ),
    ] {
        let (status, _, answer) = api.send(build(request, "application/yaml", body)).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, answer), (400, expected), "{request} {body:?}");
    }
    let deep = format!("rollout: {}{}", "[".repeat(100), "]".repeat(100));
    for body in [laughs, deep.as_str(), "a: *unknown", "rollout: !!python/object:os.system {}"] {
        assert_eq!(api.send(build(CONFIG, "application/yaml", body)).await.0, 400, "{body:.40}");
    }
}

#[tokio::test]
async fn trigger_accepts_yaml() {
    let api = configured().await;
    assert_eq!(api.send(build(TRIGGER, "application/yaml", "timeout: 10m\n")).await.0, 204);
    let run = api.site.published().state.run.clone().unwrap();
    assert_eq!((run.not_after - run.started_at).num_minutes(), 10);
}

#[tokio::test]
async fn answers_in_yaml() {
    let api = configured().await;
    for (request, status, expected) in [
        ("GET /v1/config/os-upgrade", 200, "worker-applications:\n  - name: os-upgrade-debian\n"),
        ("GET /v1/state/os-upgrade/runs", 200, "items: []\n"),
        ("GET /v1/nothing", 404, "errors:\n  - error-message: nothing exists at /v1/nothing\n"),
        (
            "POST /v1/state/os-upgrade/cancel",
            409,
            "errors:\n  - error-info:\n      kind: no-run\n    error-message: no run is active\n",
        ),
        ("PATCH /v1/state/os-upgrade/runs", 405, "errors:\n  - error-message: "),
    ] {
        for media_type in ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"] {
            let (found, headers, body) = api.send(accepting(request, media_type)).await;
            assert_eq!((found, headers["content-type"].as_bytes()), (status, media_type.as_bytes()));
            assert_eq!(headers["vary"], "accept");
            assert!(body.starts_with(expected), "{request}: {body}");
        }
    }
    let (status, headers, body) = api.send(accepting("HEAD /v1/config/os-upgrade", "text/yaml")).await;
    assert_eq!((status, body.as_str(), &headers["content-type"]), (200, "", &"text/yaml".parse().unwrap()));
}

/// Facts are passed through as the journal has them.
#[tokio::test]
async fn facts_in_yaml() {
    let api = configured().await;
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
    let runs: Page<String> = api.read("GET /v1/state/os-upgrade/runs?keys=true").await;
    let request = format!("GET /v1/state/os-upgrade/runs/{}", runs.items[0]);
    let (_, expected) = api.call(&request, "").await;
    let (_, _, body) = api.send(accepting(&request, "application/yaml")).await;
    assert_eq!(serde_saphyr::from_str::<Value>(&body).unwrap(), expected);
}

#[tokio::test]
async fn unacceptable_forms() {
    let api = configured().await;
    let message = "answers are in application/json, application/yaml, application/x-yaml, text/yaml, text/x-yaml: \
                   name one of them in Accept";
    for request in ["GET /v1/config/os-upgrade", "GET /v1/state/os-upgrade/hosts"] {
        let (status, headers, body) = api.send(accepting(request, "text/html")).await;
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (406, error(message)));
        assert_eq!(headers["content-type"], "application/json");
    }
    // Changes are applied, and errors are in JSON.
    let mut request = build(CONFIG, "application/json", "{}");
    request.headers_mut().insert("accept", "text/html".parse().unwrap());
    assert_eq!(api.send(request).await.0, 204);
    let (status, headers, _) = api.send(accepting("POST /v1/state/os-upgrade/cancel", "text/html")).await;
    assert_eq!((status, &headers["content-type"]), (409, &"application/json".parse().unwrap()));
    // Endpoints outside of `/v1/` ignore `Accept`.
    assert_eq!(api.send(accepting("GET /metrics", "text/plain")).await.0, 200);
    assert_eq!(api.send(accepting("GET /healthz", "text/plain")).await.0, 200);
}
