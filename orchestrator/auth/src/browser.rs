//! Detects requests that a browser sends for a page of another web site.
//!
//! Without tokens every caller has all rights, because only programs on the same machine can connect. But so can any
//! page in a browser on that machine: with a cross-site request, or through a name of its own that it resolves to the
//! loopback address, which makes the request same-site (DNS rebinding). Browsers reveal both. Other programs send
//! neither `Origin` nor `Sec-Fetch-Site`, and send as `Host` the name or address they were given.

use std::net::IpAddr;

use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether the headers show that a request comes from a page of another site.
pub(super) fn is_cross_site(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST);
    let other_name = host.is_some_and(|host| !is_local_host(host));
    let other_origin = headers.get_all(ORIGIN).iter().any(|origin| !is_same_origin(origin, host));
    let is_ours = |site: &HeaderValue| site == "same-origin" || site == "none";
    other_name || other_origin || !headers.get_all(SEC_FETCH_SITE).iter().all(is_ours)
}

/// Whether `host` is `localhost` or an address. Other names could be rebound.
fn is_local_host(host: &HeaderValue) -> bool {
    let Some(authority) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else {
        return false;
    };
    let host = authority.host();
    host.eq_ignore_ascii_case("localhost") || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

fn is_same_origin(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
    let origin = origin.as_ref().and_then(Uri::authority).map(Authority::as_str);
    let host = host.and_then(|host| host.to_str().ok());
    origin.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_site_requests_are_detected() {
        for (headers, cross_site) in [
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
            // A name that resolves to 127.0.0.1.
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
            assert_eq!(is_cross_site(&map), cross_site, "{headers:?}");
        }
    }
}
