//! In which zone a window's local times are meant.

use std::fmt;
use std::str::FromStr;

use chrono_tz::{TZ_VARIANTS, Tz};
use serde::Serialize;

use crate::read::from_text;
use crate::read::quoted;

const SITE_LOCAL: &str = "site-local";

/// Least likeness, from 0 to 1, of a zone's name to what was written for it to be named.
const LIKENESS_MIN: f64 = 0.75;

/// The site's zone, or one of the IANA database by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Timezone {
    /// The zone that the site is configured with.
    #[default]
    SiteLocal,
    /// A zone of the database.
    Named(Tz),
}

/// A text names no zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimezoneError {
    /// A zone's name is much like it.
    #[error("{text:?} is not a zone; did you mean {nearest}?")]
    Near {
        /// What stands there.
        text: String,
        /// The zone of the most similar name.
        nearest: &'static str,
    },
    /// Nothing is like it.
    #[error("{0:?} is not a zone; write site-local, or a name of the IANA database such as Europe/Stockholm")]
    Unknown(String),
}

impl Timezone {
    /// The zone that is meant at a site in the zone `site`.
    pub fn zone(self, site: Tz) -> Tz {
        match self {
            Self::SiteLocal => site,
            Self::Named(zone) => zone,
        }
    }
}

/// The name most like `text`, if any is.
fn nearest(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let names = TZ_VARIANTS.iter().map(|zone| zone.name()).chain([SITE_LOCAL]);
    names
        .map(|name| {
            let name_lower = name.to_lowercase();
            // A city alone is what people remember.
            let city = name_lower.rsplit('/').next().unwrap_or_default();
            let likeness =
                if city == text { 1.0 } else { strsim::normalized_damerau_levenshtein(&text, &name_lower) };
            (likeness, name)
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
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

from_text!(Timezone: "a text such as \"Europe/Stockholm\"");

impl From<Timezone> for String {
    fn from(timezone: Timezone) -> String {
        timezone.to_string()
    }
}
