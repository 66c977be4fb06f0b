//! What call-backs say, as tables.

use super::*;

fn update(uuid: Option<&str>, hosts: &[&str]) -> ConfigUpdate {
    ConfigUpdate {
        uuid: uuid.map(str::to_owned),
        provider: ProviderName::new("app").unwrap(),
        hosts: hosts.iter().map(|host| HostName::new(host).unwrap()).collect(),
    }
}

/// What the one element with the members `more` beside the event says.
fn read(more: &str) -> Result<ConfigUpdate, UpdateError> {
    let body = format!(r#"[{{"event":"ON_CONFIG_UPDATE"{more}}}]"#);
    let mut members = read_callback(body.as_bytes()).unwrap();
    assert_eq!(members.len(), 1, "{more}");
    members.remove(0)
}

#[test]
fn the_example_of_the_protocol_is_read() {
    let body = br#"[{"event": "ON_CONFIG_UPDATE",
        "event_uuid": "uuid-for-tracking",
        "config_name": "app",
        "device_names": ["device-name1", "device-name2"]
    }]"#;
    let expected = update(Some("uuid-for-tracking"), &["device-name1", "device-name2"]);
    assert_eq!(read_callback(body), Ok(vec![Ok(expected)]));
}

#[test]
fn elements_are_checked_one_by_one() {
    let long = format!(r#","event_uuid":"{}","config_name":"app","device_names":["h"]"#, "x".repeat(129));
    for (more, expected) in [
        (r#","config-name":"app","device_names":["h"]"#, Ok(update(None, &["h"]))),
        (
            r#","config_-_name":"app","event_uuid":null,"device_names":["h"],"more":1"#,
            Ok(update(None, &["h"])),
        ),
        (r#","config_name":"app","device_names":["b","a","b"]"#, Ok(update(None, &["b", "a"]))),
        (r#","config_name":"app","device_names":["h"],"device_names":["h"]"#, Err(UpdateError::Malformed)),
        (r#","event":"ON_CONFIG_UPDATE","config_name":"app""#, Err(UpdateError::Malformed)),
        (r#","event_uuid":7,"config_name":"app","device_names":["h"]"#, Err(UpdateError::Uuid)),
        (r#","event_uuid":"a\nb","config_name":"app","device_names":["h"]"#, Err(UpdateError::Uuid)),
        (long.as_str(), Err(UpdateError::Uuid)),
        (r#","device_names":["h"]"#, Err(UpdateError::NoName)),
        (r#","config_name":null,"device_names":["h"]"#, Err(UpdateError::NoName)),
        (r#","config_name":"app","config-name":"b","device_names":["h"]"#, Err(UpdateError::NamesDiffer)),
        (r#","config_name":"a b","device_names":["h"]"#, Err(UpdateError::Name)),
        (r#","config_name":7,"device_names":["h"]"#, Err(UpdateError::Name)),
        (r#","config_name":"app""#, Err(UpdateError::NoDevices)),
        (r#","config_name":"app","device_names":[]"#, Err(UpdateError::NoDevices)),
        (r#","config_name":"app","device_names":"h""#, Err(UpdateError::NoDevices)),
        (r#","config_name":"app","device_names":null"#, Err(UpdateError::NoDevices)),
        (r#","config_name":"app","device_names":["h",""]"#, Err(UpdateError::Device { index: 1 })),
        (r#","config_name":"app","device_names":["h",7,"a\nb"]"#, Err(UpdateError::Device { index: 1 })),
    ] {
        assert_eq!(read(more), expected, "{more}");
    }
    for event in [r#""ON_DEVICE_POLL""#, r#""on_config_update""#, "null", "7"] {
        let body = format!(r#"[{{"event":{event},"config_name":"app","device_names":["h"]}}]"#);
        assert_eq!(read_callback(body.as_bytes()), Ok(vec![Err(UpdateError::Event)]), "{event}");
    }
    let body = br#"[7,{},{"event":"ON_CONFIG_UPDATE","config_name":"app","device_names":["h"]},[]]"#;
    let (malformed, event) = (Err(UpdateError::Malformed), Err(UpdateError::Event));
    assert_eq!(read_callback(body), Ok(vec![malformed.clone(), event, Ok(update(None, &["h"])), malformed]));
}

#[test]
fn call_backs_are_arrays() {
    assert_eq!(read_callback(b"[]"), Ok(vec![]));
    assert_eq!(read_callback(b""), Err(CallbackError::NotAnArray { line: 1, column: 0 }));
    for body in [&b"{}"[..], b"null", b"[7", b"[7]]", b"[\xff]"] {
        let found = read_callback(body);
        assert!(matches!(found, Err(CallbackError::NotAnArray { .. })), "{found:?}");
    }
}

#[test]
fn call_backs_are_bounded() {
    let padded = |bytes: usize| format!("[]{}", " ".repeat(bytes - 2));
    assert_eq!(read_callback(padded(CALLBACK_BYTES_MAX).as_bytes()), Ok(vec![]));
    assert_eq!(read_callback(padded(CALLBACK_BYTES_MAX + 1).as_bytes()), Err(CallbackError::TooLarge));

    let many = |count: usize| format!("[{}]", vec!["7"; count].join(","));
    let most = read_callback(many(CALLBACK_MEMBERS_MAX).as_bytes()).unwrap();
    assert_eq!(most.len(), CALLBACK_MEMBERS_MAX);
    let more = read_callback(many(CALLBACK_MEMBERS_MAX + 1).as_bytes());
    assert_eq!(more, Err(CallbackError::TooManyMembers));

    // `twice` devices are named twice by one element, and count once; those of two elements count twice.
    let devices = |count: usize, twice: usize| {
        let half: Vec<String> = (0..count / 2).map(|number| format!("\"h{number}\"")).collect();
        let rest: Vec<String> =
            (0..count - count / 2).chain(0..twice).map(|number| format!("\"h{number}\"")).collect();
        let element = |names: &[String]| {
            let names = names.join(",");
            format!(r#"{{"event":"ON_CONFIG_UPDATE","config_name":"app","device_names":[{names}]}}"#)
        };
        format!("[{},{}]", element(&half), element(&rest))
    };
    let most = read_callback(devices(CALLBACK_DEVICES_MAX, 10).as_bytes()).unwrap();
    let counts: Vec<usize> = most.iter().map(|update| update.as_ref().unwrap().hosts.len()).collect();
    assert_eq!(counts, [CALLBACK_DEVICES_MAX / 2; 2]);
    let more = read_callback(devices(CALLBACK_DEVICES_MAX + 1, 0).as_bytes());
    assert_eq!(more, Err(CallbackError::TooManyDevices));
}
