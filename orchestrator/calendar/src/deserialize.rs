//! Reads what operators write; the error for a value of the wrong type says what to write instead.

use std::fmt;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Implements `Deserialize` from text for types; the literal is the `expected` part of the error.
macro_rules! from_text {
    ($($name:ident: $expected:literal),+) => {
        $(impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::deserialize::text(deserializer, $expected)
            }
        })+
    };
}

pub(crate) use from_text;

/// Implements `Deserialize` and `Serialize` with the derived functions, but from an object only: these accept a list of
/// values as well, so that `[]` would be a configuration without any fields.
#[macro_export]
macro_rules! from_objects_only {
    ($($name:ident),+) => {
        $(impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Object;

                impl<'de> ::serde::de::Visitor<'de> for Object {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: ::serde::de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        $name::deserialize(::serde::de::value::MapAccessDeserializer::new(map))
                    }
                }

                deserializer.deserialize_map(Object)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        })+
    };
}

/// Reads a type from a text.
pub fn text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
    expected: &'static str,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Text { expected, of: PhantomData })
}

struct Text<T> {
    expected: &'static str,
    of: PhantomData<T>,
}

impl<T: FromStr<Err: Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Reads one of two words; each stands for the value at the same index.
pub fn word<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    words: &'static [&'static str; 2],
    values: [T; 2],
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Word { words, values })
}

struct Word<T> {
    words: &'static [&'static str; 2],
    values: [T; 2],
}

impl<T: Copy> Visitor<'_> for Word<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = self.words;
        write!(f, "{one:?} or {other:?}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let found = self.words.iter().zip(self.values).find(|(word, _)| **word == text);
        found.map(|(_, value)| value).ok_or_else(|| E::unknown_variant(text, self.words))
    }
}

/// Reads a list.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(List(PhantomData))
}

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, [...], even of one")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

/// How much of an invalid text an error quotes, in characters.
const QUOTED_MAX: usize = 64;

/// The start of an invalid text, for an error.
pub fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_MAX).collect()
}
