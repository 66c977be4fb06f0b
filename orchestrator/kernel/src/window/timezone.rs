//! The timezone of a window's local times.

use std::fmt;
use std::str::FromStr;

use chrono_tz::{TZ_VARIANTS, Tz};
use serde::Serialize;

use crate::deserialize::from_text;
use crate::deserialize::quoted;

const SITE_LOCAL: &str = "site-local";

/// Minimum similarity, from 0 to 1, at which an error suggests a zone's name.
const SIMILARITY_MIN: f64 = 0.75;

/// The site's timezone, or one of the IANA database by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Timezone {
    /// The site's configured timezone.
    #[default]
    SiteLocal,
    /// A zone of the IANA database.
    Named(Tz),
}

/// A text is not the name of a zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimezoneError {
    /// A zone has a similar name.
    #[error("{text:?} is not a zone; did you mean {nearest}?")]
    Near {
        /// The text.
        text: String,
        /// The most similar name.
        nearest: &'static str,
    },
    /// No zone has a similar name.
    #[error("{0:?} is not a zone; write site-local, or a name of the IANA database such as Europe/Stockholm")]
    Unknown(String),
}

impl Timezone {
    /// The zone at a site in the zone `site`.
    pub fn zone(self, site: Tz) -> Tz {
        match self {
            Self::SiteLocal => site,
            Self::Named(zone) => zone,
        }
    }
}

/// The name most similar to `text`, if any is similar enough.
fn nearest(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let names = TZ_VARIANTS.iter().map(|zone| zone.name()).chain([SITE_LOCAL]);
    names
        .map(|name| {
            let name_lower = name.to_lowercase();
            // People often write the city alone.
            let city = name_lower.rsplit('/').next().unwrap_or_default();
            let similarity =
                if city == text { 1.0 } else { strsim::normalized_damerau_levenshtein(&text, &name_lower) };
            (similarity, name)
        })
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|one, other| one.0.total_cmp(&other.0).then_with(|| other.1.cmp(one.1)))
        .map(|(_, name)| name)
}

impl FromStr for Timezone {
    type Err = TimezoneError;

    fn from_str(text: &str) -> Result<Self, TimezoneError> {
        if text == SITE_LOCAL {
            return Ok(Self::SiteLocal);
        }
        text.parse().map(Self::Named).map_err(|_| {
            let text = quoted(text);
            match nearest(&text) {
                Some(nearest) => TimezoneError::Near { text, nearest },
                None => TimezoneError::Unknown(text),
            }
        })
    }
}

impl fmt::Display for Timezone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SiteLocal => f.write_str(SITE_LOCAL),
            Self::Named(zone) => f.write_str(zone.name()),
        }
    }
}

from_text!(Timezone: "a string such as \"Europe/Stockholm\"");

impl From<Timezone> for String {
    fn from(timezone: Timezone) -> String {
        timezone.to_string()
    }
}
