//! Routes that may be sent to another site: the parameter `site`, and the errors if that site does not answer.

use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Required, ResponseBuilder};

use crate::sites::{PARAMETER, takes_site};

const NO_SUCH_SITE: &str = "no orchestrator serves `site`";
const BAD_ANSWER: &str = "the answer of `site` is too large for the bus, or cannot be read";

/// Adds the parameter and the errors to `operation`, if it may be sent to another site.
pub(super) fn add(path: &str, operation: &mut Operation) {
    if !takes_site(path) {
        return;
    }
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]+$"));
    let parameter = ParameterBuilder::new()
        .name(PARAMETER)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some("The name of the site to answer the request; the default is this site."))
        .schema(Some(name));
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
    let responses = &mut operation.responses.responses;
    let bad_answer = ResponseBuilder::new().description(BAD_ANSWER).build();
    responses.insert("502".to_owned(), RefOr::T(bad_answer));
    let empty = || RefOr::T(ResponseBuilder::new().build());
    if let RefOr::T(response) = responses.entry("404".to_owned()).or_insert_with(empty) {
        let other = std::mem::take(&mut response.description);
        let or = if other.is_empty() { "" } else { ", or " };
        response.description = format!("{other}{or}{NO_SUCH_SITE}");
    }
}
