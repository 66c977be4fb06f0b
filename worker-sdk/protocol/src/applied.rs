//! Reports of hosts on what they have applied of what they are to have.

use serde::{Deserialize, Serialize};

use crate::json::parse_bounded;
use crate::limits::{APPLIED_BYTES_MAX, APPLY_ERROR_BYTES_MAX, ITEMS_MAX};
use crate::text::one_line;
use crate::{ItemId, ItemKind, ParseError, Revision};

/// What a host has applied, whose last report counts:
/// `{"site":"hall-1","epoch":0,"sequence":4711,"items":[{"kind":"configuration","name":"app","id":"Zm9v"}]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The site whose manifests it follows.
    pub site: String,
    /// The newest manifest that it has accepted.
    #[serde(flatten)]
    pub revision: Revision,
    /// What it has, or should have by that manifest.
    pub items: Vec<AppliedItem>,
    /// Why it does not follow the manifest that it has read since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ManifestRefusal>,
}

/// Why a worker does not follow a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManifestRefusal {
    /// It is of another site.
    OtherSite,
    /// It is older than the one that it has accepted.
    Older,
    /// It is no manifest.
    Malformed,
    /// A reason that only newer workers know.
    #[serde(other)]
    Other,
}

/// One thing that a host has or should have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedItem {
    pub kind: ItemKind,
    pub name: String,
    /// The item that is in force; absent if none is, or it is not known which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ItemId>,
    /// Why what the manifest says of it is not in force, on one line of at most [`APPLY_ERROR_BYTES_MAX`]; absent if it is, or is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Applied {
    /// Reads a report from a message's payload.
    ///
    /// # Errors
    /// The payload is larger than [`APPLIED_BYTES_MAX`], is not a JSON object of this shape, or has more than twice [`ITEMS_MAX`] items.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        let applied: Self = parse_bounded(payload, APPLIED_BYTES_MAX)?;
        // What was taken out of a full manifest, and could not be revoked, is beside what the manifest has.
        if applied.items.len() > 2 * ITEMS_MAX {
            return Err(ParseError::Value(format!("more than {} items", 2 * ITEMS_MAX)));
        }
        Ok(applied)
    }

    /// The payload of this report.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers have no fallible part")
    }
}

/// `error` as a report says it.
pub fn apply_error(error: &str) -> String {
    crate::limits::bounded(&one_line(error, APPLY_ERROR_BYTES_MAX), APPLY_ERROR_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_back() {
        let payload = concat!(
            r#"{"site":"hall-1","epoch":0,"sequence":4711,"items":[{"kind":"configuration","name":"app","id":"Zm9v"},"#,
            r#"{"kind":"configuration","name":"net","error":"no such directory"}],"refused":"older"}"#
        );
        let report = Applied::parse(payload.as_bytes()).unwrap();
        assert_eq!(report.refused, Some(ManifestRefusal::Older));
        assert_eq!(String::from_utf8(report.to_payload()).unwrap(), payload);
        let newer = payload.replace("older", "too-late-at-night");
        assert_eq!(Applied::parse(newer.as_bytes()).unwrap().refused, Some(ManifestRefusal::Other));
    }

    /// The longest report that a worker makes can be read.
    #[test]
    fn longest_reports_fit() {
        let name = "\u{e4}".repeat(127);
        let item = |number: usize| AppliedItem {
            kind: ItemKind::Configuration,
            name: format!("{name}{}", number % 10),
            id: Some(ItemId::new(&"x".repeat(64)).unwrap()),
            error: Some(apply_error(&"\\\u{1}\n".repeat(1_000))),
        };
        let items = (0..ITEMS_MAX).map(item).collect();
        let report = Applied {
            site: name.clone(),
            revision: Revision { epoch: u64::MAX, sequence: u64::MAX },
            items,
            refused: None,
        };
        assert_eq!(Applied::parse(&report.to_payload()).unwrap(), report);
    }

    #[test]
    fn reports_that_are_none_are_refused() {
        let items = vec![r#"{"kind":"configuration","name":"a"}"#; 2 * ITEMS_MAX + 1].join(",");
        let many = format!(r#"{{"site":"a","epoch":0,"sequence":1,"items":[{items}]}}"#);
        assert_eq!(Applied::parse(many.as_bytes()).unwrap_err().to_string(), "more than 512 items");
        for json in [
            "",
            "[]",
            "{}",
            r#"{"site":"a","epoch":0,"sequence":1,"items":[{"kind":"configuration","name":"a","id":"a.b"}]}"#,
        ] {
            assert!(Applied::parse(json.as_bytes()).is_err(), "{json}");
        }
    }
}
