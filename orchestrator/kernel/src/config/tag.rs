//! Tags of configurations: the content of an `ETag`, without quotes.

use serde::{Deserialize, Serialize};

use super::state::Config;
use crate::fnv::fnv;

/// The precondition of a write on the current configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "tags", rename_all = "kebab-case")]
pub enum Expected {
    /// No precondition.
    #[default]
    Anything,
    /// There is a configuration.
    Present,
    /// There is no configuration.
    Absent,
    /// There is a configuration with one of these tags.
    Tags(Vec<String>),
}

impl Expected {
    /// Whether the current configuration, with its `tag` if there is one, meets the precondition.
    pub fn is_met_by(&self, tag: Option<&str>) -> bool {
        match (self, tag) {
            (Self::Anything, _) | (Self::Present, Some(_)) | (Self::Absent, None) => true,
            (Self::Tags(tags), Some(tag)) => tags.iter().any(|expected| expected == tag),
            (Self::Present | Self::Tags(_), None) | (Self::Absent, Some(_)) => false,
        }
    }
}

/// The tag of `config`, the result of change number `revision`. It includes a hash of the content, because revisions may
/// repeat after a restoration.
pub(crate) fn tag(revision: u64, config: &Config) -> String {
    let content = serde_json::to_vec(config).expect("a configuration serializes to JSON");
    format!("{revision}-{:016x}", fnv(&content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preconditions_compare_tags() {
        let tags = |tags: &[&str]| Expected::Tags(tags.iter().map(ToString::to_string).collect());
        for (expected, present, absent) in [
            (Expected::Anything, true, true),
            (Expected::Present, true, false),
            (Expected::Absent, false, true),
            (tags(&["0-b", "1-a"]), true, false),
            (tags(&["2-a"]), false, false),
            (tags(&[]), false, false),
        ] {
            assert_eq!(expected.is_met_by(Some("1-a")), present, "{expected:?}");
            assert_eq!(expected.is_met_by(None), absent, "{expected:?}");
        }
    }
}
