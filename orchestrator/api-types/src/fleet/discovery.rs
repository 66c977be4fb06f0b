//! The discovery documents, from which Google's client libraries build their calls. Methods and paths are those of the routes; resources,
//! methods and schemas have the names that fleet gave them, because clients call them by these.

use serde_json::{Map, Value, json};

use crate::fleet::routes::{FleetRoute, Operation};
use crate::fleet::version::Version;

/// In place of the server in `rootUrl`: fleet's clients put in the one that they have been given.
const ENDPOINT: &str = "$ENDPOINT";

/// What the document says of an operation besides its route.
struct Described {
    resource: &'static str,
    method: &'static str,
    id: &'static str,
    text: &'static str,
    query: &'static [&'static str],
    request: Option<&'static str>,
    response: Option<&'static str>,
}

/// The discovery document of a dialect.
pub fn document(version: Version) -> Value {
    let path = format!("{}/", version.prefix());
    let below_root = path.trim_start_matches('/');
    json!({
        "kind": "discovery#restDescription",
        "discoveryVersion": "v1",
        "id": format!("fleet:{}", version.as_str()),
        "name": "fleet",
        "version": version.as_str(),
        "title": "Units and machines",
        "description": "Manages systemd units on the machines of a site, in a dialect of CoreOS fleet.",
        "protocol": "rest",
        "rootUrl": format!("{ENDPOINT}/"),
        "servicePath": below_root,
        "baseUrl": format!("{ENDPOINT}{path}"),
        "basePath": path,
        "batchPath": "batch",
        "parameters": {},
        "auth": {},
        "schemas": schemas(version),
        "resources": resources(version),
    })
}

fn resources(version: Version) -> Value {
    let mut resources = Map::new();
    for route in version.routes() {
        let Some(described) = described(version, route.operation) else { continue };
        let resource = resources.entry(described.resource).or_insert_with(|| json!({"methods": {}}));
        resource["methods"][described.method] = method(route, &described);
    }
    Value::Object(resources)
}

/// A method. `parameterOrder` has the required parameters, which are those of the path.
fn method(route: &FleetRoute, described: &Described) -> Value {
    let names: Vec<&str> =
        route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
    let mut parameters = Map::new();
    for name in &names {
        let parameter = json!({"type": "string", "location": "path", "required": true});
        parameters.insert((*name).to_owned(), parameter);
    }
    for name in described.query {
        parameters.insert((*name).to_owned(), json!({"type": "string", "location": "query"}));
    }
    let mut method = json!({
        "id": described.id,
        "description": described.text,
        "httpMethod": route.method.as_str(),
        "path": route.path.trim_start_matches('/'),
        "parameters": parameters,
        "parameterOrder": names,
    });
    for (key, schema) in [("request", described.request), ("response", described.response)] {
        if let Some(schema) = schema {
            method[key] = reference(schema);
        }
    }
    method
}

/// What the document of `version` says of an operation. Reading the document is not in it.
fn described(version: Version, operation: Operation) -> Option<Described> {
    let list = &["nextPageToken"];
    let (request_of_put, request_of_delete) = match version {
        Version::V1Alpha => ("DesiredUnitState", Some("DeletableUnit")),
        Version::V1 => ("Unit", None),
    };
    let units = |method, id, text| Described {
        resource: "Units",
        method,
        id,
        text,
        query: &[],
        request: None,
        response: None,
    };
    let states = |method, id, text, query, response| Described {
        resource: "UnitState",
        method,
        id,
        text,
        query,
        request: None,
        response: Some(response),
    };
    Some(match operation {
        Operation::Discover => return None,
        Operation::ListMachines => Described {
            resource: "Machines",
            method: "List",
            id: "fleet.Machine.List",
            text: "Lists the machines.",
            query: list,
            request: None,
            response: Some("MachinePage"),
        },
        Operation::ListUnits => Described {
            query: list,
            response: Some("UnitPage"),
            ..units("List", "fleet.Unit.List", "Lists the units.")
        },
        Operation::GetUnit => {
            Described { response: Some("Unit"), ..units("Get", "fleet.Unit.Get", "Shows a unit.") }
        }
        Operation::PutUnit => Described {
            request: Some(request_of_put),
            ..units("Set", "fleet.Unit.Set", "Creates a unit, or changes the state that it is to have.")
        },
        Operation::DestroyUnit => Described {
            request: request_of_delete,
            ..units("Delete", "fleet.Unit.Delete", "Destroys a unit.")
        },
        Operation::ListStates => states(
            "List",
            "fleet.UnitState.List",
            "Lists what systemd says of units on machines.",
            &["nextPageToken", "unitName", "machineID"],
            "UnitStatePage",
        ),
        Operation::GetState => {
            states("Get", "fleet.UnitState.Get", "Shows what systemd says of a unit.", &[], "UnitState")
        }
    })
}

fn schemas(version: Version) -> Value {
    let machine = [("id", text()), ("primaryIP", text()), ("metadata", texts_by_name())];
    let machine = named("Machine", machine);
    match version {
        Version::V1Alpha => schemas_of_alpha(machine),
        Version::V1 => schemas_of_v1(machine),
    }
}

fn schemas_of_alpha(machine: (&str, Value)) -> Value {
    let contents = || json!({"type": "string", "format": "byte"});
    let page =
        |entity: &str| object([("data", object([("items", list(entity)), ("nextPageToken", text())]))]);
    let put = [("name", text()), ("desiredState", state()), ("fileContents", contents())];
    let delete = [("name", text()), ("fileContents", contents())];
    object_of([
        machine,
        named(
            "SystemdState",
            ["loadState", "activeState", "subState", "machineID"].map(|name| (name, text())),
        ),
        named(
            "UnitFields",
            [
                ("name", text()),
                ("fileContents", contents()),
                ("fileHash", text()),
                ("desiredState", state()),
                ("currentState", state()),
                ("targetMachineID", text()),
                ("systemd", reference("SystemdState")),
            ],
        ),
        named("Unit", [("data", reference("UnitFields"))]),
        named("DesiredUnitState", [("data", object(put))]),
        named("DeletableUnit", [("data", object(delete))]),
        with_id("UnitPage", page("UnitFields")),
        with_id("MachinePage", page("Machine")),
    ])
}

fn schemas_of_v1(machine: (&str, Value)) -> Value {
    let page = |field, entity: &str| [(field, list(entity)), ("nextPageToken", text())];
    object_of([
        machine,
        named("UnitOption", ["section", "name", "value"].map(|name| (name, text()))),
        named(
            "Unit",
            [
                ("name", text()),
                ("options", list("UnitOption")),
                ("desiredState", state()),
                ("currentState", state()),
                ("machineID", text()),
            ],
        ),
        named(
            "UnitState",
            ["name", "hash", "machineID", "systemdLoadState", "systemdActiveState", "systemdSubState"]
                .map(|name| (name, text())),
        ),
        named("UnitPage", page("units", "Unit")),
        named("MachinePage", page("machines", "Machine")),
        named("UnitStatePage", page("states", "UnitState")),
    ])
}

fn text() -> Value {
    json!({"type": "string"})
}

fn state() -> Value {
    json!({"type": "string", "enum": ["inactive", "loaded", "launched"]})
}

fn texts_by_name() -> Value {
    json!({"type": "object", "additionalProperties": text()})
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": schema })
}

fn list(entity: &str) -> Value {
    json!({"type": "array", "items": reference(entity)})
}

fn object<const COUNT: usize>(properties: [(&str, Value); COUNT]) -> Value {
    json!({"type": "object", "properties": object_of(properties)})
}

fn object_of<const COUNT: usize>(members: [(&str, Value); COUNT]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// An object schema under its name.
fn named<'a, const COUNT: usize>(id: &'a str, properties: [(&str, Value); COUNT]) -> (&'a str, Value) {
    with_id(id, object(properties))
}

fn with_id(id: &str, mut schema: Value) -> (&str, Value) {
    schema["id"] = json!(id);
    (id, schema)
}

#[cfg(test)]
mod tests;
