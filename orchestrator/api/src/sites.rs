//! `?site=NAME`, below `/v1/state/os-upgrade`: what is asked of another site is passed on to an orchestrator there, over
//! the bus, and answered by the same routes.
//!
//! Who asks is found out where the request arrives, and whether the route lets the caller in is looked at there and at
//! the other site: that takes the word of whoever may publish on its subject. What has come over the bus is not passed
//! on again.

mod message;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::header::CONTENT_TYPE;
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
use os_upgrade_site::snapshot::Readiness;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use self::message::{Answered, Asked};
use crate::http::authority::Identity;
use crate::http::error::Problem;
use crate::http::extract;
use crate::http::listener::DRAIN_TIMEOUT;

/// A change that has been under way for longer, by the clocks of both sites, is not made: whoever asked was told long ago
/// that nobody knows what becomes of it, and may have asked for the contrary since.
const SENT_WITHIN: TimeDelta = TimeDelta::seconds(30);
/// Requests of other sites that are answered at once.
const UNDER_WAY_MAX: usize = 64;
/// Longest name of who asks, in bytes.
const ACTOR_BYTES_MAX: usize = 2_048;

/// This site, and the way to others. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    own: Arc<str>,
    bus: Option<PendingBus>,
}

impl Sites {
    /// The site `own`, with others over `bus`.
    pub fn new(own: &str, bus: PendingBus) -> Self {
        Self { own: own.into(), bus: Some(bus) }
    }

    #[cfg(test)]
    pub(crate) fn without_bus(own: &str) -> Self {
        Self { own: own.into(), bus: None }
    }

    /// The bus, once it has come.
    pub(crate) fn bus(&self) -> Option<&Bus> {
        self.bus.as_ref()?.get()
    }

    /// Answers other sites with `router`, as long as `site` can take a write, until `stop`.
    pub(crate) async fn answer(self, site: SiteHandle, router: Router, stop: CancellationToken) {
        let Some(bus) = &self.bus else { return };
        let Some(bus) = stop.run_until_cancelled(bus.wait()).await else { return };
        let answers = Responder { site, router, under_way: Arc::new(Semaphore::new(UNDER_WAY_MAX)) };
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN_TIMEOUT).await;
        };
        tokio::select! {
            () = bus.answer_sites(&self.own, answers, stop.clone()) => {}
            () = late => {}
        }
    }

    async fn ask(&self, name: &str, request: Request) -> Result<Response, Problem> {
        let nobody = || {
            Problem::not_found(format!(
                "no orchestrator serves the site {name:?}: see whether this is its name, whether its orchestrators are \
                 ready, and whether their bus is connected to this one"
            ))
        };
        let method = request.method().clone();
        let not_delivered = |why: &str| {
            let why = format!("the site {name:?} cannot be asked: {why}");
            Problem::not_done(&method, NotDone::unchanged(why))
        };
        let bus = self.bus.as_ref().ok_or_else(nobody)?;
        let bus = bus.get().ok_or_else(|| not_delivered("the bus is not there yet"))?;
        let caller = request.extensions().get::<Caller>();
        let caller = caller.ok_or_else(|| Problem::internal("a request by nobody knows whom"))?;
        let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::to_str).transpose();
        let asked = Asked {
            method: request.method().to_string(),
            target: target(request.uri()),
            content_type: content_type
                .map_err(|error| Problem::bad_request(error.to_string()))?
                .map(Into::into),
            caller: Caller {
                actor: format!("{} at {}", caller.actor, self.own),
                rights: caller.rights.clone(),
            },
            sent: Utc::now(),
        };
        let body = extract::bytes(request, &()).await?;
        let message = message::encode_request(&asked, &body);
        let message = message.map_err(|error| Problem::internal(error.to_string()))?;
        match bus.ask_site(name, message).await {
            Ok(message) => answered(name, message, &method).await,
            Err(NoAnswer::NoName(error)) => Err(Problem::bad_request(format!("{PARAMETER}: {error}"))),
            Err(NoAnswer::Nobody) => Err(nobody()),
            Err(NoAnswer::NotDelivered { why }) => Err(not_delivered(&why)),
            Err(NoAnswer::TooLarge) => {
                let message = format!("the body is too large to be sent to the site {name:?}");
                Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message))
            }
            Err(NoAnswer::Unknown { why }) => {
                let why = format!("the site {name:?} is silent, {why}");
                Err(Problem::not_done(&method, NotDone::unknown(why)))
            }
        }
    }
}

/// Passes on what is asked of another site. Inside of whatever finds out who asks, and whether that one may.
pub(crate) async fn elsewhere(State(sites): State<Sites>, mut request: Request, next: Next) -> Response {
    let name = match take_site(request.uri_mut()) {
        Ok(name) => name,
        Err(problem) => return problem.into_response(),
    };
    match name {
        Some(name) if *name != *sites.own => {
            sites.ask(&name, request).await.unwrap_or_else(Problem::into_response)
        }
        _ => next.run(request).await,
    }
}

/// Takes the parameter out of the query of `uri`; the rest stays as it is.
fn take_site(uri: &mut Uri) -> Result<Option<String>, Problem> {
    let Some(query) = uri.query() else { return Ok(None) };
    let (mut rest, mut found) = (Vec::new(), None);
    for part in query.split('&') {
        match value_of(part) {
            None => rest.push(part),
            Some(_) if found.is_some() => {
                return Err(Problem::bad_request(format!("{PARAMETER} stands there twice")));
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

/// The value of one part of a query, if it is of this parameter.
fn value_of(part: &str) -> Option<String> {
    let alone = PathAndQuery::try_from(format!("/?{part}")).ok()?;
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&alone.into()).ok()?;
    pairs.into_iter().find(|(name, _)| name == PARAMETER).map(|(_, value)| value)
}

fn target(uri: &Uri) -> String {
    uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string)
}

/// The answer of the site `name`.
async fn answered(name: &str, message: Bytes, method: &Method) -> Result<Response, Problem> {
    let bad = |why: &str| {
        let text = format!("the answer of the site {name:?} cannot be read: {why}");
        Problem::not_done(method, NotDone::unknown(text)).with_status(StatusCode::BAD_GATEWAY)
    };
    // Large ones are compressed, and the runtime's threads have other things to do.
    let read = tokio::task::spawn_blocking(move || read_answer(&message)).await;
    let read = read.map_err(|error| Problem::internal(error.to_string()))?;
    read.map(IntoResponse::into_response).map_err(|why| bad(&why))
}

/// The answer that a message holds.
pub(crate) fn read_answer(message: &Bytes) -> Result<(StatusCode, HeaderMap, Bytes), String> {
    let (Answered { status, content_type, .. }, body) = message::decode_answer(message)?;
    let status = StatusCode::from_u16(status).map_err(|error| error.to_string())?;
    let mut headers = HeaderMap::new();
    if let Some(content_type) = content_type {
        let value = HeaderValue::try_from(content_type).map_err(|error| error.to_string())?;
        headers.insert(CONTENT_TYPE, value);
    }
    Ok((status, headers, body))
}

/// What answers other sites.
#[derive(Debug, Clone)]
struct Responder {
    site: SiteHandle,
    router: Router,
    under_way: Arc<Semaphore>,
}

impl AnswerSites for Responder {
    fn is_ready(&self) -> bool {
        self.site.snapshot().readiness == Readiness::Ready
    }

    async fn answer(self, message: Bytes, room: usize) -> Bytes {
        let Ok(_permit) = self.under_way.try_acquire() else {
            let busy = "as many requests of other sites as may be are under way: ask again later";
            let unchanged = json!(NotDone::unchanged(busy));
            return sent(Problem::unavailable(busy).with_info(unchanged).into_response(), room).await;
        };
        let response = match received(&message, Utc::now()) {
            Ok(request) => self.router.oneshot(request).await.unwrap_or_else(|never| match never {}),
            Err(problem) => problem.into_response(),
        };
        sent(response, room).await
    }
}

/// The request that a message holds.
pub(crate) fn received(message: &Bytes, now: DateTime<Utc>) -> Result<Request, Problem> {
    let bad = |why: String| Problem::bad_request(format!("a request of another site cannot be meant: {why}"));
    let (asked, body) = message::decode_request(message).map_err(bad)?;
    let Asked { method, target, content_type, caller, sent } = asked;
    let method: Method = method.parse().map_err(|_| bad("its method is none".to_owned()))?;
    let target: PathAndQuery = target.parse().map_err(|_| bad("its path is none".to_owned()))?;
    if !takes_site(target.path()) {
        return Err(bad(format!("nothing at {} is answered to other sites", target.path())));
    }
    let late = (now - sent).abs();
    if !method.is_safe() && late > SENT_WITHIN {
        let late = late.num_seconds();
        let why = format!("the request was sent {late} s ago or its site's clock is wrong");
        return Err(NotDone::unchanged(why).into());
    }
    if caller.actor.len() > ACTOR_BYTES_MAX || caller.actor.chars().any(char::is_control) {
        return Err(bad("whoever asks has no name".to_owned()));
    }
    let request = Request::builder().method(method).uri(target);
    let request = match content_type {
        Some(content_type) => request.header(CONTENT_TYPE, content_type),
        None => request,
    };
    let mut request = request.body(Body::from(body)).map_err(|error| bad(error.to_string()))?;
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(Identity(Ok(caller)));
    Ok(request)
}

/// The message that holds `response`, or says that it is larger than `room` bytes.
async fn sent(response: Response, room: usize) -> Bytes {
    match encoded(response).await {
        Ok(message) if message.len() <= room => message,
        Ok(message) => {
            let text = format!(
                "the answer has {} bytes, compressed, and the bus takes {room}: ask for less, with keys, limit or \
                 fields where they are known, or ask an orchestrator of that site",
                message.len()
            );
            encoded(Problem::new(StatusCode::BAD_GATEWAY, text).into_response()).await.unwrap_or_default()
        }
        // What cannot be read there is an error there.
        Err(error) => encoded(Problem::internal(error).into_response()).await.unwrap_or_default(),
    }
}

async fn encoded(response: Response) -> Result<Bytes, String> {
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    let answered = Answered::new(response.status().as_u16(), content_type);
    let body = to_bytes(response.into_body(), usize::MAX).await.map_err(|error| error.to_string())?;
    let encoded = tokio::task::spawn_blocking(move || message::encode_answer(answered, &body)).await;
    encoded.map_err(|error| error.to_string())?.map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use os_upgrade_auth::{Rights, Role};

    use super::*;

    #[test]
    fn the_parameter_is_taken_out_of_the_query() {
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
        assert_eq!(twice.into_message(), "site stands there twice");
    }

    #[test]
    fn what_is_received_and_what_is_not() {
        let now: DateTime<Utc> = "2026-11-21T05:00:00Z".parse().unwrap();
        let of = |method: &str, target: &str, seconds: i64, actor: &str| {
            let asked = Asked {
                method: method.to_owned(),
                target: target.to_owned(),
                content_type: None,
                caller: Caller { actor: actor.to_owned(), rights: Rights::Role(Role::Admin) },
                sent: now - TimeDelta::seconds(seconds),
            };
            let message = message::encode_request(&asked, b"").unwrap();
            received(&message.into(), now).map_err(Problem::into_message)
        };
        let state = "/v1/state/os-upgrade";
        let request = of("GET", state, 3_600, "token eve at hub").unwrap();
        assert_eq!(request.extensions().get::<Caller>().unwrap().actor, "token eve at hub");
        assert!(of("POST", "/v1/state/os-upgrade/cancel?a=b", 30, "x").is_ok());
        for (method, target, seconds, actor, why) in [
            ("POST", state, 31, "x", "31 s ago"),
            ("POST", state, -31, "x", "clock is wrong"),
            ("GET", "/v1/config/os-upgrade", 0, "x", "nothing at /v1/config/os-upgrade"),
            ("GET", "http://h/v1/state/os-upgrade", 0, "x", "its path is none"),
            ("G T", state, 0, "x", "its method is none"),
            ("GET", state, 0, "x\ny", "has no name"),
        ] {
            let refused = of(method, target, seconds, actor).unwrap_err();
            assert!(refused.contains(why), "{method} {target}: {refused}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_an_error_that_says_what_to_do() {
        let body: Vec<u8> =
            (0_u32..100_000).flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let response = answered("leaf", sent(body.into_response(), 1_000).await, &Method::GET).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains("with keys, limit or fields"), "{body:?}");
    }
}
