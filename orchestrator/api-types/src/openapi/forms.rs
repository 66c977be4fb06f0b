//! YAML for bodies and answers below `/v1`, and the answer 406.

use utoipa::openapi::path::Operation;
use utoipa::openapi::{RefOr, ResponseBuilder};

use crate::route::{Declaration, JSON, Method};

const YAML: &str = "application/yaml";

/// Adds the answer to a read whose `Accept` names neither form.
pub(super) fn refuse(route: &Declaration, operation: &mut Operation) {
    if route.method == Method::Get && route.path.starts_with("/v1/") {
        let refused = ResponseBuilder::new().description("Accept names neither JSON nor YAML").build();
        operation.responses.responses.insert("406".to_owned(), RefOr::T(refused));
    }
}

/// Adds YAML wherever `operation` has JSON.
pub(super) fn add(operation: &mut Operation) {
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && let Some(json) = body.content.get(JSON).cloned()
    {
        body.content.entry(YAML.to_owned()).or_insert(json);
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response
            && let Some(json) = response.content.get(JSON).cloned()
        {
            response.content.entry(YAML.to_owned()).or_insert(json);
        }
    }
}
