//! The `OpenAPI` document of the API, in JSON and YAML.

use std::sync::OnceLock;

use os_upgrade_api_types::openapi;
use os_upgrade_api_types::route::Declaration;

use crate::http::form;

/// The document. It is built once, because callers are not authenticated.
#[derive(Debug)]
pub(crate) struct Description {
    json: String,
    yaml: OnceLock<Result<String, String>>,
}

impl Description {
    /// Describes `routes`.
    pub(crate) fn of<'a>(routes: impl Iterator<Item = &'a Declaration>) -> Self {
        let json = serde_json::to_string_pretty(&openapi::document(routes));
        let json = json.expect("a document has string keys and no fallible part");
        Self { json, yaml: OnceLock::new() }
    }

    /// The document in JSON.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    /// The document in YAML, converted at the first call.
    ///
    /// # Errors
    /// The conversion failed.
    pub(crate) fn yaml(&self) -> Result<&str, String> {
        let yaml = self.yaml.get_or_init(|| form::to_yaml(self.json.as_bytes()));
        yaml.as_deref().map_err(Clone::clone)
    }
}
