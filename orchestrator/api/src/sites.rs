//! `?site=NAME`, below `/v1/state/os-upgrade` and `/v1/state/reboot-queue`: the request is forwarded over the bus to an
//! orchestrator of that site and answered by the same routes there.
//!
//! The caller is identified where the request arrives. Its rights are checked there and again at the other site, which
//! trusts every client that may publish on its subject. Requests from the bus are not forwarded again.

mod message;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, LOCATION};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_api_types::sites::{PARAMETER, takes_site};
use os_upgrade_auth::Caller;
use os_upgrade_bus::sites::{AnswerSites, NoAnswer};
use os_upgrade_bus::{Bus, PendingBus};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::published_state::Readiness;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use self::message::{SiteAnswer, SiteRequest};
use crate::http::authorization::Identity;
use crate::http::error::Problem;
use crate::http::extract;
use crate::http::listener::DRAIN_TIMEOUT;
use crate::http::prefer::{PREFER, PREFERENCE_APPLIED};

/// Oldest change that is still applied, by the clocks of both sites. The caller of an older one has long been told
/// that its outcome is unknown, and may have requested the opposite since.
const CHANGE_AGE_MAX: TimeDelta = TimeDelta::seconds(30);
/// How many requests from other sites are handled at once.
const CONCURRENT_REQUESTS_MAX: usize = 64;
/// The fields of an answer that reach the client, beside the type of its body.
const PASSED_ON: [HeaderName; 3] = [LOCATION, PREFERENCE_APPLIED, HeaderName::from_static("os-upgrade-run")];
/// Longest name of a caller, in bytes.
const ACTOR_BYTES_MAX: usize = 2_048;

/// This site's name, and the connection to other sites. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    own: Arc<str>,
    bus: Option<PendingBus>,
}

impl Sites {
    /// The site `own`, which reaches others over `bus`.
    pub fn new(own: &str, bus: PendingBus) -> Self {
        Self { own: own.into(), bus: Some(bus) }
    }

    #[cfg(test)]
    pub(crate) fn without_bus(own: &str) -> Self {
        Self { own: own.into(), bus: None }
    }

    /// The bus, once it is connected.
    pub(crate) fn bus(&self) -> Option<&Bus> {
        self.bus.as_ref()?.get()
    }

    /// Answers other sites with `router` until `stop`, while `site` accepts writes.
    pub(crate) async fn answer(self, site: SiteHandle, router: Router, stop: CancellationToken) {
        let Some(bus) = &self.bus else { return };
        let Some(bus) = stop.run_until_cancelled(bus.wait()).await else { return };
        let answers =
            Responder { site, router, under_way: Arc::new(Semaphore::new(CONCURRENT_REQUESTS_MAX)) };
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN_TIMEOUT).await;
        };
        tokio::select! {
            () = bus.answer_sites(&self.own, answers, stop.clone()) => {}
            () = late => {}
        }
    }

    async fn forward(&self, name: &str, request: Request) -> Result<Response, Problem> {
        let no_such_site = || {
            Problem::not_found(format!(
                "no orchestrator serves the site {name:?}: check its name, that its orchestrators are ready, and that their \
                     bus is connected to this one"
            ))
        };
        let method = request.method().clone();
        let not_delivered = |why: &str| {
            let why = format!("the site {name:?} cannot be reached: {why}");
            Problem::not_done(&method, NotDone::unchanged(why))
        };
        let bus = self.bus.as_ref().ok_or_else(no_such_site)?;
        let bus = bus.get().ok_or_else(|| not_delivered("NATS is not connected yet"))?;
        let caller = request.extensions().get::<Caller>();
        let caller = caller.ok_or_else(|| Problem::internal("a request without a caller"))?;
        let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::to_str).transpose();
        let head = SiteRequest {
            method: request.method().to_string(),
            target: target(request.uri()),
            content_type: content_type
                .map_err(|error| Problem::bad_request(error.to_string()))?
                .map(Into::into),
            prefer: text(request.headers(), &PREFER),
            caller: Caller {
                actor: format!("{} at {}", caller.actor, self.own),
                rights: caller.rights.clone(),
            },
            sent: Utc::now(),
        };
        let body = extract::bytes(request, &()).await?;
        let message = message::encode_request(&head, &body);
        let message = message.map_err(|error| Problem::internal(error.to_string()))?;
        match bus.request_site(name, message).await {
            Ok(message) => read_response(name, message, &method).await,
            Err(NoAnswer::InvalidName(error)) => Err(Problem::bad_request(format!("{PARAMETER}: {error}"))),
            Err(NoAnswer::NoResponders) => Err(no_such_site()),
            Err(NoAnswer::NotDelivered { why }) => Err(not_delivered(&why)),
            Err(NoAnswer::TooLarge) => {
                let message = format!("the body is too large to be sent to the site {name:?}");
                Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message))
            }
            Err(NoAnswer::Unknown { why }) => {
                let why = format!("the site {name:?} did not answer: {why}");
                Err(Problem::not_done(&method, NotDone::unknown(why)))
            }
        }
    }
}

/// Forwards a request with `?site=`. This layer is inside those that identify and admit the caller.
pub(crate) async fn forward_to_site(
    State(sites): State<Sites>,
    mut request: Request,
    next: Next,
) -> Response {
    let name = match take_site(request.uri_mut()) {
        Ok(name) => name,
        Err(problem) => return problem.into_response(),
    };
    match name {
        Some(name) if *name != *sites.own => {
            sites.forward(&name, request).await.unwrap_or_else(Problem::into_response)
        }
        _ => next.run(request).await,
    }
}

/// Removes the parameter from the query of `uri` and returns its value; the rest is unchanged.
fn take_site(uri: &mut Uri) -> Result<Option<String>, Problem> {
    let Some(query) = uri.query() else { return Ok(None) };
    let (mut rest, mut found) = (Vec::new(), None);
    for part in query.split('&') {
        match value_of(part) {
            None => rest.push(part),
            Some(_) if found.is_some() => {
                return Err(Problem::bad_request(format!("{PARAMETER} is given twice")));
            }
            Some(name) => found = Some(name),
        }
    }
    let Some(name) = found else { return Ok(None) };
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    let target = PathAndQuery::try_from(format!("{}{query}", uri.path()));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.map_err(|error| Problem::bad_request(error.to_string()))?);
    *uri = Uri::from_parts(parts).map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(Some(name))
}

/// Whether the query of `uri` names a site.
pub(crate) fn names_site(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|part| value_of(part).is_some()))
}

/// The value of one part of a query, if its name is `site`.
fn value_of(part: &str) -> Option<String> {
    let alone = PathAndQuery::try_from(format!("/?{part}")).ok()?;
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&alone.into()).ok()?;
    pairs.into_iter().find(|(name, _)| name == PARAMETER).map(|(_, value)| value)
}

/// The field `name` of `headers`, if it is text.
fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(ToOwned::to_owned)
}

fn target(uri: &Uri) -> String {
    uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string)
}

/// The response that the site `name` sent in `message`.
async fn read_response(name: &str, message: Bytes, method: &Method) -> Result<Response, Problem> {
    let bad = |why: &str| {
        let text = format!("the answer of the site {name:?} cannot be read: {why}");
        Problem::not_done(method, NotDone::unknown(text)).with_status(StatusCode::BAD_GATEWAY)
    };
    // Large answers are compressed: decompress them off the runtime's threads.
    let read = tokio::task::spawn_blocking(move || read_answer(&message)).await;
    let read = read.map_err(|error| Problem::internal(error.to_string()))?;
    let (status, mut headers, body) = read.map_err(|why| bad(&why))?;
    if let Some(location) = headers.get_mut(LOCATION) {
        *location = at_site(location, name).map_err(|why| bad(&why))?;
    }
    Ok((status, headers, body).into_response())
}

/// The location of something of the site `name`, as this site's clients reach it.
fn at_site(location: &HeaderValue, name: &str) -> Result<HeaderValue, String> {
    let path = location.to_str().map_err(|error| error.to_string())?;
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    HeaderValue::try_from(format!("{path}?{PARAMETER}={name}")).map_err(|error| error.to_string())
}

/// Reads an answer from a message of the bus.
pub(crate) fn read_answer(message: &Bytes) -> Result<(StatusCode, HeaderMap, Bytes), String> {
    let (SiteAnswer { status, content_type, headers: others, .. }, body) = message::decode_answer(message)?;
    let status = StatusCode::from_u16(status).map_err(|error| error.to_string())?;
    let mut headers = HeaderMap::new();
    if let Some(content_type) = content_type {
        let value = HeaderValue::try_from(content_type).map_err(|error| error.to_string())?;
        headers.insert(CONTENT_TYPE, value);
    }
    for name in PASSED_ON {
        if let Some(value) = others.get(name.as_str()) {
            headers.insert(name, HeaderValue::try_from(value).map_err(|error| error.to_string())?);
        }
    }
    Ok((status, headers, body))
}

/// Answers requests from other sites.
#[derive(Debug, Clone)]
struct Responder {
    site: SiteHandle,
    router: Router,
    under_way: Arc<Semaphore>,
}

impl AnswerSites for Responder {
    fn is_ready(&self) -> bool {
        self.site.published().readiness == Readiness::Ready
    }

    async fn answer(self, message: Bytes, room: usize) -> Bytes {
        let Ok(_permit) = self.under_way.try_acquire() else {
            let busy = "too many requests of other sites are under way: try again later";
            let unchanged = json!(NotDone::unchanged(busy));
            return encode_within(Problem::unavailable(busy).with_info(unchanged).into_response(), room)
                .await;
        };
        let response = match read_request(&message, Utc::now()) {
            Ok(request) => self.router.oneshot(request).await.unwrap_or_else(|never| match never {}),
            Err(problem) => problem.into_response(),
        };
        encode_within(response, room).await
    }
}

/// Reads a request from a message of the bus, received at `now`.
pub(crate) fn read_request(message: &Bytes, now: DateTime<Utc>) -> Result<Request, Problem> {
    let bad = |why: String| Problem::bad_request(format!("a request of another site is invalid: {why}"));
    let (head, body) = message::decode_request(message).map_err(bad)?;
    let SiteRequest { method, target, content_type, prefer, caller, sent } = head;
    let method: Method = method.parse().map_err(|_| bad("its method is malformed".to_owned()))?;
    let target: PathAndQuery = target.parse().map_err(|_| bad("its path is malformed".to_owned()))?;
    if !takes_site(target.path()) {
        return Err(bad(format!("{} is not served to other sites", target.path())));
    }
    let late = (now - sent).abs();
    if !method.is_safe() && late > CHANGE_AGE_MAX {
        let late = late.num_seconds();
        let why = format!("the request was sent {late} s ago, or its site's clock is wrong");
        return Err(NotDone::unchanged(why).into());
    }
    if caller.actor.len() > ACTOR_BYTES_MAX || caller.actor.chars().any(char::is_control) {
        return Err(bad("the caller's name is malformed".to_owned()));
    }
    let request = Request::builder().method(method).uri(target);
    let fields = [(CONTENT_TYPE, content_type), (PREFER, prefer)];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let request = fields.fold(request, |request, (name, value)| request.header(name, value));
    let mut request = request.body(Body::from(body)).map_err(|error| bad(error.to_string()))?;
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(Identity(Ok(caller)));
    Ok(request)
}

/// Encodes `response`; an error instead when the message would exceed `room` bytes.
async fn encode_within(response: Response, room: usize) -> Bytes {
    match encode_response(response).await {
        Ok(message) if message.len() <= room => message,
        Ok(message) => {
            let text = format!(
                "the answer has {} bytes, compressed, and the bus takes {room}: request less, with keys, limit or \
                     fields where they are known, or call an orchestrator of that site",
                message.len()
            );
            encode_response(Problem::new(StatusCode::BAD_GATEWAY, text).into_response())
                .await
                .unwrap_or_default()
        }
        // If even this fails, the empty message is an error at the other site.
        Err(error) => encode_response(Problem::internal(error).into_response()).await.unwrap_or_default(),
    }
}

async fn encode_response(response: Response) -> Result<Bytes, String> {
    let mut answer = SiteAnswer::new(response.status().as_u16(), text(response.headers(), &CONTENT_TYPE));
    let passed_on = PASSED_ON.into_iter().filter_map(|name| {
        let value = text(response.headers(), &name)?;
        Some((name.as_str().to_owned(), value))
    });
    answer.headers = passed_on.collect();
    let body = to_bytes(response.into_body(), usize::MAX).await.map_err(|error| error.to_string())?;
    let message = tokio::task::spawn_blocking(move || message::encode_answer(answer, &body)).await;
    message.map_err(|error| error.to_string())?.map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use os_upgrade_auth::{Rights, Role};

    use super::*;

    #[test]
    fn take_site_removes_the_parameter() {
        for (given, name, left) in [
            ("/a", None, "/a"),
            ("/a?", None, "/a?"),
            ("/a?validate=true&sites=x", None, "/a?validate=true&sites=x"),
            ("/a?site=leaf", Some("leaf"), "/a"),
            ("/a?site", Some(""), "/a"),
            ("/a?%73ite=a%20b+c&limit=5&after=%41", Some("a b c"), "/a?limit=5&after=%41"),
            ("/a?limit=5&site=l%C3%B6v", Some("löv"), "/a?limit=5"),
        ] {
            let mut uri: Uri = given.parse().unwrap();
            assert_eq!(take_site(&mut uri).unwrap().as_deref(), name, "{given}");
            assert_eq!(uri.to_string(), left, "{given}");
        }
        let twice = take_site(&mut "/a?site=a&site=b".parse().unwrap()).unwrap_err();
        assert_eq!(twice.into_message(), "site is given twice");
    }

    #[test]
    fn requests_of_sites_are_validated() {
        let now: DateTime<Utc> = "2026-11-21T05:00:00Z".parse().unwrap();
        let of = |method: &str, target: &str, seconds: i64, actor: &str| {
            let head = SiteRequest {
                method: method.to_owned(),
                target: target.to_owned(),
                content_type: None,
                prefer: None,
                caller: Caller { actor: actor.to_owned(), rights: Rights::Role(Role::Admin) },
                sent: now - TimeDelta::seconds(seconds),
            };
            let message = message::encode_request(&head, b"").unwrap();
            read_request(&message.into(), now).map_err(Problem::into_message)
        };
        let state = "/v1/state/os-upgrade";
        let request = of("GET", state, 3_600, "token eve at hub").unwrap();
        assert_eq!(request.extensions().get::<Caller>().unwrap().actor, "token eve at hub");
        assert!(of("POST", "/v1/state/os-upgrade/cancel?a=b", 30, "x").is_ok());
        for (method, target, seconds, actor, why) in [
            ("POST", state, 31, "x", "31 s ago"),
            ("POST", state, -31, "x", "clock is wrong"),
            ("GET", "/v1/config/os-upgrade", 0, "x", "/v1/config/os-upgrade is not served"),
            ("GET", "http://h/v1/state/os-upgrade", 0, "x", "its path is malformed"),
            ("G T", state, 0, "x", "its method is malformed"),
            ("GET", state, 0, "x\ny", "name is malformed"),
        ] {
            let refused = of(method, target, seconds, actor).unwrap_err();
            assert!(refused.contains(why), "{method} {target}: {refused}");
        }
    }

    /// Of an answer's headers those reach the client that are listed, and its location is one of this site.
    #[tokio::test]
    async fn listed_headers_reach_the_client() {
        let fields = [
            ("location", "/v1/state/os-upgrade/runs/r1"),
            ("os-upgrade-run", "r1"),
            ("preference-applied", "return=representation"),
            ("set-cookie", "a=b"),
        ];
        let answer = (StatusCode::CREATED, fields, "{}").into_response();
        let message = encode_response(answer).await.unwrap();
        let response = read_response("löv", message, &Method::POST).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        let shown = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(shown("location"), Some("/v1/state/os-upgrade/runs/r1?site=l%C3%B6v"));
        assert_eq!(shown("os-upgrade-run"), Some("r1"));
        assert_eq!(shown("preference-applied"), Some("return=representation"));
        assert_eq!(shown("set-cookie"), None);
    }

    #[tokio::test]
    async fn oversized_answer_is_an_error_with_advice() {
        let body: Vec<u8> =
            (0_u32..100_000).flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let response = read_response("leaf", encode_within(body.into_response(), 1_000).await, &Method::GET)
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains("with keys, limit or fields"), "{body:?}");
    }
}
