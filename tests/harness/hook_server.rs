//! A provider of kind `hooks` that answers about each device by a script, lies in every way that the tests know, and calls back.
//!
//! It writes its answers byte by byte: HTTP libraries cannot be brought to send a 304 with a body, or half an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::http;
use crate::orchestrator::own_address;
use crate::rest::Answer as Reply;
use crate::wait::eventually;

/// The path of the calls.
const PATH: &str = "/flightctl-hooks/";
/// How many bytes an answer has that is too large.
const HUGE_BYTES: usize = 9 * 1024 * 1024;
/// How much of an answer is written before its connection is cut.
const CUT_AFTER: usize = 40;

/// What a device is to have.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// This value of `configuration`.
    Configuration(Value),
    /// `"configuration": null`: nothing any more.
    Nothing,
    /// The same as before. If that is so for all devices of a call, it is answered with 304.
    Unchanged,
}

impl Given {
    /// A configuration of one text.
    pub fn text(text: &str) -> Self {
        Self::Configuration(json!(text))
    }

    /// One file, whose content is sent as base64.
    pub fn file(path: &str, mode: u32, content: &[u8]) -> Self {
        let (content, encoding) = (STANDARD.encode(content), "base64");
        Self::Configuration(json!({
            "path": path, "mode": mode, "content": content, "contentEncoding": encoding,
        }))
    }

    /// One file, in Ignition.
    pub fn ignition(path: &str, mode: u32, content: &str) -> Self {
        let source = format!("data:;base64,{}", STANDARD.encode(content));
        let file = json!({ "path": path, "mode": mode, "overwrite": true, "contents": { "source": source } });
        Self::Configuration(json!({ "ignition": { "version": "3.3.0" }, "storage": { "files": [file] } }))
    }
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Lie {
    /// This status, with a `Retry-After` in seconds if there is one, and no body.
    Status { status: u16, retry_after: Option<u32> },
    /// It sends the caller somewhere else.
    Redirect,
    /// A page of HTML with status 200, as portals do.
    Page,
    /// This body with status 200.
    Body(&'static str),
    /// It is never answered.
    Silence,
    /// The connection ends in the middle of the answer.
    Cut,
    /// It has 9 MiB.
    Huge,
    /// 304, and after it, in the same connection, an answer that nobody has asked for, with this configuration for everybody.
    Pipelined(Value),
    /// The device is left out.
    Missing,
    /// What another device is to have is given too, with this configuration: nobody has asked about that device.
    Foreign { device: &'static str, configuration: Value },
    /// The answer to the device's event has the name of this other device.
    OtherDevice(&'static str),
    /// The device is answered twice, the second time with this configuration.
    Doubled(Value),
    /// It has another name of the configuration.
    OtherName,
    /// It has another event than the call.
    OtherEvent,
    /// It has an id of an event that nobody has sent.
    OtherUuid,
}

/// What the server says about a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// What the device is to have.
    pub given: Given,
    /// The value of `poll_interval`, if there is one.
    pub poll_interval: Option<Value>,
    /// What is wrong with the answer, if anything is.
    pub lie: Option<Lie>,
    /// How long the answer takes.
    pub delay: Duration,
}

impl Script {
    /// An honest answer at once.
    pub const fn of(given: Given) -> Self {
        Self { given, poll_interval: None, lie: None, delay: Duration::ZERO }
    }

    /// An answer with this lie, about a device that is to have `given`.
    pub const fn lying(given: Given, lie: Lie) -> Self {
        Self { given, poll_interval: None, lie: Some(lie), delay: Duration::ZERO }
    }
}

/// A call that the server has received.
#[derive(Debug, Clone)]
pub struct Call {
    /// The number of its connection, from 0.
    pub connection: usize,
    /// When it arrived.
    pub arrived: Instant,
    /// Its first line, such as `POST /flightctl-hooks/ HTTP/1.1`.
    pub line: String,
    /// The headers, whose names are in lower case.
    pub headers: BTreeMap<String, String>,
    /// The members of its body, as they were sent.
    pub members: Vec<Value>,
}

/// The device that a member of a call is about.
pub fn device(member: &Value) -> &str {
    member["device_metadata"]["name"].as_str().unwrap_or_default()
}

#[derive(Debug)]
struct Shared {
    scripts: BTreeMap<String, Script>,
    /// What is said about other devices.
    usual: Script,
    calls: Vec<Call>,
    /// Devices about which a call is under way, each with how many, and the most calls that there were about one at once.
    under_way: BTreeMap<String, usize>,
    most_at_once: usize,
}

/// The server, which ends when it is dropped.
#[derive(Debug)]
pub struct HookServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

impl Drop for HookServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HookServer {
    /// A server that says of every device that it is to have nothing.
    pub async fn start() -> Self {
        let address = own_address();
        let listener = TcpListener::bind(address).await.unwrap();
        let shared = Arc::new(Mutex::new(Shared {
            scripts: BTreeMap::new(),
            usual: Script::of(Given::Nothing),
            calls: Vec::new(),
            under_way: BTreeMap::new(),
            most_at_once: 0,
        }));
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self { address, shared, task }
    }

    /// Where it is called.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Says this about `device` from now on.
    pub fn script(&self, device: &str, script: Script) {
        self.shared().scripts.insert(device.to_owned(), script);
    }

    /// Says this about every device without a script.
    pub fn usually(&self, script: Script) {
        self.shared().usual = script;
    }

    /// The calls that it has received, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.shared().calls.clone()
    }

    /// The members of calls that had `event` and were about `device`, in order.
    pub fn told(&self, event: &str, device: &str) -> Vec<Value> {
        let members = self.calls().into_iter().flat_map(|call| call.members);
        members.filter(|member| member["event"] == event && self::device(member) == device).collect()
    }

    /// Waits until it was told of more than `before` such events, and returns the last one.
    pub async fn await_told(&self, event: &str, device: &str, before: usize) -> Value {
        eventually(&format!("more than {before} of {event} of {device}"), async || {
            let told = self.told(event, device);
            (told.len() > before).then(|| told.last().cloned()).flatten()
        })
        .await
    }

    /// The most calls about one device that were under way at once.
    pub fn most_at_once(&self) -> usize {
        self.shared().most_at_once
    }

    /// The tokens that it was given, without repetitions, the first one first.
    pub fn tokens(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let members = self.calls().into_iter().flat_map(|call| call.members);
        let tokens = members.filter_map(|member| member["callback_token"].as_str().map(str::to_owned));
        tokens.filter(|token| seen.insert(token.clone())).collect()
    }

    /// Where it was last told to call back.
    pub fn callback_endpoint(&self) -> String {
        let calls = self.calls();
        let member = calls.last().and_then(|call| call.members.first()).unwrap();
        member["callback_endpoint"].as_str().unwrap().to_owned()
    }

    /// Calls back with `token` at `endpoint`: the configurations of `devices` that are called `name` have changed. Returns status and body.
    pub async fn call_back(&self, endpoint: &str, token: &str, name: &str, devices: &[&str]) -> Reply {
        let body = json!([{
            "event": "ON_CONFIG_UPDATE",
            "event_uuid": uuid::Uuid::new_v4().to_string(),
            "config_name": name,
            "device_names": devices,
        }]);
        let request = http::builder([]).build().unwrap().post(endpoint).bearer_auth(token).json(&body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body = response.bytes().await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Mutex<Shared>>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    for number in 0.. {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(converse(stream, number, Arc::clone(&shared)));
    }
}

/// A request as it is on the wire.
struct Request {
    line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// How a call is answered.
struct Response {
    delay: Duration,
    /// Nothing if it is never answered.
    bytes: Option<Vec<u8>>,
    closes: bool,
}

/// The devices of a call, as long as that is under way.
struct UnderWay {
    devices: Vec<String>,
    shared: Arc<Mutex<Shared>>,
}

impl UnderWay {
    fn new(devices: Vec<String>, shared: &Arc<Mutex<Shared>>) -> Self {
        let mut counts = shared.lock().unwrap();
        for device in &devices {
            let count = counts.under_way.entry(device.clone()).or_default();
            *count += 1;
            let count = *count;
            counts.most_at_once = counts.most_at_once.max(count);
        }
        drop(counts);
        Self { devices, shared: Arc::clone(shared) }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // A test that has failed may have left the lock poisoned.
        let Ok(mut shared) = self.shared.lock() else { return };
        for device in &self.devices {
            if let Some(count) = shared.under_way.get_mut(device) {
                *count -= 1;
            }
        }
    }
}

async fn converse(mut stream: TcpStream, connection: usize, shared: Arc<Mutex<Shared>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let members = members(&request.body);
        let devices = members.iter().map(|member| device(member).to_owned()).collect();
        let response = {
            let mut shared = shared.lock().unwrap();
            let response = shared.respond(&request.headers, &members);
            let Request { line, headers, .. } = request;
            shared.calls.push(Call { connection, arrived: Instant::now(), line, headers, members });
            response
        };
        let under_way = UnderWay::new(devices, &shared);
        let Some(bytes) = response.bytes else { return outlast(&mut stream).await };
        tokio::time::sleep(response.delay).await;
        // It ends before the caller can know that it has: the next call may follow at once.
        drop(under_way);
        if stream.write_all(&bytes).await.is_err() || response.closes {
            return;
        }
    }
}

/// Waits, without a word, until the caller has gone.
async fn outlast(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(request) = take_request(buffer) {
            return Some(request);
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn take_request(buffer: &mut Vec<u8>) -> Option<Request> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let (begin, end) = (end + 4, end + 4 + length);
    let body = buffer.get(begin..end)?.to_vec();
    buffer.drain(..end);
    Some(Request { line, headers, body })
}

/// The members of a body, which is empty if it is none of a call.
fn members(body: &[u8]) -> Vec<Value> {
    let Ok(Value::Array(members)) = serde_json::from_slice(body) else { return Vec::new() };
    members
}

impl Shared {
    fn script(&self, member: &Value) -> &Script {
        self.scripts.get(device(member)).unwrap_or(&self.usual)
    }

    fn respond(&self, headers: &BTreeMap<String, String>, members: &[Value]) -> Response {
        // As a real one would: what is no call is told so.
        if members.is_empty() || headers.get("content-type").map(String::as_str) != Some("application/json") {
            return Response::new(Duration::ZERO, http_answer(400, &[], b""));
        }
        let delay = members.iter().map(|member| self.script(member).delay).max().unwrap_or_default();
        // What is wrong with the whole answer is so for all devices of the call.
        let mut lies = members.iter().filter_map(|member| self.script(member).lie.as_ref());
        if let Some(response) = lies.find_map(|lie| self.lie_to_all(lie, members)) {
            return Response { delay, ..response };
        }
        let is_unchanged = |member: &Value| {
            let script = self.script(member);
            script.given == Given::Unchanged && script.lie.is_none()
        };
        let status = if members.iter().all(is_unchanged) { 304 } else { 200 };
        Response::new(delay, answer_with(status, &self.answers(members)))
    }

    /// The response to the call, if the lie is about the whole of it.
    fn lie_to_all(&self, lie: &Lie, members: &[Value]) -> Option<Response> {
        let at_once = |bytes| Some(Response::new(Duration::ZERO, bytes));
        match lie {
            Lie::Status { status, retry_after: Some(secs) } => {
                at_once(http_answer(*status, &[("retry-after", secs.to_string().as_str())], b""))
            }
            Lie::Status { status, retry_after: None } => at_once(http_answer(*status, &[], b"")),
            Lie::Redirect => at_once(http_answer(302, &[("location", "http://127.0.0.1:9/")], b"")),
            Lie::Page => at_once(http_answer(200, &[("content-type", "text/html")], b"<p>Please sign in")),
            Lie::Body(body) => {
                at_once(http_answer(200, &[("content-type", "application/json")], body.as_bytes()))
            }
            Lie::Silence => Some(Response { delay: Duration::ZERO, bytes: None, closes: true }),
            Lie::Cut => {
                let mut bytes = answer_with(200, &self.answers(members));
                bytes.truncate(bytes.len() - CUT_AFTER);
                Some(Response { delay: Duration::ZERO, bytes: Some(bytes), closes: true })
            }
            Lie::Huge => {
                let mut answers = self.answers(members);
                answers[0]["configuration"] = json!("x".repeat(HUGE_BYTES));
                at_once(answer_with(200, &answers))
            }
            Lie::Pipelined(configuration) => {
                let mut bytes = answer_with(304, &self.answers(members));
                let mut garbage = self.answers(members);
                for answer in &mut garbage {
                    answer["configuration"].clone_from(configuration);
                }
                bytes.extend(answer_with(200, &garbage));
                at_once(bytes)
            }
            Lie::Missing
            | Lie::Foreign { .. }
            | Lie::OtherDevice(_)
            | Lie::Doubled(_)
            | Lie::OtherName
            | Lie::OtherEvent
            | Lie::OtherUuid => None,
        }
    }

    fn answers(&self, members: &[Value]) -> Vec<Value> {
        members.iter().flat_map(|member| answers_to(member, self.script(member))).collect()
    }
}

impl Response {
    const fn new(delay: Duration, bytes: Vec<u8>) -> Self {
        Self { delay, bytes: Some(bytes), closes: false }
    }
}

/// What is answered to one member of a call: one member, unless the script lies.
fn answers_to(member: &Value, script: &Script) -> Vec<Value> {
    let mut answer = json!({
        "event": member["event"],
        "event_uuid": member["event_uuid"],
        "device_name": device(member),
        "config_name": member["config_name"],
    });
    match &script.given {
        Given::Configuration(configuration) => answer["configuration"].clone_from(configuration),
        Given::Nothing => answer["configuration"] = Value::Null,
        Given::Unchanged => {}
    }
    if let Some(interval) = &script.poll_interval {
        answer["poll_interval"].clone_from(interval);
    }
    let mut answers = vec![answer];
    let more = answers[0].clone();
    match &script.lie {
        Some(Lie::Missing) => answers.clear(),
        Some(Lie::Foreign { device, configuration }) => {
            let uuid = uuid::Uuid::new_v4().to_string();
            answers.push(changed(
                more,
                &[
                    ("device_name", json!(device)),
                    ("event_uuid", json!(uuid)),
                    ("configuration", configuration.clone()),
                ],
            ));
        }
        Some(Lie::OtherDevice(device)) => answers = vec![changed(more, &[("device_name", json!(device))])],
        Some(Lie::Doubled(configuration)) => {
            answers.push(changed(more, &[("configuration", configuration.clone())]));
        }
        Some(Lie::OtherName) => answers = vec![changed(more, &[("config_name", json!("not-mine"))])],
        Some(Lie::OtherEvent) => {
            let is_poll = member["event"] == "ON_DEVICE_POLL";
            let other = if is_poll { "ON_FLEET_JOIN" } else { "ON_DEVICE_POLL" };
            answers = vec![changed(more, &[("event", json!(other))])];
        }
        Some(Lie::OtherUuid) => {
            let uuid = uuid::Uuid::new_v4().to_string();
            answers = vec![changed(more, &[("event_uuid", json!(uuid))])];
        }
        // These are about whole answers.
        Some(
            Lie::Status { .. }
            | Lie::Redirect
            | Lie::Page
            | Lie::Body(_)
            | Lie::Silence
            | Lie::Cut
            | Lie::Huge
            | Lie::Pipelined(_),
        )
        | None => {}
    }
    answers
}

fn changed(mut answer: Value, changes: &[(&str, Value)]) -> Value {
    for (key, value) in changes {
        answer[*key].clone_from(value);
    }
    answer
}

fn answer_with(status: u16, answers: &[Value]) -> Vec<u8> {
    let body = serde_json::to_vec(answers).unwrap();
    http_answer(status, &[("content-type", "application/json")], &body)
}

fn http_answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}
