//! Units and machines: where units run, why one does not, what a change would do, and what needs a person.

use chrono::{TimeDelta, Utc};
use os_upgrade_kernel::fact::UnitFact;
use os_upgrade_kernel::unit::TakenAway;
use os_upgrade_kernel::{AgentSeen, Configures, Fact, SeenHost};
use os_upgrade_protocol::{
    ApplicationName, Applied, AppliedItem, HostKey, ItemKind, ReportedState, UnitReport,
};
use os_upgrade_scheduler::{MachineId, UnitFile, UnitName, UnitState};

use super::*;

const FILE: &str = "[Service]\nExecStart=/bin/true\n\n[X-Fleet]\nMachineMetadata=rack=r1\nMachineIdd=x\n";

fn unit(name: &str) -> UnitName {
    UnitName::new(name).unwrap()
}

/// The machine id of the host `h<number>`.
fn machine(number: usize) -> MachineId {
    MachineId::new(&format!("{number:032x}")).unwrap()
}

fn apply(site: &mut TestSite, fact: impl Into<Fact>) {
    site.state.apply(site.now, &fact.into()).unwrap();
}

/// What is seen of the host `name`.
fn seen<'a>(site: &'a mut TestSite, name: &str) -> &'a mut SeenHost {
    site.view.hosts.get_mut(&host(name)).unwrap()
}

/// The host `h<number>` announces the machine id of `id`, and is in the rack of its number.
fn announce(site: &mut TestSite, number: usize, id: usize) {
    let seen = seen(site, &format!("h0{number}"));
    seen.runs_units = Some(ApplicationName::new("os-upgrade-test").unwrap());
    seen.machine_id = Some(machine(id).to_string());
    seen.labels.insert("rack".to_owned(), format!("r{number}"));
}

/// The host `h<number>` is the machine of its number.
fn join(site: &mut TestSite, number: usize) {
    announce(site, number, number);
    let joined = UnitFact::MachineJoined {
        host: host(&format!("h0{number}")),
        machine: machine(number),
        metadata: [("rack".to_owned(), format!("r{number}"))].into(),
        address: "192.0.2.1".to_owned(),
        actor: None,
    };
    apply(site, joined);
}

fn submit(site: &mut TestSite, name: &str, contents: &str) {
    let (name, contents, actor) = (unit(name), contents.to_owned(), "eve".to_owned());
    apply(site, UnitFact::Submitted { name, contents, desired: UnitState::Launched, actor });
}

/// A site whose machines h01 and h02 are in racks of their own; h01 has `a.service`, and says `active` of it.
fn site(active: &str) -> TestSite {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    join(&mut site, 1);
    join(&mut site, 2);
    submit(&mut site, "a.service", FILE);
    apply(&mut site, UnitFact::Placed { unit: unit("a.service"), hosts: vec![host("h01")] });
    let revision = site.state.desired_revision(&host("h01"));
    let id = site.state.desired.hosts[&host("h01")].units[&unit("a.service")].id(revision.epoch);
    let (load, active, sub) = ("loaded".to_owned(), active.to_owned(), "running".to_owned());
    let item = AppliedItem {
        kind: ItemKind::Unit,
        name: "a.service".to_owned(),
        id: Some(id),
        error: None,
        unit: Some(UnitReport { state: ReportedState::Launched, load, active, sub }),
    };
    let applied =
        Applied { site: site.state.settings.site.clone(), revision, items: vec![item], refused: None };
    site.view.applied.insert(host("h01"), Arc::new(applied));
    site
}

/// `a.service` in the list of units.
fn listed(active: &str) -> Value {
    json!({
        "name": "a.service",
        "desired": "launched",
        "current": "launched",
        "on": [{
            "host": "h01", "machine": machine(1).to_string(), "state": "launched", "load": "loaded", "active": active,
            "sub": "running",
        }],
        "actor": "eve",
        "since": "2026-11-21T05:00:00Z",
    })
}

/// That h02 is in another rack.
fn misfit() -> Value {
    json!({
        "host": "h02", "machine": machine(2).to_string(), "kind": "metadata", "text": "the machine's rack is not r1",
    })
}

#[tokio::test]
async fn units_are_shown_where_they_run() {
    let api = TestApi::new(site("active"), &[]).await;
    let list = api.call("GET /v1/state/os-upgrade/units", "").await;
    assert_eq!(list, (200, json!({ "units": [listed("active")] })));
    let mut expected = listed("active");
    let hash = UnitFile::parse(FILE).unwrap().file_hash().to_string();
    expected["contents"] = json!(FILE);
    expected["hash"] = json!(hash);
    expected["not-on"] = json!([misfit()]);
    expected["ignored"] = json!([{ "line": 6, "name": "MachineIdd" }]);
    assert_eq!(api.call("GET /v1/state/os-upgrade/units/a.service", "").await, (200, expected));
    let unknown = api.call("GET /v1/state/os-upgrade/units/b.service", "").await;
    assert_eq!(unknown, (404, error("there is no unit b.service")));
    assert_eq!(api.call("GET /v1/state/os-upgrade/units/b", "").await.0, 400);
}

#[tokio::test]
async fn plans_say_what_would_follow_and_change_nothing() {
    let api = TestApi::new(site("active"), &[]).await;
    let plan = async |name: &str, body: Value| {
        api.call(&format!("POST /v1/state/os-upgrade/units/{name}/plan"), &body.to_string()).await
    };
    let placed = json!({
        "changes": [
            { "kind": "unit-submitted", "unit": "b.service" },
            { "kind": "unit-placed", "unit": "b.service", "hosts": ["h01"] },
        ],
        "not-on": [misfit()],
        "ignored": [{ "line": 6, "name": "MachineIdd" }],
    });
    let new = json!({ "contents": FILE, "desired": "launched" });
    assert_eq!(plan("b.service", new).await, (200, placed));
    let (status, taken) = plan("a.service", json!({ "desired": "inactive" })).await;
    let first = json!({
        "kind": "unit-taken", "unit": "a.service", "hosts": ["h01"], "why": "not-wanted", "text": "it is to be inactive",
    });
    let second = json!({ "kind": "unit-wanted", "unit": "a.service", "desired": "inactive" });
    assert_eq!((status, &taken["changes"]), (200, &json!([first, second])));
    for (name, body, status) in [
        ("b.service", json!({ "desired": "launched" }), 404),
        ("a.service", json!({ "contents": "[Service]\n", "desired": "launched" }), 409),
        ("a@.service", json!({ "contents": FILE, "desired": "launched" }), 400),
        ("b.service", json!({ "contents": "[Service\n" }), 400),
        ("b.service", json!({ "desired": "asleep" }), 400),
    ] {
        assert_eq!(plan(name, body.clone()).await.0, status, "{name}: {body}");
    }
    let list = api.call("GET /v1/state/os-upgrade/units", "").await;
    assert_eq!(list, (200, json!({ "units": [listed("active")] })));
}

/// A plan is refused as the change would be.
#[tokio::test]
async fn plans_of_full_sites_are_refused_like_changes() {
    let mut site = TestSite::new([]);
    for number in 0..4096 {
        submit(&mut site, &format!("u{number}.service"), "");
    }
    let api = TestApi::new(site, &[]).await;
    let plan = "POST /v1/state/os-upgrade/units/new.service/plan";
    assert_eq!(api.call(plan, &json!({ "contents": "" }).to_string()).await.0, 413);
    let body = json!({ "options": [{ "section": "Service", "name": "ExecStart", "value": "/bin/true" }] });
    assert_eq!(api.call("PUT /fleet/v1/units/new.service", &body.to_string()).await.0, 413);
}

#[tokio::test]
async fn the_history_says_who_did_what_with_units() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let options = json!([{ "section": "Service", "name": "ExecStart", "value": "/bin/true" }]);
    let body = json!({ "options": options }).to_string();
    assert_eq!(api.call("PUT /fleet/v1/units/a.service", &body).await.0, 201);
    assert_eq!(api.call("PUT /fleet/v1/units/a.service", r#"{"desiredState":"loaded"}"#).await.0, 204);
    assert_eq!(api.call("DELETE /fleet/v1/units/a.service", "").await.0, 204);
    let (status, history) = api.call("GET /v1/state/os-upgrade/units/history", "").await;
    // Their contents are not repeated.
    let submitted = json!({
        "type": "unit-submitted", "name": "a.service", "contents": "", "desired": "inactive", "actor": "api",
    });
    let expected = json!([
        { "type": "unit-destroyed", "name": "a.service", "actor": "api" },
        { "type": "unit-wanted", "name": "a.service", "state": "loaded", "actor": "api" },
        submitted,
    ]);
    let facts: Vec<&Value> = history["items"].as_array().unwrap().iter().map(|item| &item["fact"]).collect();
    assert_eq!((status, json!(facts)), (200, expected));
    let count = api.call("GET /v1/state/os-upgrade/units/history?count=true", "").await;
    assert_eq!(count, (200, json!({ "count": 3 })));
}

#[tokio::test]
async fn machines_say_why_they_get_no_unit() {
    let mut site = site("active");
    // A clone of the first one.
    announce(&mut site, 3, 1);
    apply(&mut site, UnitFact::MachineLost { host: host("h02") });
    let api = TestApi::new(site.clone(), &[]).await;
    let (status, list) = api.call("GET /v1/state/os-upgrade/machines", "").await;
    let since = "2026-11-21T05:00:00Z";
    let machine_of = |number: usize, state: &str, units: usize| {
        json!({
            "host": format!("h0{number}"), "id": machine(number).to_string(), "state": state, "since": since,
            "address": "192.0.2.1", "metadata": { "rack": format!("r{number}") }, "units": units,
        })
    };
    let mut second = machine_of(2, "lost", 0);
    second["lost-since"] = json!(since);
    second["text"] = json!("the machine is lost");
    assert_eq!((status, &list["machines"][0]), (200, &machine_of(1, "open", 1)));
    assert_eq!(list["machines"][1], second);
    let clone = &list["machines"][2];
    assert_eq!((&clone["host"], &clone["state"]), (&json!("h03"), &json!("taken")), "{list}");
    assert!(clone["text"].as_str().unwrap().starts_with("it announces the machine id of h01: "), "{clone}");

    announce(&mut site, 3, 3);
    announce(&mut site, 1, 9);
    let api = TestApi::new(site, &[]).await;
    let (_, list) = api.call("GET /v1/state/os-upgrade/machines", "").await;
    let [other, waiting] = [&list["machines"][0], &list["machines"][2]];
    assert_eq!((&other["state"], &other["closed"]), (&json!("closed"), &json!("other-id")), "{list}");
    assert_eq!(other["announced"]["id"], json!(machine(9).to_string()));
    assert_eq!(
        (&waiting["state"], &waiting["announced"]["id"]),
        (&json!("waiting"), &json!(machine(3).to_string()))
    );
}

#[tokio::test]
async fn the_state_names_units_and_machines_that_need_a_person() {
    let mut site = site("failed");
    announce(&mut site, 3, 1);
    // For so long a unit may be nowhere without a person's help.
    site.now = Utc::now() - TimeDelta::minutes(16);
    submit(&mut site, "b.service", "[X-Fleet]\nMachineMetadata=rack=r9\n");
    site.now = Utc::now();
    submit(&mut site, "aa.service", "[X-Fleet]\nMachineMetadata=rack=r9\n");
    apply(&mut site, UnitFact::MachineLost { host: host("h02") });
    let request = "GET /v1/state/os-upgrade?fields=units";
    let api = TestApi::new(site, &[]).await;
    let (status, found) = api.call(request, "").await;
    let units = &found["units"];
    let first = |part: &str| units[part]["first"].clone();
    let expected = [json!("a.service"), json!("h02"), json!("b.service")];
    assert_eq!((status, [first("failed"), first("lost"), first("unplaced")]), (200, expected), "{found}");
    let contested = json!([{ "id": machine(1).to_string(), "hosts": ["h01", "h03"] }]);
    assert_eq!(units["contested"], contested);
    let text = units["unplaced"]["text"].as_str().unwrap();
    assert_eq!((&units["unplaced"]["units"], text), (&json!(1), "h01: the machine's rack is not r9"));

    let running = TestApi::new(self::site("active"), &[]).await;
    assert_eq!(running.call(request, "").await, (200, json!({})));
}

/// Hosts may announce any id, so that not all of them are listed.
#[tokio::test]
async fn contested_machines_beyond_the_first_are_counted() {
    let names: Vec<String> = (1..=29).map(|number| format!("h{number:02}")).collect();
    let mut site = TestSite::new(names.iter().map(String::as_str));
    for (index, name) in names.iter().enumerate() {
        let seen = seen(&mut site, name);
        seen.runs_units = Some(ApplicationName::new("os-upgrade-test").unwrap());
        // Nine ids of two hosts each, and one of eleven.
        seen.machine_id = Some(machine(if index < 18 { index / 2 + 1 } else { 10 }).to_string());
    }
    let api = TestApi::new(site.clone(), &[]).await;
    let (_, found) = api.call("GET /v1/state/os-upgrade?fields=units", "").await;
    assert_eq!(found["units"]["contested"].as_array().unwrap().len(), 8);
    assert_eq!(found["units"]["more-contested"], json!(2));
    for name in &names[..18] {
        seen(&mut site, name).machine_id = None;
    }
    let api = TestApi::new(site, &[]).await;
    let (_, found) = api.call("GET /v1/state/os-upgrade?fields=units", "").await;
    let expected = json!([{ "id": machine(10).to_string(), "hosts": names[18..26], "more": 3 }]);
    assert_eq!((&found["units"]["contested"], found["units"].get("more-contested")), (&expected, None));
}

#[tokio::test]
async fn machines_say_what_was_not_approved() {
    let mut site = site("active");
    // Other labels, no id, and two applications that would report.
    seen(&mut site, "h01").labels.insert("rack".to_owned(), "r9".to_owned());
    announce(&mut site, 3, 3);
    seen(&mut site, "h03").machine_id = None;
    let api = TestApi::new(site.clone(), &[]).await;
    let (_, list) = api.call("GET /v1/state/os-upgrade/machines", "").await;
    let [other, no_id] = [&list["machines"][0], &list["machines"][2]];
    let text = "it announces other labels than the approved ones, which are its metadata until `os-upgrade hosts approve h01`";
    assert_eq!((&other["state"], &other["text"]), (&json!("open"), &json!(text)));
    assert_eq!(other["announced"]["metadata"], json!({ "rack": "r9" }));
    assert_eq!(no_id["state"], json!("no-id"));
    assert!(no_id["text"].as_str().unwrap().starts_with("it announces no valid machine id"), "{no_id}");

    announce(&mut site, 3, 3);
    let (application, key) = (ApplicationName::new("other").unwrap(), HostKey::new([7; 32]));
    seen(&mut site, "h03").configures = Some(Configures { application, key });
    let api = TestApi::new(site, &[]).await;
    let (_, list) = api.call("GET /v1/state/os-upgrade/machines", "").await;
    let two = &list["machines"][2];
    assert_eq!(two["state"], json!("two-reporters"));
    assert!(two["text"].as_str().unwrap().starts_with("one application of it runs units"), "{two}");
}

/// Whatever keeps the leader from hearing most machines says little about these.
#[tokio::test]
async fn machines_that_fall_silent_together_are_told() {
    let mut site = site("active");
    for name in ["h01", "h02"] {
        let silent_for = Duration::from_mins(1);
        site.view.agents.insert(host(name), AgentSeen { silent_for, is_heard: true });
    }
    let api = TestApi::new(site, &[]).await;
    let (_, found) = api.call("GET /v1/state/os-upgrade?fields=units", "").await;
    assert_eq!(found["units"], json!({ "mass-silence": { "silent": 2, "reachable": 2 } }));
    let (_, list) = api.call("GET /v1/state/os-upgrade/machines", "").await;
    assert_eq!(list["machines"][0]["silent-for"], json!("1m"));
    let samples = metrics::samples(&api, &Options::default(), &["os_upgrade_machines"]).await;
    let expected = [("heard", 0), ("lost", 0), ("quiet", 0), ("silent", 2)]
        .map(|(state, count)| format!(r#"os_upgrade_machines{{state="{state}"}} {count}"#));
    assert_eq!(samples, expected);
}

/// No alert is about them: hosts that are upgraded may be silent for long.
#[tokio::test]
async fn machines_within_their_grace_are_quiet() {
    let mut site = site("active");
    for (name, secs) in [("h01", 20), ("h02", 0)] {
        let silent_for = Duration::from_secs(secs);
        site.view.agents.insert(host(name), AgentSeen { silent_for, is_heard: true });
    }
    let api = TestApi::new(site, &[]).await;
    let samples = metrics::samples(&api, &Options::default(), &["os_upgrade_machines"]).await;
    let expected = [("heard", 1), ("lost", 0), ("quiet", 1), ("silent", 0)]
        .map(|(state, count)| format!(r#"os_upgrade_machines{{state="{state}"}} {count}"#));
    assert_eq!(samples, expected);
}

#[tokio::test]
async fn units_are_counted() {
    let mut site = site("failed");
    submit(&mut site, "b.service", "[X-Fleet]\nMachineMetadata=rack=r9\n");
    let api = TestApi::new(site.clone(), &[]).await;
    let samples = metrics::samples(&api, &Options::default(), &["os_upgrade_units"]).await;
    let some: Vec<_> = samples.iter().filter(|line| !line.ends_with(" 0")).map(String::as_str).collect();
    let expected = [
        "os_upgrade_units_failed 1",
        "os_upgrade_units_unplaced 1",
        r#"os_upgrade_units{state="launched",current="inactive"} 1"#,
        r#"os_upgrade_units{state="launched",current="launched"} 1"#,
    ];
    assert_eq!((samples.len(), some), (11, expected.to_vec()));

    // One that has to stop first is not unplaced yet.
    let why = TakenAway::NotWanted;
    apply(&mut site, UnitFact::Taken { unit: unit("a.service"), hosts: vec![host("h01")], why });
    let api = TestApi::new(site, &[]).await;
    let samples = metrics::samples(&api, &Options::default(), &["os_upgrade_units_unplaced"]).await;
    assert_eq!(samples, ["os_upgrade_units_unplaced 1"]);
}

/// A host becomes the machine that the operator was shown, and no other one.
#[tokio::test]
async fn machines_are_approved_as_they_were_shown() {
    let mut site = TestSite::new(["h01", "h02"]);
    announce(&mut site, 1, 1);
    let api = TestApi::new(site, &[]).await;
    let approve = async |id: MachineId| {
        let machine = json!({ "id": id.to_string(), "metadata": { "rack": "r1" } });
        let body = json!({ "hosts": ["h01"], "machines": { "h01": machine } });
        api.call("POST /v1/state/os-upgrade/approve-hosts", &body.to_string()).await.0
    };
    assert_eq!(approve(machine(2)).await, 409);
    assert_eq!(approve(machine(1)).await, 204);
    let (_, list) = api.call("GET /v1/state/os-upgrade/machines", "").await;
    assert_eq!(list["machines"][0]["id"], json!(machine(1).to_string()));
}
