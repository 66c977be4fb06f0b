//! Requests and answers of other sites, received over the bus.

use axum::http::Method;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_api::offline;
use os_upgrade_auth::Caller;

use crate::text::is_one_line;

/// The current time in all cases.
fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_000_000, 0).expect("a time")
}

/// A request: a line with the request and the caller, then the body.
pub fn site_request(data: &[u8]) {
    let message = Bytes::copy_from_slice(data);
    let request = match offline::site_request(&message, now()) {
        Ok(request) => request,
        Err(problem) => return assert!(!problem.is_empty()),
    };
    let path = request.uri().path();
    assert!(path == "/v1/state/os-upgrade" || path.starts_with("/v1/state/os-upgrade/"), "{path}");
    assert!(request.uri().host().is_none() && request.headers().len() <= 1);
    let caller = request.extensions().get::<Caller>().expect("a request has a caller");
    assert!(caller.actor.len() <= 2_048 && is_one_line(&caller.actor));
    // Late requests are accepted only if they change nothing.
    let later = offline::site_request(&message, now() + TimeDelta::hours(1));
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    assert_eq!(later.is_ok(), reads, "{}", request.method());
}

/// An answer: a line with the status and type, then the body.
pub fn site_answer(data: &[u8]) {
    match offline::site_answer(&Bytes::copy_from_slice(data)) {
        Ok((status, _, body)) => {
            assert!((100..=999).contains(&status));
            assert!(body.len() <= data.len() || body.len() as u64 <= 256 * 1024 * 1024);
        }
        Err(problem) => assert!(!problem.is_empty()),
    }
}
