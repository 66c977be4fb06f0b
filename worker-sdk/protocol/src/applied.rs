//! Reports of hosts on what they have applied of what they are to have.

use serde::{Deserialize, Serialize};

use crate::json::parse_bounded;
use crate::limits::{APPLIED_BYTES_MAX, APPLY_ERROR_BYTES_MAX, ITEMS_MAX, UNIT_WORD_BYTES_MAX, bounded};
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
    /// What it has, or should have by that manifest. A unit that the host has or runs is among it, whatever the manifest says; a unit that is
    /// not does not run there.
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
    /// What a unit does; absent for other kinds, and if the host does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitReport>,
}

/// What a unit does on its host: `{"state":"launched","load":"loaded","active":"active","sub":"running"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitReport {
    pub state: ReportedState,
    /// The `LoadState` of systemd, one word of at most [`UNIT_WORD_BYTES_MAX`], as the others.
    pub load: String,
    /// The `ActiveState` of systemd.
    pub active: String,
    /// The `SubState` of systemd.
    pub sub: String,
}

/// How far the agent has come with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedState {
    /// It is still there, and is on its way out or not loaded yet.
    Inactive,
    /// It is there, and the agent has not started it.
    Loaded,
    /// The agent has started it for its contents, its placement and this boot, however that ended.
    Launched,
}

impl UnitReport {
    /// The same with each word as a report may have it.
    #[must_use]
    pub fn bounded(self) -> Self {
        let word = |word: String| one_bounded_line(&word, UNIT_WORD_BYTES_MAX);
        Self { state: self.state, load: word(self.load), active: word(self.active), sub: word(self.sub) }
    }
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
    one_bounded_line(error, APPLY_ERROR_BYTES_MAX)
}

fn one_bounded_line(text: &str, bytes_max: usize) -> String {
    bounded(&one_line(text, bytes_max), bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{CONFIGURATIONS_MAX, UNITS_MAX};

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

    #[test]
    fn units_are_reported() {
        let payload = concat!(
            r#"{"site":"hall-1","epoch":0,"sequence":7,"items":[{"kind":"unit","name":"app.service","id":"unit-0-7","#,
            r#""unit":{"state":"launched","load":"loaded","active":"active","sub":"running"}},"#,
            r#"{"kind":"unit","name":"net.service","error":"no such user"}]}"#
        );
        let report = Applied::parse(payload.as_bytes()).unwrap();
        let states: Vec<_> = report.items.iter().map(|item| item.unit.as_ref().map(|it| it.state)).collect();
        assert_eq!(states, [Some(ReportedState::Launched), None]);
        assert_eq!(String::from_utf8(report.to_payload()).unwrap(), payload);
        let unknown = payload.replace("launched", "asleep");
        assert!(matches!(Applied::parse(unknown.as_bytes()), Err(ParseError::Json(_))));
    }

    #[test]
    fn words_about_units_are_bounded() {
        let long = "\u{1b}[2J\n".repeat(40);
        let report = UnitReport {
            state: ReportedState::Loaded,
            load: long.clone(),
            active: "active".to_owned(),
            sub: long,
        };
        let bounded = report.bounded();
        assert_eq!(bounded.active, "active");
        for word in [bounded.load, bounded.sub] {
            let is_plain = !word.chars().any(char::is_control);
            assert!(is_plain && word.len() <= UNIT_WORD_BYTES_MAX, "{word:?}");
        }
    }

    /// The longest report that a worker makes of as many items as a host may have can be read.
    #[test]
    fn longest_reports_fit() {
        let name = "\u{e4}".repeat(127);
        let word = || "\"".repeat(UNIT_WORD_BYTES_MAX);
        let configuration = |number: usize| AppliedItem {
            kind: ItemKind::Configuration,
            name: format!("{name}{}", number % 10),
            id: Some(ItemId::new(&"x".repeat(64)).unwrap()),
            error: Some(apply_error(&"\\\u{1}\n".repeat(1_000))),
            unit: None,
        };
        let state = ReportedState::Launched;
        let unit = |number: usize| AppliedItem {
            kind: ItemKind::Unit,
            name: format!("{}{number:03}.service", "\\".repeat(244)),
            id: Some(ItemId::new(&"x".repeat(64)).unwrap()),
            error: Some(apply_error(&"\\".repeat(1_000))),
            unit: Some(UnitReport { state, load: word(), active: word(), sub: word() }),
        };
        let units = (0..UNITS_MAX).map(unit);
        let items = (0..CONFIGURATIONS_MAX).map(configuration).chain(units).collect();
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
        assert_eq!(Applied::parse(many.as_bytes()).unwrap_err().to_string(), "more than 1024 items");
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
