//! `fields=a,b/c`: selects fields of an answer; lists on the path apply to each of their entries.
//!
//! Unknown fields are refused with the known ones, because a misspelt field would otherwise look like an absent one. A
//! known field without a value is absent, as in the whole answer. The selection is cut out of the serialized answer, whose fields
//! keep their order.

use std::collections::BTreeMap;
use std::{fmt, iter};

use serde::de::{MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::http::error::Problem;

/// The selected part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keep {
    All,
    /// These fields, and the selected part of each.
    Only(BTreeMap<String, Keep>),
}

impl Keep {
    /// Reads the parameter. `known` are the paths of all fields, in which `*` stands for any name.
    pub(crate) fn parse(text: &str, known: &[String]) -> Result<Self, Problem> {
        let mut kept = Self::Only(BTreeMap::new());
        for path in text.split(',').map(str::trim) {
            if !known.iter().any(|known| matches_path(known, path)) {
                return Err(unknown(path, known));
            }
            kept.add(path);
        }
        Ok(kept)
    }

    fn add(&mut self, path: &str) {
        // A field that is selected whole includes everything below it.
        let Self::Only(fields) = self else { return };
        match path.split_once('/') {
            None => {
                fields.insert(path.to_owned(), Self::All);
            }
            Some((name, rest)) => {
                fields.entry(name.to_owned()).or_insert_with(|| Self::Only(BTreeMap::new())).add(rest);
            }
        }
    }

    /// Drops the top-level fields for which `is_wanted` is false. `known` are the paths of all fields.
    pub(crate) fn retain(self, known: &[String], is_wanted: impl Fn(&str) -> bool) -> Self {
        let mut fields = match self {
            Self::All => {
                let top_level = known.iter().filter(|path| !path.contains('/'));
                top_level.map(|name| (name.clone(), Self::All)).collect()
            }
            Self::Only(fields) => fields,
        };
        fields.retain(|name, _| is_wanted(name));
        Self::Only(fields)
    }

    /// Whether any part of field `name` is selected.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.of(name).is_some()
    }

    /// The selected part of field `name`, if any.
    fn of(&self, name: &str) -> Option<&Self> {
        match self {
            Self::All => Some(self),
            Self::Only(fields) => fields.get(name),
        }
    }
}

fn matches_path(known: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    known.split('/').all(|known| segments.next().is_some_and(|segment| segment == known || known == "*"))
        && segments.next().is_none()
}

fn unknown(path: &str, known: &[String]) -> Problem {
    // Suggest the siblings, or the top-level fields when the parent is unknown too.
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let parent = if known.iter().any(|known| matches_path(known, parent)) { parent } else { "" };
    let is_sibling = |name: &&str| match name.rsplit_once('/') {
        Some((above, _)) => above == parent,
        None => parent.is_empty(),
    };
    let siblings: Vec<&str> = known.iter().map(String::as_str).filter(is_sibling).collect();
    let names = if siblings.is_empty() { format!("{parent} has no fields") } else { siblings.join(", ") };
    Problem::bad_request(format!("fields: there is no field {path:?}; known here: {names}"))
        .with_info(json!({ "parameter": "fields", "known": siblings }))
}

/// Writes the selected part of `value` as JSON.
pub(crate) fn write(bytes: &mut Vec<u8>, value: &impl Serialize, keep: &Keep) -> serde_json::Result<()> {
    match keep {
        Keep::All => serde_json::to_writer(bytes, value),
        Keep::Only(_) => serde_json::to_writer(bytes, &FieldSelection { json: &to_raw_value(value)?, keep }),
    }
}

/// JSON that is serialized without the fields that are not selected.
struct FieldSelection<'a> {
    json: &'a RawValue,
    keep: &'a Keep,
}

impl Serialize for FieldSelection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { json, keep } = self;
        let text = json.get();
        match (keep, text.as_bytes().first()) {
            (Keep::Only(_), Some(b'[')) => {
                let entries: Vec<&RawValue> = serde_json::from_str(text).map_err(S::Error::custom)?;
                serializer.collect_seq(entries.into_iter().map(|json| FieldSelection { json, keep }))
            }
            (Keep::Only(_), Some(b'{')) => {
                let Object(fields) = serde_json::from_str(text).map_err(S::Error::custom)?;
                serializer.collect_map(fields.into_iter().filter_map(|(name, json)| {
                    let keep = keep.of(&name)?;
                    Some((name, FieldSelection { json, keep }))
                }))
            }
            _ => json.serialize(serializer),
        }
    }
}

/// The fields of an object, in their order.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields).map(Self)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const KNOWN: [&str; 9] =
        ["a", "a/b", "a/c", "list", "list/name", "list/more", "list/more/deep", "free", "free/*"];

    #[derive(Serialize)]
    struct Part {
        b: Option<u32>,
        c: &'static str,
    }

    #[derive(Serialize)]
    struct Rest {
        free: BTreeMap<&'static str, u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u32>,
    }

    #[derive(Serialize)]
    struct Whole {
        a: Part,
        list: Vec<Value>,
        #[serde(flatten)]
        rest: Rest,
    }

    fn select(fields: &str) -> String {
        let list = vec![json!({"name": "x", "more": {"deep": [1, 2], "else": true}}), json!({"name": "y"})];
        let free = BTreeMap::from([("one", 1), ("two", 2)]);
        let whole = Whole { a: Part { b: Some(1), c: "c" }, list, rest: Rest { free, absent: None } };
        let keep = Keep::parse(fields, &KNOWN.map(str::to_owned)).unwrap();
        let mut bytes = Vec::new();
        write(&mut bytes, &whole, &keep).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn selected_fields_are_serialized() {
        for (fields, expected) in [
            ("a", json!({"a": {"b": 1, "c": "c"}})),
            ("a/b", json!({"a": {"b": 1}})),
            ("a/b,a/c", json!({"a": {"b": 1, "c": "c"}})),
            ("a/b,a", json!({"a": {"b": 1, "c": "c"}})),
            ("a, a/b", json!({"a": {"b": 1, "c": "c"}})),
            ("list/name", json!({"list": [{"name": "x"}, {"name": "y"}]})),
            ("list/more/deep", json!({"list": [{"more": {"deep": [1, 2]}}, {}]})),
            ("free/two,a/c", json!({"a": {"c": "c"}, "free": {"two": 2}})),
            ("free/three", json!({"free": {}})),
        ] {
            assert_eq!(serde_json::from_str::<Value>(&select(fields)).unwrap(), expected, "{fields}");
        }
        let in_order = r#"{"a":{"c":"c"},"list":[{"name":"x"},{"name":"y"}],"free":{"one":1,"two":2}}"#;
        assert_eq!(select("free,list/name,a/c"), in_order);
    }

    #[test]
    fn unknown_fields_are_refused() {
        for (fields, message) in [
            ("", "fields: there is no field \"\"; known here: a, list, free"),
            ("a,", "fields: there is no field \"\"; known here: a, list, free"),
            ("status", "fields: there is no field \"status\"; known here: a, list, free"),
            ("a/d", "fields: there is no field \"a/d\"; known here: a/b, a/c"),
            ("a/b/c", "fields: there is no field \"a/b/c\"; known here: a/b has no fields"),
            ("x/y", "fields: there is no field \"x/y\"; known here: a, list, free"),
        ] {
            let found = Keep::parse(fields, &KNOWN.map(str::to_owned)).map_err(Problem::into_message);
            assert_eq!(found, Err(message.to_owned()), "{fields}");
        }
    }
}
