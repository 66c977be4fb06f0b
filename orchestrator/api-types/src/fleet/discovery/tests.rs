//! The documents agree with the routes and with the bodies.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_scheduler::{MachineId, UnitFile, UnitName, UnitState};
use serde::Serialize;

use super::*;
use crate::fleet::machine::MachineBody;
use crate::fleet::shown::{ShownMachine, ShownUnit, Systemd};
use crate::fleet::{v1, v1_alpha};

/// All methods of a document: the id, the HTTP method and the path.
fn methods(document: &Value) -> BTreeSet<[String; 3]> {
    let resources = document["resources"].as_object().unwrap().values();
    let methods = resources.flat_map(|resource| resource["methods"].as_object().unwrap().values());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    methods.map(|method| [text(&method["id"]), text(&method["httpMethod"]), text(&method["path"])]).collect()
}

#[test]
fn documents_have_the_routes() {
    let alpha = [
        ["fleet.Machine.List", "GET", "machines"],
        ["fleet.Unit.Delete", "DELETE", "units/{name}"],
        ["fleet.Unit.Get", "GET", "units/{name}"],
        ["fleet.Unit.List", "GET", "units"],
        ["fleet.Unit.Set", "PUT", "units/{name}"],
    ];
    let v1 = [
        ["fleet.Machine.List", "GET", "machines"],
        ["fleet.Unit.Delete", "DELETE", "units/{unitName}"],
        ["fleet.Unit.Get", "GET", "units/{unitName}"],
        ["fleet.Unit.List", "GET", "units"],
        ["fleet.Unit.Set", "PUT", "units/{unitName}"],
        ["fleet.UnitState.Get", "GET", "state/{unitName}"],
        ["fleet.UnitState.List", "GET", "state"],
    ];
    for (version, root, expected) in
        [(Version::V1Alpha, "v1-alpha/", &alpha[..]), (Version::V1, "fleet/v1/", &v1[..])]
    {
        let document = document(version);
        let expected: BTreeSet<[String; 3]> =
            expected.iter().map(|method| method.map(ToOwned::to_owned)).collect();
        assert_eq!(methods(&document), expected);
        assert_eq!(document["rootUrl"], "$ENDPOINT/");
        assert_eq!(document["servicePath"], root);
        assert_eq!(document["baseUrl"], format!("$ENDPOINT/{root}"));
    }
}

#[test]
fn parameters_have_a_place() {
    let document = document(Version::V1);
    let method = &document["resources"]["Units"]["methods"]["Set"];
    let in_path = json!({"type": "string", "location": "path", "required": true});
    let in_query = json!({"type": "string", "location": "query"});
    assert_eq!(method["parameters"], json!({ "unitName": in_path }));
    assert_eq!(method["parameterOrder"], json!(["unitName"]));
    assert_eq!(method["request"], json!({"$ref": "Unit"}));
    assert_eq!(method.get("response"), None);
    let method = &document["resources"]["UnitState"]["methods"]["List"];
    let parameters = json!({"nextPageToken": in_query, "unitName": in_query, "machineID": in_query});
    assert_eq!(method["parameters"], parameters);
}

/// Every `$ref` below `value`.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| match value.as_str() {
                Some(schema) if key == "$ref" => vec![schema.to_owned()],
                Some(_) | None => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![],
    }
}

#[test]
fn references_lead_to_schemas() {
    for version in Version::ALL {
        let document = document(version);
        let schemas = document["schemas"].as_object().unwrap();
        for (id, schema) in schemas {
            assert_eq!(schema["id"], *id);
        }
        let used: BTreeSet<String> = references(&document).into_iter().collect();
        assert!(used.iter().all(|schema| schemas.contains_key(schema)), "{used:?}");
        assert!(schemas.keys().all(|schema| used.contains(schema)), "{used:?}");
    }
}

fn json_of(body: &impl Serialize) -> Value {
    serde_json::to_value(body).unwrap()
}

/// The names of the members of an object.
fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn schemas_have_the_fields_of_bodies() {
    let machine = MachineId::new("933fbdff1bdc4be0a7b64a9b58c3189d").unwrap();
    let name = UnitName::new("a.service").unwrap();
    let file = UnitFile::parse("[Service]\nExecStart=/bin/true\n").unwrap();
    let systemd = Systemd { load: "", active: "", sub: "", machine: &machine, hash: None };
    let unit = ShownUnit {
        name: &name,
        file: &file,
        desired: UnitState::Loaded,
        current: UnitState::Loaded,
        target: Some(&machine),
        systemd: Some(systemd.clone()),
    };
    let metadata = BTreeMap::new();
    let machine = MachineBody::new(ShownMachine { id: &machine, primary_ip: "", metadata: &metadata });
    let alpha = v1_alpha::UnitBody::new(&unit);
    for (version, schema, body) in [
        (Version::V1Alpha, "UnitFields", json_of(&alpha)),
        (Version::V1Alpha, "SystemdState", json_of(&alpha.systemd)),
        (Version::V1Alpha, "Machine", json_of(&machine)),
        (Version::V1, "Machine", json_of(&machine)),
        (Version::V1, "Unit", json_of(&v1::UnitBody::new(&unit))),
        (Version::V1, "UnitOption", json_of(&v1::UnitBody::new(&unit).options[0])),
        (Version::V1, "UnitState", json_of(&v1::StateBody::new(&name, &systemd))),
    ] {
        let document = document(version);
        assert_eq!(names(&document["schemas"][schema]["properties"]), names(&body), "{schema}");
    }
}
