//! Deletes as tables: what is asked for, and what is answered.

use super::*;

/// Destroys `name` where `a.service` may exist with the text `existing`. Returns the status and the sentence.
async fn destroy(
    version: Version,
    name: &str,
    types: &[&str],
    body: &str,
    existing: Option<&str>,
) -> (u16, String) {
    let api = TestApi::new(site("a.service", existing), &[]).await;
    let before = api.site.published().state.units.clone();
    let request = format!("DELETE {}", item(name));
    let (status, _, answer) = ask(&api, version, &request, (types, body.as_bytes())).await;
    let published = api.site.published();
    if status >= 400 {
        assert_eq!(published.state.units, before, "{answer}");
        return (status, message(&answer));
    }
    assert!(published.state.units.unit(&UnitName::new(name).unwrap()).is_none());
    (status, answer)
}

fn data(text: &str) -> String {
    format!(r#"{{"data": {{"name": "a.service", "fileContents": "{}"}}}}"#, contents::encode(text))
}

#[tokio::test]
async fn alpha_deletes_are_answered_as_documented() {
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
            (404, "unit does not exist"),
        ),
        (
            "a.service",
            json.clone(),
            r#"{"data": {"fileContents": "%"}}"#.to_owned(),
            None,
            (400, "fileContents is not base64"),
        ),
        ("a.service", json.clone(), data("x"), None, (400, "line 1: an option stands in a section")),
    ] {
        let (status, message) = destroy(Version::V1Alpha, name, &types, &body, existing).await;
        let is_expected = status == expected.0 && message.starts_with(expected.1);
        assert!(is_expected, "{name} {types:?} {body} {existing:?}: {status} {message}");
    }
}

#[tokio::test]
async fn v1_deletes_ignore_bodies() {
    let absent = (404, "unit does not exist".to_owned());
    for body in ["", "{", "{}", &data("[Service]\n")] {
        for types in [vec![], vec!["application/json"], vec!["text/plain", "x"]] {
            let answer = destroy(Version::V1, "a.service", &types, body, Some(PING)).await;
            assert_eq!(answer, (204, String::new()), "{body} {types:?}");
            assert_eq!(destroy(Version::V1, "a.service", &types, body, None).await, absent);
            assert_eq!(destroy(Version::V1, "b.service", &types, body, Some(PING)).await, absent);
        }
    }
}
