//! For whom a host's slot is held and its node drained.

use std::fmt::{self, Display, Formatter};

use os_upgrade_protocol::RunId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How the ids of entries begin.
const ENTRY_PREFIX: &str = "rq-";

/// A run, or an entry of the reboot queue. Workers, the journal and the API see one text, a run's id: that of an entry is
/// `rq-<index>-<added_at>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    Run(RunId),
    /// An entry of the reboot queue.
    Entry {
        index: u64,
        /// When it was added, in seconds since 1970. That makes it unique: a site that is rolled back to an earlier state gives the
        /// index to another entry.
        added_at: i64,
    },
}

impl Owner {
    /// The id in the place of a run's, under which commands are sent.
    pub fn id(&self) -> RunId {
        match self {
            Self::Run(run) => run.clone(),
            Self::Entry { .. } => {
                RunId::new(&self.to_string()).expect("letters, digits and hyphens are a valid id")
            }
        }
    }

    /// The run, if it is one.
    pub const fn run(&self) -> Option<&RunId> {
        match self {
            Self::Run(run) => Some(run),
            Self::Entry { .. } => None,
        }
    }

    /// The index of the entry, if it is one.
    pub const fn entry(&self) -> Option<u64> {
        match self {
            Self::Run(_) => None,
            Self::Entry { index, .. } => Some(*index),
        }
    }

    /// Whether it is this run.
    pub fn is_run(&self, run: &RunId) -> bool {
        self.run() == Some(run)
    }
}

impl From<RunId> for Owner {
    fn from(id: RunId) -> Self {
        entry_of(&id).unwrap_or(Self::Run(id))
    }
}

impl From<&RunId> for Owner {
    fn from(id: &RunId) -> Self {
        entry_of(id).unwrap_or_else(|| Self::Run(id.clone()))
    }
}

/// The entry whose id this is.
fn entry_of(id: &RunId) -> Option<Owner> {
    let (index, added_at) = id.as_str().strip_prefix(ENTRY_PREFIX)?.split_once('-')?;
    let entry = Owner::Entry { index: index.parse().ok()?, added_at: added_at.parse().ok()? };
    // Another way to write a number is another id.
    (entry.to_string() == id.as_str()).then_some(entry)
}

impl Display for Owner {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => run.fmt(f),
            Self::Entry { index, added_at } => write!(f, "{ENTRY_PREFIX}{index}-{added_at}"),
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RunId::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_back_from_their_ids() {
        for (id, entry) in [
            ("rq-12-1728000000", Some(12)),
            ("rq-0-0", Some(0)),
            ("rq-1--5", Some(1)),
            ("rq-", None),
            ("rq-x-1", None),
            ("rq-12", None),
            ("rq-012-1", None),
            ("rq-12-01", None),
            ("rq-18446744073709551616-1", None),
            ("20261125T000000Z-1-ab", None),
        ] {
            let id = RunId::new(id).unwrap();
            let owner = Owner::from(&id);
            assert_eq!(owner.entry(), entry, "{id}");
            assert_eq!(owner.run(), entry.is_none().then_some(&id));
            assert_eq!((owner.id(), owner.is_run(&id)), (id.clone(), entry.is_none()));
            let json = serde_json::to_string(&owner).unwrap();
            assert_eq!(json, serde_json::to_string(&id).unwrap());
            assert_eq!(serde_json::from_str::<Owner>(&json).unwrap(), owner);
        }
    }
}
