//! Events: in order, from where a client was, within limits.

use std::net::SocketAddr;
use std::pin::Pin;

use axum::body::{BodyDataStream, Bytes};
use axum::extract::ConnectInfo;
use futures::StreamExt as _;
use os_upgrade_api_types::routes::events::{Event, SiteEvent};
use os_upgrade_kernel::fact::ConfigFact;
use os_upgrade_kernel::{self as kernel, Fact, Record, RunOperation, Settings, Targets};
use os_upgrade_protocol::{Progress, RunId};
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
    shown: Arc<ArcSwap<PublishedState>>,
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
        let shown = Arc::new(ArcSwap::from_pointee(PublishedState { is_read: true, ..published(&site) }));
        let (sender, _) = mpsc::channel(1);
        let handle = SiteHandle::new(Arc::clone(&shown), sender);
        let options = Options::default();
        let Routers { edge, feed, .. } = Routers::new(handle, history, Authenticator::default(), &options);
        let feeding = AbortOnDropHandle::new(tokio::spawn(feed.run(CancellationToken::new())));
        Self { site, projector, router: edge, shown, _feeding: feeding, _directory: directory }
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
    async fn replayed(&self, query: &str, last: &str) -> Vec<Event> {
        self.follow(query, Some(last)).await.until("\"result\":\"completed\"").await
    }

    /// Appends a record of `count` facts, each of which is an event.
    async fn append_events(&mut self, count: usize) {
        let committed = self.site.decide_record(&[]);
        let facts = vec![Fact::Config(ConfigFact::SettingsAdopted { settings: Settings::default() }); count];
        let append_id = AppendId::new(&format!("events-{}", committed.sequence));
        let record = Record { facts, ..committed.record };
        project(&mut self.projector, &[Committed { append_id, record, ..committed }]).await;
    }

    /// Two clients that read what is new, and nothing of the history any more, which each gets the very same bytes of; and
    /// how many changes of the settings they have read.
    async fn two_clients_up_to_date(&mut self) -> ([Client; 2], usize) {
        let (mut first, mut second) = (self.follow("", None).await, self.follow("", None).await);
        // What came first may be in the history already, of which each reads a copy of its own.
        for count in 1..50 {
            self.append_events(1).await;
            let (one, other) = (first.until_changes(count).await, second.until_changes(count).await);
            assert_eq!(one, other);
            if one.as_ptr() == other.as_ptr() {
                return ([first, second], count);
            }
        }
        panic!("each subscriber gets bytes of its own");
    }

    /// What `/metrics` says of events: subscribers, events sent, and subscribers that were cut off.
    async fn metrics(&self) -> [u64; 3] {
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        let body = self.router.clone().oneshot(request).await.unwrap().into_body();
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        ["subscribers", "sent_total", "cut_off_total"].map(|name| {
            let value = |line: &str| line.strip_prefix(&format!("os_upgrade_events_{name} "))?.parse().ok();
            text.lines().find_map(value).unwrap_or_else(|| panic!("{name}: {text}"))
        })
    }

    /// The workers report progress.
    fn report(&self, percent: u8) {
        let run = self.site.state.run.as_ref().unwrap();
        let command = run.host(&host("h01")).unwrap().unanswered().unwrap().sequence.unwrap();
        let progress = [(host("h01"), Progress::new(command, percent, "unpacking"))].into_iter().collect();
        self.shown.store(Arc::new(PublishedState { is_read: true, progress, ..published(&self.site) }));
    }
}

impl Client {
    /// Reads until there is `text`. Returns the data of all events so far.
    async fn until(&mut self, text: &str) -> Vec<Event> {
        while !self.text.contains(text) {
            assert!(self.read().await, "the stream has ended: {}", self.text);
        }
        self.events()
    }

    /// Reads a piece; false at the end.
    async fn read(&mut self) -> bool {
        self.piece().await.is_some()
    }

    /// Reads a piece; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        let piece = tokio::time::timeout(Duration::from_secs(20), self.body.next()).await;
        let piece = piece.unwrap_or_else(|_| panic!("nothing more after {}", self.text))?.unwrap();
        self.text.push_str(std::str::from_utf8(&piece).unwrap());
        Some(piece)
    }

    /// Reads until there have been `count` changes of the settings. Returns the last piece.
    async fn until_changes(&mut self, count: usize) -> Bytes {
        loop {
            let piece = self.piece().await.expect("the stream goes on");
            if self.text.matches("event: settings-changed").count() == count {
                return piece;
            }
        }
    }

    fn events(&self) -> Vec<Event> {
        let schema = json!({ "$ref": "#/components/schemas/Event" });
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        let event = |data| -> Event {
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(conformance::faults(&schema, &event), [""; 0], "{event}");
            serde_json::from_value(event).unwrap()
        };
        data.map(event).collect()
    }

    /// The last id.
    fn id(&self) -> &str {
        self.text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap()
    }
}

fn ids(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.id.unwrap().to_string()).collect()
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.what.kind()).collect()
}

#[tokio::test]
async fn run_is_replayed_in_order_from_every_id() {
    let followed = Followed::new().await;
    let mut all = followed.replayed("", "1.1.0").await;
    let reset = all.remove(0);
    let first = all[0].id.unwrap().to_string();
    let epoch = first.split('.').next().unwrap();
    let earliest = json!({ "kind": "reset", "earliest": format!("{epoch}.1.0") });
    assert_eq!(json!(reset), earliest, "of another journal");
    let told = |event: &Event| {
        if let SiteEvent::Host { step, status, .. } = &event.what {
            return format!("{step} {status}");
        }
        event.what.kind().to_owned()
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
    assert_eq!(kinds(&ends), ["run-started", "run-ended"]);
    let unknown = followed.replayed("", &format!("{epoch}.999.0")).await;
    assert_eq!(kinds(&unknown)[0], "reset", "an id of no record");
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
            let is_change = |event: &&Event| event.what == SiteEvent::SettingsChanged;
            while client.events().iter().filter(is_change).count() < seen {
                assert!(client.read().await);
            }
            let found: Vec<_> = client.events().into_iter().filter_map(|event| event.id).collect();
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
    assert_eq!(resumed.events(), []);
}

#[tokio::test]
async fn slow_subscriber_is_cut_off_and_resumes() {
    let mut followed = Followed::new().await;
    let ([mut slow, mut fast], _) = followed.two_clients_up_to_date().await;
    fast.text.clear();
    let more = 20_000;
    followed.append_events(more).await;
    let mut read = 0;
    while read < more {
        assert!(fast.read().await);
        read += fast.text.matches("event: settings-changed").count();
        fast.text.clear();
    }
    assert_eq!(followed.metrics().await[2], 0);
    let last = slow.id().to_owned();
    assert!(!slow.read().await, "more has happened than is kept for it");
    drop(slow);
    assert_eq!(followed.metrics().await[2], 1);
    let mut resumed = followed.follow("", Some(&last)).await;
    while resumed.text.matches("event: settings-changed").count() < more {
        assert!(resumed.read().await);
    }
    assert!(!resumed.text.contains("event: reset"));
}

/// Whoever reads what is new gets the very same bytes.
#[tokio::test]
async fn events_are_rendered_once_for_all_subscribers() {
    let mut followed = Followed::new().await;
    let (mut clients, count) = followed.two_clients_up_to_date().await;
    for more in [3, 700] {
        followed.append_events(more).await;
        let [first, second] = &mut clients;
        let (first, second) = (first.piece().await.unwrap(), second.piece().await.unwrap());
        assert!(!first.is_empty() && first.as_ptr() == second.as_ptr() && first.len() == second.len());
    }
    assert!(followed.metrics().await[1] > 2 * (count as u64 + 3));
}

#[tokio::test]
async fn metrics_count_subscribers_and_events() {
    let mut followed = Followed::new().await;
    assert_eq!(followed.metrics().await, [0, 0, 0]);
    let mut all = followed.follow("", None).await;
    let mut none = followed.follow("?kinds=run-ended", None).await;
    none.read().await;
    followed.append_events(3).await;
    all.until_changes(3).await;
    assert_eq!(followed.metrics().await, [2, 3, 0]);
    drop(all);
    assert_eq!(followed.metrics().await, [1, 3, 0]);
}

#[tokio::test]
async fn silent_streams_have_comments() {
    let mut followed = Followed::new().await;
    let ([mut client, _], _) = followed.two_clients_up_to_date().await;
    client.text.clear();
    tokio::time::pause();
    let silent_since = tokio::time::Instant::now();
    for number in 1..=2 {
        client.read().await;
        assert_eq!(client.text, ": \n\n".repeat(number));
        let silent = silent_since.elapsed().as_secs();
        assert!((15..=16).contains(&(silent / number as u64)), "{silent} s");
    }
}

/// A client cannot go on after one, because it is not kept.
#[tokio::test]
async fn progress_has_no_id() {
    let mut followed = Followed::new().await;
    let records = [followed.site.decide_record(&[os_upgrade_test_site::trigger("r2")]), followed.site.send()];
    project(&mut followed.projector, &records).await;
    let mut client = followed.follow("?kinds=progress,settings-changed", None).await;
    // What was reported before anybody followed is no news.
    for percent in 1..=100 {
        followed.report(percent);
        followed.append_events(1).await;
        client.until_changes(percent.into()).await;
        if client.text.contains("event: progress") {
            break;
        }
    }
    let block = client.text.split("\n\n").find(|block| block.contains("event: progress")).unwrap();
    let data = block.strip_prefix("event: progress\ndata: ").expect("there is no id");
    let mut event: Value = serde_json::from_str(data).unwrap();
    assert!(event["percent"].take().is_u64(), "{event}");
    assert_eq!(
        event,
        json!({
            "kind": "progress", "run": "r2", "host": "h01", "action": "prepare", "percent": null, "text": "unpacking",
        })
    );
    client.events();
}

/// Why an operator has started or cancelled a run.
#[tokio::test]
async fn events_have_the_reasons_of_operators() {
    let mut followed = Followed::new().await;
    let mut client = followed.follow("?kinds=run-started,run-stopping", None).await;
    let reason = |text: &str| Some(text.to_owned());
    let (run, timeout) = (RunId::new("r2").unwrap(), os_upgrade_calendar::Duration::from_secs(60));
    let operations = [
        RunOperation::Trigger {
            run,
            timeout: Some(timeout),
            targets: Targets::default(),
            reason: reason("a security update"),
        },
        RunOperation::Cancel { reason: reason("the power fails") },
    ];
    for operation in operations {
        let input = Input::Request(kernel::Request::new("eve", operation).into());
        let record = followed.site.decide_record(&[input]);
        project(&mut followed.projector, &[record]).await;
    }
    let events = client.until("event: run-stopping").await;
    let told = events.iter().map(|event| {
        let (SiteEvent::RunStarted { actor, reason, .. } | SiteEvent::RunStopping { actor, reason, .. }) =
            &event.what
        else {
            panic!("{event:?}");
        };
        (event.what.kind(), actor.as_deref(), reason.as_deref())
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("run-started", Some("eve"), Some("a security update")),
            ("run-stopping", Some("eve"), Some("the power fails")),
        ]
    );
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
