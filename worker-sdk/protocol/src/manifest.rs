//! Manifests: which items of `os-upgrade:desired` a host is to have.
//!
//! The newest manifest of a host alone counts. What it names is applied in its order, what it no longer names is removed, and what was never
//! named is nothing to the host, whatever is in the stream.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::{ID_BYTES_MAX, ITEMS_MAX, MANIFEST_BYTES_MAX};
use crate::name::check;
use crate::run_id::is_id;

/// How new a manifest or an item is: of two, the greater one is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision {
    /// When the site was restored last, in seconds since 1970, and at least one more than the epoch before; 0 if it never was.
    pub epoch: u64,
    /// The sequence in the orchestrators' journal from which it follows.
    pub sequence: u64,
}

/// The text is not a valid id of an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an item's id is 1 to {ID_BYTES_MAX} characters of [A-Za-z0-9_-]")]
pub struct ItemIdError;

/// Which message has an item: 1 to 64 characters of `[A-Za-z0-9_-]`. Another content has another id, and an id says nothing of the content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct ItemId(String);

impl ItemId {
    /// Parses `text` as an id.
    pub fn new(text: &str) -> Result<Self, ItemIdError> {
        if is_id(text) { Ok(Self(text.to_owned())) } else { Err(ItemIdError) }
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<Cow<'_, str>> for ItemId {
    type Error = ItemIdError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, ItemIdError> {
        Self::new(&text)
    }
}

impl From<ItemId> for String {
    fn from(id: ItemId) -> Self {
        id.0
    }
}

/// What an item is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Configuration, which the worker's handler gets.
    Configuration,
    /// A unit, which an agent runs. Its item is a [`UnitItem`](crate::UnitItem), and is not sealed.
    Unit,
    /// Something that only newer workers know. It is left alone, and reported as such.
    #[serde(other)]
    Other,
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Configuration => "configuration",
            Self::Unit => "unit",
            Self::Other => "other",
        })
    }
}

/// An item that a host is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub kind: ItemKind,
    /// What it is called, unique within its kind.
    pub name: String,
    pub id: ItemId,
    /// When it was sealed, or a unit stored. What was sealed for another place in this order cannot be opened.
    #[serde(flatten)]
    pub sealed: Revision,
}

/// What a host is to have:
/// `{"site":"hall-1","epoch":0,"sequence":4711,"items":[{"kind":"configuration","name":"app","id":"Zm9v","epoch":0,"sequence":4700}]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The site that says so. A worker that has applied one site's manifest refuses another's.
    pub site: String,
    #[serde(flatten)]
    pub revision: Revision,
    /// In the order in which they are applied.
    pub items: Vec<Item>,
}

impl Manifest {
    /// Reads a manifest from a message's payload.
    ///
    /// # Errors
    /// The payload is larger than [`MANIFEST_BYTES_MAX`], is not a JSON object of this shape, has more than [`ITEMS_MAX`] items, two of one
    /// kind and name, or a name that is none, of an item or of the site.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        let manifest: Self = parse_bounded(payload, MANIFEST_BYTES_MAX)?;
        check(&manifest.site).map_err(|error| ParseError::Value(format!("the name of the site: {error}")))?;
        if manifest.items.len() > ITEMS_MAX {
            return Err(ParseError::Value(format!("more than {ITEMS_MAX} items")));
        }
        let mut named = BTreeSet::new();
        for Item { kind, name, .. } in &manifest.items {
            check(name).map_err(|error| ParseError::Value(format!("the name of an item: {error}")))?;
            if *kind != ItemKind::Other && !named.insert((kind, name)) {
                return Err(ParseError::Value("two items of one kind and name".to_owned()));
            }
        }
        Ok(manifest)
    }

    /// The payload of this manifest.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers have no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{CONFIGURATIONS_MAX, NAME_BYTES_MAX, UNITS_MAX};

    fn with_items(items: &str) -> Result<Manifest, ParseError> {
        Manifest::parse(
            format!(r#"{{"site":"hall-1","epoch":0,"sequence":4711,"items":[{items}]}}"#).as_bytes(),
        )
    }

    #[test]
    fn manifests_are_read_back() {
        let payload = r#"{"site":"hall-1","epoch":0,"sequence":4711,"items":[{"kind":"configuration","name":"app","id":"Zm9v","epoch":0,"sequence":4700}]}"#;
        let manifest = Manifest::parse(payload.as_bytes()).unwrap();
        assert_eq!(manifest.revision, Revision { epoch: 0, sequence: 4711 });
        assert_eq!(String::from_utf8(manifest.to_payload()).unwrap(), payload);
        assert_eq!(with_items("").unwrap().items, []);
    }

    #[test]
    fn newer_is_a_later_restoration_or_a_later_record() {
        let of = |epoch, sequence| Revision { epoch, sequence };
        assert!(of(0, 9) < of(0, 10) && of(0, 10) < of(1_800_000_000, 2) && of(1, 2) < of(2, 1));
    }

    /// Kinds of newer orchestrators are no error: the others of the manifest count.
    #[test]
    fn unknown_kinds_are_kept_apart() {
        let item = |kind: &str| format!(r#"{{"kind":"{kind}","name":"a","id":"1","epoch":0,"sequence":1}}"#);
        let three = ["unit", "volume", "disk"].map(item).join(",");
        let kinds: Vec<_> = with_items(&three).unwrap().items.iter().map(|item| item.kind).collect();
        assert_eq!(kinds, [ItemKind::Unit, ItemKind::Other, ItemKind::Other]);
    }

    /// As many items as a host may have can be read, however long their names are.
    #[test]
    fn fullest_manifests_fit() {
        let newest = Revision { epoch: u64::MAX, sequence: u64::MAX };
        let id = ItemId::new(&"x".repeat(ID_BYTES_MAX)).unwrap();
        let item = |kind, name| Item { kind, name, id: id.clone(), sealed: newest };
        // Providers have short names of plain letters.
        let configurations = (0..CONFIGURATIONS_MAX)
            .map(|number| item(ItemKind::Configuration, format!("{}{number:03}", "x".repeat(61))));
        let units = (0..UNITS_MAX)
            .map(|number| item(ItemKind::Unit, format!("{}{number:03}.service", "\\".repeat(244))));
        let items = configurations.chain(units).collect();
        let manifest = Manifest { site: "\"".repeat(NAME_BYTES_MAX), revision: newest, items };
        assert_eq!(manifest.items.len(), ITEMS_MAX);
        assert_eq!(Manifest::parse(&manifest.to_payload()).unwrap(), manifest);
    }

    #[test]
    fn manifests_that_are_none_are_refused() {
        let item = |name: &str, id: &str| {
            format!(r#"{{"kind":"configuration","name":"{name}","id":"{id}","epoch":0,"sequence":1}}"#)
        };
        let many = |count: usize| {
            let items: Vec<_> = (0..count).map(|number| item(&format!("n{number}"), "1")).collect();
            items.join(",")
        };
        assert!(with_items(&many(ITEMS_MAX)).is_ok());
        for (items, expected) in [
            (many(ITEMS_MAX + 1), "more than 512 items"),
            (format!("{},{}", item("a", "1"), item("a", "2")), "two items of one kind and name"),
            (
                [item("a", "1"), item("a", "2")].join(",").replace("configuration", "unit"),
                "two items of one kind and name",
            ),
            (item("", "1"), "the name of an item: a name must not be empty"),
        ] {
            assert_eq!(with_items(&items).unwrap_err().to_string(), expected, "{items}");
        }
        let long = "x".repeat(ID_BYTES_MAX + 1);
        for id in ["", "a.b", "*", &long] {
            assert!(matches!(with_items(&item("a", id)), Err(ParseError::Json(_))), "{id}");
        }
        for json in [
            "",
            "[]",
            "{}",
            r#"{"site":"a","epoch":-1,"sequence":1,"items":[]}"#,
            r#"{"site":"","epoch":0,"sequence":1,"items":[]}"#,
        ] {
            assert!(Manifest::parse(json.as_bytes()).is_err(), "{json}");
        }
        let large = format!("{}{}", " ".repeat(MANIFEST_BYTES_MAX), "{}");
        assert!(matches!(Manifest::parse(large.as_bytes()), Err(ParseError::TooLarge { .. })));
    }
}
