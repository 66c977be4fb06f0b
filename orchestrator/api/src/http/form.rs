//! Content negotiation between JSON and YAML, and the conversion of answers. Endpoints write JSON; YAML is handled
//! here and in `document`.
//!
//! YAML is read as version 1.2: `01:00`, `2026-12-01` and `no` are strings. Written strings are quoted where a YAML
//! 1.1 reader would not take them for strings, except for timestamps, which are plain in the specification's samples.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::route::JSON;
use os_upgrade_api_types::routes::events::FOLLOW;
use serde_transcode::Transcoder;
use tokio::sync::Semaphore;

use crate::http::error::Problem;

/// Most media ranges of an `Accept` that are considered.
const RANGES_MAX: usize = 64;

/// Answers of at least this many bytes are converted off the runtime's threads, which also drive the run.
const LARGE_BYTES: usize = 64 * 1_024;

/// The syntax of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// RFC 8259.
    Json,
    /// YAML 1.2.
    Yaml,
}

/// A media type of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// The syntax of the answer.
    pub(crate) syntax: Syntax,
    /// The `Content-Type` of the answer.
    pub(crate) media_type: &'static str,
}

/// The media types on offer. Among those a client wants equally, the first is chosen.
const FORMS: [Form; 5] = [
    Form { syntax: Syntax::Json, media_type: JSON },
    Form { syntax: Syntax::Yaml, media_type: "application/yaml" },
    Form { syntax: Syntax::Yaml, media_type: "application/x-yaml" },
    Form { syntax: Syntax::Yaml, media_type: "text/yaml" },
    Form { syntax: Syntax::Yaml, media_type: "text/x-yaml" },
];

impl Default for Form {
    fn default() -> Self {
        FORMS[0]
    }
}

impl Form {
    /// The form that the `Accept` header prefers: JSON without a readable header, `None` if it accepts no form.
    pub(crate) fn wanted(headers: &HeaderMap) -> Option<Self> {
        let ranges = ranges(headers);
        if ranges.is_empty() {
            return Some(Self::default());
        }
        let mut best: Option<(Self, u16)> = None;
        for form in FORMS {
            let quality = quality(form.media_type, &ranges);
            if quality > best.map_or(0, |(_, best)| best) {
                best = Some((form, quality));
            }
        }
        best.map(|(form, _)| form)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Form {
    type Rejection = Infallible;

    /// The form chosen by [`negotiated`].
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}

/// One entry of an `Accept`.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    /// Parses an entry; `None` if it is malformed.
    fn parse(text: &'a str) -> Option<Self> {
        let (range, quality) = weighed(text)?;
        let (kind, subtype) = range.split_once('/')?;
        Some(Self { kind, subtype, quality })
    }

    /// How closely the range matches `media_type`; `None` if it does not.
    fn closeness(&self, media_type: &str) -> Option<u8> {
        let (kind, subtype) = media_type.split_once('/')?;
        let is_kind = self.kind.eq_ignore_ascii_case(kind);
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (_, "*") => is_kind.then_some(1),
            (_, other) => (is_kind && other.eq_ignore_ascii_case(subtype)).then_some(2),
        }
    }
}

/// What an entry of a header such as `Accept` is about, and its quality in thousandths; `None` if that is malformed.
fn weighed(entry: &str) -> Option<(&str, u16)> {
    let mut parts = entry.split(';').map(str::trim);
    let what = parts.next()?;
    let quality = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    Some((what, quality.map_or(Some(1_000), thousandths)?))
}

/// Parses a quality from 0 to 1 with at most three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let decimals: u16 = format!("{decimals:0<3}").parse().ok().filter(|_| is_number)?;
    match whole {
        "0" => Some(decimals),
        "1" => (decimals == 0).then_some(1_000),
        _ => None,
    }
}

/// The quality of `media_type`, from the closest matching range.
fn quality(media_type: &str, ranges: &[Range<'_>]) -> u16 {
    let named = ranges.iter().filter_map(|range| Some((range.closeness(media_type)?, range.quality)));
    named.max().map_or(0, |(_, quality)| quality)
}

/// Answers, errors included, in the form that the client accepts. If it accepts none, reads are refused before any
/// work, and changes are answered in JSON.
pub(crate) async fn negotiated(
    State(renders): State<Arc<Semaphore>>,
    mut request: Request,
    next: Next,
) -> Response {
    let wanted = Form::wanted(request.headers());
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path();
    // What events are offered in is for their resource to say.
    if wanted.is_none() && reads && path.starts_with("/v1/") && path != FOLLOW.path() {
        return vary(not_acceptable().into_response());
    }
    let form = wanted.unwrap_or_default();
    let has_body = *request.method() != Method::HEAD;
    request.extensions_mut().insert(form);
    let response = next.run(request).await;
    if response.status() == StatusCode::NOT_MODIFIED {
        return vary(response);
    }
    if response.headers().get(CONTENT_TYPE).is_none_or(|found| found != JSON) {
        return response;
    }
    match form.syntax {
        Syntax::Json => vary(response),
        Syntax::Yaml => vary(rewritten(response, form, has_body, &renders).await),
    }
}

/// Whether the `Accept` header, if there is one, accepts `media_type`.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let ranges = ranges(headers);
    ranges.is_empty() || quality(media_type, &ranges) > 0
}

/// Whether the `Accept` header prefers the media type `other` to `usual`, which is given without a preference.
pub(crate) fn prefers(headers: &HeaderMap, other: &str, usual: &str) -> bool {
    let ranges = ranges(headers);
    quality(other, &ranges) > quality(usual, &ranges)
}

/// Whether the `Accept-Encoding` header accepts gzip. Without the header a client is not known to.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings: Vec<_> = entries(headers, ACCEPT_ENCODING).filter_map(weighed).take(RANGES_MAX).collect();
    let quality = |name: &str| codings.iter().find(|(coding, _)| coding.eq_ignore_ascii_case(name));
    quality("gzip").or_else(|| quality("*")).is_some_and(|(_, quality)| *quality > 0)
}

/// The entries of the `Accept` headers.
fn ranges(headers: &HeaderMap) -> Vec<Range<'_>> {
    entries(headers, ACCEPT).filter_map(Range::parse).take(RANGES_MAX).collect()
}

/// The entries of all headers of this name.
fn entries(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(','))
}

fn not_acceptable() -> Problem {
    let offered = FORMS.map(|form| form.media_type).join(", ");
    Problem::new(StatusCode::NOT_ACCEPTABLE, format!("answers are in {offered}: name one of them in Accept"))
}

/// Adds `Vary: accept` to `response`.
pub(crate) fn vary(mut response: Response) -> Response {
    response.headers_mut().append(VARY, HeaderValue::from_static("accept"));
    response
}

async fn rewritten(response: Response, form: Form, has_body: bool, renders: &Arc<Semaphore>) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type));
    parts.headers.remove(CONTENT_LENGTH);
    if !has_body {
        return Response::from_parts(parts, body);
    }
    match yaml_of(body, renders).await {
        Ok(text) => Response::from_parts(parts, Body::from(text)),
        Err(cause) => Problem::internal(cause).into_response(),
    }
}

async fn yaml_of(body: Body, renders: &Arc<Semaphore>) -> Result<String, String> {
    let json = to_bytes(body, usize::MAX).await.map_err(|error| error.to_string())?;
    if json.len() < LARGE_BYTES {
        return to_yaml(&json);
    }
    let permit = Arc::clone(renders).acquire_owned().await;
    // The blocking task continues after its request is dropped, and keeps the permit until it ends.
    let written = tokio::task::spawn_blocking(move || {
        let written = to_yaml(&json);
        drop(permit);
        written
    });
    written.await.map_err(|error| error.to_string())?
}

/// Converts JSON to YAML, keeping the order of keys. A string that is a timestamp in UTC is not quoted.
pub(crate) fn to_yaml(json: &[u8]) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { compact_list_indent: false, prefer_block_scalars: false };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let mut text = String::with_capacity(json.len());
    serde_saphyr::to_fmt_writer_with_options(&mut text, &Transcoder::new(&mut reader), options)
        .map_err(|error| format!("cannot be written as YAML: {error}"))?;
    Ok(with_plain_timestamps(&text))
}

/// `yaml`, in which every scalar takes one line, without the quotes around timestamps. The serializer quotes either all
/// that YAML 1.1 does not take for a string, or nothing of it.
fn with_plain_timestamps(yaml: &str) -> String {
    let mut plain = String::with_capacity(yaml.len());
    for line in yaml.split_inclusive('\n') {
        match quoted_timestamp(line) {
            Some((before, timestamp)) => plain.extend([before, timestamp, "\n"]),
            None => plain.push_str(line),
        }
    }
    plain
}

/// What precedes the timestamp on a line whose value is one in quotes, and the timestamp.
fn quoted_timestamp(line: &str) -> Option<(&str, &str)> {
    let (before, timestamp) = line.strip_suffix("\"\n")?.rsplit_once('"')?;
    // Nothing but list markers and a plain key: within a plain value, quotes are characters of it.
    let key = before.trim_start_matches([' ', '-']);
    let is_key = key.is_empty() || key.strip_suffix(": ").is_some_and(|key| !key.contains([':', '"', '\'']));
    let is_value = is_key && before.ends_with(' ');
    (is_value && is_timestamp(timestamp)).then_some((before, timestamp))
}

/// Whether `text` is like `2023-03-17T01:00:00Z`; the seconds may have a fraction.
fn is_timestamp(text: &str) -> bool {
    let digits = text.bytes().take(19).map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    let is_fraction = |rest: &str| {
        rest.strip_prefix('.')
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    digits.eq(*b"0000-00-00T00:00:00")
        && text[19..].strip_suffix('Z').is_some_and(|rest| rest.is_empty() || is_fraction(rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn wanted(accept: &[&str]) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(ACCEPT, HeaderValue::from_str(value).unwrap());
        }
        Form::wanted(&headers).map(|form| form.media_type)
    }

    #[test]
    fn accept_selects_the_form() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&[], Some(JSON)),
            (&["*/*"], Some(JSON)),
            (&["application/*"], Some(JSON)),
            (&["application/json"], Some(JSON)),
            (&["Application/JSON; charset=utf-8"], Some(JSON)),
            (&["application/yaml"], Some("application/yaml")),
            (&["application/x-yaml"], Some("application/x-yaml")),
            (&["text/yaml"], Some("text/yaml")),
            (&["text/*"], Some("text/yaml")),
            (&["text/x-yaml;q=0.1"], Some("text/x-yaml")),
            (&["application/json;q=0.5, application/yaml"], Some("application/yaml")),
            (&["application/json;q=0.5", "application/yaml;q=0.6"], Some("application/yaml")),
            (&["application/json, application/yaml"], Some(JSON)),
            (&["text/html, application/xhtml+xml, */*;q=0.8"], Some(JSON)),
            (&["*/*, application/json;q=0"], Some("application/yaml")),
            (&["application/*;q=0.9, application/json;q=0.1"], Some("application/yaml")),
            (&["application/yaml;q=1.000;v=2, */*;q=0.001"], Some("application/yaml")),
            (&["text/html"], None),
            (&["application/json;q=0"], None),
            (&["application/json;q=0.000, text/html"], None),
            (&["application/vnd.example+json"], None),
            // Malformed entries are ignored.
            (&["json"], Some(JSON)),
            (&["application/yaml;q=2"], Some(JSON)),
            (&["application/yaml;q=0.1234"], Some(JSON)),
            (&["application/yaml;q=-1, text/yaml"], Some("text/yaml")),
            (&[", ,application/yaml,"], Some("application/yaml")),
        ];
        for (accept, expected) in cases {
            assert_eq!(wanted(accept), *expected, "{accept:?}");
        }
    }

    #[test]
    fn gzip_is_sent_to_those_who_accept_it() {
        for (accepted, expected) in [
            (None, false),
            (Some(""), false),
            (Some("identity"), false),
            (Some("br, deflate"), false),
            (Some("gzip, deflate, br"), true),
            (Some("br, GZIP;q=0.1"), true),
            (Some("gzip;q=0"), false),
            (Some("*"), true),
            (Some("*;q=0"), false),
            (Some("*, gzip;q=0"), false),
            (Some("gzip, *;q=0"), true),
            (Some("gzip;q=2"), false),
        ] {
            let headers = accepted.map(|accepted| (ACCEPT_ENCODING, accepted.parse().unwrap()));
            assert_eq!(accepts_gzip(&HeaderMap::from_iter(headers)), expected, "{accepted:?}");
        }
    }

    #[test]
    fn yaml_1_1_ambiguities_are_quoted() {
        let json = r#"{"z":"01:00","b":"12:30","a":["2026-12-01","no","1e3",""],"none":null,"empty":{},"list":[],
                       "text":"a: b","lines":"a\nb","when":"2023-03-17T01:00:00Z","in":"1d4h18s","count":3}"#;
        let expected = "z: 01:00\nb: \"12:30\"\na:\n  - \"2026-12-01\"\n  - \"no\"\n  - \"1e3\"\n  - \"\"\n\
                        none: null\nempty: {}\nlist: []\ntext: \"a: b\"\nlines: \"a\\nb\"\n\
                        when: 2023-03-17T01:00:00Z\nin: 1d4h18s\ncount: 3\n";
        assert_eq!(to_yaml(json.as_bytes()).unwrap(), expected);
    }
    /// The specification's sample of a state has them so.
    #[test]
    fn timestamps_are_plain() {
        let stamp = "2023-03-17T01:00:00Z";
        let json = json!({
            "at": stamp, "finer": "2026-11-21T05:00:00.123Z", "list": [stamp, [stamp], {"at": stamp}],
            "date": "2026-12-01", "local": "2026-12-01T05:00:00", "offset": "2026-12-01T05:00:00+01:00",
        });
        let expected = "at: 2023-03-17T01:00:00Z\ndate: \"2026-12-01\"\nfiner: 2026-11-21T05:00:00.123Z\nlist:\n  \
                        - 2023-03-17T01:00:00Z\n  - - 2023-03-17T01:00:00Z\n  - at: 2023-03-17T01:00:00Z\n\
                        local: \"2026-12-01T05:00:00\"\noffset: \"2026-12-01T05:00:00+01:00\"\n";
        assert_eq!(to_yaml(json.to_string().as_bytes()).unwrap(), expected);
    }

    proptest! {
        /// Timestamps, and the parts of which quotes, keys and list markers consist, in any place.
        #[test]
        fn yaml_reads_back(
            parts in prop::collection::vec(
                prop::sample::select(&["2023-03-17T01:00:00Z", "\"", "\\", ": ", "- ", "'", "\n", " ", "a", "#", "Z\""][..]),
                0..6,
            ),
            key in "[a: \"'-]{0,3}",
        ) {
            let text = parts.concat();
            let json = json!({ &key: text, "list": [&text, [&text], {&key: [&text]}], &text: key });
            let yaml = to_yaml(json.to_string().as_bytes()).unwrap();
            prop_assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), json, "{}", yaml);
        }
    }
}
