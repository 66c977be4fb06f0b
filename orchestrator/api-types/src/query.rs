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
    /// The names of all parameters.
    const NAMES: &'static [&'static str];
}

/// No query parameters.
#[derive(Debug, Deserialize)]
pub struct NoParameters {}

impl Parameters for NoParameters {
    const NAMES: &'static [&'static str] = &[];
}

/// The only value that the specification defines for `validate`. A parameter without a value means it too.
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
        Err(de::Error::custom(format!(
            "{text:?} is not a valid value; write true, or leave the parameter out"
        )))
    }
}

/// `validate=true`: only validate the request.
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
    /// Whether only to validate the request.
    pub fn is_validation(&self) -> bool {
        matches!(self.validate, Some(True::True))
    }
}

/// Reads a limit from 1 to `MAX`.
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

/// Most entries on a page.
pub const PAGE_MAX: u32 = 500;

/// Reads the limit of a page.
pub(crate) fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    limit::<_, PAGE_MAX>(deserializer)
}

/// Entries on a page without `limit`.
pub const PAGE_DEFAULT: u32 = 50;

/// What a list returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListMode {
    /// The entries.
    Entries,
    /// Their keys.
    Keys,
    /// Their number.
    Count,
}

impl ListMode {
    /// The mode by the two parameters; `count` takes precedence.
    pub const fn of(keys: Option<True>, count: Option<True>) -> Self {
        match (keys, count) {
            (_, Some(True::True)) => Self::Count,
            (Some(True::True), None) => Self::Keys,
            (None, None) => Self::Entries,
        }
    }
}

/// The query of a list with pages.
#[derive(Debug)]
pub struct ListQuery<K> {
    pub mode: ListMode,
    /// The maximum number of entries on the page.
    pub limit: u32,
    /// The key of the last entry of the previous page.
    pub after: Option<K>,
}

impl<K> ListQuery<K> {
    pub(crate) fn of(limit: Option<u32>, after: Option<K>, keys: Option<True>, count: Option<True>) -> Self {
        Self { mode: ListMode::of(keys, count), limit: limit.unwrap_or(PAGE_DEFAULT), after }
    }
}

/// The parameters of a list by name. All entries are returned unless a page is requested.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NameList {
    /// The maximum number of entries; the default is all.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "page")]
    pub limit: Option<u32>,
    /// The `next` of the previous page: return entries whose names come after this one.
    pub after: Option<String>,
    /// Return only the keys of the entries.
    #[param(inline)]
    pub keys: Option<True>,
    /// Return only the number of entries. Takes precedence over `keys`.
    #[param(inline)]
    pub count: Option<True>,
}

impl Parameters for NameList {
    const NAMES: &'static [&'static str] = &["limit", "after", "keys", "count"];
}

impl NameList {
    /// What the list returns.
    pub const fn mode(&self) -> ListMode {
        ListMode::of(self.keys, self.count)
    }

    /// Whether a page is requested.
    pub const fn is_paged(&self) -> bool {
        self.limit.is_some() || self.after.is_some()
    }

    /// The requested page of `entries`, which are sorted by name, and the `after` of the next page.
    pub fn page<T>(
        &self,
        entries: impl Iterator<Item = T>,
        name: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        page_of(self.limit, self.after.as_ref(), entries, name)
    }
}

/// The first `limit` of `entries` after the one with the key `after`, and the key of the last if there are more. `entries` are sorted
/// by key.
pub fn page_of<T, K: Ord>(
    limit: Option<u32>,
    after: Option<&K>,
    entries: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> (Vec<T>, Option<K>) {
    let mut entries = entries.filter(|entry| after.is_none_or(|after| key(entry) > *after));
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    let items: Vec<T> = entries.by_ref().take(limit).collect();
    let is_last = entries.next().is_none();
    let next = items.last().filter(|_| !is_last).map(key);
    (items, next)
}

/// Declares the parameters of a list with pages: their name, the type of the keys and its description, and the
/// parameters that only this list has.
macro_rules! paged {
    (
        $(#[doc = $what:literal])+ $name:ident by $key:ty, described by $text:ident
        $(; $(#[doc = $meaning:literal])+ $own:ident)*
    ) => {
        $(#[doc = $what])+
        #[derive(Debug, ::serde::Deserialize, ::utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            /// The maximum number of entries; the default is 50.
            #[param(minimum = 1, maximum = 500)]
            #[serde(default, deserialize_with = "crate::query::page")]
            pub limit: Option<u32>,
            /// The `next` of the previous page.
            #[param(value_type = Option<$text>)]
            pub after: Option<$key>,
            $(
                $(#[doc = $meaning])+
                #[param(inline)]
                pub $own: Option<crate::query::True>,
            )*
            /// Return only the keys of the entries.
            #[param(inline)]
            pub keys: Option<crate::query::True>,
            /// Return only the number of entries on all pages. Takes precedence over `keys`.
            #[param(inline)]
            pub count: Option<crate::query::True>,
        }

        impl crate::query::Parameters for $name {
            const NAMES: &'static [&'static str] =
                &["limit", "after", $(stringify!($own),)* "keys", "count"];
        }

        impl $name {
            /// The query, with defaults.
            pub fn into_query(self) -> crate::query::ListQuery<$key> {
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
