//! Units and machines in fleet's two dialects. Who may use them is in `authorization`, what layers refuse in `limits` and `tls`.

mod deletes;
mod puts;
mod reads;

use os_upgrade_api_types::fleet::contents;
use os_upgrade_api_types::fleet::error::ErrorBody;
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_kernel::fact::UnitFact;
use os_upgrade_scheduler::{UnitName, UnitState};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::*;

const JSON: &[&str] = &["application/json"];
const PING: &str = "[Unit]\nDescription=PING\n\n[Service]\nExecStart=/bin/ping\n";
const OTHER: &str = "[Service]\nExecStart=/bin/true\n";

/// A site that has the unit `name` with this text, if there is one.
fn site(name: &str, text: Option<&str>) -> TestSite {
    let mut site = TestSite::new(["h01"]);
    if let Some(text) = text {
        submit(&mut site, name, text, UnitState::Inactive);
    }
    site
}

/// There is the unit `name` with this text from here on.
fn submit(site: &mut TestSite, name: &str, text: &str, desired: UnitState) {
    let (name, contents, actor) = (UnitName::new(name).unwrap(), text.to_owned(), "eve".to_owned());
    apply(site, UnitFact::Submitted { name, contents, desired, actor });
}

fn apply(site: &mut TestSite, fact: UnitFact) {
    site.state.apply(site.now, &fact.into()).unwrap();
}

/// The path of the unit `name` below the prefix, as clients escape it.
fn item(name: &str) -> String {
    format!("/units/{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// The answer to `request`, which is `<method> <path>` below the prefix, with these media types and this body.
async fn ask(
    api: &TestApi,
    version: Version,
    request: &str,
    (types, body): (&[&str], &[u8]),
) -> (u16, HeaderMap, String) {
    let (method, path) = request.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(format!("{}{path}", version.prefix()));
    let request = types.iter().fold(request, |request, kind| request.header("content-type", *kind));
    api.send(request.body(Body::from(body.to_vec())).unwrap()).await
}

/// The body of the answer to a GET, and its status.
async fn get(api: &TestApi, version: Version, path: &str) -> (u16, Value) {
    let (status, _, body) = ask(api, version, &format!("GET {path}"), (&[], b"")).await;
    (status, serde_json::from_str(&body).unwrap())
}

/// The sentence of an error.
fn message(body: &str) -> String {
    serde_json::from_str::<ErrorBody>(body).unwrap().error.message
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let api = TestApi::new(site("a.service", Some(PING)), &[]).await;
    let only_get = "only GET can be used here";
    for (version, request, status, allow, expected) in [
        (Version::V1Alpha, "GET /", 404, None, "nothing exists at /v1-alpha/"),
        (Version::V1Alpha, "GET /unit", 404, None, "nothing exists at /v1-alpha/unit"),
        (Version::V1Alpha, "GET /units/", 404, None, "nothing exists at /v1-alpha/units/"),
        (
            Version::V1Alpha,
            "GET /units/a.service/x",
            404,
            None,
            "nothing exists at /v1-alpha/units/a.service/x",
        ),
        (Version::V1Alpha, "GET /state", 404, None, "nothing exists at /v1-alpha/state"),
        (Version::V1, "PUT /state/x/y", 404, None, "nothing exists at /fleet/v1/state/x/y"),
        (Version::V1Alpha, "POST /units", 405, Some("GET,HEAD"), only_get),
        (Version::V1Alpha, "DELETE /machines", 405, Some("GET,HEAD"), only_get),
        (Version::V1Alpha, "PUT /discovery", 405, Some("GET,HEAD"), only_get),
        (
            Version::V1Alpha,
            "PATCH /units/a.service",
            405,
            Some("GET,HEAD,PUT,DELETE"),
            "only GET, PUT and DELETE can be used here",
        ),
        (Version::V1, "PATCH /machines", 405, Some("GET,HEAD"), only_get),
        (Version::V1, "PUT /state/a.service", 405, Some("GET,HEAD"), only_get),
        (
            Version::V1,
            "POST /discovery",
            400,
            Some("GET,HEAD"),
            "the discovery document can only be read, with GET",
        ),
    ] {
        let (found, headers, body) = ask(&api, version, request, (JSON, b"{}")).await;
        assert_eq!((found, message(&body)), (status, expected.to_owned()), "{request}");
        let found = headers.get("allow").map(|allow| allow.to_str().unwrap());
        assert_eq!(found, allow, "{request}");
    }
}

/// Until the state has been read nobody knows what there is, and while the journal is silent nobody knows what becomes of a change.
#[tokio::test]
async fn instances_that_cannot_answer_say_so() {
    let (starting, _calls) = TestApi::silent(Readiness::NotReady("NATS is unreachable".to_owned())).await;
    let (silent, _silent_calls) = TestApi::silent(Readiness::Ready).await;
    for (version, path) in [
        (Version::V1Alpha, "/units"),
        (Version::V1Alpha, "/units/a.service"),
        (Version::V1Alpha, "/machines"),
        (Version::V1, "/state"),
        (Version::V1, "/state/a.service"),
    ] {
        let expected = (503, fleet_error(503, "NATS is unreachable"));
        assert_eq!(get(&starting, version, path).await, expected, "{path}");
    }
    let unknown = NotDone::unknown("the journal did not confirm the change in time").to_string();
    for (version, request, body) in [
        (Version::V1Alpha, "PUT /units/a.service", &br#"{"data": {"desiredState": "loaded"}}"#[..]),
        (Version::V1Alpha, "DELETE /units/a.service", &b""[..]),
        (Version::V1, "PUT /units/a.service", &br#"{"desiredState": "loaded"}"#[..]),
    ] {
        let (status, headers, body) = ask(&silent, version, request, (JSON, body)).await;
        assert_eq!((status, message(&body)), (503, unknown.clone()), "{request}");
        assert_eq!(headers["os-upgrade-outcome"], "unknown", "{request}");
    }
}

/// A change is not made on another site than the one that is meant.
#[tokio::test]
async fn no_request_goes_to_another_site() {
    let api = TestApi::new(site("a.service", Some(PING)), &[]).await;
    let expected = "this path takes no site: ask an orchestrator of that site";
    for version in Version::ALL {
        for request in
            ["PUT /units/a.service", "DELETE /units/a.service", "GET /units/a.service", "GET /units"]
        {
            for query in ["site=there", "alt=json&s%69te="] {
                let request = format!("{request}?{query}");
                let (status, _, body) = ask(&api, version, &request, (JSON, b"{}")).await;
                assert_eq!((status, message(&body)), (400, expected.to_owned()), "{request}");
            }
        }
    }
    assert_eq!(get(&api, Version::V1, "/units/a.service?sites=there").await.0, 200);
}

#[tokio::test]
async fn sites_have_4096_units_at_most() {
    let mut site = TestSite::new([]);
    for number in 0..4096 {
        submit(&mut site, &format!("u{number}.service"), OTHER, UnitState::Inactive);
    }
    let api = TestApi::new(site, &[]).await;
    let body = json!({ "data": { "fileContents": contents::encode(OTHER) } }).to_string();
    for (version, body) in [
        (Version::V1Alpha, body.as_str()),
        (Version::V1, r#"{"options": [{"section": "Service", "name": "ExecStart", "value": "/bin/true"}]}"#),
    ] {
        let (status, _, answer) = ask(&api, version, "PUT /units/new.service", (JSON, body.as_bytes())).await;
        assert_eq!(status, 413, "{answer}");
    }
}

/// A change is recorded with the name of the caller. Without tokens that is a local one.
#[tokio::test]
async fn changes_name_their_caller() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let body = br#"{"options": [{"section": "Service", "name": "ExecStart", "value": "/bin/true"}]}"#;
    let (status, headers, answer) = ask(&api, Version::V1, "PUT /units/a.service", (JSON, body)).await;
    assert_eq!((status, answer.as_str()), (201, ""));
    assert!(!headers.contains_key("location") && !headers.contains_key("content-type"), "{headers:?}");
    let published = api.site.published();
    let unit = published.state.units.unit(&UnitName::new("a.service").unwrap()).unwrap();
    assert_eq!(unit.actor, "api");
    assert_eq!(unit.file.text(), OTHER);
}
