//! The timezone of a window's local times.

use std::fmt;
use std::str::FromStr;

use chrono_tz::Tz;
use serde::Serialize;

use super::zone_advice::{self, FixedOffset};
use crate::deserialize::from_text;
use crate::deserialize::quoted;

const SITE_LOCAL: &str = "site-local";

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
    /// It is nearly a name.
    #[error("{text:?} is not a zone; did you mean {nearest}?")]
    Near {
        text: String,
        /// The name.
        nearest: &'static str,
    },
    /// It is an offset from UTC.
    #[error("{text:?} is not a zone; name a place, such as Europe/Stockholm, or write {offset}")]
    Offset {
        text: String,
        /// The zone with this offset.
        offset: FixedOffset,
    },
    /// It is nothing of these.
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

impl FromStr for Timezone {
    type Err = TimezoneError;

    fn from_str(text: &str) -> Result<Self, TimezoneError> {
        if text == SITE_LOCAL {
            return Ok(Self::SiteLocal);
        }
        text.parse().map(Self::Named).map_err(|_| {
            let is_site_local = text.to_lowercase().replace(['_', ' '], "-") == SITE_LOCAL;
            let nearest = if is_site_local { Some(SITE_LOCAL) } else { zone_advice::nearest(text) };
            let short = quoted(text);
            match (nearest, FixedOffset::read(text)) {
                (Some(nearest), _) => TimezoneError::Near { text: short, nearest },
                (None, Some(offset)) => TimezoneError::Offset { text: short, offset },
                (None, None) => TimezoneError::Unknown(short),
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
