//! `fields=a,b/c`: selects fields of an answer; lists on the path apply to each of their entries.
//!
//! Unknown fields are refused with the known ones, because a misspelt field would otherwise look like an absent one. A
//! known field without a value is absent, as in the whole answer. Fields that are not selected are not serialized: the
//! selection is a filter around the serializer.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::ser::{self, Impossible, SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::json;

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

/// Serializes only the selected part of a value.
pub(crate) struct Kept<'a, T: ?Sized>(pub(crate) &'a T, pub(crate) &'a Keep);

impl<T: Serialize + ?Sized> Serialize for Kept<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Keep::All => self.0.serialize(serializer),
            Keep::Only(_) => self.0.serialize(Filter { inner: serializer, keep: self.1 }),
        }
    }
}

/// A serializer that drops fields that are not selected.
struct Filter<'a, S> {
    inner: S,
    keep: &'a Keep,
}

/// Passes values without fields to the inner serializer.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => {
        $(fn $name(self, $($argument: $type),*) -> Result<S::Ok, S::Error> {
            self.inner.$name($($argument),*)
        })+
    };
}

impl<'a, S: Serializer> Serializer for Filter<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = FilterEach<'a, S::SerializeSeq>;
    type SerializeTuple = Impossible<S::Ok, S::Error>;
    type SerializeTupleStruct = Impossible<S::Ok, S::Error>;
    type SerializeTupleVariant = Impossible<S::Ok, S::Error>;
    type SerializeMap = FilterFields<'a, S::SerializeMap>;
    type SerializeStruct = FilterFields<'a, S::SerializeMap>;
    type SerializeStructVariant = Impossible<S::Ok, S::Error>;

    forward! {
        serialize_bool(value: bool);
        serialize_i8(value: i8);
        serialize_i16(value: i16);
        serialize_i32(value: i32);
        serialize_i64(value: i64);
        serialize_u8(value: u8);
        serialize_u16(value: u16);
        serialize_u32(value: u32);
        serialize_u64(value: u64);
        serialize_f32(value: f32);
        serialize_f64(value: f64);
        serialize_char(value: char);
        serialize_str(value: &str);
        serialize_bytes(value: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<S::Ok, S::Error> {
        Err(no_fields(name))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        Ok(FilterEach { inner: self.inner.serialize_seq(None)?, keep: self.keep })
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, S::Error> {
        Err(no_fields("a tuple"))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        Err(no_fields(name))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        Err(no_fields(name))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        Ok(FilterFields { inner: self.inner.serialize_map(None)?, keep: self.keep, key: None })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, S::Error> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        Err(no_fields(name))
    }
}

/// The error for a value that cannot be filtered. No answer has one above a known field.
fn no_fields<E: ser::Error>(name: &str) -> E {
    E::custom(format!("{name} has no fields to choose from"))
}

/// The entries of a list, each filtered by the same selection.
struct FilterEach<'a, S> {
    inner: S,
    keep: &'a Keep,
}

impl<S: SerializeSeq> SerializeSeq for FilterEach<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.inner.serialize_element(&Kept(value, self.keep))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

/// The fields of an object, filtered.
struct FilterFields<'a, S> {
    inner: S,
    keep: &'a Keep,
    key: Option<String>,
}

impl<S: SerializeMap> FilterFields<'_, S> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), S::Error> {
        match self.keep.of(name) {
            Some(keep) => self.inner.serialize_entry(name, &Kept(value, keep)),
            None => Ok(()),
        }
    }
}

impl<S: SerializeMap> SerializeMap for FilterFields<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.key = Some(text(key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        let key = self.key.take().unwrap_or_default();
        self.field(&key, value)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

impl<S: SerializeMap> SerializeStruct for FilterFields<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.field(key, value)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

/// The serialized form of a key, which must be a string.
fn text<T: Serialize + ?Sized, E: ser::Error>(key: &T) -> Result<String, E> {
    fn wrong<E: ser::Error>(error: impl Display) -> E {
        E::custom(error)
    }
    let key = serde_json::to_value(key).map_err(wrong)?;
    key.as_str().map(ToOwned::to_owned).ok_or_else(|| wrong("a key must be a string"))
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

    fn select(fields: &str) -> Value {
        let list = vec![json!({"name": "x", "more": {"deep": [1, 2], "else": true}}), json!({"name": "y"})];
        let free = BTreeMap::from([("one", 1), ("two", 2)]);
        let whole = Whole { a: Part { b: Some(1), c: "c" }, list, rest: Rest { free, absent: None } };
        let keep = Keep::parse(fields, &KNOWN.map(str::to_owned)).unwrap();
        serde_json::from_slice(&serde_json::to_vec(&Kept(&whole, &keep)).unwrap()).unwrap()
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
            assert_eq!(select(fields), expected, "{fields}");
        }
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
