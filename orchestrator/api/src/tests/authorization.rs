//! Access to every route and method, for every kind of caller, over the real router.

use std::collections::BTreeMap;

use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{TimeDelta, Utc};
use os_upgrade_api_types::fleet::routes::FleetRoute;
use os_upgrade_api_types::fleet::version::Version;
use os_upgrade_api_types::route::Access;
use os_upgrade_api_types::routes::events::FOLLOW;
use os_upgrade_auth::{Proof, Rights, Role, Secret, SecretHash, Token, WatchedTokens, write};
use os_upgrade_kernel::fact::QueueFact;
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{Fact, Reason};
use os_upgrade_protocol::GroupName;

use super::nodes::rebooting;
use super::*;

/// Who calls, with the role that this caller has.
const CALLERS: [(&str, Option<Role>); 4] = [
    ("client", None),
    ("viewer", Some(Role::Viewer)),
    ("operator", Some(Role::Operator)),
    ("admin", Some(Role::Admin)),
];

const METHODS: [Method; 8] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::TRACE,
];

/// An API with a token file, and the name and secret of each token in it.
struct Guarded {
    api: TestApi,
    secrets: Vec<(&'static str, String)>,
    _tokens: TempDir,
}

fn token(name: &str, rights: Rights, created: chrono::DateTime<Utc>) -> (Token, String) {
    let secret = Secret::random().unwrap();
    let proof = Proof::Secret(SecretHash::of(&secret).unwrap());
    let lifetime = Some(Duration::from_hours(1));
    (Token::new(name.parse().unwrap(), rights, proof, created, lifetime), secret.reveal().to_owned())
}

impl Guarded {
    async fn new(site: TestSite, records: &[Committed]) -> Self {
        let directory = TempDir::new().unwrap();
        let (now, before) = (Utc::now(), Utc::now() - TimeDelta::hours(2));
        let group = Rights::Group(GroupName::new("default").unwrap());
        let made = [
            ("expired", Rights::Role(Role::Admin), before),
            ("client", group, now),
            ("viewer", Rights::Role(Role::Viewer), now),
            ("operator", Rights::Role(Role::Operator), now),
            ("admin", Rights::Role(Role::Admin), now),
        ];
        let (mut tokens, mut secrets) = (Vec::new(), Vec::new());
        for (name, rights, created) in made {
            let (token, secret) = token(name, rights, created);
            tokens.push(token);
            secrets.push((name, secret));
        }
        let path = directory.path().join("tokens.toml");
        write(&path, &tokens).unwrap();
        let authenticator = Authenticator::new(Some(WatchedTokens::open(path).unwrap()), None);
        let api = TestApi::new(site, records).await;
        let router = router(api.site.clone(), api.history.clone(), authenticator, &Options::default());
        Self { api: TestApi { router, ..api }, secrets, _tokens: directory }
    }

    fn secret(&self, name: &str) -> &str {
        &self.secrets.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// A request by `who`: `none`, `bad`, or the name of a token.
    fn request(&self, who: &str, method: &Method, path: &str) -> Request<Body> {
        let request = Request::builder().method(method).uri(path);
        let request = match who {
            "none" => request,
            "bad" => request.header("authorization", "Bearer osup_AAAA"),
            name => request.header("authorization", format!("Bearer {}", self.secret(name))),
        };
        request.body(Body::empty()).unwrap()
    }

    async fn ask(&self, who: &str, method: &Method, path: &str) -> (u16, HeaderMap, String) {
        self.api.send(self.request(who, method, path)).await
    }
}

/// A concrete path, with `x` for each parameter.
fn example(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/")
}

/// The methods of each path, and their access.
fn paths() -> BTreeMap<&'static str, Vec<(&'static str, Access)>> {
    let mut paths: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for route in resources::declarations() {
        paths.entry(route.path).or_default().push((route.method.as_str(), route.access));
    }
    paths
}

#[tokio::test]
async fn every_route_checks_access() {
    let guarded = Guarded::new(TestSite::new(["h01"]), &[]).await;
    for (path, methods) in paths() {
        for method in METHODS {
            let effective = if method == Method::HEAD { Method::GET } else { method.clone() };
            let access =
                methods.iter().find(|(known, _)| *known == effective.as_str()).map(|(_, access)| *access);
            // The caller is checked before the method.
            let access = access.or_else(|| {
                methods.iter().map(|(_, access)| *access).find(|access| *access == Access::LockGroup)
            });
            let is_post = method == Method::POST;
            let path = example(path);
            for who in ["none", "bad", "expired"] {
                let (status, headers, body) = guarded.ask(who, &method, &path).await;
                let case = format!("{who}: {method} {path}: {status} {body}");
                assert_eq!(headers["x-content-type-options"], "nosniff", "{case}");
                match access {
                    None => assert_eq!(status, 405, "{case}"),
                    Some(Access::Anybody) => assert!([200, 308, 404].contains(&status), "{case}"),
                    Some(Access::LockGroup) => {
                        assert_eq!(status, 401, "{case}");
                        assert_eq!(headers["www-authenticate"], "Basic realm=\"os-upgrade\"", "{case}");
                    }
                    // Other tokens are all unknown there.
                    Some(Access::CallBack) => {
                        assert_eq!(status, 401, "{case}");
                        let message = if who == "none" { "this needs a token" } else { "is not valid" };
                        assert!(body.contains(message), "{case}");
                    }
                    Some(Access::Role(_)) => {
                        assert_eq!(status, 401, "{case}");
                        assert!(
                            headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"),
                            "{case}"
                        );
                        let message = ["this needs a token", "is not valid", "has expired"];
                        let message = message
                            [["none", "bad", "expired"].iter().position(|known| *known == who).unwrap()];
                        assert!(method == Method::HEAD || body.contains(message), "{case}");
                    }
                }
            }
            for (who, role) in CALLERS {
                let (status, _, body) = guarded.ask(who, &method, &path).await;
                let case = format!("{who}: {method} {path}: {status} {body}");
                match access {
                    None => assert_eq!(status, 405, "{case}"),
                    Some(Access::CallBack) => assert_eq!(status, 401, "{case}"),
                    // Without FleetLock's header the group is not checked.
                    Some(Access::LockGroup) => assert_eq!(status, if is_post { 400 } else { 405 }, "{case}"),
                    Some(Access::Role(needed)) if role < Some(needed) => {
                        assert_eq!(status, 403, "{case}");
                        assert!(method == Method::HEAD || body.contains(&format!("role {needed}")), "{case}");
                    }
                    // Without a record there is no event to begin after.
                    Some(_) if path == FOLLOW.path() => assert_eq!(status, 503, "{case}"),
                    Some(_) => assert!(![401, 403, 405].contains(&status) && status < 500, "{case}"),
                }
            }
        }
    }
}

/// The paths of fleet's dialects, with the routes of each.
fn fleet_paths() -> BTreeMap<String, Vec<&'static FleetRoute>> {
    let mut paths: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for version in Version::ALL {
        for route in version.routes() {
            paths.entry(format!("{}{}", version.prefix(), route.path)).or_default().push(route);
        }
    }
    paths
}

#[tokio::test]
async fn every_route_of_fleet_checks_access() {
    let guarded = Guarded::new(TestSite::new(["h01"]), &[]).await;
    for (path, routes) in fleet_paths() {
        for method in METHODS {
            let effective = if method == Method::HEAD { Method::GET } else { method.clone() };
            let route = routes.iter().find(|route| route.method.as_str() == effective.as_str());
            let needed = route.map(|route| route.operation.role());
            let no_route = if path == "/fleet/v1/discovery" { 400 } else { 405 };
            let path = example(&path);
            for (who, message) in
                [("none", "this needs a token"), ("bad", "is not valid"), ("expired", "has expired")]
            {
                let (status, headers, body) = guarded.ask(who, &method, &path).await;
                let case = format!("{who}: {method} {path}: {status} {body}");
                assert_eq!(headers["x-content-type-options"], "nosniff", "{case}");
                let Some(_) = needed else {
                    assert_eq!(status, no_route, "{case}");
                    continue;
                };
                assert_eq!(status, 401, "{case}");
                assert!(headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"), "{case}");
                assert!(method == Method::HEAD || body.contains(message), "{case}");
            }
            for (who, role) in CALLERS {
                let (status, _, body) = guarded.ask(who, &method, &path).await;
                let case = format!("{who}: {method} {path}: {status} {body}");
                match needed {
                    None => assert_eq!(status, no_route, "{case}"),
                    Some(needed) if role < Some(needed) => {
                        assert_eq!(status, 403, "{case}");
                        assert!(method == Method::HEAD || body.contains(&format!("role {needed}")), "{case}");
                    }
                    Some(_) => assert!(![401, 403, 405].contains(&status) && status < 500, "{case}"),
                }
            }
        }
    }
}

/// A call-back token counts for call-backs alone, and no token of the API does there.
#[tokio::test]
async fn call_back_tokens_count_nowhere_else() {
    let guarded = Guarded::new(hooks::site(), &[]).await;
    let ask = async |method: Method, path: &str, secret: &str, body: &'static str| {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("authorization", format!("Bearer {secret}"));
        guarded.api.send(request.body(Body::from(body)).unwrap()).await.0
    };
    let own = hooks::token(1);
    for (path, body, status) in [
        ("/v1/hooks/callback", "[]", 202),
        ("/v1/state/config-providers/app/poll", "", 401),
        ("/v1/state/config-providers/app/rotate-token", "", 401),
        ("/v1/pre-reboot", "{}", 401),
    ] {
        assert_eq!(ask(Method::POST, path, own.as_str(), body).await, status, "{path}");
    }
    assert_eq!(ask(Method::GET, "/v1/state/config-providers", own.as_str(), "").await, 401);
    for (name, secret) in &guarded.secrets {
        assert_eq!(ask(Method::POST, "/v1/hooks/callback", secret, "[]").await, 401, "{name}");
    }
}

/// Without tokens every local client has all rights, so pages in a local browser must be kept out.
#[tokio::test]
async fn foreign_pages_are_refused_without_tokens() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let ask = async |method: &str, path: &str, host: &str, origin: Option<&str>| {
        let request = Request::builder().method(method).uri(path).header("host", host);
        let request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
        api.send(request.body(Body::empty()).unwrap()).await.0
    };
    let (cancel, ours) = ("/v1/state/os-upgrade/cancel", "127.0.0.1:8646");
    assert_eq!(ask("POST", cancel, ours, None).await, 409);
    assert_eq!(ask("POST", cancel, ours, Some("http://127.0.0.1:8646")).await, 409);
    assert_eq!(ask("POST", cancel, ours, Some("https://example.com")).await, 403);
    assert_eq!(ask("GET", "/v1/state/os-upgrade", "rebound.example", None).await, 403);
    let declared = paths();
    assert!(declared.len() > 20);
    let fleet = fleet_paths().into_keys().map(|path| example(&path));
    let paths = declared.keys().map(|path| example(path)).chain(fleet);
    for path in paths.chain(["/v1/nothing".to_owned(), "/v1-alpha/nothing".to_owned()]) {
        assert_eq!(ask("GET", &path, "rebound.example", None).await, 403, "{path}");
    }
    let fetched = Request::get("/metrics").header("host", ours).header("sec-fetch-site", "cross-site");
    assert_eq!(api.send(fetched.body(Body::empty()).unwrap()).await.0, 403);
    let (_, _, metrics) = api.send(Request::get("/metrics").body(Body::empty()).unwrap()).await;
    assert!(metrics.contains("os_upgrade_api_denied_total{reason=\"elsewhere\"}"), "{metrics}");
}

/// A page of a name that resolves to this machine is of the same origin, so it may send FleetLock's header.
#[tokio::test]
async fn rebound_pages_get_no_slot_without_tokens() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let body = json!({ "client_params": { "group": "default", "id": "node-7" } }).to_string();
    let ask = async |path: &str, host: &str| {
        let request = Request::post(path).header("fleet-lock-protocol", "true").header("host", host);
        let request = request.header("origin", format!("http://{host}"));
        let (status, _, text) = api.send(request.body(Body::from(body.clone())).unwrap()).await;
        (status, serde_json::from_str::<Value>(&text).unwrap()["kind"].clone())
    };
    for path in ["/v1/pre-reboot", "/fleetlock/v1/steady-state", "/fleetlock/nothing"] {
        assert_eq!(ask(path, "rebound.evil.example").await, (403, json!("forbidden")), "{path}");
    }
    assert_eq!(ask("/v1/pre-reboot", "localhost:8646").await, (200, Value::Null));
}

#[tokio::test]
async fn unknown_path_is_404_for_all_callers() {
    let guarded = Guarded::new(TestSite::new([]), &[]).await;
    for who in ["none", "admin"] {
        assert_eq!(guarded.ask(who, &Method::GET, "/v1/nothing").await.0, 404);
    }
}

#[tokio::test]
async fn writes_record_the_token_name() {
    let mut site = TestSite::new(["h01"]);
    let records = [site.decide_record(&[os_upgrade_test_site::put_config()])];
    let guarded = Guarded::new(site, &records).await;
    let path = "/v1/state/os-upgrade/trigger-upgrade-site";
    assert_eq!(guarded.ask("operator", &Method::POST, path).await.0, 204);
    let run = guarded.api.site.published().state.run.clone().unwrap().id;
    let id = os_upgrade_test_site::run_id(run.as_str());
    let detail = guarded.api.history.run(&id, 1, None).await.unwrap().unwrap();
    assert_eq!(detail.run.actor.as_deref(), Some("token operator"));
}

/// Requests a slot. Returns the status, headers and body.
async fn lock(guarded: &Guarded, authorization: Option<String>, group: &str) -> (u16, HeaderMap, Value) {
    let body = json!({ "client_params": { "group": group, "id": "node-7" } }).to_string();
    let request = Request::post("/v1/pre-reboot").header("fleet-lock-protocol", "true");
    let request =
        authorization.into_iter().fold(request, |request, value| request.header("authorization", value));
    let (status, headers, body) = guarded.api.send(request.body(Body::from(body)).unwrap()).await;
    (status, headers, serde_json::from_str(&body).unwrap())
}

#[tokio::test]
async fn clients_lock_only_their_group() {
    let guarded = Guarded::new(TestSite::new([]), &[]).await;
    let basic =
        |name: &str, secret: &str| Some(format!("Basic {}", STANDARD.encode(format!("{name}:{secret}"))));
    let own = |name: &str| basic(name, guarded.secret(name));
    let unauthorized = |value: &str| (401, json!({ "kind": "unauthorized", "value": value }));
    let forbidden = |who: &str, group: &str| {
        let value = format!("token {who} may not request slots of the group {group}");
        (403, json!({ "kind": "forbidden", "value": value }))
    };
    let missing = unauthorized("HTTP Basic credentials or a client certificate are needed");
    for (authorization, group, expected) in [
        (None, "default", missing),
        (basic("client", "osup_AAAA"), "default", unauthorized("the credentials are not valid")),
        (own("expired"), "default", unauthorized("the credentials have expired")),
        (own("client"), "other", forbidden("client", "other")),
        (own("operator"), "default", forbidden("operator", "default")),
        (own("client"), "default", (200, json!({}))),
        (own("admin"), "default", (200, json!({}))),
    ] {
        let (status, headers, body) = lock(&guarded, authorization.clone(), group).await;
        assert_eq!((status, body), expected, "{authorization:?}");
        assert_eq!(headers.contains_key("www-authenticate"), status == 401);
    }
    let path = "/v1/state/fleet-lock/history?clients=true";
    let (_, _, page) = guarded.ask("viewer", &Method::GET, path).await;
    let page: Value = serde_json::from_str(&page).unwrap();
    let [item] = page["items"].as_array().unwrap().as_slice() else { unreachable!("{page}") };
    assert_eq!(
        (&item["actor"], &item["fact"]["id"]),
        (&json!("token client"), &json!("node-7")),
        "the authenticated caller, and the id it claims"
    );
}

#[tokio::test]
async fn refusals_are_counted() {
    let guarded = Guarded::new(TestSite::new([]), &[]).await;
    guarded.ask("none", &Method::GET, "/metrics").await;
    guarded.ask("bad", &Method::GET, "/metrics").await;
    guarded.ask("viewer", &Method::PUT, "/v1/config/os-upgrade").await;
    lock(&guarded, None, "default").await;
    let (status, _, text) = guarded.ask("viewer", &Method::GET, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "os_upgrade_api_denied_total{reason=\"missing\"} 2",
        "os_upgrade_api_denied_total{reason=\"invalid\"} 1",
        "os_upgrade_api_denied_total{reason=\"forbidden\"} 1",
        "os_upgrade_api_token_file_usable 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

/// A reboot command may print secrets: viewers are shown how it ended, and nothing that it printed.
#[tokio::test]
async fn what_a_reboot_command_printed_is_for_operators() {
    let (detail, output) = ("exit status 4".to_owned(), "hunter2".to_owned());
    let failed = EntryEvent::Failed { reason: Reason::RebootCommandFailed { detail, output } };
    let paths = [
        "/v1/state/reboot-queue",
        "/v1/state/reboot-queue/0",
        "/v1/state/reboot-queue/history",
        "/v1/state/os-upgrade",
        "/v1/state/os-upgrade/hosts",
        "/v1/state/os-upgrade/hosts/n1",
        "/v1/state/fleet-lock",
        "/v1/state/fleet-lock/history",
    ];
    let (site, records) = rebooting(Some("one"), vec![failed.clone()]);
    let guarded = Guarded::new(site, &records).await;
    for path in paths {
        let (status, _, text) = guarded.ask("viewer", &Method::GET, path).await;
        assert_eq!((status, text.contains("hunter2")), (200, false), "{path}: {text}");
    }
    for path in ["/v1/state/reboot-queue", "/v1/state/reboot-queue/0", "/v1/state/reboot-queue/history"] {
        let told = |text: &str| (text.contains("exit status 4"), text.contains("hunter2"));
        for (who, expected) in
            [("viewer", (true, false)), ("operator", (true, true)), ("admin", (true, true))]
        {
            let (_, _, text) = guarded.ask(who, &Method::GET, path).await;
            assert_eq!(told(&text), expected, "{who}: {path}: {text}");
        }
    }

    let event = Fact::Queue(QueueFact::Reboot { index: 0, host: host("n1"), event: failed });
    let event = serde_json::to_string(&bodies::site_event(event, None)).unwrap();
    assert!(!event.contains("hunter2"), "{event}");
}
