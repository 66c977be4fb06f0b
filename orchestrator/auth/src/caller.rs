//! The caller of a request and its rights, or why it is not authenticated.

use os_upgrade_api_types::Role;
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

/// The rights of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// The API, within the role. An admin may also request slots of any group, as a FleetLock client.
    Role(Role),
    /// Only slots of this group.
    Group(GroupName),
    /// Only slots of these groups: for a certificate that is named by entries of several groups.
    Groups(Vec<GroupName>),
    /// Nothing: the caller is authenticated, but has no role here.
    Nothing,
}

/// The caller of a request. An extension of every authenticated request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The name in the audit: `token ci`, `oidc alice`, `api 127.0.0.1`.
    pub actor: String,
    /// What the caller may do.
    pub rights: Rights,
}

impl Caller {
    /// Whether the caller has `role` or a higher one.
    pub fn may(&self, role: Role) -> bool {
        matches!(self.rights, Rights::Role(own) if own >= role)
    }

    /// Whether the caller may request slots of `group`, as a FleetLock client.
    pub fn may_lock(&self, group: &GroupName) -> bool {
        match &self.rights {
            Rights::Role(role) => *role == Role::Admin,
            Rights::Group(own) => own == group,
            Rights::Groups(own) => own.contains(group),
            Rights::Nothing => false,
        }
    }
}

/// Why the caller of a request is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There are no credentials, or none of a kind that the endpoint accepts.
    #[error("this needs a token: send it as Authorization: Bearer <token>")]
    Missing,
    /// The credentials are malformed or unknown.
    #[error("the token is not valid")]
    Invalid,
    /// The credentials have expired.
    #[error("the token has expired")]
    Expired,
    /// The credentials cannot be checked at the moment.
    #[error("the token cannot be checked now: the identity provider's keys are unknown; try again later")]
    Unavailable,
}

impl Denied {
    /// The label in the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Expired => "expired",
            Self::Unavailable => "unavailable",
        }
    }
}
