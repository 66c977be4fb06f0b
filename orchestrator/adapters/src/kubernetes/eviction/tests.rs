//! Answers of a server as they were measured, and what they mean.

use serde_json::{Value, json};

use super::super::rights::EVICT_POD;
use super::*;

fn answer(code: u16, body: &Value, retry_after_secs: Option<u64>) -> Answer {
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    Answer { code, retry_after: retry_after_secs.map(Duration::from_secs), body: text.into_bytes() }
}

fn status(code: u16, reason: &str, details: &Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "why", "reason": reason,
        "details": details, "code": code,
    })
}

fn caused_by(reason: &str) -> Value {
    json!({ "causes": [{ "reason": reason, "message": "the cause" }] })
}

#[test]
fn answers_about_the_pod() {
    let message = || "the cause".to_owned();
    let why = || "why".to_owned();
    let mut pending = caused_by("DisruptionBudget");
    pending["retryAfterSeconds"] = json!(7);
    let policy = json!({ "kind": "pods", "name": "p", "causes": [{ "message": "why" }] });
    for (answer, expected) in [
        (answer(201, &json!({ "kind": "Status", "apiVersion": "v1" }), None), Verdict::Granted),
        (answer(200, &json!("no object"), None), Verdict::Granted),
        (answer(404, &status(404, "NotFound", &json!({ "kind": "pods" })), None), Verdict::Gone),
        (answer(409, &status(409, "Conflict", &json!({ "kind": "Pod" })), None), Verdict::Replaced),
        (
            answer(429, &status(429, "TooManyRequests", &caused_by("DisruptionBudget")), None),
            Verdict::Budget { message: message() },
        ),
        (
            answer(429, &status(429, "TooManyRequests", &caused_by("DisruptionBudget")), Some(10)),
            Verdict::BudgetPending { message: message(), retry_after: Duration::from_secs(10) },
        ),
        (
            answer(429, &status(429, "TooManyRequests", &pending), None),
            Verdict::BudgetPending { message: message(), retry_after: Duration::from_secs(7) },
        ),
        // A webhook may refuse with any status.
        (
            answer(429, &status(429, "TooManyRequests", &json!({})), None),
            Verdict::Denied { status: 429, message: why() },
        ),
        (
            answer(
                403,
                &status(403, "Forbidden", &json!({ "group": "policy", "kind": "poddisruptionbudget" })),
                None,
            ),
            Verdict::Budget { message: why() },
        ),
        (
            answer(403, &status(403, "Forbidden", &caused_by("NamespaceTerminating")), None),
            Verdict::NamespaceEnds,
        ),
        (
            answer(403, &status(403, "Forbidden", &json!({})), None),
            Verdict::Denied { status: 403, message: why() },
        ),
        // A policy of the cluster names the object, too.
        (
            answer(403, &status(403, "Forbidden", &policy), None),
            Verdict::Denied { status: 403, message: why() },
        ),
        (
            answer(400, &status(400, "BadRequest", &json!({})), None),
            Verdict::Denied { status: 400, message: why() },
        ),
    ] {
        assert_eq!(read(&answer, EVICT_POD), Ok(expected), "{answer:?}");
    }
}

#[test]
fn failures_are_not_about_the_pod() {
    let detail = || "why".to_owned();
    for (answer, expected) in [
        (answer(401, &status(401, "Unauthorized", &json!({})), None), Error::Unauthorized),
        (
            answer(403, &status(403, "Forbidden", &json!({ "kind": "pods", "name": "p" })), None),
            Error::Forbidden { right: EVICT_POD, detail: detail() },
        ),
        (
            answer(429, &json!("Too many requests, please try again later.\n"), Some(1)),
            Error::Throttled { retry_after: Some(Duration::from_secs(1)) },
        ),
        (answer(429, &json!("Too many requests"), None), Error::Throttled { retry_after: None }),
        (
            answer(429, &status(429, "TooManyRequests", &json!({ "retryAfterSeconds": 1 })), None),
            Error::Throttled { retry_after: Some(Duration::from_secs(1)) },
        ),
        (
            answer(500, &status(500, "", &json!({})), None),
            Error::ServerFailed { status: 500, detail: detail() },
        ),
        (answer(302, &json!(""), None), Error::Malformed { detail: "status 302".to_owned() }),
    ] {
        assert_eq!(read(&answer, EVICT_POD), Err(expected), "{answer:?}");
    }
}
