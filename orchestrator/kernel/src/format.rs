//! The format of records and snapshots, and reading without losing anything.
//!
//! There is one format, with a word for everything that is stored. Builds that were never released wrote lower numbers; what
//! they wrote is read as well, from [`OLDEST`] on.
//!
//! An instance of an older version must notice what it does not know, and should read on until then. So the first change
//! after a release that adds a kind, field or value to anything that is stored
//!
//! 1. raises [`NEWEST`], once for each version that is released,
//! 2. lets the shell's `journal/codec.rs` write each payload with the oldest format that has a word for everything in it,
//!    which a function here finds by a `match` without `_` over facts, and over the fields of a state,
//!    as `messages_have_the_format_that_they_need` in `shell/tests/shell/journal.rs` shows, and
//! 3. puts its words into `words-N.txt` beside `tests/kernel/format/words.txt`, which is left as it was released.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The oldest format that is read.
pub const OLDEST: u32 = 2;
/// The newest format that is read, and the only one that is written.
pub const NEWEST: u32 = 11;

/// Why a stored value cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no value of its type.
    #[error("it is not valid")]
    Invalid(#[from] serde_json::Error),
    /// It has something that this version does not know, and would lose.
    #[error("it has {0}, which this version does not know")]
    Unknown(String),
}

/// Reads a stored value from JSON. Nothing in it is ignored: what is read must say again what was written.
///
/// # Errors
/// It is not valid, or has something that this version does not know.
pub fn read<T: DeserializeOwned + Serialize>(json: &[u8]) -> Result<T, ReadError> {
    let value: T = serde_json::from_slice(json)?;
    let mut left = Left(json);
    if serde_json::to_writer(&mut left, &value).is_ok() && left.0.is_empty() {
        return Ok(value);
    }
    // Other versions and other programs may have written it in another order, or with other spaces.
    let mut path = Vec::new();
    if has_all(&serde_json::from_slice(json)?, &serde_json::to_value(&value)?, &mut path) {
        Ok(value)
    } else {
        Err(ReadError::Unknown(path.join("/")))
    }
}

/// The bytes that are still to be written; others are refused.
struct Left<'a>(&'a [u8]);

impl io::Write for Left<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether `read` has every field and element of `written`; otherwise `path` leads to the first that it lacks.
fn has_all(written: &Value, read: &Value, path: &mut Vec<String>) -> bool {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => written.iter().all(|(name, written)| {
            path.push(name.clone());
            let has = read.get(name).map_or(written.is_null(), |read| has_all(written, read, path));
            if has {
                path.pop();
            }
            has
        }),
        (Value::Array(written), Value::Array(read)) => {
            written.len() == read.len()
                && written.iter().zip(read).all(|(written, read)| has_all(written, read, path))
        }
        (Value::Object(_) | Value::Array(_), _) => false,
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => true,
    }
}
