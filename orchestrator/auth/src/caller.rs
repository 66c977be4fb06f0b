//! Who calls and what that one may, or why nobody is let in.

use os_upgrade_api_types::Role;
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

/// What a caller was let in for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// The API, as far as the role goes; an admin may also ask for slots as a FleetLock client, of any group.
    Role(Role),
    /// Slots of one group, and nothing else.
    Group(GroupName),
    /// Slots of these groups, and nothing else: a certificate's that entries of several groups name.
    Groups(Vec<GroupName>),
    /// Nothing: it is known, and has no role here.
    Nothing,
}

/// Who a request comes from. An extension of every request that was let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// As the audit has it: `token ci`, `oidc alice`, `api 127.0.0.1`.
    pub actor: String,
    /// What it may do.
    pub rights: Rights,
}

impl Caller {
    /// Whether it may do what `role` may.
    pub fn may(&self, role: Role) -> bool {
        matches!(self.rights, Rights::Role(own) if own >= role)
    }

    /// Whether it may ask for slots of `group`, as a FleetLock client.
    pub fn may_lock(&self, group: &GroupName) -> bool {
        match &self.rights {
            Rights::Role(role) => *role == Role::Admin,
            Rights::Group(own) => own == group,
            Rights::Groups(own) => own.contains(group),
            Rights::Nothing => false,
        }
    }
}

/// Why nobody knows who a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It has no credentials, or none of a kind that is taken there.
    #[error("this needs a token: send it as Authorization: Bearer <token>")]
    Missing,
    /// They are not understood, or nobody's.
    #[error("the token is not valid")]
    Invalid,
    /// They were somebody's once.
    #[error("the token has expired")]
    Expired,
    /// It cannot be told now whether they are somebody's.
    #[error("the token cannot be checked now: the identity provider's keys are not known; ask again later")]
    Unavailable,
    /// A page of another site has sent it, where none may.
    #[error(
        "this was sent by a page of another site, or to another name than localhost; as long as there are no tokens, \
         only programs on this machine may call: set [api] tokens"
    )]
    Elsewhere,
}

impl Denied {
    /// Its word in the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Expired => "expired",
            Self::Unavailable => "unavailable",
            Self::Elsewhere => "elsewhere",
        }
    }
}
