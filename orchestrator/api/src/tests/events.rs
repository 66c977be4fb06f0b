//! Events: in order, from where a client was, within limits.

use std::net::SocketAddr;
use std::pin::Pin;

use axum::body::BodyDataStream;
use axum::extract::ConnectInfo;
use futures::StreamExt as _;
use os_upgrade_kernel::{Fact, Record, Settings};
use os_upgrade_shell::journal::AppendId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::limits::limited;
use super::served::listen;
use super::*;

const EVENTS: &str = "/v1/state/os-upgrade/events";

/// A site with a store of its own, whose events are followed.
struct Followed {
    site: TestSite,
    projector: Projector,
    router: Router,
    options: Options,
    _feeding: AbortOnDropHandle<()>,
    _directory: TempDir,
}

/// A client that reads a stream.
struct Client {
    body: Pin<Box<BodyDataStream>>,
    text: String,
}

impl Followed {
    /// A site that has run `r1`.
    async fn new() -> Self {
        let mut site = TestSite::new(["h01"]);
        let mut records = vec![site.fence(), site.decide_record(&[os_upgrade_test_site::put_config()])];
        records.extend(site.whole_run("r1"));
        let (directory, mut projector) = store().await;
        project(&mut projector, &records).await;
        let history = projector.history().await.unwrap();
        let shown = PublishedState { is_read: true, ..published(&site) };
        let (sender, _) = mpsc::channel(1);
        let handle = SiteHandle::new(Arc::new(ArcSwap::from_pointee(shown)), sender);
        let options = Options::default();
        let Routers { edge, feed, .. } = Routers::new(handle, history, Authenticator::default(), &options);
        let feeding = AbortOnDropHandle::new(tokio::spawn(feed.run(CancellationToken::new())));
        Self { site, projector, router: edge, options, _feeding: feeding, _directory: directory }
    }

    async fn get(&self, address: &str, query: &str, last: Option<&str>) -> axum::response::Response {
        let request = Request::get(format!("{EVENTS}{query}")).header("accept", "text/event-stream");
        let request = last.into_iter().fold(request, |request, id| request.header("last-event-id", id));
        let mut request = request.body(Body::empty()).unwrap();
        let peer: SocketAddr = address.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn follow(&self, query: &str, last: Option<&str>) -> Client {
        let response = self.get("127.0.0.1:7", query, last).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Client { body: Box::pin(response.into_body().into_data_stream()), text: String::new() }
    }

    /// Everything after `last`, or after the id of another journal, up to the end of run `r1`.
    async fn replayed(&self, query: &str, last: &str) -> Vec<Value> {
        self.follow(query, Some(last)).await.until("\"result\":\"completed\"").await
    }

    /// Appends a record of `count` facts, each of which is an event.
    async fn append_events(&mut self, count: usize) {
        let committed = self.site.decide_record(&[]);
        let facts = vec![Fact::SettingsAdopted { settings: Settings::default() }; count];
        let append_id = AppendId::new(&format!("events-{}", committed.sequence));
        let record = Record { facts, ..committed.record };
        project(&mut self.projector, &[Committed { append_id, record, ..committed }]).await;
    }

    fn cut_off(&self) -> u64 {
        self.options.limits.subscribers().counts().cut_off.get()
    }
}

impl Client {
    /// Reads until there is `text`. Returns the data of all events so far.
    async fn until(&mut self, text: &str) -> Vec<Value> {
        while !self.text.contains(text) {
            assert!(self.read().await, "the stream has ended: {}", self.text);
        }
        self.events()
    }

    /// Reads a piece; false at the end.
    async fn read(&mut self) -> bool {
        let piece = tokio::time::timeout(Duration::from_secs(10), self.body.next()).await;
        let Some(piece) = piece.unwrap_or_else(|_| panic!("nothing more after {}", self.text)) else {
            return false;
        };
        self.text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        true
    }

    fn events(&self) -> Vec<Value> {
        let schema = json!({ "$ref": "#/components/schemas/Event" });
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
        for event in &events {
            assert_eq!(conformance::faults(&schema, event), [""; 0], "{event}");
        }
        events
    }

    /// The last id.
    fn id(&self) -> &str {
        self.text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap()
    }
}

fn ids(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn run_is_replayed_in_order_from_every_id() {
    let followed = Followed::new().await;
    let mut all = followed.replayed("", "1.1.0").await;
    let reset = all.remove(0);
    let epoch = all[0]["id"].as_str().unwrap().split('.').next().unwrap();
    assert_eq!(reset, json!({ "kind": "reset", "earliest": format!("{epoch}.1.0") }), "of another journal");
    let told = |event: &Value| match event["kind"].as_str().unwrap() {
        "host" => format!("{} {}", event["step"].as_str().unwrap(), event["status"].as_str().unwrap()),
        kind => kind.to_owned(),
    };
    assert_eq!(
        all.iter().map(told).collect::<Vec<_>>(),
        [
            "config-changed",
            "run-started",
            "command-sent preparing",
            "prepared prepared",
            "run-upgrading",
            "slot-granted upgrading",
            "command-sent upgrading",
            "upgraded upgraded",
            "slot-released",
            "run-ended",
        ]
    );
    let all_ids = ids(&all);
    for (index, id) in all_ids[..all_ids.len() - 1].iter().enumerate() {
        let later = followed.replayed("", id).await;
        assert_eq!(ids(&later), all_ids[index + 1..], "after {id}");
    }
    let ends = followed.replayed(&format!("?after={}&kinds=run-started,run-ended", all_ids[0]), "").await;
    assert_eq!(ends.iter().map(|event| &event["kind"]).collect::<Vec<_>>(), ["run-started", "run-ended"]);
    let unknown = followed.replayed("", &format!("{epoch}.999.0")).await;
    assert_eq!(unknown[0]["kind"], "reset", "an id of no record");
}

#[tokio::test]
async fn nothing_is_lost_between_history_and_now() {
    let mut followed = Followed::new().await;
    let mut now = followed.follow("", None).await;
    let mut filtered = followed.follow("?kinds=run-ended", None).await;
    let mut seen = 0;
    for count in [1, 700, 3] {
        // A client that is far behind joins while others read what is new.
        let mut late = followed.follow("", Some("1.1.0")).await;
        followed.append_events(count).await;
        seen += count;
        for client in [&mut now, &mut late] {
            while client.events().iter().filter(|event| event["kind"] == "settings-changed").count() < seen {
                assert!(client.read().await);
            }
            let events = client.events();
            let found: Vec<&str> = events.iter().filter_map(|event| event["id"].as_str()).collect();
            let mut once = found.clone();
            once.dedup();
            assert_eq!(found, once);
        }
    }
    // What a filtered stream passes over moves its position.
    let before = { filtered.read().await.then(|| filtered.id().to_owned()).unwrap() };
    let mut resumed = followed.follow("?kinds=run-ended", Some(&before)).await;
    resumed.read().await;
    while resumed.id() == before {
        assert!(resumed.read().await);
    }
    assert_eq!(resumed.events(), [Value::Null; 0]);
}

#[tokio::test]
async fn slow_subscriber_is_cut_off_and_resumes() {
    let mut followed = Followed::new().await;
    let mut slow = followed.follow("", None).await;
    let mut fast = followed.follow("", None).await;
    followed.append_events(1).await;
    for client in [&mut slow, &mut fast] {
        client.until("settings-changed").await;
    }
    let more = 20_000;
    followed.append_events(more).await;
    let mut read = 0;
    while read < more {
        assert!(fast.read().await);
        read += fast.text.matches("event: settings-changed").count();
        fast.text.clear();
    }
    assert_eq!(followed.cut_off(), 0);
    let last = slow.id().to_owned();
    assert!(!slow.read().await, "more has happened than is kept for it");
    drop(slow);
    assert_eq!(followed.cut_off(), 1);
    let mut resumed = followed.follow("", Some(&last)).await;
    while resumed.text.matches("event: settings-changed").count() < more {
        assert!(resumed.read().await);
    }
    assert!(!resumed.text.contains("event: reset"));
}

#[tokio::test]
async fn streams_of_an_address_are_limited() {
    let followed = Followed::new().await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(followed.get("192.0.2.1:7", "", None).await);
    }
    assert!(streams.iter().all(|stream| stream.status() == 200));
    let refused = followed.get("192.0.2.1:8", "", None).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(followed.get("192.0.2.2:7", "", None).await.status(), 200);
    streams.pop();
    assert_eq!(followed.get("192.0.2.1:9", "", None).await.status(), 200, "a place is free again");
}

#[tokio::test]
async fn requests_for_events_are_checked() {
    let followed = Followed::new().await;
    for (query, last, status) in [
        ("?kinds=run-ended,run", None, 400),
        ("?after=x", None, 400),
        ("?site=here", None, 400),
        ("", Some("1.2"), 400),
    ] {
        assert_eq!(followed.get("127.0.0.1:7", query, last).await.status(), status, "{query} {last:?}");
    }
    let json = Request::get(EVENTS).header("accept", "application/json").body(Body::empty()).unwrap();
    assert_eq!(followed.router.clone().oneshot(json).await.unwrap().status(), 406);
    let (empty, _calls) = TestApi::silent(Readiness::Ready).await;
    assert_eq!(empty.call(&format!("GET {EVENTS}"), "").await.0, 503, "nothing is recorded");
}

/// Streams count as no connections, and end when the server stops.
#[tokio::test]
async fn streams_take_no_connections_and_end_at_shutdown() {
    let mut site = TestSite::new(["h01"]);
    let records = [site.decide_record(&[os_upgrade_test_site::put_config()])];
    let api = TestApi::new(site, &records).await;
    let options = limited(&[("OS_UPGRADE_API__CONNECTIONS_PER_ADDRESS", "2")]);
    let shutdown = CancellationToken::new();
    let (address, served) = listen(&api, options, &shutdown).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        while !answer.contains("retry: ") {
            let mut bytes = [0; 1_024];
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "{answer}");
            answer.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        streams.push(stream);
    }
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(2), served).await.unwrap().unwrap().unwrap();
    for mut stream in streams {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "the stream ends in order: {rest:?}");
    }
}
