//! `ETag`, `If-Match` and `If-None-Match` (RFC 9110, section 13) for the configuration.
//!
//! Tags are strong, and differ between the JSON and YAML forms of the same configuration. Writes accept the tag of
//! either form.

use std::fmt::Display;

use axum::extract::FromRequestParts;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use os_upgrade_kernel::Expected;

use crate::http::error::Problem;
use crate::http::form::Syntax;

/// Suffix of the tag of a YAML answer.
const YAML_SUFFIX: &str = "-yaml";

/// Most tags in a header.
const TAGS_MAX: usize = 256;

/// The `ETag` of the configuration with `tag`, in `syntax`.
pub(crate) fn entity_tag(tag: &str, syntax: Syntax) -> Result<HeaderValue, Problem> {
    let suffix = match syntax {
        Syntax::Json => "",
        Syntax::Yaml => YAML_SUFFIX,
    };
    HeaderValue::from_str(&format!("\"{tag}{suffix}\"")).map_err(|error| Problem::internal(error.to_string()))
}

/// A tag in a client's header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tag {
    is_weak: bool,
    /// The text between the quotes.
    text: String,
}

impl Tag {
    /// The tag of the configuration, without the suffix of its form.
    fn configuration(&self) -> &str {
        self.text.strip_suffix(YAML_SUFFIX).unwrap_or(&self.text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tags {
    Any,
    Listed(Vec<Tag>),
}

/// The conditions of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    matching: Option<Tags>,
    not_matching: Option<Tags>,
}

/// The outcome of a conditional read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// 200: the configuration is sent.
    Send,
    /// 304: the client has it already.
    NotModified,
    /// 412: `If-Match` does not hold.
    Failed,
}

impl Conditions {
    /// Reads the conditions from `headers`.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        Ok(Self { matching: tags(headers, &IF_MATCH)?, not_matching: tags(headers, &IF_NONE_MATCH)? })
    }

    /// The outcome of a read of the configuration with `tag`, in `syntax`.
    pub(crate) fn for_read(&self, tag: &str, syntax: Syntax) -> Read {
        if !self.is_matched(Some(tag)) {
            return Read::Failed;
        }
        // A cached answer in the other form is a different text.
        let is_same_form = |known: &Tag| known.text.ends_with(YAML_SUFFIX) == (syntax == Syntax::Yaml);
        let is_known = match &self.not_matching {
            None => false,
            Some(Tags::Any) => true,
            Some(Tags::Listed(tags)) => {
                tags.iter().any(|known| known.configuration() == tag && is_same_form(known))
            }
        };
        if is_known { Read::NotModified } else { Read::Send }
    }

    /// Whether a write is permitted when the configuration has `tag`, or does not exist.
    pub(crate) fn hold(&self, tag: Option<&str>) -> bool {
        let is_excluded = match (&self.not_matching, tag) {
            (None, _) | (_, None) => false,
            (Some(Tags::Any), Some(_)) => true,
            (Some(Tags::Listed(tags)), Some(tag)) => tags.iter().any(|known| known.configuration() == tag),
        };
        self.is_matched(tag) && !is_excluded
    }

    /// Whether the request requires that no configuration exists.
    pub(crate) fn require_absence(&self) -> bool {
        self.not_matching == Some(Tags::Any)
    }

    /// The conditions as the leader checks them; `None` if they cannot be expressed without the current tag.
    pub(crate) fn expected(&self) -> Option<Expected> {
        match (&self.matching, &self.not_matching) {
            (None, None) => Some(Expected::Anything),
            (Some(Tags::Any), None) => Some(Expected::Present),
            (Some(Tags::Listed(_)), None) => Some(Expected::Tags(self.matching_tags())),
            (None, Some(Tags::Any)) => Some(Expected::Absent),
            // Contradictory conditions, which no configuration meets.
            (Some(_), Some(Tags::Any)) => Some(Expected::Tags(Vec::new())),
            (_, Some(Tags::Listed(_))) => None,
        }
    }

    /// The tags of `If-Match`, which compares strongly: weak tags never match.
    fn matching_tags(&self) -> Vec<String> {
        match &self.matching {
            Some(Tags::Listed(tags)) => {
                let strong = tags.iter().filter(|tag| !tag.is_weak);
                strong.map(|tag| tag.configuration().to_owned()).collect()
            }
            Some(Tags::Any) | None => Vec::new(),
        }
    }

    fn is_matched(&self, tag: Option<&str>) -> bool {
        match (&self.matching, tag) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(Tags::Any), Some(_)) => true,
            (Some(Tags::Listed(_)), Some(tag)) => self.matching_tags().iter().any(|known| known == tag),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Conditions {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(&parts.headers)
    }
}

/// Reads a header with tags. A malformed condition is refused, because ignoring it could make an unwanted change.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Problem> {
    let mut listed = Vec::new();
    let mut is_given = false;
    for value in headers.get_all(name) {
        is_given = true;
        let value = value.to_str().map_err(|_| unreadable(name, "it is not ASCII"))?.trim();
        if value == "*" && headers.get_all(name).iter().count() == 1 {
            return Ok(Some(Tags::Any));
        }
        list(value, &mut listed).map_err(|wrong| unreadable(name, wrong))?;
    }
    Ok(is_given.then_some(Tags::Listed(listed)))
}

fn unreadable(name: &HeaderName, wrong: impl Display) -> Problem {
    let name = if *name == IF_MATCH { "If-Match" } else { "If-None-Match" };
    Problem::bad_request(format!(
        "{name}: {wrong}; * or tags in quotes are expected, as in ETag: \"1\", \"2\""
    ))
}

/// Parses `"a", W/"b"`. A tag may contain commas, and any visible character but quotes.
fn list(value: &str, tags: &mut Vec<Tag>) -> Result<(), &'static str> {
    let mut rest = value.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let is_weak = rest.starts_with("W/");
        let quoted =
            rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"').ok_or("a tag has no quotes")?;
        let (text, after) = quoted.split_once('"').ok_or("a tag has no closing quote")?;
        if tags.len() == TAGS_MAX {
            return Err("there are too many tags");
        }
        tags.push(Tag { is_weak, text: text.to_owned() });
        let after = after.trim_start_matches([' ', '\t']);
        if !after.is_empty() && !after.starts_with(',') {
            return Err("there is something between two tags");
        }
        rest = after.trim_start_matches([' ', '\t', ',']);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(matching: &str, not_matching: &str) -> Conditions {
        let mut headers = HeaderMap::new();
        for (name, value) in [(IF_MATCH, matching), (IF_NONE_MATCH, not_matching)] {
            if !value.is_empty() {
                headers.insert(name, value.parse().unwrap());
            }
        }
        Conditions::of(&headers).unwrap()
    }

    #[test]
    fn conditions_of_writes() {
        let tags = |tags: &[&str]| Some(Expected::Tags(tags.iter().map(|&tag| tag.to_owned()).collect()));
        // If-Match, If-None-Match, expected; permitted without a configuration, with tag 1, with tag 2.
        let cases = [
            ("", "", Some(Expected::Anything), [true, true, true]),
            ("*", "", Some(Expected::Present), [false, true, true]),
            ("\"1\"", "", tags(&["1"]), [false, true, false]),
            ("\"1-yaml\"", "", tags(&["1"]), [false, true, false]),
            ("W/\"1\"", "", tags(&[]), [false, false, false]),
            ("\"a,b\" ,, W/\"1\",\"2\",", "", tags(&["a,b", "2"]), [false, false, true]),
            (",", "", tags(&[]), [false, false, false]),
            ("", "*", Some(Expected::Absent), [true, false, false]),
            ("*", "*", tags(&[]), [false, false, false]),
            ("", "\"1\"", None, [true, false, true]),
            ("", "W/\"1-yaml\"", None, [true, false, true]),
            ("\"1\", \"2\"", "\"1\"", None, [false, false, true]),
        ];
        for (matching, not_matching, expected, held) in cases {
            let conditions = conditions(matching, not_matching);
            assert_eq!(conditions.expected(), expected, "{matching} {not_matching}");
            let found = [None, Some("1"), Some("2")].map(|tag| conditions.hold(tag));
            assert_eq!(found, held, "{matching} {not_matching}");
            if let Some(expected) = expected {
                assert_eq!([None, Some("1"), Some("2")].map(|tag| expected.is_met_by(tag)), held);
            }
        }
    }

    #[test]
    fn conditions_of_reads() {
        let cases = [
            ("", "", Read::Send, Read::Send),
            ("\"1\"", "", Read::Send, Read::Send),
            ("\"2\"", "\"1\"", Read::Failed, Read::Failed),
            ("", "\"1\"", Read::NotModified, Read::Send),
            ("", "W/\"1\"", Read::NotModified, Read::Send),
            ("", "\"1-yaml\"", Read::Send, Read::NotModified),
            ("", "\"2\", \"1\"", Read::NotModified, Read::Send),
            ("", "*", Read::NotModified, Read::NotModified),
            ("*", "\"2\"", Read::Send, Read::Send),
        ];
        for (matching, not_matching, json, yaml) in cases {
            let conditions = conditions(matching, not_matching);
            let found = [Syntax::Json, Syntax::Yaml].map(|syntax| conditions.for_read("1", syntax));
            assert_eq!(found, [json, yaml], "{matching} {not_matching}");
        }
    }

    #[test]
    fn malformed_conditions_are_refused() {
        for value in ["1", "\"1", "*, \"1\"", "\"1\" \"2\"", "w/\"1\"", "\"1\"x"] {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, value.parse().unwrap());
            let problem = Conditions::of(&headers).unwrap_err().into_message();
            assert!(problem.starts_with("If-Match: "), "{value}: {problem}");
        }
    }
}
