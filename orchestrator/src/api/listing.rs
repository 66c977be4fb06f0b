//! What lists have in common: with `keys=true` there are only the keys of their entries, with `count=true` only how
//! many entries there are, on all pages together. `limit` and `after` page through long ones: `next` of one page is
//! `after` of the next.

use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Parameters, True};
use crate::store::FactCursor;

/// Entries in a page, when nothing is asked for, and at most.
pub(super) const PAGE_DEFAULT: u32 = 50;
pub(super) const PAGE_MAX: u32 = 500;

/// Makes the parameters of a list with pages: its name, the type of its keys and what describes them in the document, how
/// a key is read where it does not read itself, and the parameters that only this list has.
macro_rules! paged {
    (
        $name:ident by $key:ty, described by $text:ident $(, read by $read:literal)?
        $(; $(#[doc = $meaning:literal])+ $own:ident)*
    ) => {
        #[derive(Debug, ::serde::Deserialize, ::utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        struct $name {
            /// How many entries at most; 50 unless given.
            #[param(minimum = 1, maximum = 500)]
            #[serde(default, deserialize_with = "crate::api::listing::page")]
            limit: Option<u32>,
            /// The `next` of the page before.
            #[serde($(default, deserialize_with = $read)?)]
            #[param(value_type = Option<crate::api::openapi::types::$text>)]
            after: Option<$key>,
            $(
                $(#[doc = $meaning])+
                #[param(inline)]
                $own: Option<crate::api::extract::True>,
            )*
            /// Only the keys of the entries.
            #[param(inline)]
            keys: Option<crate::api::extract::True>,
            /// Only how many there are, on all pages together. It goes before `keys`.
            #[param(inline)]
            count: Option<crate::api::extract::True>,
        }

        impl crate::api::extract::Parameters for $name {
            const NAMES: &'static [&'static str] =
                &["limit", "after", $(stringify!($own),)* "keys", "count"];
        }

        impl $name {
            /// What is asked for.
            fn asked(self) -> crate::api::listing::Asked<$key> {
                let Self { limit, after, keys, count, .. } = self;
                crate::api::listing::Asked {
                    wanted: crate::api::listing::Wanted::of(keys.as_ref(), count.as_ref()),
                    limit: limit.unwrap_or(crate::api::listing::PAGE_DEFAULT),
                    after,
                }
            }
        }
    };
}

pub(super) use paged;

/// Reads how many are wanted, from 1 to `MAX`.
pub(super) fn limit<'de, D: Deserializer<'de>, const MAX: u32>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    let limit = u32::deserialize(deserializer)?;
    if (1..=MAX).contains(&limit) {
        Ok(Some(limit))
    } else {
        Err(de::Error::custom(format!("{limit} is not between 1 and {MAX}")))
    }
}

/// Reads how many entries are wanted in a page.
pub(super) fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    limit::<_, PAGE_MAX>(deserializer)
}

/// Reads the place of a fact.
pub(super) fn cursor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<FactCursor>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

/// The parameters of a list by name, which is whole unless a page of it is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Listing {
    /// How many entries at most; all unless given.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "page")]
    limit: Option<u32>,
    /// The `next` of the page before: entries whose names come after this one.
    after: Option<String>,
    /// Only the keys of the entries.
    #[param(inline)]
    keys: Option<True>,
    /// Only how many entries there are. It goes before `keys`.
    #[param(inline)]
    count: Option<True>,
}

impl Parameters for Listing {
    const NAMES: &'static [&'static str] = &["limit", "after", "keys", "count"];
}

impl Listing {
    /// The parameters of a list that has more of them.
    pub(super) const fn of(
        limit: Option<u32>,
        after: Option<String>,
        keys: Option<True>,
        count: Option<True>,
    ) -> Self {
        Self { limit, after, keys, count }
    }

    /// What is wanted.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted::of(self.keys.as_ref(), self.count.as_ref())
    }

    /// Whether only a page is wanted.
    pub(super) const fn is_paged(&self) -> bool {
        self.limit.is_some() || self.after.is_some()
    }

    /// Of `entries`, which are in the order of their names, those that are wanted, and what the next page begins after.
    pub(super) fn page<T>(
        &self,
        entries: impl Iterator<Item = T>,
        name: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let is_after = |entry: &T| self.after.as_ref().is_none_or(|after| name(entry) > *after);
        let mut entries = entries.filter(is_after);
        let limit = self.limit.map_or(usize::MAX, |limit| limit as usize);
        let items: Vec<T> = entries.by_ref().take(limit).collect();
        let is_last = entries.next().is_none();
        let next = items.last().filter(|_| !is_last).map(name);
        (items, next)
    }
}

/// What is asked of a list with pages.
pub(super) struct Asked<K> {
    pub(super) wanted: Wanted,
    /// How many entries a page has at most.
    pub(super) limit: u32,
    /// The key of the last entry of the page before.
    pub(super) after: Option<K>,
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
