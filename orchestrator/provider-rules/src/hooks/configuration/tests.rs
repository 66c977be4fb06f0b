//! Every form of a configuration, as tables.

use super::*;

fn read(json: &str) -> Result<Given, ConfigurationProblem> {
    read_configuration(serde_json::from_str(json).unwrap())
}

/// What is given without a file.
#[expect(clippy::unnecessary_wraps, reason = "it is compared with what reading returns")]
fn opaque(bytes: &[u8]) -> Result<Given, ConfigurationProblem> {
    Ok(Given { files: Vec::new(), bytes: ContentBytes::new(bytes.to_vec()), hash: hex_of(bytes) })
}

#[test]
fn texts_and_other_json_are_given_as_they_are() {
    for (json, bytes) in [
        (r#""""#, &b""[..]),
        (r#""level = 3\n""#, b"level = 3\n"),
        (r#""\u00e4\ud83d\ude00""#, "ä😀".as_bytes()),
        ("7.50", b"7.50"),
        ("true", b"true"),
        ("null", b"null"),
        ("[1,  2]", b"[1,  2]"),
        (r#"{"b" : 1, "a":{"ignition":{}}, "b":2}"#, br#"{"b" : 1, "a":{"ignition":{}}, "b":2}"#),
        // Not a file: a key is missing, or there is another one.
        (r#"{"content":"x"}"#, br#"{"content":"x"}"#),
        (r#"{"content":"x","mode":420}"#, br#"{"content":"x","mode":420}"#),
        (r#"{"contentEncoding":"plain","path":"/a"}"#, br#"{"contentEncoding":"plain","path":"/a"}"#),
        (
            r#"{"content":"x","contentEncoding":"plain","owner":"root"}"#,
            br#"{"content":"x","contentEncoding":"plain","owner":"root"}"#,
        ),
    ] {
        assert_eq!(read(json), opaque(bytes), "{json}");
    }
    let hash = "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7";
    assert_eq!(read(r#""hunter2""#).unwrap().hash, hash);
    for json in [r#""\ud800""#, r#"{"\ud800":1}"#, r#"{"\udc00":1,"ignition":{}}"#] {
        assert_eq!(read(json), Err(ConfigurationProblem::NotUnicode), "{json}");
    }
}

#[test]
fn files_are_read_as_flightctl_writes_them() {
    let file = |mode, user: Option<&str>, group: Option<&str>, content: &[u8]| {
        let (user, group) = (user.map(str::to_owned), group.map(str::to_owned));
        let files = vec![GivenFile { path: "/etc/a".to_owned(), mode, user, group, bytes: content.len() }];
        Ok(Given { files, bytes: ContentBytes::new(content.to_vec()), hash: hex_of(content) })
    };
    for (json, expected) in [
        (r#"{"content":"x\n","contentEncoding":"plain"}"#, opaque(b"x\n")),
        (r#"{"content":"eAo=","contentEncoding":"base64"}"#, opaque(b"x\n")),
        (r#"{"content":"","contentEncoding":"base64"}"#, opaque(b"")),
        (r#"{"content":"e\r\nAo=\n","contentEncoding":"base64","path":null}"#, opaque(b"x\n")),
        (r#"{"path":"/etc/a","contentEncoding":"plain","content":""}"#, file(None, None, None, b"")),
        (
            r#"{"content":"AP8=","contentEncoding":"base64","path":"/etc/a","mode":420,"user":"root","group":"app"}"#,
            file(Some(0o644), Some("root"), Some("app"), b"\0\xff"),
        ),
        (r#"{"path":"/etc/a","content":"x"}"#, file(None, None, None, b"x")),
        (r#"{"content":"x","path":"/a","mode":"0644"}"#, Err(ConfigurationProblem::File)),
        (r#"{"content":"x","contentEncoding":"gzip"}"#, Err(ConfigurationProblem::File)),
        (r#"{"content":7,"contentEncoding":"plain"}"#, Err(ConfigurationProblem::File)),
        (r#"{"content":null,"contentEncoding":"plain"}"#, Err(ConfigurationProblem::File)),
        (r#"{"content":"x","contentEncoding":"plain","content":"y"}"#, Err(ConfigurationProblem::File)),
        (
            r#"{"content":"x","contentEncoding":"plain","path":"/a","mode":"0644"}"#,
            Err(ConfigurationProblem::File),
        ),
        (r#"{"content":"\ud800","contentEncoding":"plain"}"#, Err(ConfigurationProblem::File)),
        (r#"{"content":"e A==","contentEncoding":"base64"}"#, Err(ConfigurationProblem::Base64)),
        (r#"{"content":"eAo","contentEncoding":"base64"}"#, Err(ConfigurationProblem::Base64)),
        (r#"{"content":"-_8=","contentEncoding":"base64"}"#, Err(ConfigurationProblem::Base64)),
        (r#"{"content":"x","contentEncoding":"plain","mode":384}"#, Err(ConfigurationProblem::NoPath)),
        (r#"{"content":"x","contentEncoding":"plain","user":"root"}"#, Err(ConfigurationProblem::NoPath)),
        (
            r#"{"content":"x","contentEncoding":"plain","path":"a"}"#,
            Err(ConfigurationProblem::Path { file: 1 }),
        ),
        (
            r#"{"content":"x","contentEncoding":"plain","path":"/a/../b"}"#,
            Err(ConfigurationProblem::Path { file: 1 }),
        ),
        (
            r#"{"content":"x","contentEncoding":"plain","path":"/a","mode":2048}"#,
            Err(ConfigurationProblem::Mode { file: 1 }),
        ),
        (
            r#"{"content":"x","contentEncoding":"plain","path":"/a","group":"a:b"}"#,
            Err(ConfigurationProblem::Owner { file: 1 }),
        ),
    ] {
        assert_eq!(read(json), expected, "{json}");
    }
}

#[test]
fn an_object_with_ignition_is_ignition() {
    let json = r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,x"}}]}}"#;
    let file = GivenFile { path: "/a".to_owned(), mode: None, user: None, group: None, bytes: 1 };
    let bytes = ContentBytes::new(b"x".to_vec());
    assert_eq!(read(json), Ok(Given { files: vec![file], bytes, hash: hex_of(json.as_bytes()) }));
    // Even if it looks like a file.
    let json = r#"{"content":"x","contentEncoding":"plain","ignition":{"version":"3.4.0"}}"#;
    assert_eq!(read(json), Err(ConfigurationProblem::Unsupported { key: "content".into() }));
    assert!(matches!(read(r#"{"ignition":7}"#), Err(ConfigurationProblem::Ignition { .. })));
}

#[test]
fn contents_are_bounded() {
    let too_large = Err(ConfigurationProblem::TooLarge { limit: ITEM_BYTES_MAX });
    for (length, is_taken) in [(ITEM_BYTES_MAX, true), (ITEM_BYTES_MAX + 1, false)] {
        let content = "x".repeat(length);
        let expected = || if is_taken { opaque(content.as_bytes()) } else { too_large.clone() };
        let quoted = format!("\"{content}\"");
        assert!(read(&quoted) == expected(), "{length} as text");
        let plain = format!(r#"{{"content":{quoted},"contentEncoding":"plain"}}"#);
        assert!(read(&plain) == expected(), "{length} as a file");
        let encoded = STANDARD.encode(&content);
        let base64 = format!(r#"{{"content":"{encoded}","contentEncoding":"base64"}}"#);
        assert!(read(&base64) == expected(), "{length} in base64");
        let json = format!("[\"{}\"]", "x".repeat(length - 4));
        let expected = if is_taken { opaque(json.as_bytes()) } else { too_large.clone() };
        assert!(read(&json) == expected, "{length} as JSON");
    }
}
