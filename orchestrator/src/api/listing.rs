//! What lists have in common: with `keys=true` there are only the keys of their entries, with `count=true` only how
//! many entries there are, on all pages together.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Parameters, True};

/// The parameters of a list without pages.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Listing {
    /// Only the keys of the entries.
    #[param(inline)]
    keys: Option<True>,
    /// Only how many entries there are. It goes before `keys`.
    #[param(inline)]
    count: Option<True>,
}

impl Parameters for Listing {
    const NAMES: &'static [&'static str] = &["keys", "count"];
}

impl Listing {
    /// What is wanted.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted::of(self.keys.as_ref(), self.count.as_ref())
    }
}

/// What of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The entries.
    Entries,
    /// Their keys.
    Keys,
    /// How many there are.
    Count,
}

impl Wanted {
    /// By what was said of the two parameters.
    pub(super) fn of(keys: Option<&True>, count: Option<&True>) -> Self {
        match (keys, count) {
            (_, Some(True::True)) => Self::Count,
            (Some(True::True), None) => Self::Keys,
            (None, None) => Self::Entries,
        }
    }
}

/// How many entries a list has.
#[derive(Serialize, ToSchema)]
pub(super) struct Count {
    pub(super) count: u64,
}

/// An entry of a list, or only its key.
pub(super) fn entry<K, T>(wanted: Wanted, key: impl FnOnce() -> K, whole: impl FnOnce() -> T) -> Entry<K, T> {
    match wanted {
        Wanted::Keys => Entry::Key(key()),
        Wanted::Entries | Wanted::Count => Entry::Whole(whole()),
    }
}

/// As [`entry()`] makes it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Entry<K, T> {
    Key(K),
    Whole(T),
}
