//! The elements of a JSON array, one after the other, each as text that is yet to be read: one that is malformed does not spoil the
//! others.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Where text ceases to be an array, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Calls `visit` with each element of the array `json`. The elements before a fault are visited.
///
/// # Errors
/// It is no array.
pub(super) fn for_each<'de>(json: &'de [u8], visit: impl FnMut(&'de RawValue)) -> Result<(), Position> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let outcome = deserializer.deserialize_seq(ForEach(visit)).and_then(|()| deserializer.end());
    outcome.map_err(|error| Position { line: error.line(), column: error.column() })
}

struct ForEach<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for ForEach<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<&'de RawValue>()? {
            (self.0)(element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(json: &[u8]) -> (Vec<&str>, Result<(), Position>) {
        let mut found = Vec::new();
        let outcome = for_each(json, |element| found.push(element.get()));
        (found, outcome)
    }

    #[test]
    fn arrays_are_taken_apart() {
        assert_eq!(elements(b"[]"), (vec![], Ok(())));
        assert_eq!(
            elements(b" [ 1 ,{\"a\": [2]}, \"\\ud800\"]\n"),
            (vec!["1", "{\"a\": [2]}", "\"\\ud800\""], Ok(()))
        );
        // No depth of nesting is a fault.
        let deep = format!("[{}{}]", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(elements(deep.as_bytes()).1, Ok(()));
        let start = Position { line: 1, column: 0 };
        assert_eq!(elements(b""), (vec![], Err(start)));
        for json in [&b"{}"[..], b"null", b"\"[]\"", b"[1,]", b"[1", b"[1] 2", b"[\"\xff\"]", b"[1]]"] {
            let (_, outcome) = elements(json);
            assert!(outcome.is_err(), "{json:?}");
        }
        let (found, outcome) = elements(b"[1,\n2;]");
        assert_eq!((found, outcome.unwrap_err().line), (vec!["1", "2"], 2));
    }
}
