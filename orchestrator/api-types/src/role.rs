//! Roles: what a person or a program may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a person or a program may do. Each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read everything.
    Viewer,
    /// Start and cancel runs, approve, withdraw, remove and give up hosts, queue their reboots, uncordon their nodes, and hold,
    /// release and forget slots.
    Operator,
    /// Use every route, those for the configuration and secrets included.
    Admin,
}

impl Role {
    /// All roles, the lowest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// The name in files, settings and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = Self::ALL.into_iter().find(|role| role.as_str() == text);
        role.ok_or_else(|| "expected viewer, operator or admin".to_owned())
    }
}
