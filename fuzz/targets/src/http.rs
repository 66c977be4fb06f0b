//! HTTP: requests from operators and FleetLock clients, answers of lock servers.

use axum::http::{HeaderValue, Uri};
use chrono::Utc;
use os_upgrade_api::offline;
use os_upgrade_api_types::routes::fleet_lock::{Claim, REQUEST_BYTES_MAX};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::LockOutcome;
use os_upgrade_protocol::limits::MESSAGE_BYTES_MAX;
use os_upgrade_shell::fleet_lock::{HttpAnswer, RETRY_AFTER_MAX, RetryAfter, read_answer, read_retry_after};

use serde_json::Value;

use crate::text::{is_object, split};

/// The body of a FleetLock request.
pub fn claim(data: &[u8]) {
    let Ok(claim) = Claim::parse(data) else { return };
    assert!(data.len() <= REQUEST_BYTES_MAX && is_object(data));
    assert!((1..=256).contains(&claim.id.as_str().len()));
    assert!(!claim.id.as_str().chars().any(char::is_control));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    assert!(!claim.group.as_str().is_empty() && claim.group.as_str().bytes().all(allowed));
    assert_eq!(Claim::parse(&claim.to_body()).expect("a written value is read back"), claim);
}

/// The answer of a lock server: a line each for status and location, then the body. The location also serves as
/// `Retry-After`, and the body as `Date`.
pub fn lock_answer(data: &[u8]) {
    let [status, location, body] = split(data, b'\n');
    let status = str::from_utf8(status).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let location = (!location.is_empty()).then_some(location);
    let answer = HttpAnswer { status, location, retry_after: location, date: Some(body), body };
    if let Some(RetryAfter::Slot(pause) | RetryAfter::Server(pause)) = read_retry_after(&answer, Utc::now()) {
        assert!(status != 200 && pause <= RETRY_AFTER_MAX);
    }
    let texts = match read_answer(&answer) {
        LockOutcome::Granted => {
            assert_eq!(status, 200);
            return;
        }
        LockOutcome::Denied { lock_kind, value } => {
            assert!((400..=599).contains(&status) && is_object(body) && !lock_kind.is_empty());
            vec![lock_kind, value]
        }
        LockOutcome::Protocol { detail } => vec![detail],
        LockOutcome::Unreachable { why } => panic!("an answer counts as unreachable: {why:?}"),
    };
    assert_ne!(status, 200);
    assert!(texts.iter().all(|text| text.len() <= MESSAGE_BYTES_MAX && !text.chars().any(char::is_control)));
}

/// The body of `PUT /v1/config/os-upgrade`.
pub fn config(data: &[u8]) {
    match offline::config(data) {
        Ok(config) => {
            assert!(is_object(data));
            // The kernel rejects invalid values; a valid configuration is read back from its JSON.
            if config.validate().is_ok() {
                let json = serde_json::to_vec(&config).expect("a configuration is written");
                assert_eq!(offline::config(&json).expect("a written configuration is read back"), config);
            }
        }
        Err(problem) => assert!(!problem.is_empty()),
    }
}

/// A configuration in YAML, which is read back as it was written.
pub fn yaml(data: &[u8]) {
    match offline::config_in_yaml(data) {
        Ok(config) if config.validate().is_ok() => {
            let json = serde_json::to_vec(&config).expect("a configuration is written");
            let yaml = offline::to_yaml(&json).expect("JSON can be written as YAML");
            assert_eq!(offline::config_in_yaml(yaml.as_bytes()).expect("written YAML is read back"), config);
        }
        Ok(_) => {}
        Err(problem) => assert!(!problem.is_empty()),
    }
}

/// A patch of the configuration: a line each for the content type and the configuration, then the patch.
pub fn patch(data: &[u8]) {
    let [content_type, configuration, patch] = split(data, b'\n');
    let Ok(content_type) = HeaderValue::from_bytes(content_type) else { return };
    let Ok(configuration) = serde_json::from_slice::<Value>(configuration) else { return };
    let is_list = patch.trim_ascii_start().starts_with(b"[");
    let once = match offline::patched(content_type.clone(), patch, configuration.clone()) {
        Ok(once) => once,
        Err(problem) => return assert!(!problem.is_empty()),
    };
    if is_list {
        // The approximate limit of a JSON Patch's result, including escapes.
        let written = once.to_string().len();
        assert!(written <= data.len().max(16 * 1024 * 1024), "{written} bytes");
    } else {
        assert!(once.is_object(), "the result of a merge patch is an object");
        let twice = offline::patched(content_type, patch, once.clone());
        assert_eq!(twice.as_ref(), Ok(&once), "a merge patch is idempotent");
    }
    config(once.to_string().as_bytes());
}

/// The body of a trigger, and a duration.
pub fn trigger(data: &[u8]) {
    match offline::trigger(data) {
        Ok(timeout) => {
            assert!(is_object(data));
            if let Some(timeout) = timeout {
                assert!(timeout.as_secs() <= 100 * 365 * 86_400);
                assert_eq!(timeout.to_delta().num_seconds().unsigned_abs(), timeout.as_secs());
            }
        }
        Err(problem) => assert!(!problem.is_empty()),
    }
    if let Ok(duration) = str::from_utf8(data).unwrap_or_default().parse::<Duration>() {
        assert_eq!(duration.to_string().parse(), Ok(duration));
    }
}

/// The query of a request for the history.
pub fn query(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(uri) = Uri::builder().path_and_query(format!("/?{text}")).build() else { return };
    match offline::runs_query(&uri) {
        Ok((limit, _after)) => assert!(limit.is_none_or(|limit| (1..=500).contains(&limit))),
        Err(problem) => assert!(!problem.is_empty()),
    }
    match offline::run_query(&uri) {
        Ok((limit, after)) => {
            assert!(limit.is_none_or(|limit| (1..=10_000).contains(&limit)));
            if let Some(after) = after {
                assert_eq!(after.to_string().parse(), Ok(after));
            }
        }
        Err(problem) => assert!(!problem.is_empty()),
    }
}
