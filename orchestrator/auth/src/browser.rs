//! Requests that a page of another site has a browser send.
//!
//! Where whoever comes may do everything, as only programs on the same machine can come, so could any page in the
//! browser of somebody there: by a request across sites, or by a name of its own that it lets stand for the loopback
//! address, which makes it a page of the same site (DNS rebinding). Browsers tell both; other programs send neither
//! `Origin` nor `Sec-Fetch-Site`, and the name or address they were given as `Host`.

use std::net::IpAddr;

use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether what a request says of where it comes from, if anything, is another place than this one.
pub(super) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST);
    let other_name = host.is_some_and(|host| !is_of_loopback(host));
    let other_origin = headers.get_all(ORIGIN).iter().any(|origin| !is_of(origin, host));
    let is_ours = |site: &HeaderValue| site == "same-origin" || site == "none";
    other_name || other_origin || !headers.get_all(SEC_FETCH_SITE).iter().all(is_ours)
}

/// An address stands for nothing else; a name might.
fn is_of_loopback(host: &HeaderValue) -> bool {
    let Some(authority) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else {
        return false;
    };
    let host = authority.host();
    host.eq_ignore_ascii_case("localhost") || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

fn is_of(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
    let origin = origin.as_ref().and_then(Uri::authority).map(Authority::as_str);
    let host = host.and_then(|host| host.to_str().ok());
    origin.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_requests_come_from() {
        for (headers, elsewhere) in [
            (&[][..], false),
            (&[("host", "127.0.0.1:8646")], false),
            (&[("host", "localhost")], false),
            (&[("host", "LOCALHOST:8646")], false),
            (&[("host", "[::1]:8646")], false),
            (
                &[
                    ("host", "localhost:8646"),
                    ("origin", "http://localhost:8646"),
                    ("sec-fetch-site", "same-origin"),
                ],
                false,
            ),
            (&[("host", "127.0.0.1:8646"), ("sec-fetch-site", "none")], false),
            // A name that stands for 127.0.0.1.
            (&[("host", "rebound.example:8646")], true),
            (&[("host", "rebound.example:8646"), ("origin", "http://rebound.example:8646")], true),
            (&[("host", "localhost.example")], true),
            (&[("host", "what is this")], true),
            // Another site, and another port, which is another program.
            (&[("host", "127.0.0.1:8646"), ("origin", "https://example.com")], true),
            (&[("host", "localhost:8646"), ("origin", "http://localhost:3000")], true),
            (&[("host", "127.0.0.1:8646"), ("origin", "null")], true),
            (&[("origin", "http://localhost:8646")], true),
            (&[("host", "127.0.0.1:8646"), ("sec-fetch-site", "cross-site")], true),
            (&[("host", "localhost:8646"), ("sec-fetch-site", "same-site")], true),
        ] {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let map: HeaderMap = headers.iter().map(pair).collect();
            assert_eq!(is_from_elsewhere(&map), elsewhere, "{headers:?}");
        }
    }
}
