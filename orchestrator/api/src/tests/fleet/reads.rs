//! Reads: what is shown of units and machines, page by page.

use os_upgrade_api_types::fleet::discovery;
use os_upgrade_auth::{Caller, Rights, Role};
use os_upgrade_kernel::fact::EnrolmentFact;
use os_upgrade_kernel::unit::TakenAway;
use os_upgrade_protocol::{Applied, AppliedItem, ItemId, ItemKind, ReportedState, UnitReport};
use os_upgrade_scheduler::{MachineId, UnitFile};

use super::*;
use crate::http::authorization::Identity;
use crate::tests::limits::rendering_with;

const MACHINES: [&str; 3] = [
    "933fbdff1bdc4be0a7b64a9b58c3189d",
    "0123456789abcdef0123456789abcdef",
    "fedcba9876543210fedcba9876543210",
];

/// h01 is the first of [`MACHINES`], h02 the second, h03 the third.
fn join(site: &mut TestSite, number: usize) {
    let metadata = [("rack".to_owned(), number.to_string())].into_iter().collect();
    let (machine, address) = (MachineId::new(MACHINES[number - 1]).unwrap(), format!("192.0.2.{number}"));
    let host = host(&format!("h0{number}"));
    apply(site, UnitFact::MachineJoined { host, machine, metadata, address, actor: None });
}

/// What the site has placed on `name` is there as it was ordered, in this state; or by another item than the ordered one.
fn report(site: &mut TestSite, name: &str, units: &[(&str, ReportedState, bool)]) {
    let name = host(name);
    let revision = site.state.desired_revision(&name);
    let item = |(unit, state, is_ordered): &(&str, ReportedState, bool)| {
        let ordered = site.state.desired.unit(&name, &UnitName::new(unit).unwrap()).unwrap();
        let id = if *is_ordered { ordered.id(revision.epoch) } else { ItemId::new("unit-0-0").unwrap() };
        let (load, active, sub) = ("loaded".to_owned(), "active".to_owned(), "running".to_owned());
        AppliedItem {
            kind: ItemKind::Unit,
            name: (*unit).to_owned(),
            id: Some(id),
            error: None,
            unit: Some(UnitReport { state: *state, load, active, sub }),
        }
    };
    let items = units.iter().map(item).collect();
    let applied = Applied { site: site.state.settings.site.clone(), revision, items, refused: None };
    site.view.applied.insert(name, Arc::new(applied));
}

fn place(site: &mut TestSite, unit: &str, hosts: &[&str]) {
    let hosts = hosts.iter().map(|name| host(name)).collect();
    apply(site, UnitFact::Placed { unit: UnitName::new(unit).unwrap(), hosts });
}

/// A site with the machines h01 and h02, and `ping.service` on h01.
fn placed() -> TestSite {
    let mut site = TestSite::new(["h01", "h02"]);
    join(&mut site, 1);
    join(&mut site, 2);
    submit(&mut site, "ping.service", PING, UnitState::Launched);
    place(&mut site, "ping.service", &["h01"]);
    site
}

/// The unit `ping.service` in v1-alpha and in v1, and its entity in the list of states with this hash, if there is one.
fn shown(current: &str, target: Option<&str>, hash: Option<&str>) -> (Value, Value, Option<Value>) {
    let file = UnitFile::parse(PING).unwrap();
    let mut alpha = json!({
        "name": "ping.service",
        "fileContents": contents::encode(PING),
        "fileHash": file.file_hash().to_string(),
        "desiredState": "launched",
        "currentState": current,
    });
    let mut v1 = json!({
        "name": "ping.service",
        "options": [
            {"section": "Unit", "name": "Description", "value": "PING"},
            {"section": "Service", "name": "ExecStart", "value": "/bin/ping"},
        ],
        "desiredState": "launched",
        "currentState": current,
    });
    if let Some(target) = target {
        alpha["targetMachineID"] = json!(target);
        v1["machineID"] = json!(target);
    }
    let state = hash.map(|hash| {
        alpha["systemd"] = json!({
            "loadState": "loaded", "activeState": "active", "subState": "running", "machineID": MACHINES[0],
        });
        json!({
            "name": "ping.service",
            "hash": hash,
            "machineID": MACHINES[0],
            "systemdLoadState": "loaded",
            "systemdActiveState": "active",
            "systemdSubState": "running",
        })
    });
    (alpha, v1, state)
}

/// Checks what is shown of a site with `ping.service` alone: in lists and by itself.
async fn assert_shown(site: TestSite, (alpha, v1, state): (Value, Value, Option<Value>), what: &str) {
    let api = TestApi::new(site, &[]).await;
    let unknown = fleet_error(404, "unit state does not exist");
    let states: Vec<&Value> = state.iter().collect();
    let one = state.clone().map_or((404, unknown), |state| (200, state));
    for (version, path, expected) in [
        (Version::V1Alpha, "/units", (200, json!({"data": {"items": [alpha]}}))),
        (Version::V1Alpha, "/units/ping.service", (200, json!({ "data": alpha }))),
        // As Go's `url.QueryEscape` and others write it.
        (Version::V1Alpha, "/units/%70ing%2eservice", (200, json!({ "data": alpha }))),
        (Version::V1, "/units", (200, json!({ "units": [v1] }))),
        (Version::V1, "/units/ping.service?alt=json", (200, v1.clone())),
        (Version::V1, "/state", (200, json!({ "states": states }))),
        (Version::V1, "/state/ping.service", one),
    ] {
        assert_eq!(get(&api, version, path).await, expected, "{what}: {path}");
    }
}

#[tokio::test]
async fn units_are_shown_as_they_are_reported() {
    let hash = UnitFile::parse(PING).unwrap().options_hash().to_string();
    let mut nowhere = TestSite::new(["h01"]);
    submit(&mut nowhere, "ping.service", PING, UnitState::Launched);
    assert_shown(nowhere, shown("inactive", None, None), "nowhere").await;

    let on_first = Some(MACHINES[0]);
    assert_shown(placed(), shown("inactive", on_first, None), "not reported").await;
    for (state, is_ordered, current, hash) in [
        (ReportedState::Launched, true, "launched", hash.as_str()),
        (ReportedState::Loaded, true, "loaded", hash.as_str()),
        (ReportedState::Inactive, true, "inactive", hash.as_str()),
        // What runs there has other contents, or another placement.
        (ReportedState::Launched, false, "inactive", ""),
    ] {
        let mut site = placed();
        report(&mut site, "h01", &[("ping.service", state, is_ordered)]);
        assert_shown(site, shown(current, on_first, Some(hash)), &format!("{state:?} {is_ordered}")).await;
    }
}

/// A global unit is on each machine, and has no target.
#[tokio::test]
async fn states_are_listed_for_each_machine() {
    let mut site = TestSite::new(["h01", "h02"]);
    join(&mut site, 1);
    join(&mut site, 2);
    let global = format!("{OTHER}\n[X-Fleet]\nGlobal=true\n");
    submit(&mut site, "all.service", &global, UnitState::Launched);
    submit(&mut site, "one.service", OTHER, UnitState::Launched);
    place(&mut site, "all.service", &["h01", "h02"]);
    place(&mut site, "one.service", &["h02"]);
    report(&mut site, "h01", &[("all.service", ReportedState::Launched, true)]);
    let launched = |unit| (unit, ReportedState::Launched, true);
    report(&mut site, "h02", &[launched("all.service"), launched("one.service")]);
    let api = TestApi::new(site, &[]).await;
    let (one, two) = (MACHINES[0], MACHINES[1]);
    let all = [("all.service", one), ("all.service", two), ("one.service", two)];
    for (query, expected) in [
        (String::new(), all.to_vec()),
        ("?machineID=&unitName=".to_owned(), all.to_vec()),
        (format!("?machineID={one}"), all[..1].to_vec()),
        (format!("?machineID={two}"), all[1..].to_vec()),
        ("?unitName=all.service".to_owned(), all[..2].to_vec()),
        (format!("?unitName=one.service&machineID={one}"), vec![]),
        ("?unitName=none.service".to_owned(), vec![]),
    ] {
        let (status, body) = get(&api, Version::V1, &format!("/state{query}")).await;
        let listed = body["states"].as_array().unwrap().iter();
        let found: Vec<(&str, &str)> = listed
            .map(|state| (state["name"].as_str().unwrap(), state["machineID"].as_str().unwrap()))
            .collect();
        assert_eq!((status, found), (200, expected), "{query}");
    }
    let (_, unit) = get(&api, Version::V1, "/units/all.service").await;
    assert_eq!((&unit["currentState"], unit.get("machineID")), (&json!("launched"), None));
}

/// Clients look up the machine of each state in the list of machines.
#[tokio::test]
async fn states_are_those_of_listed_machines() {
    let mut site = TestSite::new(["h01", "h02"]);
    join(&mut site, 1);
    join(&mut site, 2);
    submit(&mut site, "all.service", &format!("{OTHER}[X-Fleet]\nGlobal=true\n"), UnitState::Launched);
    place(&mut site, "all.service", &["h01", "h02"]);
    for host in ["h01", "h02"] {
        report(&mut site, host, &[("all.service", ReportedState::Launched, true)]);
    }
    let machines_of = async |site: &TestSite| {
        let api = TestApi::new(site.clone(), &[]).await;
        let of = |list: Value, field: &str, id: &str| -> Vec<String> {
            let entities = list[field].as_array().unwrap().iter();
            entities.map(|entity| entity[id].as_str().unwrap().to_owned()).collect()
        };
        let states = of(get(&api, Version::V1, "/state").await.1, "states", "machineID");
        let machines = of(get(&api, Version::V1, "/machines").await.1, "machines", "id");
        let one = get(&api, Version::V1, "/state/all.service").await;
        (states, machines, one.1["machineID"].clone())
    };
    let (one, two) = (MACHINES[0].to_owned(), MACHINES[1].to_owned());
    let (states, machines, first) = machines_of(&site).await;
    assert_eq!(
        (states, machines, first),
        (vec![one.clone(), two.clone()], vec![two.clone(), one.clone()], json!(one))
    );
    // It leaves the first machine. A withdrawn host is no machine while its units stop.
    let mut leaving = site.clone();
    let (unit, hosts) = (UnitName::new("all.service").unwrap(), vec![host("h01")]);
    apply(&mut leaving, UnitFact::Taken { unit, hosts, why: TakenAway::NotWanted });
    assert_eq!(machines_of(&leaving).await.2, json!(two));
    for number in [1, 2] {
        let (host, actor, reason) = (host(&format!("h0{number}")), "eve".to_owned(), "stolen".to_owned());
        let withdrawn = EnrolmentFact::HostWithdrawn { host, actor, reason, forgotten: false };
        site.state.apply(site.now, &withdrawn.into()).unwrap();
        let left: Vec<String> = if number == 1 { vec![two.clone()] } else { Vec::new() };
        let (states, machines, _) = machines_of(&site).await;
        assert_eq!((states, machines), (left.clone(), left));
    }
    assert_eq!(site.state.units.units.values().next().unwrap().on.len(), 2);
}

/// The least of its machines' states is that of a global unit, and one that says nothing of it counts.
#[tokio::test]
async fn global_units_are_as_far_as_the_last_machine() {
    let mut site = TestSite::new(["h01", "h02"]);
    join(&mut site, 1);
    join(&mut site, 2);
    submit(&mut site, "all.service", &format!("{OTHER}[X-Fleet]\nGlobal=true\n"), UnitState::Launched);
    place(&mut site, "all.service", &["h01", "h02"]);
    report(&mut site, "h01", &[("all.service", ReportedState::Launched, true)]);
    for (second, expected) in [
        (vec![], "inactive"),
        (vec![("all.service", ReportedState::Loaded, true)], "loaded"),
        (vec![("all.service", ReportedState::Launched, true)], "launched"),
    ] {
        report(&mut site, "h02", &second);
        let api = TestApi::new(site.clone(), &[]).await;
        let (_, unit) = get(&api, Version::V1, "/units/all.service").await;
        assert_eq!(unit["currentState"], expected, "{second:?}");
        // It belongs on both.
        assert_eq!(get(&api, Version::V1, "/state/all.service").await.1["machineID"], MACHINES[0]);
    }
}

/// A unit that was destroyed is no unit, and is shown where it still runs.
#[tokio::test]
async fn destroyed_units_have_states_until_they_stop() {
    let mut site = placed();
    report(&mut site, "h01", &[("ping.service", ReportedState::Launched, true)]);
    let api = TestApi::new(site, &[]).await;
    let (status, _, _) = ask(&api, Version::V1Alpha, "DELETE /units/ping.service", (&[], b"")).await;
    assert_eq!(status, 204);
    assert_eq!(get(&api, Version::V1Alpha, "/units").await, (200, json!({"data": {}})));
    let gone = (404, fleet_error(404, "unit does not exist"));
    assert_eq!(get(&api, Version::V1, "/units/ping.service").await, gone);
    let (_, list) = get(&api, Version::V1, "/state").await;
    let state = &list["states"][0];
    assert_eq!((&state["name"], &state["hash"]), (&json!("ping.service"), &json!("")), "{list}");
}

#[tokio::test]
async fn machines_are_listed_by_id() {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    let empty = TestApi::new(site.clone(), &[]).await;
    assert_eq!(get(&empty, Version::V1Alpha, "/machines").await, (200, json!({"data": {}})));
    assert_eq!(get(&empty, Version::V1, "/machines").await, (200, json!({"machines": []})));
    for number in 1..=3 {
        join(&mut site, number);
    }
    // Units of a lost machine go elsewhere: it is none for clients.
    apply(&mut site, UnitFact::MachineLost { host: host("h03") });
    let api = TestApi::new(site, &[]).await;
    let machine = |number: usize| {
        let (id, ip) = (MACHINES[number - 1], format!("192.0.2.{number}"));
        json!({"id": id, "primaryIP": ip, "metadata": {"rack": number.to_string()}})
    };
    let machines = json!([machine(2), machine(1)]);
    let expected = json!({"data": {"items": machines}});
    assert_eq!(get(&api, Version::V1Alpha, "/machines").await, (200, expected));
    assert_eq!(get(&api, Version::V1, "/machines").await, (200, json!({ "machines": machines })));
}

#[tokio::test]
async fn lists_have_pages() {
    let mut site = TestSite::new(["h01"]);
    for number in 0..101 {
        submit(&mut site, &format!("u{number:03}.service"), OTHER, UnitState::Inactive);
    }
    let api = TestApi::new(site, &[]).await;
    for version in Version::ALL {
        let items = |body: &Value| {
            let (body, field) = match version {
                Version::V1Alpha => (body["data"].clone(), "items"),
                Version::V1 => (body.clone(), "units"),
            };
            let names = body[field].as_array().into_iter().flatten();
            let names: Vec<String> = names.map(|unit| unit["name"].as_str().unwrap().to_owned()).collect();
            (names, body.get("nextPageToken").cloned())
        };
        let (_, first) = get(&api, version, "/units").await;
        let (names, next) = items(&first);
        assert_eq!((names.len(), next), (100, Some(json!("ZAACAA=="))));
        assert_eq!((names[0].as_str(), names[99].as_str()), ("u000.service", "u099.service"));
        for (token, expected) in [("ZAACAA==", vec!["u100.service".to_owned()]), ("ZAADAA%3D%3D", vec![])] {
            let (status, body) = get(&api, version, &format!("/units?nextPageToken={token}")).await;
            assert_eq!((status, items(&body)), (200, (expected, None)), "{token}");
        }
        for list in ["/units", "/machines"] {
            for (query, why) in [
                ("nextPageToken=8fefec2c", "it is not a token that this API has given"),
                ("nextPageToken=ZQACAA==", "it is for pages of 101, and pages here have 100"),
                ("nextPageToken=", "it is empty"),
                ("nextPageToken=ZAACAA==&nextPageToken=ZAACAA==", "there must be one at most"),
            ] {
                let message = format!("invalid value of nextPageToken query parameter: {why}");
                let expected = (400, fleet_error(400, &message));
                assert_eq!(get(&api, version, &format!("{list}?{query}")).await, expected, "{query}");
            }
        }
    }
}

#[tokio::test]
async fn states_have_pages_and_filters_at_once() {
    let mut site = TestSite::new(["h01", "h02"]);
    join(&mut site, 1);
    join(&mut site, 2);
    let names: Vec<String> = (0..101).map(|number| format!("u{number:03}.service")).collect();
    for name in &names {
        submit(&mut site, name, OTHER, UnitState::Launched);
        place(&mut site, name, &["h01"]);
    }
    submit(&mut site, "t.service", OTHER, UnitState::Launched);
    place(&mut site, "t.service", &["h02"]);
    let reports: Vec<_> = names.iter().map(|name| (name.as_str(), ReportedState::Launched, true)).collect();
    report(&mut site, "h01", &reports);
    report(&mut site, "h02", &[("t.service", ReportedState::Launched, true)]);
    let api = TestApi::new(site, &[]).await;
    let first = format!("machineID={}", MACHINES[0]);
    for (query, names, next) in [
        // t.service is before u000.service.
        (String::new(), Some(("t.service", "u098.service")), Some("ZAACAA==")),
        ("nextPageToken=ZAACAA==".to_owned(), Some(("u099.service", "u100.service")), None),
        (first.clone(), Some(("u000.service", "u099.service")), Some("ZAACAA==")),
        (format!("{first}&nextPageToken=ZAACAA=="), Some(("u100.service", "u100.service")), None),
        (format!("nextPageToken=ZAADAA==&{first}"), None, None),
        ("unitName=t.service&nextPageToken=ZAACAA==".to_owned(), None, None),
    ] {
        let (status, body) = get(&api, Version::V1, &format!("/state?{query}")).await;
        let listed = body["states"].as_array().unwrap();
        let name = |state: &Value| state["name"].as_str().unwrap().to_owned();
        let ends = listed.first().map(name).zip(listed.last().map(name));
        let names = names.map(|(first, last)| (first.to_owned(), last.to_owned()));
        assert_eq!((status, ends), (200, names), "{query}");
        assert_eq!(body.get("nextPageToken"), next.map(|next| json!(next)).as_ref(), "{query}");
    }
    let refused = get(&api, Version::V1, &format!("/state?{first}&nextPageToken=ZQACAA==")).await;
    assert_eq!(refused.0, 400);
}

/// Two at most are rendered at once, off the threads that drive the run, however few entities a page has.
#[tokio::test]
async fn pages_wait_for_a_permit() {
    let (api, _calls) = TestApi::silent(Readiness::Ready).await;
    let renders = Arc::new(Semaphore::new(0));
    let state = rendering_with(&api, &renders);
    for (version, path) in [
        (Version::V1Alpha, "/units"),
        (Version::V1Alpha, "/machines"),
        (Version::V1, "/units"),
        (Version::V1, "/machines"),
        (Version::V1, "/state"),
    ] {
        let caller = Caller { actor: "eve".to_owned(), rights: Rights::Role(Role::Viewer) };
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        request.extensions_mut().insert(Identity(Ok(caller)));
        let answer = crate::fleet::router(version, state.clone()).oneshot(request);
        let mut answer = std::pin::pin!(answer);
        assert!(futures::poll!(&mut answer).is_pending(), "{path}");
        renders.add_permits(1);
        assert_eq!(answer.await.unwrap().status(), 200, "{path}");
        assert_eq!(renders.forget_permits(1), 1, "{path}");
    }
}

/// Bodies of reads are not read, and neither are names that no unit has.
#[tokio::test]
async fn names_that_no_unit_has_are_unknown() {
    let api = TestApi::new(placed(), &[]).await;
    for name in ["b.service", "a", "..", "%2E%2E", "%FF.service", "a%2Fb.service", "a+b.service", "%20"] {
        let unit = (404, fleet_error(404, "unit does not exist"));
        for version in Version::ALL {
            assert_eq!(get(&api, version, &format!("/units/{name}")).await, unit, "{name}");
        }
        let state = (404, fleet_error(404, "unit state does not exist"));
        assert_eq!(get(&api, Version::V1, &format!("/state/{name}")).await, state, "{name}");
    }
    let large = vec![b' '; Dialect::Fleet.body_bytes_max() + 1];
    let (status, _, _) = ask(&api, Version::V1, "GET /units", (&["text/plain"], &large)).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn documents_are_served() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    for version in Version::ALL {
        assert_eq!(get(&api, version, "/discovery").await, (200, discovery::document(version)));
        let (status, _, body) = ask(&api, version, "HEAD /discovery", (&[], b"")).await;
        assert_eq!((status, body.as_str()), (200, ""));
    }
}
