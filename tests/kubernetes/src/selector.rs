//! Label and field selectors.

use serde_json::Value;

use crate::failure::Failure;
use crate::resource::{PODS, Resource};

/// One condition on a label.
#[derive(Debug, Clone, PartialEq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
}

impl Requirement {
    fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let is_in = |key: &str, values: &[String]| {
            label(key).is_some_and(|label| values.iter().any(|value| value == label))
        };
        match self {
            Self::In(key, values) => is_in(key, values),
            Self::NotIn(key, values) => !is_in(key, values),
            Self::Exists(key) => label(key).is_some(),
            Self::DoesNotExist(key) => label(key).is_none(),
        }
    }
}

/// A selector of labels, all of whose requirements must be met.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Labels(Vec<Requirement>);

impl Labels {
    /// Parses the text of a query, such as `app=web,tier in (a, b),!draft`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let mut requirements = Vec::new();
        for part in split_outside_parentheses(text) {
            requirements.push(requirement(part).ok_or_else(|| {
                Failure::bad_request(format!("unable to parse requirement: found '{part}'"))
            })?);
        }
        Ok(Self(requirements))
    }

    /// Reads the `LabelSelector` of an object. A missing one selects nothing, an empty one everything.
    pub(crate) fn of_object(selector: &Value) -> Option<Self> {
        let selector = selector.as_object()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let equal = selector.get("matchLabels").and_then(Value::as_object);
        let equal =
            equal.into_iter().flatten().map(|(key, value)| Requirement::In(key.clone(), vec![text(value)]));
        let listed = selector.get("matchExpressions").and_then(Value::as_array);
        let listed = listed.into_iter().flatten().map(|expression| {
            let key = text(&expression["key"]);
            let values = expression["values"].as_array().into_iter().flatten().map(text).collect();
            match expression["operator"].as_str().unwrap_or_default() {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::DoesNotExist(key),
                other => panic!("unknown operator of a selector: {other}"),
            }
        });
        Some(Self(equal.chain(listed).collect()))
    }

    /// Whether an object has such labels.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.matches(object))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

fn requirement(part: &str) -> Option<Requirement> {
    let is_key =
        |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let key = |text: &str| is_key(text.trim()).then(|| text.trim().to_owned());
    if let Some(rest) = part.strip_prefix('!') {
        return Some(Requirement::DoesNotExist(key(rest)?));
    }
    if let Some((left, right)) = part.split_once("!=") {
        return Some(Requirement::NotIn(key(left)?, vec![right.trim().to_owned()]));
    }
    if let Some((left, right)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(key(left)?, vec![right.trim().to_owned()]));
    }
    if let Some((left, right)) = part.split_once('(') {
        let values = right.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let (name, operator) = left.trim().split_once(char::is_whitespace)?;
        return match operator.trim() {
            "in" => Some(Requirement::In(key(name)?, values)),
            "notin" => Some(Requirement::NotIn(key(name)?, values)),
            _ => None,
        };
    }
    Some(Requirement::Exists(key(part)?))
}

/// A condition on a field: its path, the value, and whether it has to be equal.
type Field = (Vec<&'static str>, String, bool);

/// What a list or a watch asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: Labels,
    fields: Vec<Field>,
}

impl Selector {
    /// Parses `labelSelector` and `fieldSelector`.
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Failure> {
        let mut selector = Self { labels: Labels::parse(labels)?, fields: Vec::new() };
        for part in fields.split(',').filter(|part| !part.is_empty()) {
            let split = part.split_once("!=").map(|(left, right)| (left, right, false));
            let split = split.or_else(|| {
                part.split_once("==").or(part.split_once('=')).map(|(left, right)| (left, right, true))
            });
            let Some((name, value, is_equal)) = split else {
                return Err(Failure::bad_request(format!(
                    "invalid selector: '{fields}'; can't understand '{part}'"
                )));
            };
            let path = field(resource, name).ok_or_else(|| {
                let what = format!("/{}, Resource={}", resource.version, resource.plural);
                Failure::bad_request(format!(
                    "Unable to find {what:?} that match label selector {labels:?}, field selector {fields:?}: \
                     field label not supported: {name}"
                ))
            })?;
            selector.fields.push((path, value.to_owned(), is_equal));
        }
        Ok(selector)
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let field = |(path, value, is_equal): &Field| {
            let found = path.iter().fold(object, |within, step| &within[*step]);
            (found.as_str().unwrap_or_default() == value) == *is_equal
        };
        self.labels.matches(object) && self.fields.iter().all(field)
    }
}

fn field(resource: &Resource, name: &str) -> Option<Vec<&'static str>> {
    match name {
        "metadata.name" => Some(vec!["metadata", "name"]),
        "metadata.namespace" if resource.is_namespaced => Some(vec!["metadata", "namespace"]),
        "spec.nodeName" if *resource == PODS => Some(vec!["spec", "nodeName"]),
        "status.phase" if *resource == PODS => Some(vec!["status", "phase"]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_select() {
        let object = json!({ "metadata": { "labels": { "app": "web", "tier": "a" } } });
        for (text, selects) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=a", true),
            ("app=web,tier=b", false),
            ("app!=web", false),
            ("other!=web", true),
            ("tier in (b, a),app", true),
            ("tier notin (b,a)", false),
            ("!app", false),
            ("!other", true),
            ("other", false),
        ] {
            assert_eq!(Labels::parse(text).unwrap().matches(&object), selects, "{text}");
        }
        assert!(Labels::parse("a b").is_err());
        assert_eq!(Labels::of_object(&Value::Null), None);
        let expression = json!({ "key": "tier", "operator": "In", "values": ["a"] });
        let selector = json!({ "matchLabels": { "app": "web" }, "matchExpressions": [expression] });
        assert!(Labels::of_object(&selector).unwrap().matches(&object));
    }
}
