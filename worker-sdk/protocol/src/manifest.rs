//! Manifests: which items of `os-upgrade:desired` a host is to have.
//!
//! The newest manifest of a host alone counts. What it names is applied in its order, what it no longer names is removed, and what was never
//! named is nothing to the host, whatever is in the stream.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::{ITEM_ID_BYTES_MAX, ITEMS_MAX, MANIFEST_BYTES_MAX};
use crate::name::check;

/// How new a manifest is: of two, the greater one is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision {
    /// When the site was restored last, in seconds since 1970, and at least one more than the epoch before; 0 if it never was.
    pub epoch: u64,
    /// The sequence in the orchestrators' journal from which it follows.
    pub sequence: u64,
}

/// What an item is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Configuration, which the worker's handler gets.
    Configuration,
    /// Something that only newer workers know. It is left alone, and reported as such.
    #[serde(other)]
    Other,
}

/// An item that a host is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub kind: ItemKind,
    /// What it is called, unique within its kind.
    pub name: String,
    /// Which message has it. Another content has another id, and an id says nothing of the content.
    pub id: String,
}

/// What a host is to have:
/// `{"site":"hall-1","epoch":0,"sequence":4711,"items":[{"kind":"configuration","name":"app","id":"Zm9v"}]}`.
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
    /// kind and name, or a name or an id that is none.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        let manifest: Self = parse_bounded(payload, MANIFEST_BYTES_MAX)?;
        if manifest.items.len() > ITEMS_MAX {
            return Err(ParseError::Value(format!("more than {ITEMS_MAX} items")));
        }
        let mut named = BTreeSet::new();
        for Item { kind, name, id } in &manifest.items {
            check(name).map_err(|error| ParseError::Value(format!("the name of an item: {error}")))?;
            if !is_id(id) {
                let message = format!("an id has 1 to {ITEM_ID_BYTES_MAX} of A-Z, a-z, 0-9, _ and -");
                return Err(ParseError::Value(message));
            }
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

fn is_id(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=ITEM_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_items(items: &str) -> Result<Manifest, ParseError> {
        Manifest::parse(
            format!(r#"{{"site":"hall-1","epoch":0,"sequence":4711,"items":[{items}]}}"#).as_bytes(),
        )
    }

    #[test]
    fn manifests_are_read_back() {
        let payload = r#"{"site":"hall-1","epoch":0,"sequence":4711,"items":[{"kind":"configuration","name":"app","id":"Zm9v"}]}"#;
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
        let two = r#"{"kind":"unit","name":"a","id":"1"},{"kind":"disk","name":"a","id":"2"}"#;
        let kinds: Vec<_> = with_items(two).unwrap().items.iter().map(|item| item.kind).collect();
        assert_eq!(kinds, [ItemKind::Other, ItemKind::Other]);
    }

    #[test]
    fn manifests_that_are_none_are_refused() {
        let item =
            |name: &str, id: &str| format!(r#"{{"kind":"configuration","name":"{name}","id":"{id}"}}"#);
        let many = |count: usize| {
            let items: Vec<_> = (0..count).map(|number| item(&format!("n{number}"), "1")).collect();
            items.join(",")
        };
        assert!(with_items(&many(ITEMS_MAX)).is_ok());
        let long = "x".repeat(ITEM_ID_BYTES_MAX + 1);
        for (items, expected) in [
            (many(ITEMS_MAX + 1), "more than 256 items"),
            (format!("{},{}", item("a", "1"), item("a", "2")), "two items of one kind and name"),
            (item("", "1"), "the name of an item: a name must not be empty"),
            (item("a", ""), "an id has 1 to 64 of A-Z, a-z, 0-9, _ and -"),
            (item("a", "a.b"), "an id has 1 to 64 of A-Z, a-z, 0-9, _ and -"),
            (item("a", &long), "an id has 1 to 64 of A-Z, a-z, 0-9, _ and -"),
        ] {
            assert_eq!(with_items(&items).unwrap_err().to_string(), expected, "{items}");
        }
        for json in ["", "[]", "{}", r#"{"site":"a","epoch":-1,"sequence":1,"items":[]}"#] {
            assert!(Manifest::parse(json.as_bytes()).is_err(), "{json}");
        }
        let large = format!("{}{}", " ".repeat(MANIFEST_BYTES_MAX), "{}");
        assert!(matches!(Manifest::parse(large.as_bytes()), Err(ParseError::TooLarge { .. })));
    }
}
