//! Configuration providers: their URLs, and what they answer.

use chrono::DateTime;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::limits::ITEM_BYTES_MAX;
use os_upgrade_provider_rules::{Answer, Asked, ContentBytes, Outcome, RETRY_AFTER_MAX, Reply, UrlTemplate};

use crate::text::split;

/// The URL of a provider: a line with the template, then the name of a host.
pub fn provider_url(data: &[u8]) {
    let [template, host] = split(data, b'\n');
    let template = str::from_utf8(template).ok().and_then(|text| UrlTemplate::new(text).ok());
    let host = str::from_utf8(host).ok().and_then(|name| HostName::new(name).ok());
    let Some((template, host)) = template.zip(host) else { return };
    assert_eq!(UrlTemplate::new(template.as_str()).expect("a template is read back"), template);
    let Ok(url) = template.for_host(&host) else { return };
    // No host's name leads to another server, or to the resource of another host.
    let segments = |url: &str| url.split('?').next().map(|path| path.matches('/').count());
    assert_eq!(url.origin(), template.example().origin());
    assert_eq!(segments(url.as_str()), segments(template.example().as_str()));
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
}

/// The answer of a provider: a line each for the status, `ETag`, `Last-Modified`, `Date`, `Retry-After` and `Content-Type`, then the body.
pub fn provider_answer(input: &[u8]) {
    let [status, etag, last_modified, date, retry_after, content_type, body] = split(input, b'\n');
    let status = str::from_utf8(status).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let some = |value| Some(value).filter(|value: &&[u8]| !value.is_empty());
    let answer = || Answer {
        status,
        etag: some(etag),
        last_modified: some(last_modified),
        date: some(date),
        retry_after: some(retry_after),
        content_type: some(content_type),
        content_encoding: None,
        body: Ok(ContentBytes::new(body.to_vec())),
    };
    let asked = Asked { validator: None, html: false };
    let Reply { outcome, retry_after, poll_interval: _ } = answer().interpret(asked, DateTime::UNIX_EPOCH);
    assert!(retry_after.is_none_or(|pause| pause <= RETRY_AFTER_MAX && matches!(status, 429 | 500..=599)));
    match outcome {
        Outcome::Content { content: bytes, validator } => {
            assert!(status == 200 && bytes.as_slice() == body && body.len() <= ITEM_BYTES_MAX);
            let asked = Asked { validator: Some(&validator), html: false };
            let again = answer().interpret(asked, DateTime::UNIX_EPOCH);
            assert_eq!(again.outcome, Outcome::Unchanged { validator: validator.clone() });
        }
        Outcome::Removed => assert!(matches!(status, 404 | 410)),
        Outcome::Failed(_) => {}
        Outcome::Unchanged { .. } => panic!("nothing was known before"),
    }
}
