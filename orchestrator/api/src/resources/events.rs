//! `/v1/state/os-upgrade/events`: follows what happens on the site.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use os_upgrade_api_types::routes::events::{EVENT_STREAM, EventId, FOLLOW, FollowParameters, LAST_EVENT_ID};

use crate::context::Api;
use crate::http::authorization::{dismissed, peer};
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::http::form::accepts;
use crate::http::listener::{Endless, Full, SUBSCRIBERS_MAX, SUBSCRIBERS_OF_ADDRESS_MAX};
use crate::routes::Routes;

/// Tells a proxy of the nginx family not to collect an answer before it passes it on.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) fn routes() -> Routes {
    Routes::default().route(&FOLLOW, follow)
}

async fn follow(
    State(api): State<Api>,
    Params(wanted): Params<FollowParameters>,
    request: Request,
) -> Result<Response, Problem> {
    if !accepts(request.headers(), EVENT_STREAM) {
        let message = format!("answers are in {EVENT_STREAM}: name it in Accept");
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, message));
    }
    let after = last_event_id(request.headers())?.or(wanted.after);
    let seat = api.options.limits.subscribe(peer(&request)).map_err(no_seat)?;
    api.published()?;
    api.history().await;
    let dismissed = dismissed(&api.authenticator, &request);
    let cut_off = seat.cut_off().clone();
    let follower = api.feed.follow(wanted, after, seat).await?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONNECTION, HeaderValue::from_static("close")),
        (NO_BUFFERING, HeaderValue::from_static("no")),
    ];
    let mut response =
        (headers, Body::from_stream(follower.into_stream().take_until(dismissed))).into_response();
    response.extensions_mut().insert(Endless(cut_off));
    Ok(response)
}

/// The id in the header; `None` without one. An empty one is what a client sends that has none.
fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    text.parse().map(Some).map_err(|error| Problem::bad_request(format!("Last-Event-ID: {error}")))
}

fn no_seat(full: Full) -> Problem {
    match full {
        Full::Address => Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!("this address has {SUBSCRIBERS_OF_ADDRESS_MAX} streams of events: end one of them first"),
        ),
        Full::All => Problem::unavailable(format!(
            "there are {SUBSCRIBERS_MAX} streams of events, as many as an instance has: try again later, or ask another \
             instance"
        ))
        .logged_elsewhere(),
    }
}
