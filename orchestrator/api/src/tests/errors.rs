//! Errors: status and whole body.

use axum::routing::get;

use super::*;

const CONFIG: &str = "PUT /v1/config/os-upgrade";
const TRIGGER: &str = "POST /v1/state/os-upgrade/trigger-upgrade-site";

async fn check(cases: &[(&str, &str, u16, Value)]) {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    for (request, body, status, expected) in cases {
        assert_eq!(api.call(request, body).await, (*status, expected.clone()), "{request} {body}");
    }
}

#[tokio::test]
async fn invalid_bodies() {
    let duration = "\"5x\" is not a duration: expected [<n>y][<n>d][<n>h][<n>m][<n>s] of at most 100 years, \
                    such as 4h or 1d12h";
    check(&[
        (CONFIG, "", 400, error("the body is empty; a JSON or YAML object is expected")),
        (
            CONFIG,
            "{",
            400,
            error_with(
                "the body is not complete JSON: EOF while parsing an object at line 1 column 1",
                &json!({"place": ""}),
            ),
        ),
        (CONFIG, "{} {}", 400, error("trailing characters at line 1 column 4")),
        (
            CONFIG,
            r#"{"worker-applications":[{"nam":"a"}]}"#,
            400,
            error_with(
                "worker-applications/0/nam: unknown field `nam`, expected `name` at line 1 column 30",
                &json!({"place": "worker-applications/0/nam"}),
            ),
        ),
        (
            CONFIG,
            r#"{"worker-applications":[{"name":"a"},{"name":""}]}"#,
            400,
            error_with(
                "worker-applications/1/name: a name must not be empty at line 1 column 48",
                &json!({"place": "worker-applications/1/name"}),
            ),
        ),
        (
            CONFIG,
            r#"{"worker-applications":[{"name":"a"},{"name":"a"}]}"#,
            400,
            error_with(
                "worker-applications: \"a\" is listed twice",
                &json!({"kind": "invalid-config", "message": "worker-applications: \"a\" is listed twice"}),
            ),
        ),
        (
            TRIGGER,
            r#"{"timeout":"5x"}"#,
            400,
            error_with(&format!("timeout: {duration} at line 1 column 15"), &json!({"place": "timeout"})),
        ),
        (
            TRIGGER,
            r#"{"time":"4h"}"#,
            400,
            error_with(
                "time: unknown field `time`, expected one of `timeout`, `hosts`, `retry`, `reason` at line 1 column 7",
                &json!({"place": "time"}),
            ),
        ),
    ])
    .await;
}

#[tokio::test]
async fn invalid_queries() {
    let parameter = |name: &str, known: &[&str]| json!({"parameter": name, "known": known});
    check(&[
        (
            "GET /v1/state/cluster?colour=red",
            "",
            400,
            error_with("unknown query parameter \"colour\"; none is known here", &parameter("colour", &[])),
        ),
        (
            "GET /v1/state/os-upgrade/runs?offset=3",
            "",
            400,
            error_with(
                "unknown query parameter \"offset\"; known here: limit, after, host, result, from, to, keys, count",
                &parameter(
                    "offset",
                    &["limit", "after", "host", "result", "from", "to", "keys", "count"],
                ),
            ),
        ),
        (
            "GET /v1/state/os-upgrade/runs?limit=0",
            "",
            400,
            error("Failed to deserialize query string: limit: 0 is not between 1 and 500"),
        ),
        (
            "GET /v1/state/os-upgrade/runs?limit=ten",
            "",
            400,
            error("Failed to deserialize query string: limit: invalid digit found in string"),
        ),
        ("GET /v1/state/os-upgrade/runs?after=r9", "", 400, error("after: there is no run \"r9\"")),
        (
            "GET /v1/state/os-upgrade/runs/r9?events-after=x",
            "",
            400,
            error("Failed to deserialize query string: events-after: \"x\" is no place in the history, such as 12.0"),
        ),
        (
            "PUT /v1/config/os-upgrade?validate=yes",
            "{}",
            400,
            error(
                "Failed to deserialize query string: validate: \"yes\" is not a valid value; write true, or leave the \
                 parameter out",
            ),
        ),
        (
            "GET /v1/state/os-upgrade/hosts?keys=false",
            "",
            400,
            error(
                "Failed to deserialize query string: keys: \"false\" is not a valid value; write true, or leave the \
                 parameter out",
            ),
        ),
        ("GET /v1/state/os-upgrade/runs?count", "", 200, json!({"count": 0})),
    ])
    .await;
}

#[tokio::test]
async fn missing_resources() {
    check(&[
        ("GET /v1/nothing", "", 404, error("nothing exists at /v1/nothing")),
        ("GET /v1/config/os-upgrade", "", 404, error("there is no configuration")),
        ("GET /v1/state/os-upgrade/runs/r9", "", 404, error("there is no run \"r9\"")),
        ("GET /v1/state/os-upgrade/runs/a%20b", "", 404, error("there is no run \"a b\"")),
        ("GET /v1/state/os-upgrade/hosts/h09", "", 404, error("there is no host \"h09\"")),
        (
            TRIGGER,
            "",
            404,
            error_with(
                "there is no configuration yet: `os-upgrade config apply -f FILE` makes one",
                &json!({"kind": "no-configuration"}),
            ),
        ),
        (
            "POST /v1/state/os-upgrade/cancel",
            "",
            409,
            error_with("no run is active", &json!({"kind": "no-run"})),
        ),
    ])
    .await;
}

#[tokio::test]
async fn method_not_allowed() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let (status, headers, body) = api.send(build("POST /v1/config/os-upgrade", "application/json", "")).await;
    let expected = error("this method is not allowed here; Allow names those that are");
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (405, expected));
    assert_eq!(headers["allow"], "GET,HEAD,PUT,PATCH,DELETE,OPTIONS");
}

#[test]
fn refused_callers_are_not_logged() {
    for (status, is_routine, level) in [
        (200, false, None),
        (400, false, Some(Level::INFO)),
        (401, false, Some(Level::DEBUG)),
        (403, false, Some(Level::DEBUG)),
        (404, false, Some(Level::INFO)),
        (429, false, Some(Level::DEBUG)),
        (500, false, Some(Level::ERROR)),
        (503, false, Some(Level::ERROR)),
        (503, true, Some(Level::DEBUG)),
    ] {
        let found = failure_level(StatusCode::from_u16(status).unwrap(), is_routine);
        assert_eq!(found, level, "{status} {is_routine}");
    }
}

#[tokio::test]
async fn large_body_is_refused() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let large =
        format!("{{\"worker-applications\":[{}]}}", " ".repeat(Dialect::Specification.body_bytes_max()));
    assert_eq!(api.call(CONFIG, &large).await, (413, error("the body exceeds 1048576 bytes")));
}

/// An API with only `routes`, inside the limits of all routes.
async fn limited(routes: Router) -> TestApi {
    let (directory, projector) = store().await;
    let history = projector.history().await.unwrap();
    let site = SiteHandle::new(Arc::default(), mpsc::channel(1).0);
    let bounded = with_limits(routes, Dialect::Specification)
        .layer(middleware::from_fn_with_state(Dialect::Specification, with_timeout));
    TestApi { router: bounded, ..TestApi::over(site, history, directory) }
}

#[tokio::test]
async fn panic_is_an_internal_error() {
    #[expect(clippy::panic, reason = "it is what is tested")]
    async fn panics() {
        panic!("secret");
    }
    let api = limited(Router::new().route("/panic", get(panics))).await;
    assert_eq!(api.call("GET /panic", "").await, (500, error("internal error; the log has its cause")));
}

#[tokio::test]
async fn slow_handler_times_out() {
    let api = limited(Router::new().route("/never", get(std::future::pending::<()>))).await;
    tokio::time::pause();
    assert_eq!(api.call("GET /never", "").await, (503, error("no answer within 20 s")));
}

#[tokio::test]
async fn slow_body_times_out() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    tokio::time::pause();
    let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let (status, _, body) = api.send(Request::put("/v1/config/os-upgrade").body(body).unwrap()).await;
    assert_eq!((status, body), (408, error("the body did not arrive in time").to_string()));
}
