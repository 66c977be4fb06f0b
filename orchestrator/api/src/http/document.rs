//! Parses request bodies, JSON or YAML, into values or types. Errors name the place of the fault.
//!
//! YAML is parsed into a value first, by the rules of YAML 1.2, and then read like JSON, so the same document is
//! accepted or refused for the same reason in both. Deserializing types directly from YAML would be too lenient:
//! nothing would pass as an empty list, a number as a name.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::{Map, Number, Value, json};
use serde_path_to_error::{Path, Segment};
use serde_saphyr::{NonFiniteFloatPolicy, Options, UserMessageFormatter};

use crate::http::error::Problem;
use crate::http::form::Syntax;

/// Deepest nesting of a YAML document. For JSON, `serde_json` allows 128.
const YAML_DEPTH_MAX: usize = 64;
/// Most values in a YAML document. Values repeated by aliases count each time.
const YAML_NODES_MAX: usize = 100_000;

/// Reads an object. Errors name the place of the fault, such as `worker-applications/0/name`.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8], syntax: Syntax) -> Result<T, Problem> {
    match syntax {
        Syntax::Json => read_json::<Object<T>>(bytes).map(|Object(value)| value),
        Syntax::Yaml => from_value(read_yaml(bytes)?),
    }
}

/// Reads any value. Duplicate keys in an object are refused as ambiguous.
pub(crate) fn parse_value(bytes: &[u8], syntax: Syntax) -> Result<Value, Problem> {
    match syntax {
        Syntax::Json => read_json::<Strict>(bytes).map(|Strict(value)| value),
        Syntax::Yaml => read_yaml(bytes),
    }
}

/// Reads an object from a parsed value.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize::<_, Object<T>>(value)
        .map(|Object(value)| value)
        .map_err(|error| problem_at(&place(error.path()), &error.inner().to_string()))
}

fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (place, error) = (place(error.path()), error.into_inner());
        match error.classify() {
            Category::Eof => problem_at(&place, &format!("the body is not complete JSON: {error}")),
            Category::Syntax => problem_at(&place, &format!("the body is not JSON: {error}")),
            Category::Data | Category::Io => problem_at(&place, &error.to_string()),
        }
    })?;
    reader.end().map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(value)
}

fn read_yaml(bytes: &[u8]) -> Result<Value, Problem> {
    let mut failed_at = String::new();
    let read = serde_saphyr::with_deserializer_from_slice_with_options(bytes, yaml_options(), |reader| {
        serde_path_to_error::deserialize(reader).map_err(|error| {
            failed_at = place(error.path());
            error.into_inner()
        })
    });
    let wrong = |error: serde_saphyr::Error| {
        problem_at(&failed_at, &error.render_with_formatter(&UserMessageFormatter))
    };
    read.map(|Strict(value)| value).map_err(wrong)
}

fn yaml_options() -> Options {
    let mut options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    options.alias_limits.max_total_replayed_events = YAML_NODES_MAX;
    if let Some(budget) = &mut options.budget {
        budget.max_depth = YAML_DEPTH_MAX;
        budget.max_nodes = YAML_NODES_MAX;
    }
    options
}

/// The error of a fault at `place`, which is empty for the whole document.
pub(crate) fn problem_at(place: &str, message: &str) -> Problem {
    let message = if place.is_empty() { message.to_owned() } else { format!("{place}: {message}") };
    Problem::bad_request(message).with_info(json!({ "place": place }))
}

fn place(path: &Path) -> String {
    let segment = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } | Segment::Enum { variant: key } => Some(key.clone()),
        Segment::Unknown => None,
    };
    path.iter().filter_map(segment).collect::<Vec<_>>().join("/")
}

/// Reads `T` from an object only. Derived implementations also accept a list of the fields in order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// A value whose objects have no duplicate keys.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).map(Value::Number);
        number.ok_or_else(|| E::custom(format!("{value} is not a JSON number")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("{key:?} is given twice")));
            }
            let Strict(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
