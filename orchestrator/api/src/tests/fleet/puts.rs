//! Puts as tables: what is asked for, and what is answered.

use super::*;

const GLOBAL_WITH_PEER: &str = "[X-Fleet]\nGlobal=true\nMachineOf=ping.service\n";

/// What is answered: the status, and what has become of the unit or the beginning of the sentence.
type Answer<T> = Result<(u16, &'static str, UnitState), (u16, T)>;

/// Puts `name`, which may exist with the text `existing`.
async fn put(
    version: Version,
    name: &str,
    types: &[&str],
    body: &[u8],
    existing: Option<&str>,
) -> Answer<String> {
    let api = TestApi::new(site(name, existing), &[]).await;
    let before = api.site.published().state.units.clone();
    let (status, _, answer) = ask(&api, version, &format!("PUT {}", item(name)), (types, body)).await;
    let published = api.site.published();
    let units = &published.state.units;
    if status >= 400 {
        assert_eq!(*units, before, "{answer}");
        return Err((status, message(&answer)));
    }
    let name = UnitName::new(name).unwrap();
    let unit = units.unit(&name).unwrap();
    let kind = match before.unit(&name) {
        None => "create",
        Some(before) if before.file == unit.file => "set state",
        Some(_) => "replace",
    };
    Ok((status, kind, unit.desired))
}

fn assert_answer(answer: &Answer<String>, expected: Answer<&str>, what: &str) {
    let is_expected = match (answer, expected) {
        (Ok(answer), Ok(expected)) => *answer == expected,
        (Err((status, message)), Err((expected, beginning))) => {
            *status == expected && message.starts_with(beginning) && !message.is_empty()
        }
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    };
    assert!(is_expected, "{what}: {answer:?} is not {expected:?}");
}

/// The body of v1-alpha with this state and this file.
fn data(desired: Option<&str>, text: Option<&str>) -> Value {
    let mut data = json!({});
    if let Some(desired) = desired {
        data["desiredState"] = json!(desired);
    }
    if let Some(text) = text {
        data["fileContents"] = json!(contents::encode(text));
    }
    json!({ "data": data })
}

/// The body of v1 with this state and a service with this command.
fn options(desired: Option<&str>, command: Option<&str>) -> Value {
    let mut body = json!({});
    if let Some(desired) = desired {
        body["desiredState"] = json!(desired);
    }
    if let Some(command) = command {
        body["options"] = json!([{"section": "Service", "name": "ExecStart", "value": command}]);
    }
    body
}

#[tokio::test]
async fn alpha_puts_are_answered_as_documented() {
    let bad = |data: Value| json!({ "data": data });
    for (body, existing, expected) in [
        // New units.
        (data(Some("launched"), Some(PING)), None, Ok((204, "create", UnitState::Launched))),
        (data(Some("loaded"), Some(PING)), None, Ok((204, "create", UnitState::Loaded))),
        (data(None, Some(PING)), None, Ok((204, "create", UnitState::Inactive))),
        (data(Some("launched"), None), None, Err((409, "unit does not exist and fileContents field empty"))),
        (data(None, None), None, Err((409, "unit does not exist and fileContents field empty"))),
        (
            bad(json!({"desiredState": "loaded", "fileContents": ""})),
            None,
            Err((409, "unit does not exist and fileContents field empty")),
        ),
        // Those that exist.
        (data(Some("inactive"), None), Some(PING), Ok((204, "set state", UnitState::Inactive))),
        (data(Some("inactive"), Some(PING)), Some(PING), Ok((204, "set state", UnitState::Inactive))),
        (data(Some("inactive"), Some(OTHER)), Some(PING), Err((409, "the unit has other contents"))),
        // The other text counts before the missing state.
        (data(None, Some(OTHER)), Some(PING), Err((409, "the unit has other contents"))),
        // Nothing is to be changed.
        (data(None, Some(PING)), Some(PING), Ok((204, "set state", UnitState::Inactive))),
        (data(None, None), Some(PING), Ok((204, "set state", UnitState::Inactive))),
        // A comment more is another file.
        (data(Some("loaded"), Some(&format!("# x\n{PING}"))), Some(PING), Err((409, "the unit has"))),
        // The rest of the entity is ignored, another name included.
        (
            bad(
                json!({"desiredState": "loaded", "name": "b.service", "systemd": {"loadState": 7}, "x": [1]}),
            ),
            Some(PING),
            Ok((204, "set state", UnitState::Loaded)),
        ),
        (
            bad(json!({"desiredState": null, "fileContents": null})),
            Some(PING),
            Ok((204, "set state", UnitState::Inactive)),
        ),
        // Undecodable.
        (json!({}), Some(PING), Err((400, "the body cannot be read: missing field `data`"))),
        (json!([]), Some(PING), Err((400, "the body cannot be read: an object is expected, not a list"))),
        (bad(json!(null)), Some(PING), Err((400, "the body cannot be read: invalid type: null"))),
        (bad(json!(["loaded"])), Some(PING), Err((400, "the body cannot be read: invalid type: sequence"))),
        (
            bad(json!({"desiredState": "running"})),
            Some(PING),
            Err((400, "the body cannot be read: unknown variant `running`")),
        ),
        (
            bad(json!({"desiredState": ""})),
            Some(PING),
            Err((400, "the body cannot be read: unknown variant")),
        ),
        (bad(json!({"desiredState": 7})), Some(PING), Err((400, "the body cannot be read: "))),
        (
            bad(json!({"fileContents": 7})),
            Some(PING),
            Err((400, "the body cannot be read: invalid type: integer")),
        ),
        // Malformed contents. They are checked before existence.
        (bad(json!({"fileContents": "W1g"})), None, Err((400, "fileContents is not base64"))),
        (
            bad(json!({"fileContents": "/w=="})),
            Some(PING),
            Err((400, "the decoded fileContents is not UTF-8")),
        ),
        (
            data(Some("loaded"), Some("ExecStart=/bin/true\n")),
            None,
            Err((400, "line 1: an option stands in a section, such as [Service]")),
        ),
        (data(Some("loaded"), Some(GLOBAL_WITH_PEER)), None, Err((400, "line 3: Global excludes MachineOf"))),
        (
            data(Some("loaded"), Some(&"#".repeat(65_537))),
            None,
            Err((413, "line 1: a unit file has at most 65536 bytes")),
        ),
    ] {
        let answer = put(Version::V1Alpha, "a.service", JSON, body.to_string().as_bytes(), existing).await;
        assert_answer(&answer, expected, &format!("{body} {existing:?}"));
    }
}

#[tokio::test]
async fn v1_puts_are_answered_as_fleet_does() {
    let named = |name: &str| json!({"name": name, "desiredState": "loaded"});
    let shortened = format!("the URL names the unit \"a.service\", and the body \"{}…\"", "b".repeat(64));
    let option = json!({"section": "Service", "name": "ExecStart", "value": "/bin/true"});
    for (body, existing, expected) in [
        // New units.
        (options(Some("launched"), Some("/bin/true")), None, Ok((201, "create", UnitState::Launched))),
        (options(None, Some("/bin/true")), None, Ok((201, "create", UnitState::Inactive))),
        (options(Some("launched"), None), None, Err((409, "unit does not exist and options field empty"))),
        (
            json!({"desiredState": "loaded", "options": []}),
            None,
            Err((409, "unit does not exist and options field empty")),
        ),
        // An empty value is left out by fleetctl.
        (
            json!({"options": [{"section": "Service", "name": "ExecStart"}, option]}),
            None,
            Ok((201, "create", UnitState::Inactive)),
        ),
        // Those that exist.
        (options(Some("launched"), None), Some(OTHER), Ok((204, "set state", UnitState::Launched))),
        (options(Some("loaded"), Some("/bin/true")), Some(OTHER), Ok((204, "set state", UnitState::Loaded))),
        // Comments are no options.
        (
            options(Some("loaded"), Some("/bin/true")),
            Some("# x\n\n[Service]\nExecStart=/bin/true\n"),
            Ok((204, "set state", UnitState::Loaded)),
        ),
        (options(Some("launched"), Some("/bin/x")), Some(OTHER), Ok((201, "replace", UnitState::Launched))),
        (options(None, Some("/bin/x")), Some(OTHER), Ok((201, "replace", UnitState::Inactive))),
        (options(None, None), Some(OTHER), Err((409, "must provide desiredState to update existing unit"))),
        (options(None, Some("/bin/true")), Some(OTHER), Err((409, "must provide desiredState"))),
        // Names.
        (named(""), Some(OTHER), Ok((204, "set state", UnitState::Loaded))),
        (named("a.service"), Some(OTHER), Ok((204, "set state", UnitState::Loaded))),
        (
            named("b.service"),
            Some(OTHER),
            Err((400, "the URL names the unit \"a.service\", and the body \"b.service\"")),
        ),
        // What may have as many bytes as the body is not sent back as a whole.
        (named(&"b".repeat(1000)), Some(OTHER), Err((400, &*shortened))),
        // Undecodable.
        (
            json!({"desiredState": "running"}),
            None,
            Err((400, "the body cannot be read: unknown variant `running`")),
        ),
        (json!({"options": {}}), None, Err((400, "the body cannot be read: invalid type: map"))),
        (json!({"options": [null]}), None, Err((400, "the body cannot be read: invalid type: null"))),
        (
            json!({"options": [["Service", "ExecStart", "/bin/true"]]}),
            None,
            Err((400, "the body cannot be read: invalid type: sequence")),
        ),
        (
            json!({"options": [{"section": "Service", "value": "x"}]}),
            None,
            Err((400, "the body cannot be read: missing field `name`")),
        ),
        (json!({"name": 7}), None, Err((400, "the body cannot be read: invalid type: integer"))),
        // Options that are not those of the file that would be written from them.
        (
            json!({"options": [{"section": "", "name": "A", "value": "x"}]}),
            None,
            Err((400, "line 1: the name of a section is 1 to 256 bytes between [ and ]")),
        ),
        (
            json!({"options": [{"section": "S", "name": "A", "value": "x\n[T]"}]}),
            None,
            Err((400, "line 2: the section, name and value of an option must be one option")),
        ),
        (
            json!({"options": [
                {"section": "X-Fleet", "name": "Global", "value": "true"},
                {"section": "X-Fleet", "name": "MachineOf", "value": "ping.service"},
            ]}),
            None,
            Err((400, "line 3: Global excludes MachineOf")),
        ),
        (
            options(None, Some(&"x".repeat(65_537))),
            None,
            Err((413, "line 2: a unit file has at most 65536 bytes")),
        ),
    ] {
        let answer = put(Version::V1, "a.service", JSON, body.to_string().as_bytes(), existing).await;
        assert_answer(&answer, expected, &format!("{body} {existing:?}"));
    }
}

#[tokio::test]
async fn checks_of_puts_have_one_order() {
    let missing = "the Content-Type must be application/json, and there is none";
    let not_json = "the body cannot be read: ";
    for version in Version::ALL {
        let (not_contents, sentence): (&[u8], _) = match version {
            Version::V1Alpha => {
                (&br#"{"data": {"fileContents": "%"}}"#[..], "fileContents is not base64 with padding")
            }
            Version::V1 => (
                &br#"{"options": [{"section": "", "name": "", "value": ""}]}"#[..],
                "line 1: the name of a section is 1 to 256 bytes",
            ),
        };
        let nothing: &[u8] = match version {
            Version::V1Alpha => br#"{"data": {"desiredState": "launched"}}"#,
            Version::V1 => br#"{"desiredState": "launched"}"#,
        };
        for (name, types, body, expected) in [
            ("a.x", &[][..], &b"{"[..], (415, missing)),
            ("a.x", &["text/plain"][..], &b"{"[..], (415, "the Content-Type must be application/json")),
            ("a.x", JSON, &b"{"[..], (400, not_json)),
            ("a.x", JSON, &b""[..], (400, not_json)),
            ("a.x", JSON, &b"\xff"[..], (400, not_json)),
            ("a.x", JSON, not_contents, (400, "the name of a unit")),
            ("@.service", JSON, not_contents, (400, "the name of a unit")),
            ("a.service", JSON, not_contents, (400, sentence)),
            ("a.service", JSON, nothing, (409, "unit does not exist")),
            // A template that does not exist is that in the first place.
            ("a@.service", JSON, nothing, (409, "unit does not exist")),
        ] {
            let answer = put(version, name, types, body, None).await;
            assert_answer(&answer, Err(expected), &format!("{version:?} {name} {types:?}"));
        }
        let large = vec![b' '; 1024 * 1024 + 1];
        let answer = put(version, "a.service", JSON, &large, None).await;
        assert_answer(&answer, Err((413, "the body exceeds 1048576 bytes")), "1 MiB and a byte");
    }
}

/// As many as systemd allows, and one fewer than fleet did.
#[tokio::test]
async fn names_have_255_bytes_at_most() {
    let name = |bytes: usize| format!("{}.service", "a".repeat(bytes - ".service".len()));
    for (version, body, status) in [
        (Version::V1Alpha, data(None, Some(PING)), 204),
        (Version::V1, options(None, Some("/bin/true")), 201),
    ] {
        let body = body.to_string();
        let longest = put(version, &name(255), JSON, body.as_bytes(), None).await;
        assert_answer(&longest, Ok((status, "create", UnitState::Inactive)), "255 bytes");
        let longer = put(version, &name(256), JSON, body.as_bytes(), None).await;
        assert_answer(&longer, Err((400, "the name of a unit has at most 255 bytes")), "256 bytes");
    }
}

#[tokio::test]
async fn templates_stay_inactive() {
    let cannot = Err((400, "cannot activate template \"a@.service\""));
    for (name, desired, existing, expected) in [
        ("a@.service", "inactive", None, Ok((204, "create", UnitState::Inactive))),
        ("a@.service", "loaded", None, cannot),
        ("a@.service", "inactive", Some(PING), Ok((204, "set state", UnitState::Inactive))),
        ("a@.service", "launched", Some(PING), cannot),
        ("a@1.service", "launched", None, Ok((204, "create", UnitState::Launched))),
    ] {
        let body = data(Some(desired), Some(PING)).to_string();
        let answer = put(Version::V1Alpha, name, JSON, body.as_bytes(), existing).await;
        assert_answer(&answer, expected, &format!("{name} {desired}"));
    }
    let body = options(Some("launched"), None).to_string();
    let answer = put(Version::V1, "a@.service", JSON, body.as_bytes(), Some(PING)).await;
    assert_answer(&answer, cannot, "v1");
}

#[tokio::test]
async fn the_documents_examples_are_read() {
    let launch = r#"{
        "data": {
            "desiredState": "launched",
            "fileContents": "W1NlcnZpY2VdCkV4ZWNTdGFydD0vdXNyL2Jpbi9zbGVlcCAzMDAwCg=="
        }
    }"#;
    let unload = r#"{
        "data": {
            "desiredState": "inactive",
            "fileContents": "W1NlcnZpY2VdDQpFeGVjU3RhcnQ9L3Vzci9iaW4vc2xlZXAgMWQNCg=="
        }
    }"#;
    for (body, existing, expected) in [
        (launch, None, Ok((204, "create", UnitState::Launched))),
        (
            unload,
            Some("[Service]\r\nExecStart=/usr/bin/sleep 1d\r\n"),
            Ok((204, "set state", UnitState::Inactive)),
        ),
        // The text counts, ends of lines included.
        (unload, Some("[Service]\nExecStart=/usr/bin/sleep 1d\n"), Err((409, "the unit has other contents"))),
    ] {
        let answer = put(Version::V1Alpha, "foo.service", JSON, body.as_bytes(), existing).await;
        assert_answer(&answer, expected, body);
    }
}
