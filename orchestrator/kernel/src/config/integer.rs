//! Whole numbers as JSON Schema defines them: `2.0` is the same as `2`.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// Reads a whole number that fits in a `u32`, even when it is written with a zero fraction or an exponent.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_any(Whole)
}

/// The same for a number that may be left out.
pub(super) fn some_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    number(deserializer).map(Some)
}

pub(super) struct Whole;

impl Visitor<'_> for Whole {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}", u32::MAX)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u32, E> {
        let expected = format!("a whole number from 0 to {}, without quotes", u32::MAX);
        Err(E::invalid_type(Unexpected::Str(text), &expected.as_str()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
        u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
        u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u32, E> {
        let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
        if !is_whole {
            return Err(E::invalid_value(Unexpected::Float(number), &self));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        Ok(number as u32)
    }
}
