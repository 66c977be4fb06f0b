//! How a value is read from text or from an entry of a file.

use crate::problem::Problem;
use crate::raw::{Located, Raw};

/// The kind of TOML value a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `"text"`
    String,
    /// `3`
    Integer,
    /// `true`
    Boolean,
    /// `[section.key]` with entries.
    Table,
}

/// The type of a key's value.
pub(crate) trait Value: Sized {
    /// The kind of TOML value it is written as.
    const SHAPE: Shape;

    /// What is expected, for messages: "an address and port".
    fn expected() -> String;

    /// Parses `text`; the error is text to append after "found ...", which may be empty.
    fn parse(text: &str) -> Result<Self, String>;

    /// The value of a key that is not set and has no default; `None` if the type has no such value.
    fn unset() -> Option<Self> {
        None
    }

    /// Reads the value of the key `name` from `raw`; a bad value is added to `problems`.
    fn read(name: &str, raw: &Located<Raw>, problems: &mut Vec<Problem>) -> Option<Self> {
        let ((Raw::Variable(text) | Raw::String(text), Shape::String)
        | (Raw::Variable(text) | Raw::Integer(text), Shape::Integer)
        | (Raw::Variable(text) | Raw::Boolean(text), Shape::Boolean)) = (&raw.value, Self::SHAPE)
        else {
            problems.push(raw.problem(wrong::<Self>(name, &raw.value, "")));
            return None;
        };
        let parsed = Self::parse(text);
        parsed.map_err(|hint| problems.push(raw.problem(wrong::<Self>(name, &raw.value, &hint)))).ok()
    }
}

pub(crate) fn wrong<T: Value>(name: &str, found: &Raw, hint: &str) -> String {
    format!("{name}: expected {}, found {found}{hint}", T::expected())
}
