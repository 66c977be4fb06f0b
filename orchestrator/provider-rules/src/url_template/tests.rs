//! Which URLs are taken, and what becomes of a host's name in them.

use percent_encoding::percent_decode_str;
use proptest::prelude::*;

use super::*;

fn template(text: &str) -> UrlTemplate {
    UrlTemplate::new(text).unwrap()
}

fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

#[test]
fn urls_are_checked() {
    use UrlTemplateError as E;
    for (text, expected) in [
        ("https://files.example/{host}/app.conf", None),
        ("https://files.example:8443/a/{host}.conf?v=1", None),
        ("https://files.example/{host}/{host}.conf", None),
        ("https://files.example/same-for-all.conf", None),
        ("https://files.example", None),
        ("HTTPS://files.example/{host}", None),
        ("https://[2001:db8::1]/{host}", None),
        ("http://127.0.0.1:8080/{host}", None),
        ("http://127.9.9.9/{host}", None),
        ("http://[::1]:80/{host}", None),
        ("http://LocalHost/{host}", None),
        ("http://files.example/{host}", Some(E::NotLoopback)),
        ("http://localhost.example/{host}", Some(E::NotLoopback)),
        ("http://128.0.0.1/{host}", Some(E::NotLoopback)),
        ("http://0.0.0.0/{host}", Some(E::NotLoopback)),
        ("http://[::ffff:127.0.0.1]/{host}", Some(E::NotLoopback)),
        ("ftp://files.example/{host}", Some(E::Scheme)),
        ("file:///etc/{host}", Some(E::Parse(url::ParseError::EmptyHost))),
        ("https://user@files.example/{host}", Some(E::UserInfo)),
        ("https://user:pass@files.example/{host}", Some(E::UserInfo)),
        ("https://:pass@files.example/{host}", Some(E::UserInfo)),
        ("https://files.example/{host}#top", Some(E::Fragment)),
        ("https://{host}.example/app.conf", Some(E::NotInPath)),
        ("https://files.example/app.conf?host={host}", Some(E::NotInPath)),
        ("https://files.example/{hots}/app.conf", Some(E::Placeholder)),
        ("https://files.example/{host/app.conf", Some(E::Placeholder)),
        ("https://files.example/{{host}}", Some(E::Placeholder)),
        ("https://files.example/a?b={c}", Some(E::Placeholder)),
        ("https://files.example/a/../{host}", Some(E::DotSegment)),
        ("https://files.example/./{host}", Some(E::DotSegment)),
        ("https://files.example/%2E%2e/{host}", Some(E::DotSegment)),
        ("https://files.example/a\\{host}", Some(E::Character)),
        (" https://files.example/{host}", Some(E::Character)),
        ("https://files.example/a\tb", Some(E::Character)),
        ("files.example/{host}", Some(E::Parse(url::ParseError::RelativeUrlWithoutBase))),
        ("", Some(E::Parse(url::ParseError::RelativeUrlWithoutBase))),
        ("https:///{host}", Some(E::Parse(url::ParseError::EmptyHost))),
        ("https://files.example:99999/{host}", Some(E::Parse(url::ParseError::InvalidPort))),
        (&format!("https://files.example/{}", "x".repeat(2048)), Some(E::TooLong)),
    ] {
        assert_eq!(UrlTemplate::new(text).err(), expected, "{text}");
    }
}

#[test]
fn names_stay_in_their_segment() {
    for (text, name, expected) in [
        (
            "https://files.example/{host}/app.conf",
            "h1.example.com",
            "https://files.example/h1.example.com/app.conf",
        ),
        ("https://files.example/{host}/app.conf", "a/b", "https://files.example/a%2Fb/app.conf"),
        ("https://files.example/{host}/app.conf", "../x", "https://files.example/..%2Fx/app.conf"),
        ("https://files.example/{host}/app.conf", "a?b#c", "https://files.example/a%3Fb%23c/app.conf"),
        ("https://files.example/{host}/app.conf", "%2e%2e", "https://files.example/%252e%252e/app.conf"),
        ("https://files.example/{host}/app.conf", "häst", "https://files.example/h%C3%A4st/app.conf"),
        ("https://files.example/{host}/app.conf", "{host}", "https://files.example/%7Bhost%7D/app.conf"),
        ("https://files.example/{host}.conf?v=1", "..", "https://files.example/...conf?v=1"),
        ("https://files.example/{host}", "a\\b", "https://files.example/a%5Cb"),
        ("https://files.example/same", "..", "https://files.example/same"),
        ("https://files.example/a%7Bb/{host}", "h", "https://files.example/a%7Bb/h"),
        ("https://files.example", "h", "https://files.example/"),
    ] {
        assert_eq!(template(text).for_host(&host(name)).unwrap().as_str(), expected);
    }
    for (text, name) in [
        ("https://files.example/{host}", "."),
        ("https://files.example/{host}/app.conf", ".."),
        ("https://files.example/.{host}/app.conf", "."),
        ("https://files.example/%2e{host}/app.conf", "."),
        ("https://files.example/{host}{host}/app.conf", "."),
    ] {
        assert_eq!(template(text).for_host(&host(name)), Err(HostUrlError), "{text} {name}");
    }
}

#[test]
fn origins_are_compared_as_a_whole() {
    let of = |text: &str| template(text).origin().to_string();
    assert_eq!(of("https://Files.Example:443/{host}"), "https://files.example");
    assert_eq!(of("https://files.example:8443/{host}"), "https://files.example:8443");
    assert_eq!(of("http://[::1]:80/{host}"), "http://[::1]");
    for text in ["https://files.example", "https://files.example/", "https://FILES.example:443"] {
        assert_eq!(Origin::new(text).unwrap(), template("https://files.example/{host}").origin(), "{text}");
    }
    for text in ["https://files.example:8443", "http://localhost", "https://files.example.org"] {
        assert_ne!(Origin::new(text).unwrap(), template("https://files.example/{host}").origin(), "{text}");
    }
    for text in ["https://files.example/a", "https://files.example/{host}", "https://files.example?a"] {
        assert_eq!(Origin::new(text), Err(OriginError::Path), "{text}");
    }
    assert_eq!(
        Origin::new("http://files.example"),
        Err(OriginError::Url(UrlTemplateError::NotLoopback)),
        "a secret never goes over the network in the clear"
    );
}

#[test]
fn templates_and_origins_are_texts() {
    let text = r#""https://Files.example/{host}/app.conf""#;
    let read: UrlTemplate = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let origin = serde_json::to_string(&read.origin()).unwrap();
    assert_eq!(serde_json::from_str::<Origin>(&origin).unwrap(), read.origin());
    let error = serde_json::from_str::<UrlTemplate>(r#""http://files.example/""#).unwrap_err();
    assert!(error.to_string().starts_with("http:// is only for this machine"), "{error}");
}

#[test]
fn pages_are_known_by_their_extension() {
    for (text, expected) in [
        ("https://f.example/{host}/index.html", true),
        ("https://f.example/{host}.HTM?x=1", true),
        ("https://f.example/{host}/app.conf", false),
        ("https://f.example/a.html/{host}", false),
        ("https://f.example/html", false),
    ] {
        assert_eq!(template(text).names_html(), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn a_name_never_leaves_its_segment(name in "[a-z./\\\\%?#{}@: ä]{1,12}") {
        let template = template("https://files.example:8443/a/{host}/b.conf?q=1");
        match template.for_host(&host(&name)) {
            Ok(url) => {
                prop_assert_eq!(Origin::from_url(&url), template.origin());
                prop_assert_eq!((url.query(), url.fragment(), url.username()), (Some("q=1"), None, ""));
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 3);
                prop_assert_eq!((segments[0], segments[2]), ("a", "b.conf"));
                prop_assert_eq!(percent_decode_str(segments[1]).decode_utf8().unwrap(), name);
            }
            Err(HostUrlError) => prop_assert!([".", ".."].contains(&name.as_str())),
        }
    }

    #[test]
    fn no_text_panics(text in "(https?://)?[a-z.:@/{}%#?\\[\\]\\\\]{0,40}") {
        if let Ok(template) = UrlTemplate::new(&text) {
            let _ = template.for_host(&host("h1"));
        }
    }
}
