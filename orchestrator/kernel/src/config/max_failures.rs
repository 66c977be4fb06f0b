//! How many hosts may fail in a run: `3`, or `10%`.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::integer::Whole;

/// How many hosts may fail in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxFailures {
    /// So many.
    Hosts(u32),
    /// So many of a hundred hosts that take part, rounded down; at most 100.
    Percent(u8),
}

impl MaxFailures {
    /// How many of `hosts` that take part may fail.
    pub(crate) fn of(self, hosts: usize) -> usize {
        match self {
            Self::Hosts(number) => number as usize,
            Self::Percent(percent) => hosts * usize::from(percent) / 100,
        }
    }
}

impl From<u32> for MaxFailures {
    fn from(hosts: u32) -> Self {
        Self::Hosts(hosts)
    }
}

impl Serialize for MaxFailures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Hosts(number) => serializer.serialize_u32(*number),
            Self::Percent(percent) => serializer.collect_str(&format_args!("{percent}%")),
        }
    }
}

impl<'de> Deserialize<'de> for MaxFailures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrPercentage)
    }
}

struct NumberOrPercentage;

impl Visitor<'_> for NumberOrPercentage {
    type Value = MaxFailures;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Whole.expecting(f)?;
        f.write_str(", or a percentage from \"0%\" to \"100%\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<MaxFailures, E> {
        let percent = text.strip_suffix('%').and_then(|number| number.parse::<u8>().ok());
        let percent = percent.filter(|percent| *percent <= 100 && !text.starts_with('+'));
        percent.map(MaxFailures::Percent).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<MaxFailures, E> {
        Whole.visit_u64(number).map(MaxFailures::Hosts)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<MaxFailures, E> {
        Whole.visit_i64(number).map(MaxFailures::Hosts)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<MaxFailures, E> {
        Whole.visit_f64(number).map(MaxFailures::Hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_and_rounded_down() {
        for (json, expected) in [
            ("\"10%\"", Ok(MaxFailures::Percent(10))),
            ("\"0%\"", Ok(MaxFailures::Percent(0))),
            ("\"100%\"", Ok(MaxFailures::Percent(100))),
            ("7", Ok(MaxFailures::Hosts(7))),
            ("\"101%\"", Err("string \"101%\"")),
            ("\"1000000000%\"", Err("string \"1000000000%\"")),
            ("\"-1%\"", Err("string \"-1%\"")),
            ("\"+1%\"", Err("string \"+1%\"")),
            ("\"10\"", Err("string \"10\"")),
            ("\"%\"", Err("string \"%\"")),
            ("\"1.5%\"", Err("string \"1.5%\"")),
            ("null", Err("null")),
        ] {
            let read: Result<MaxFailures, _> = serde_json::from_str(json);
            match expected {
                Ok(expected) => {
                    assert_eq!(read.unwrap(), expected);
                    assert_eq!(serde_json::to_string(&expected).unwrap(), json);
                }
                Err(found) => {
                    let message = read.unwrap_err().to_string();
                    assert!(
                        message.contains(found) && message.contains("expected a whole number"),
                        "{message}"
                    );
                }
            }
        }
        let of = |percent: u8| [0, 9, 10, 19, 60].map(|hosts| MaxFailures::Percent(percent).of(hosts));
        assert_eq!(of(10), [0, 0, 1, 1, 6]);
        assert_eq!(of(100), [0, 9, 10, 19, 60]);
        assert_eq!(MaxFailures::Hosts(u32::MAX).of(1), u32::MAX as usize);
    }
}
