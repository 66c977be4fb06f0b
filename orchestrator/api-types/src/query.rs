//! Query parameters that several routes share.

use os_upgrade_kernel::FactCursor;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::text::FactKeyText;

/// The query parameters of a route.
pub trait Parameters: DeserializeOwned {
    /// Every name there is.
    const NAMES: &'static [&'static str];
}

/// No query parameters.
#[derive(Debug, Deserialize)]
pub struct Nothing {}

impl Parameters for Nothing {
    const NAMES: &'static [&'static str] = &[];
}

/// The only value that the specification has for `validate`; the name of a parameter alone means it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum True {
    True,
}

impl PartialSchema for True {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["true", ""])).into()
    }
}

impl ToSchema for True {}

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() || text == "true" {
            return Ok(Self::True);
        }
        Err(de::Error::custom(format!("{text:?} is not understood; write true, or leave the parameter out")))
    }
}

/// `validate=true`: check, and do nothing.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Validate {
    /// Validate the request but do not actually perform the requested operation.
    #[param(inline)]
    pub validate: Option<True>,
}

impl Parameters for Validate {
    const NAMES: &'static [&'static str] = &["validate"];
}

impl Validate {
    /// Whether the request is only to be checked.
    pub fn only(&self) -> bool {
        matches!(self.validate, Some(True::True))
    }
}

/// Reads how many are wanted, from 1 to `MAX`.
pub(crate) fn limit<'de, D: Deserializer<'de>, const MAX: u32>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    let limit = u32::deserialize(deserializer)?;
    if (1..=MAX).contains(&limit) {
        Ok(Some(limit))
    } else {
        Err(de::Error::custom(format!("{limit} is not between 1 and {MAX}")))
    }
}

/// Most entries of a page.
pub const PAGE_MAX: u32 = 500;

/// Reads how many entries are wanted in a page.
pub(crate) fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    limit::<_, PAGE_MAX>(deserializer)
}

/// Entries of a page, when nothing is asked for.
const PAGE_DEFAULT: u32 = 50;

/// What of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListMode {
    /// The entries.
    Entries,
    /// Their keys.
    Keys,
    /// How many there are.
    Count,
}

impl ListMode {
    /// By what was said of the two parameters.
    pub const fn of(keys: Option<True>, count: Option<True>) -> Self {
        match (keys, count) {
            (_, Some(True::True)) => Self::Count,
            (Some(True::True), None) => Self::Keys,
            (None, None) => Self::Entries,
        }
    }
}

/// What is asked of a list with pages.
#[derive(Debug)]
pub struct ListQuery<K> {
    pub mode: ListMode,
    /// How many entries a page has at most.
    pub limit: u32,
    /// The key of the last entry of the page before.
    pub after: Option<K>,
}

impl<K> ListQuery<K> {
    pub(crate) fn of(limit: Option<u32>, after: Option<K>, keys: Option<True>, count: Option<True>) -> Self {
        Self { mode: ListMode::of(keys, count), limit: limit.unwrap_or(PAGE_DEFAULT), after }
    }
}

/// The parameters of a list by name, which is whole unless a page of it is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NameList {
    /// How many entries at most; all unless given.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "page")]
    pub limit: Option<u32>,
    /// The `next` of the page before: entries whose names come after this one.
    pub after: Option<String>,
    /// Only the keys of the entries.
    #[param(inline)]
    pub keys: Option<True>,
    /// Only how many entries there are. It goes before `keys`.
    #[param(inline)]
    pub count: Option<True>,
}

impl Parameters for NameList {
    const NAMES: &'static [&'static str] = &["limit", "after", "keys", "count"];
}

impl NameList {
    /// What is wanted.
    pub const fn mode(&self) -> ListMode {
        ListMode::of(self.keys, self.count)
    }

    /// Whether only a page is wanted.
    pub const fn is_paged(&self) -> bool {
        self.limit.is_some() || self.after.is_some()
    }

    /// Of `entries`, which are in the order of their names, those that are wanted, and what the next page begins after.
    pub fn page<T>(
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

/// Makes the parameters of a list with pages: its name, the type of its keys and what describes them, and the parameters
/// that only this list has.
macro_rules! paged {
    (
        $(#[doc = $what:literal])+ $name:ident by $key:ty, described by $text:ident
        $(; $(#[doc = $meaning:literal])+ $own:ident)*
    ) => {
        $(#[doc = $what])+
        #[derive(Debug, ::serde::Deserialize, ::utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            /// How many entries at most; 50 unless given.
            #[param(minimum = 1, maximum = 500)]
            #[serde(default, deserialize_with = "crate::query::page")]
            pub limit: Option<u32>,
            /// The `next` of the page before.
            #[param(value_type = Option<$text>)]
            pub after: Option<$key>,
            $(
                $(#[doc = $meaning])+
                #[param(inline)]
                pub $own: Option<crate::query::True>,
            )*
            /// Only the keys of the entries.
            #[param(inline)]
            pub keys: Option<crate::query::True>,
            /// Only how many there are, on all pages together. It goes before `keys`.
            #[param(inline)]
            pub count: Option<crate::query::True>,
        }

        impl crate::query::Parameters for $name {
            const NAMES: &'static [&'static str] =
                &["limit", "after", $(stringify!($own),)* "keys", "count"];
        }

        impl $name {
            /// What is asked for.
            pub fn asked(self) -> crate::query::ListQuery<$key> {
                let Self { limit, after, keys, count, .. } = self;
                crate::query::ListQuery::of(limit, after, keys, count)
            }
        }
    };
}

pub(crate) use paged;

paged!(
    /// The parameters of a list of facts, newest first.
    FactList by FactCursor, described by FactKeyText
);
