//! The types of values: what is expected, and how a text becomes one.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::{TZ_VARIANTS, Tz};
use os_upgrade_kernel::{OnFailure, Reclaim, SecretName};
use os_upgrade_protocol::{GroupName, HostName};

mod groups;
mod identity;
mod url;

pub use groups::Groups;
pub use identity::{Jwks, Text, Words};
pub(super) use url::redacted;
pub use url::{HttpUrl, NatsUrls};

use super::document::{Located, Raw};
use super::problem::{Problem, nearest};

/// What kind of TOML value a key takes.
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
    /// The TOML value it is written as.
    const SHAPE: Shape;

    /// What a good value is: "an address and port".
    fn expected() -> String;

    /// The value that `text` is; on error, what to add after "found ...", which may be empty.
    fn parse(text: &str) -> Result<Self, String>;

    /// The value of a key that is not given and has no default.
    fn unset() -> Option<Self> {
        None
    }

    /// The value of the key `name`, of file or environment; adds to `problems` if it is none.
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

fn wrong<T: Value>(name: &str, found: &Raw, hint: &str) -> String {
    format!("{name}: expected {}, found {found}{hint}", T::expected())
}

impl<T: Value> Value for Option<T> {
    const SHAPE: Shape = T::SHAPE;

    fn expected() -> String {
        T::expected()
    }

    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn unset() -> Option<Self> {
        Some(None)
    }
}

impl Value for bool {
    const SHAPE: Shape = Shape::Boolean;

    fn expected() -> String {
        "true or false".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| String::new())
    }
}

/// An integer from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounded<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Bounded<MIN, MAX> {
    /// `number`, if it is within the bounds.
    pub fn new(number: u32) -> Option<Self> {
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const MIN: u32, const MAX: u32> Value for Bounded<MIN, MAX> {
    const SHAPE: Shape = Shape::Integer;

    fn expected() -> String {
        format!("an integer from {MIN} to {MAX}")
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.trim().parse().ok().and_then(Self::new).ok_or_else(String::new)
    }
}

/// A duration from `MIN_MS` to `MAX_MS` milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval<const MIN_MS: u64, const MAX_MS: u64>(Duration);

impl<const MIN_MS: u64, const MAX_MS: u64> Interval<MIN_MS, MAX_MS> {
    const MIN: Duration = Duration::from_millis(MIN_MS);
    const MAX: Duration = Duration::from_millis(MAX_MS);

    /// `duration`, if it is within the bounds.
    pub fn new(duration: Duration) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&duration).then_some(Self(duration))
    }

    /// The duration.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl<const MIN_MS: u64, const MAX_MS: u64> Value for Interval<MIN_MS, MAX_MS> {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        let (min, max) = (humantime::format_duration(Self::MIN), humantime::format_duration(Self::MAX));
        format!("a duration from {min} to {max}, such as \"10s\" or \"1m 30s\"")
    }

    fn parse(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).ok().and_then(Self::new).ok_or_else(String::new)
    }
}

/// The name of a site: 1 to 255 bytes of UTF-8 without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteName(String);

impl SiteName {
    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Value for SiteName {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "a name".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        // It becomes a token of subjects, so what holds for names of hosts holds for it.
        HostName::new(text).map(|name| Self(name.into())).map_err(|error| format!(": {error}"))
    }
}

impl Value for Tz {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "an IANA time zone such as \"Europe/Stockholm\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| {
            nearest(text, TZ_VARIANTS.iter().map(|zone| zone.name()))
                .map_or_else(String::new, |zone| format!("; did you mean \"{zone}\"?"))
        })
    }
}

impl Value for SocketAddr {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "an IP address and port such as \"127.0.0.1:8646\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| String::new())
    }
}

impl Value for PathBuf {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "a path".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err(String::new()) } else { Ok(text.into()) }
    }
}

impl Value for GroupName {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "a group".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        GroupName::new(text).map_err(|error| format!(": {error}"))
    }
}

impl Value for OnFailure {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "\"hold\" or \"release\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "hold" => Ok(Self::Hold),
            "release" => Ok(Self::Release),
            _ => Err(String::new()),
        }
    }
}

impl Value for Reclaim {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "\"never\" or \"inventory\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "never" => Ok(Self::Never),
            "inventory" => Ok(Self::Inventory),
            _ => Err(String::new()),
        }
    }
}

impl Value for SecretName {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "the name of a secret".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| format!(": {error}"))
    }
}
