//! Every kind of answer, as a table.

use super::*;

const DATE: &[u8] = b"Sun, 01 Mar 2026 12:00:00 GMT";
const MODIFIED: &[u8] = b"Sun, 01 Mar 2026 11:00:00 GMT";

fn now() -> DateTime<Utc> {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn answer(status: u16, body: &[u8]) -> Answer<'static> {
    Answer {
        status,
        etag: None,
        last_modified: None,
        date: Some(DATE),
        retry_after: None,
        content_type: None,
        content_encoding: None,
        body: Ok(ContentBytes::new(body.to_vec())),
    }
}

fn outcome(answer: Answer<'_>, validator: Option<&Validator>) -> Outcome {
    answer.interpret(Asked { validator, html: false }, now()).outcome
}

fn failed(answer: Answer<'_>) -> Failure {
    match outcome(answer, None) {
        Outcome::Failed(failure) => failure,
        other @ (Outcome::Unchanged { .. } | Outcome::Content { .. } | Outcome::Removed) => {
            panic!("{other:?}")
        }
    }
}

fn content(bytes: &[u8], etag: Option<&[u8]>, last_modified: Option<&[u8]>) -> Outcome {
    let validator = Validator::new(bytes, etag, last_modified, Some(DATE));
    Outcome::Content { content: ContentBytes::new(bytes.to_vec()), validator }
}

/// No status but 200 gives a content, and no two ranges overlap.
#[test]
fn every_status_has_a_meaning() {
    for status in 0..=1000 {
        let expected = match status {
            200 => content(b"x", None, None),
            404 | 410 => Outcome::Removed,
            429 => Outcome::Failed(Failure::Throttled),
            304 | 0..=299 | 600.. => Outcome::Failed(Failure::UnexpectedStatus { status }),
            300..=399 => Outcome::Failed(Failure::Redirected { status }),
            400..=499 => Outcome::Failed(Failure::Refused { status }),
            500..=599 => Outcome::Failed(Failure::Unavailable { status }),
        };
        assert_eq!(outcome(answer(status, b"x"), None), expected, "{status}");
    }
}

#[test]
fn contents_are_told_apart() {
    let old = Validator::new(b"old", Some(b"\"1\""), None, None);
    let bare = Validator::new(b"old", None, None, None);
    let unchanged = |validator: &Validator| Outcome::Unchanged { validator: validator.clone() };
    assert_eq!(outcome(answer(304, b""), Some(&old)), unchanged(&old));
    // Nothing was asked for conditionally.
    let lie = Outcome::Failed(Failure::UnexpectedStatus { status: 304 });
    assert_eq!(outcome(answer(304, b""), Some(&bare)), lie);

    let with = |body: &[u8], etag, last_modified| Answer { etag, last_modified, ..answer(200, body) };
    assert_eq!(
        outcome(with(b"new", Some(b"\"2\""), None), Some(&old)),
        content(b"new", Some(b"\"2\""), None)
    );
    // The same `ETag` for another content: what counts is the content.
    assert_eq!(
        outcome(with(b"new", Some(b"\"1\""), None), Some(&old)),
        content(b"new", Some(b"\"1\""), None)
    );
    // The same content under another `ETag`, which the next request depends on.
    let renamed = Validator::new(b"old", Some(b"\"2\""), None, None);
    assert_eq!(outcome(with(b"old", Some(b"\"2\""), None), Some(&old)), unchanged(&renamed));
    assert_eq!(
        outcome(with(b"new", None, Some(MODIFIED)), Some(&bare)),
        content(b"new", None, Some(MODIFIED))
    );
    assert_eq!(outcome(answer(200, b"old"), Some(&bare)), unchanged(&bare));
    assert_eq!(outcome(answer(200, b""), None), content(b"", None, None));
}

#[test]
fn pages_and_encodings_are_failures() {
    for kind in ["text/html", "Text/HTML; charset=utf-8", " text/html ;a=b", "application/xhtml+xml"] {
        let page = || Answer { content_type: Some(kind.as_bytes()), ..answer(200, b"log in") };
        assert_eq!(failed(page()), Failure::Html, "{kind}");
        let asked = Asked { validator: None, html: true };
        assert_eq!(page().interpret(asked, now()).outcome, content(b"log in", None, None));
    }
    for kind in ["text/plain", "application/octet-stream", "text/htmlx", ""] {
        let file = Answer { content_type: Some(kind.as_bytes()), ..answer(200, b"x") };
        assert_eq!(outcome(file, None), content(b"x", None, None), "{kind}");
    }
    for (encoding, is_failure) in
        [("gzip", true), ("br", true), ("identity, gzip", true), ("Identity", false), ("", false)]
    {
        let file = Answer { content_encoding: Some(encoding.as_bytes()), ..answer(200, b"x") };
        let expected = if is_failure { Outcome::Failed(Failure::Encoded) } else { content(b"x", None, None) };
        assert_eq!(outcome(file, None), expected, "{encoding}");
    }
    // A page on an error says nothing new.
    let page = Answer { content_type: Some(b"text/html"), ..answer(404, b"no such file") };
    assert_eq!(outcome(page, None), Outcome::Removed);
}

#[test]
fn bodies_are_bounded_and_complete() {
    let largest = vec![b'x'; ITEM_BYTES_MAX];
    assert_eq!(outcome(answer(200, &largest), None), content(&largest, None, None));
    let larger = vec![b'x'; ITEM_BYTES_MAX + 1];
    assert_eq!(failed(answer(200, &larger)), Failure::TooLarge { limit: ITEM_BYTES_MAX });
    for failure in [Failure::Cut, Failure::TimedOut, Failure::TooLarge { limit: ANSWER_BYTES_MAX }] {
        let body = || Err(failure.clone());
        assert_eq!(failed(Answer { body: body(), ..answer(200, b"") }), failure);
        // The status says it all.
        assert_eq!(outcome(Answer { body: body(), ..answer(404, b"") }, None), Outcome::Removed);
    }
}

#[test]
fn pauses_are_asked_for_by_overloaded_servers() {
    for (status, value, seconds) in [
        (429, &b"7"[..], Some(7)),
        (503, b"Sun, 01 Mar 2026 12:00:30 GMT", Some(30)),
        (500, b"7200", Some(3600)),
        (429, b"soon", None),
        (403, b"7", None),
        (404, b"7", None),
        (200, b"7", None),
        (301, b"7", None),
    ] {
        let reply = Answer { retry_after: Some(value), ..answer(status, b"x") }
            .interpret(Asked { validator: None, html: false }, now());
        assert_eq!(reply.retry_after, seconds.map(Duration::from_secs), "{status}");
    }
}

#[test]
fn contents_are_not_displayed() {
    let shown = format!("{:?}", content(b"hunter2", Some(b"\"2ab9\""), None));
    assert!(!shown.contains("hunter2") && !shown.contains("104") && !shown.contains("2ab9"), "{shown}");
}
