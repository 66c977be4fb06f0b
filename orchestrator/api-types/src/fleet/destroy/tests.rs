//! Deletes as tables: what is asked for, and what is answered.

use super::*;

const PING: &str = "[Service]\nExecStart=/bin/ping\n";

/// Destroys `name` where `a.service` may exist with the text `existing`. Returns the status and the sentence.
fn destroy(
    version: Version,
    name: &str,
    types: &[&str],
    body: &str,
    existing: Option<&str>,
) -> (u16, String) {
    let existing = existing.map(|text| UnitFile::parse(text).unwrap());
    let destroy = Destroy::read(version, types.iter().map(|value| value.as_bytes()), body.as_bytes());
    let find = |name: &UnitName| if name.as_str() == "a.service" { existing.as_ref() } else { None };
    match destroy.and_then(|destroy| destroy.decide(name, find)) {
        Ok(destroyed) => {
            assert_eq!(destroyed.as_str(), name);
            (DESTROYED, String::new())
        }
        Err(error) => (error.status(), error.to_string()),
    }
}

fn data(text: &str) -> String {
    format!(r#"{{"data": {{"name": "a.service", "fileContents": "{}"}}}}"#, contents::encode(text))
}

#[test]
fn alpha_deletes_are_answered_as_documented() {
    let json = vec!["application/json"];
    let differ = "the unit has other contents than fileContents";
    let not_json = "the body cannot be read: ";
    for (name, types, body, existing, expected) in [
        // Without a body there is no media type either.
        ("a.service", vec![], String::new(), Some(PING), (204, "")),
        ("a.service", vec!["text/plain"], String::new(), Some(PING), (204, "")),
        ("a.service", json.clone(), r#"{"data": {}}"#.to_owned(), Some(PING), (204, "")),
        ("a.service", json.clone(), r#"{"data": {"name": "b.service"}}"#.to_owned(), Some(PING), (204, "")),
        ("a.service", json.clone(), r#"{"data": {"fileContents": ""}}"#.to_owned(), Some(PING), (204, "")),
        ("a.service", json.clone(), data(PING), Some(PING), (204, "")),
        ("a.service", json.clone(), data("[Service]\n"), Some(PING), (409, differ)),
        ("a.service", json.clone(), data(PING), None, (404, "unit does not exist")),
        ("a.service", vec![], String::new(), None, (404, "unit does not exist")),
        ("a", vec![], String::new(), Some(PING), (404, "unit does not exist")),
        ("@.service", json.clone(), data(PING), Some(PING), (404, "unit does not exist")),
        // In the order of the checks.
        (
            "a",
            vec![],
            "{".to_owned(),
            None,
            (415, "the Content-Type must be application/json, and there is none"),
        ),
        ("a", vec!["text/plain"], data(PING), Some(PING), (415, "the Content-Type must be application/json")),
        ("a", json.clone(), "{".to_owned(), None, (400, not_json)),
        ("a", json.clone(), "{}".to_owned(), None, (400, "the body cannot be read: missing field `data`")),
        ("a", json.clone(), r#"{"data": {"fileContents": 7}}"#.to_owned(), None, (400, not_json)),
        (
            "a",
            json.clone(),
            r#"{"data": {"fileContents": "%"}}"#.to_owned(),
            None,
            (400, "fileContents is not base64"),
        ),
        ("a", json.clone(), data("x"), None, (400, "line 1: ")),
    ] {
        let (status, message) = destroy(Version::V1Alpha, name, &types, &body, existing);
        let is_expected = status == expected.0 && message.starts_with(expected.1);
        assert!(is_expected, "{name} {types:?} {body} {existing:?}: {status} {message}");
    }
}

#[test]
fn v1_deletes_ignore_bodies() {
    let absent = (404, "unit does not exist".to_owned());
    for body in ["", "{", "{}", &data("[Service]\n")] {
        for types in [vec![], vec!["application/json"], vec!["text/plain", "x"]] {
            let answer = destroy(Version::V1, "a.service", &types, body, Some(PING));
            assert_eq!(answer, (204, String::new()), "{body} {types:?}");
            assert_eq!(destroy(Version::V1, "a.service", &types, body, None), absent);
            assert_eq!(destroy(Version::V1, "b.service", &types, body, Some(PING)), absent);
        }
    }
}
