//! Values whose types are not checked yet, with their sources.

use std::fmt;

use super::problem::{Origin, Problem};

/// A value whose type is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Raw {
    /// The text of an environment variable, which can stand for any scalar.
    Variable(String),
    /// A TOML string.
    String(String),
    /// A TOML integer, in decimal.
    Integer(String),
    /// `true` or `false`.
    Boolean(String),
    /// A TOML table.
    Table(Vec<(Located<String>, Located<Raw>)>),
    /// A TOML value of a type that no key has.
    Other(&'static str),
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(text) | Self::String(text) => write!(f, "{:?}", redacted(text)),
            Self::Integer(text) | Self::Boolean(text) => f.write_str(text),
            Self::Table(_) => f.write_str("a table"),
            Self::Other(kind) => write!(f, "a value of type {kind}"),
        }
    }
}

/// Something with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Located<T> {
    /// A problem of this value.
    pub(crate) fn problem(&self, message: String) -> Problem {
        Problem { origin: self.origin.clone(), message }
    }
}

/// `text` with user and password of its URLs replaced, for logs and errors.
pub(crate) fn redacted(text: &str) -> String {
    let hide = |url: &str| match url.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}://***@{host}"),
            None => url.to_owned(),
        },
        None => url.to_owned(),
    };
    text.split(',').map(hide).collect::<Vec<_>>().join(",")
}
