//! Why a secret cannot be used, or a request about secrets is refused.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::{Sealed, SecretRefusal};

use crate::commands::strongbox_put;
use crate::describe::{Describe, describe};
use crate::tense::Tense;

impl Describe for SecretRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherStrongboxKey => f.write_str(
                "the strongbox has another key: give this instance that one with `os-upgrade strongbox unseal`, or remove every secret first",
            ),
            Self::StrongboxFull => f.write_str("the strongbox holds at most 100 secrets of 8 KiB each"),
            Self::NoSecret { name } => write!(f, "there is no secret {name}"),
        }
    }
}

impl Describe for Sealed {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey => f.write_str(
                "the strongbox is sealed: `os-upgrade strongbox unseal` gives the instance its key, as does [strongbox] key-file",
            ),
            Self::NoKeyYet => f.write_str(
                "the strongbox is sealed: it is empty and has no key yet; make one with `os-upgrade strongbox key` and keep it, then \
                 `os-upgrade strongbox unseal` gives it to the instance, as does [strongbox] key-file",
            ),
            Self::OtherKey => f.write_str(
                "the strongbox is sealed: the secrets were sealed with another key than the one given here; \
                 `os-upgrade strongbox unseal` gives the instance theirs, or remove every secret and start over",
            ),
            Self::NoSecret { name } => {
                write!(f, "the strongbox has no secret {name}: `{}` stores it", strongbox_put(name.as_str()))
            }
            Self::Damaged { name } => {
                write!(
                    f,
                    "the secret {name} cannot be opened: `{}` stores it again",
                    strongbox_put(name.as_str())
                )
            }
        }
    }
}

/// The sentence for operators when the leader is the instance concerned: they may see it on another instance, and it
/// is the leader that needs the key.
pub fn leader_message(sealed: &Sealed) -> String {
    match sealed {
        Sealed::NoKey | Sealed::NoKeyYet | Sealed::OtherKey => {
            format!(
                "{}; the instance that leads needs it, which `os-upgrade cluster status` shows",
                describe(sealed)
            )
        }
        Sealed::NoSecret { .. } | Sealed::Damaged { .. } => describe(sealed).to_string(),
    }
}

/// The clause about the leader: what to do about it as long as it is so.
pub(crate) fn clause(sealed: &Sealed, tense: Tense) -> String {
    match (tense, sealed) {
        (Tense::Present, _) => leader_message(sealed),
        (Tense::Past, Sealed::NoKey | Sealed::NoKeyYet | Sealed::OtherKey) => {
            "the strongbox was sealed".to_owned()
        }
        (Tense::Past, Sealed::NoSecret { name }) => format!("the strongbox had no secret {name}"),
        (Tense::Past, Sealed::Damaged { name }) => format!("the secret {name} could not be opened"),
    }
}
