//! The types of values: what each expects, and how it is parsed from text.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;
use os_upgrade_calendar::zone_advice::{self, FixedOffset};
use os_upgrade_kernel::{ApiServerOrder, OnFailure, Reclaim, SecretName};
use os_upgrade_protocol::{GroupName, HostName};

mod command;
mod groups;
mod identity;
mod node;
mod number;
mod read;
mod selector;
mod url;

pub use command::CommandWords;
pub use groups::Groups;
pub use identity::{Jwks, StringList, Text};
pub use node::{FailedNode, NodeNames, NodeSource};
pub use number::{Bounded, Interval};
pub use read::Shape;
pub(crate) use read::Value;
pub use selector::{LabelOperator, LabelRequirement, LabelSelector};
pub use url::{HttpUrl, NatsUrls};

use super::problem::Problem;
use super::raw::{Located, Raw};

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

    fn read(name: &str, raw: &Located<Raw>, problems: &mut Vec<Problem>) -> Option<Self> {
        T::read(name, raw, problems).map(Some)
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

/// The name of a site: 1 to 255 bytes of UTF-8 without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteName(String);

impl SiteName {
    /// The name.
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
        // It becomes a token of NATS subjects, so the rules for names of hosts apply.
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
            let nearest = zone_advice::nearest(text).map(|zone| format!("; did you mean \"{zone}\"?"));
            let offset = || FixedOffset::read(text).map(|offset| format!("; write a place, or {offset}"));
            nearest.or_else(offset).unwrap_or_default()
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

/// What clients of the Unix socket for fleet's API may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetSocketRole {
    /// Read.
    Viewer,
    /// Also change units.
    Admin,
}

/// Settings that are one of two words.
macro_rules! words {
    ($($kind:ty: $first:literal => $one:ident, $second:literal => $other:ident;)+) => {
        $(impl Value for $kind {
            const SHAPE: Shape = Shape::String;

            fn expected() -> String {
                format!("{:?} or {:?}", $first, $second)
            }

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $first => Ok(Self::$one),
                    $second => Ok(Self::$other),
                    _ => Err(String::new()),
                }
            }
        })+
    };
}

words! {
    OnFailure: "hold" => Hold, "release" => Release;
    FleetSocketRole: "viewer" => Viewer, "admin" => Admin;
    FailedNode: "keep-cordoned" => KeepCordoned, "uncordon" => Uncordon;
    Reclaim: "never" => Never, "inventory" => Inventory;
    ApiServerOrder: "first" => First, "last" => Last;
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
