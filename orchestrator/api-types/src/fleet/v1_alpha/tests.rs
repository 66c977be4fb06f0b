//! The bodies of the document.

use os_upgrade_scheduler::{MachineId, UnitFile, UnitName};
use serde_json::json;

use super::*;
use crate::fleet::page_token::PageToken;

const MACHINE: &str = "933fbdff1bdc4be0a7b64a9b58c3189d";
const PING: &str = "[Unit]\nDescription=PING\n\n[Service]\n\
                    ExecStart=/bin/bash -c \"while true; do echo \\\"ping\\\"; sleep 1; done\"\n";
const PING_BASE64: &str = "W1VuaXRdCkRlc2NyaXB0aW9uPVBJTkcKCltTZXJ2aWNlXQpFeGVjU3RhcnQ9L2Jpbi9iYXNoIC1jICJ3aGlsZSB0cnVlOyBkbyBlY2hvIFwicGluZ1wiOyBzbGVlcCAxOyBkb25lIgo=";

#[test]
fn units_are_those_of_the_document() {
    let machine = MachineId::new(MACHINE).unwrap();
    let name = UnitName::new("ping.service").unwrap();
    let file = UnitFile::parse(PING).unwrap();
    let systemd = Systemd { load: "loaded", active: "active", sub: "running", machine: &machine, hash: None };
    let mut unit = ShownUnit {
        name: &name,
        file: &file,
        desired: UnitState::Launched,
        current: UnitState::Launched,
        target: Some(&machine),
        systemd: Some(systemd),
    };
    let document = json!({
        "name": "ping.service",
        "fileContents": PING_BASE64,
        "fileHash": "d9de011694dda111458a4fc9912ad629d86ad8af",
        "desiredState": "launched",
        "currentState": "launched",
        "targetMachineID": MACHINE,
        "systemd": {
            "activeState": "active",
            "loadState": "loaded",
            "machineID": MACHINE,
            "subState": "running",
        },
    });
    let body = UnitBody::new(&unit);
    assert_eq!(serde_json::to_value(Data::new(&body)).unwrap(), json!({ "data": document }));
    assert_eq!(serde_json::from_value::<UnitBody<'_>>(document).unwrap(), body);

    // Nowhere, and not reported.
    unit.target = None;
    unit.systemd = None;
    unit.current = UnitState::Inactive;
    let nowhere = json!({
        "name": "ping.service",
        "fileContents": PING_BASE64,
        "fileHash": "d9de011694dda111458a4fc9912ad629d86ad8af",
        "desiredState": "launched",
        "currentState": "inactive",
    });
    let body = UnitBody::new(&unit);
    assert_eq!(serde_json::to_value(&body).unwrap(), nowhere);
    assert_eq!(serde_json::from_value::<UnitBody<'_>>(nowhere).unwrap(), body);
}

#[test]
fn an_empty_list_has_empty_data() {
    let page = |total| Data::from(Page::new(0..total, PageToken::FIRST));
    for (total, expected) in [
        (0, json!({"data": {}})),
        (2, json!({"data": {"items": [0, 1]}})),
        (100, json!({"data": {"items": (0..100).collect::<Vec<u32>>()}})),
        (101, json!({"data": {"items": (0..100).collect::<Vec<u32>>(), "nextPageToken": "ZAACAA=="}})),
    ] {
        assert_eq!(serde_json::to_value(page(total)).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Data<PageBody<u32>>>(expected).unwrap(), page(total));
    }
}

#[test]
fn partial_units_are_read_and_malformed_ones_refused() {
    for unit in [
        PartialUnit::new(None, None),
        PartialUnit::new(Some(UnitState::Loaded), None),
        PartialUnit::new(Some(UnitState::Launched), Some(PING_BASE64.to_owned())),
    ] {
        let body = serde_json::to_vec(&Data::new(&unit)).unwrap();
        assert_eq!(PartialUnit::read(&body).unwrap(), unit);
    }
    let twice = br#"{"data": {"desiredState": "loaded", "desiredState": "loaded"}}"#;
    for body in [&twice[..], br#"{"data": {}} {}"#, br#"{"data": {}, "data": {}}"#, br#"{"Data": {}}"#] {
        assert!(PartialUnit::read(body).is_err(), "{}", String::from_utf8_lossy(body));
    }
}
