//! The bodies of v1.

use std::collections::BTreeMap;

use os_upgrade_scheduler::{MachineId, UnitFile};
use serde_json::json;

use super::*;
use crate::fleet::page_token::PageToken;
use crate::fleet::shown::ShownMachine;

const MACHINE: &str = "933fbdff1bdc4be0a7b64a9b58c3189d";

#[test]
fn units_and_states_have_what_clients_read() {
    let machine = MachineId::new(MACHINE).unwrap();
    let name = UnitName::new("foo@1.service").unwrap();
    let file = UnitFile::parse("[Service]\nExecStart=\nExecStart=/bin/true\n").unwrap();
    let hash = file.options_hash();
    let state = |hash| Systemd { load: "loaded", active: "active", sub: "running", machine: &machine, hash };
    let unit = |target| ShownUnit {
        name: &name,
        file: &file,
        desired: UnitState::Launched,
        current: UnitState::Loaded,
        target,
        systemd: Some(state(Some(hash))),
    };
    let options = json!([
        {"section": "Service", "name": "ExecStart", "value": ""},
        {"section": "Service", "name": "ExecStart", "value": "/bin/true"},
    ]);
    let placed = json!({
        "name": "foo@1.service",
        "options": options,
        "desiredState": "launched",
        "currentState": "loaded",
        "machineID": MACHINE,
    });
    let global = json!({
        "name": "foo@1.service",
        "options": options,
        "desiredState": "launched",
        "currentState": "loaded",
    });
    for (target, expected) in [(Some(&machine), placed), (None, global)] {
        let shown = unit(target);
        let body = UnitBody::new(&shown);
        assert_eq!(serde_json::to_value(&body).unwrap(), expected);
        assert_eq!(serde_json::from_value::<UnitBody<'_>>(expected).unwrap(), body);
    }
    for (hash, text) in [(Some(hash), hash.to_string()), (None, String::new())] {
        let shown = state(hash);
        let body = StateBody::new(&name, &shown);
        let expected = json!({
            "name": "foo@1.service",
            "hash": text,
            "machineID": MACHINE,
            "systemdLoadState": "loaded",
            "systemdActiveState": "active",
            "systemdSubState": "running",
        });
        assert_eq!(serde_json::to_value(&body).unwrap(), expected);
        assert_eq!(serde_json::from_value::<StateBody<'_>>(expected).unwrap(), body);
    }
}

#[test]
fn empty_lists_have_their_field() {
    let units: Page<UnitBody<'_>> = Page::new(std::iter::empty(), PageToken::FIRST);
    assert_eq!(serde_json::to_value(UnitPage::from(units)).unwrap(), json!({"units": []}));
    let states: Page<StateBody<'_>> = Page::new(std::iter::empty(), PageToken::FIRST);
    assert_eq!(serde_json::to_value(StatePage::from(states)).unwrap(), json!({"states": []}));
    let machines: Page<MachineBody<'_>> = Page::new(std::iter::empty(), PageToken::FIRST);
    assert_eq!(serde_json::to_value(MachinePage::from(machines)).unwrap(), json!({"machines": []}));
}

#[test]
fn full_pages_name_the_next_one() {
    let id = MachineId::new(MACHINE).unwrap();
    let metadata = BTreeMap::new();
    let shown = ShownMachine { id: &id, primary_ip: "", metadata: &metadata };
    let machines = std::iter::repeat_n(shown, 101);
    let page = MachinePage::from(Page::new(machines, PageToken::FIRST).map(MachineBody::new));
    assert_eq!(page.machines.len(), 100);
    assert_eq!(page.next_page_token.as_deref(), Some("ZAACAA=="));
    let json = serde_json::to_value(&page).unwrap();
    assert_eq!(json["nextPageToken"], "ZAACAA==");
    assert_eq!(serde_json::from_value::<MachinePage<'_>>(json).unwrap(), page);
}

#[test]
fn partial_units_of_clients_are_read() {
    let option = UnitOption { section: "S".to_owned(), name: "A".to_owned(), value: String::new() };
    let body = json!({"desiredState": "loaded", "options": [{"section": "S", "name": "A"}]}).to_string();
    let unit = PartialUnit::read(body.as_bytes()).unwrap();
    assert_eq!(unit.stated_name(), None);
    assert_eq!(unit.desired_state, Some(UnitState::Loaded));
    assert_eq!(unit.clone().into_options(), Some(vec![option]));
    assert_eq!(PartialUnit::read(&serde_json::to_vec(&unit).unwrap()).unwrap(), unit);
    let whole = json!({"name": "a.service", "currentState": 7, "machineID": "x", "desiredState": "loaded"});
    let unit = PartialUnit::read(whole.to_string().as_bytes()).unwrap();
    assert_eq!(unit.stated_name(), Some("a.service"));
    assert_eq!(unit.into_options(), None);
}
