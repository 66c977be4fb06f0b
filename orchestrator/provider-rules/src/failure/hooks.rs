//! What may be wrong with what a hook answers about one host. None of it holds anything of a content.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Why what an answer says about a host cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberProblem {
    /// It is no object, names a key twice, or has another value than a text where a text belongs.
    Malformed,
    /// The answer says something about the same call twice.
    Doubled,
    /// Its spellings of the configuration's name contradict each other.
    NamesDiffer,
    /// It has the name of another configuration.
    OtherName,
    /// It has the event of one device and the name of another.
    OtherDevice,
    /// It names another event than the call.
    OtherEvent,
    /// Its `poll_interval` is neither a whole number of seconds nor a duration such as `30m`.
    PollInterval,
}

/// Why a configuration cannot be used. Files are numbered from 1, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ConfigurationProblem {
    /// It has more bytes than are taken.
    TooLarge {
        /// How many are taken.
        limit: usize,
    },
    /// It has escapes in JSON that are no characters.
    NotUnicode,
    /// It has the keys of a file, but a value of another type, a key twice, or an unknown encoding.
    File,
    /// The content of a file is not base64.
    Base64,
    /// It has a mode, a user or a group, but no path.
    NoPath,
    /// A path is not absolute or has `.`, `..`, empty segments or control characters.
    Path { file: usize },
    /// A mode is not from 0 to 0777 (octal).
    Mode { file: usize },
    /// A user or a group is no name.
    Owner { file: usize },
    /// It is not what its version of Ignition prescribes.
    Ignition {
        /// Where in the configuration that shows, from 1.
        line: usize,
        column: usize,
    },
    /// Its version of Ignition is not known.
    IgnitionVersion,
    /// It uses a part of Ignition that is not supported.
    Unsupported {
        /// Which one, such as `storage.directories`.
        key: Cow<'static, str>,
    },
    /// The content of a file is somewhere else: not in a `data:` URL.
    Source { file: usize },
    /// A `data:` URL is malformed.
    DataUrl { file: usize },
    /// It has no file.
    NoFiles,
    /// It has more files than are taken.
    TooManyFiles {
        /// How many are taken.
        limit: usize,
    },
    /// An earlier file has the same path.
    DuplicatePath { file: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_read_back() {
        for (problem, text) in [
            (MemberProblem::Malformed, "malformed"),
            (MemberProblem::Doubled, "doubled"),
            (MemberProblem::NamesDiffer, "names-differ"),
            (MemberProblem::OtherName, "other-name"),
            (MemberProblem::OtherDevice, "other-device"),
            (MemberProblem::OtherEvent, "other-event"),
            (MemberProblem::PollInterval, "poll-interval"),
        ] {
            let json = serde_json::to_string(&problem).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<MemberProblem>(&json).unwrap(), problem);
        }
        for problem in [
            ConfigurationProblem::TooLarge { limit: 7 },
            ConfigurationProblem::NotUnicode,
            ConfigurationProblem::File,
            ConfigurationProblem::Base64,
            ConfigurationProblem::NoPath,
            ConfigurationProblem::Path { file: 1 },
            ConfigurationProblem::Mode { file: 2 },
            ConfigurationProblem::Owner { file: 3 },
            ConfigurationProblem::Ignition { line: 1, column: 2 },
            ConfigurationProblem::IgnitionVersion,
            ConfigurationProblem::Unsupported { key: Cow::Borrowed("passwd") },
            ConfigurationProblem::Source { file: 4 },
            ConfigurationProblem::DataUrl { file: 5 },
            ConfigurationProblem::NoFiles,
            ConfigurationProblem::TooManyFiles { limit: 256 },
            ConfigurationProblem::DuplicatePath { file: 6 },
        ] {
            let json = serde_json::to_string(&problem).unwrap();
            assert_eq!(serde_json::from_str::<ConfigurationProblem>(&json).unwrap(), problem, "{json}");
        }
    }
}
