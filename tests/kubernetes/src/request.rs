//! What a request asks for: its path, its query and its body.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::Query;
use axum::http::{Method, Uri, header, request};
use serde_json::Value;

use crate::failure::Failure;
use crate::resource::{ALL, Resource};
use crate::selector::Selector;

/// What a path leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Path {
    /// The server's version, or whether it lives. Everybody may ask.
    Public,
    /// The groups and resources that there are.
    Discovery,
    /// Objects.
    Objects(Target),
}

/// Objects, one object, or a subresource of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    /// The resource.
    pub(crate) resource: Resource,
    /// The namespace; none for all of them, and for resources without.
    pub(crate) namespace: Option<String>,
    /// The name; none for all of them.
    pub(crate) name: Option<String>,
    /// The subresource.
    pub(crate) subresource: Option<String>,
}

/// Whether a path is of a group and version that there is.
pub(crate) fn is_known(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (group, version) = match segments[..] {
        ["api", version, ..] => ("", version),
        ["apis", group, version, ..] => (group, version),
        _ => return false,
    };
    ALL.iter().any(|known| (known.group, known.version) == (group, version))
}

/// Finds what a path leads to.
pub(crate) fn path(path: &str) -> Option<Path> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (group, version, rest) = match segments[..] {
        ["version" | "healthz" | "livez" | "readyz"] => return Some(Path::Public),
        ["api" | "apis"] => return Some(Path::Discovery),
        ["api", version, ref rest @ ..] => ("", version, rest),
        ["apis", group, version, ref rest @ ..] => (group, version, rest),
        _ => return None,
    };
    if rest.is_empty() {
        let is_known = ALL.iter().any(|known| (known.group, known.version) == (group, version));
        return is_known.then_some(Path::Discovery);
    }
    // `namespaces/NAME` is a namespace, `namespaces/NAME/pods` is what one contains.
    let within = match rest {
        ["namespaces", namespace, plural, rest @ ..] => Resource::find(group, version, plural)
            .filter(|resource| resource.is_namespaced)
            .map(|resource| (resource, Some((*namespace).to_owned()), rest)),
        _ => None,
    };
    let (resource, namespace, rest) = match (within, rest) {
        (Some(within), _) => within,
        (None, [plural, rest @ ..]) => (Resource::find(group, version, plural)?, None, rest),
        (None, []) => return None,
    };
    let text = |text: &str| Some(text.to_owned());
    let (name, subresource) = match *rest {
        [] => (None, None),
        [name] => (text(name), None),
        [name, subresource] => (text(name), text(subresource)),
        _ => return None,
    };
    if name.is_some() && resource.is_namespaced != namespace.is_some() {
        return None;
    }
    Some(Path::Objects(Target { resource, namespace, name, subresource }))
}

/// A request about objects.
#[derive(Debug)]
pub(crate) struct Request {
    /// The verb, as RBAC names it.
    pub(crate) verb: &'static str,
    /// The objects.
    pub(crate) target: Target,
    /// The `content-type`, without parameters.
    pub(crate) content_type: String,
    query: BTreeMap<String, String>,
    body: Bytes,
}

impl Request {
    /// Reads a request whose path leads to `target`.
    pub(crate) fn read(parts: &request::Parts, target: Target, body: Bytes) -> Result<Self, Failure> {
        let query = query(&parts.uri)?;
        let is_watch = query.get("watch").is_some_and(|value| value == "true" || value == "1");
        let verb = match (&parts.method, target.name.is_some()) {
            (&Method::GET, true) => "get",
            (&Method::GET, false) if is_watch => "watch",
            (&Method::GET, false) => "list",
            (&Method::POST, has_name) if has_name == target.subresource.is_some() => "create",
            (&Method::PUT, true) => "update",
            (&Method::PATCH, true) => "patch",
            (&Method::DELETE, true) => "delete",
            _ => return Err(Failure::no_such_method()),
        };
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type =
            content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_owned();
        Ok(Self { verb, target, content_type, query, body })
    }

    /// A parameter of the query; empty if it is absent.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let text = self.parameter(name);
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = |_| Failure::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"));
        text.parse().map(Some).map_err(wrong)
    }

    /// Whether nothing is to be changed, as the query says, or the options of a deletion or an eviction.
    pub(crate) fn is_dry_run(&self) -> bool {
        let body = self.json().unwrap_or_default();
        let options = match self.verb {
            "delete" => &body,
            "create" => &body["deleteOptions"],
            _ => &Value::Null,
        };
        let in_body =
            options["dryRun"].as_array().is_some_and(|stages| stages.iter().any(|stage| stage == "All"));
        in_body || self.parameter("dryRun") == "All"
    }

    /// The selectors of the query.
    pub(crate) fn selector(&self) -> Result<Selector, Failure> {
        let (labels, fields) = (self.parameter("labelSelector"), self.parameter("fieldSelector"));
        Selector::parse(&self.target.resource, labels, fields)
    }

    /// The body; null if there is none.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::bad_request(format!("error decoding the request body: {error}")))
    }
}

fn query(uri: &Uri) -> Result<BTreeMap<String, String>, Failure> {
    let Query(query) = Query::try_from_uri(uri).map_err(|error| Failure::bad_request(error.body_text()))?;
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{NAMESPACES, NODES, PODS};

    fn target(resource: Resource, namespace: &str, name: &str, subresource: &str) -> Path {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (namespace, name, subresource) = (text(namespace), text(name), text(subresource));
        Path::Objects(Target { resource, namespace, name, subresource })
    }

    #[test]
    fn paths_lead_to_objects() {
        assert_eq!(path("/api/v1/nodes/a"), Some(target(NODES, "", "a", "")));
        assert_eq!(path("/api/v1/pods"), Some(target(PODS, "", "", "")));
        assert_eq!(path("/api/v1/namespaces/a/pods/b/eviction"), Some(target(PODS, "a", "b", "eviction")));
        assert_eq!(path("/api/v1/namespaces/a"), Some(target(NAMESPACES, "", "a", "")));
        assert_eq!(path("/api/v1/namespaces/a/status"), Some(target(NAMESPACES, "", "a", "status")));
        assert_eq!(path("/apis/policy/v1"), Some(Path::Discovery));
        for wrong in
            ["/", "/api/v1/pods/a", "/api/v1/namespaces/a/nodes/b", "/api/v2/nodes", "/apis/policy/v1/pods"]
        {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }
}
