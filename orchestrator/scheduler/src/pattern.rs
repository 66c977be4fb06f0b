//! Patterns of units' names, in the syntax of Go's `path.Match`, which fleet uses.
//!
//! Libraries of globs have other syntaxes: they know alternatives in braces, take `!` in a class for `^`, and have no backslash in one.

use std::borrow::Cow;
use std::fmt;
use std::str::{Chars, FromStr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::unit::UnitName;

/// The longest pattern, in bytes. Matching takes at most this times the length of a name.
pub const PATTERN_BYTES_MAX: usize = 256;

/// A pattern for whole names of units: `*` is any characters, `?` any one, `[a-z]` one of a class, `[^a-z]` one of none, `\` takes the
/// next one for itself. Cheap to clone.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct Pattern {
    text: Arc<str>,
    tokens: Arc<[Token]>,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is empty, and would match nothing.
    #[error("a pattern is not empty")]
    Empty,
    /// It is longer than any name.
    #[error("a pattern has at most {PATTERN_BYTES_MAX} bytes")]
    TooLong,
    /// It has a character that no name has, and that no message should have.
    #[error("a pattern has no control characters")]
    Control,
    /// It has a `[` that begins no class.
    #[error("a class is characters and ranges between [ and ], in which ] and - have a backslash")]
    Class,
    /// It ends in a backslash.
    #[error("a pattern does not end in a single backslash")]
    Backslash,
}

/// A part of a pattern.
#[derive(Debug, Clone)]
enum Token {
    /// Any number of characters.
    Star,
    /// One character.
    Any,
    /// This character.
    Char(char),
    /// One character that is in one of `ranges`, or with `negated` in none.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Token {
    /// Whether the token stands for one character and that may be `c`.
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => true,
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *negated
            }
        }
    }
}

impl Pattern {
    /// Parses `text` as a pattern.
    ///
    /// # Errors
    /// See [`PatternError`].
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::TooLong);
        }
        if text.contains(char::is_control) {
            return Err(PatternError::Control);
        }
        let mut tokens = Vec::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' => Token::Star,
                '?' => Token::Any,
                '[' => class(&mut rest)?,
                '\\' => Token::Char(rest.next().ok_or(PatternError::Backslash)?),
                c => Token::Char(c),
            });
        }
        Ok(Self { text: text.into(), tokens: tokens.into() })
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole of `name` matches.
    pub fn matches(&self, name: &UnitName) -> bool {
        // Names are ASCII.
        let name = name.as_str().as_bytes();
        let mut token = 0;
        let mut at = 0;
        // Behind the last star, and where what it does not stand for begins. Earlier stars never need to stand for more.
        let mut retry: Option<(usize, usize)> = None;
        while let Some(byte) = name.get(at) {
            match self.tokens.get(token) {
                Some(Token::Star) => {
                    token += 1;
                    retry = Some((token, at));
                }
                Some(own) if own.takes(char::from(*byte)) => {
                    token += 1;
                    at += 1;
                }
                Some(_) | None => {
                    let Some((behind_star, from)) = &mut retry else { return false };
                    *from += 1;
                    (token, at) = (*behind_star, *from);
                }
            }
        }
        self.tokens.iter().skip(token).all(|token| matches!(token, Token::Star))
    }

    /// The name that is the only one to match, if the pattern has neither stars nor question marks nor classes.
    pub(crate) fn only_name(&self) -> Option<UnitName> {
        let one = |token: &Token| match token {
            Token::Char(c) => Some(*c),
            Token::Star | Token::Any | Token::Class { .. } => None,
        };
        UnitName::new(&self.tokens.iter().map(one).collect::<Option<String>>()?).ok()
    }
}

/// The class whose `[` has been read.
fn class(rest: &mut Chars<'_>) -> Result<Token, PatternError> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    while ranges.is_empty() || !rest.as_str().starts_with(']') {
        let first = class_char(rest)?;
        let last = if rest.as_str().starts_with('-') {
            rest.next();
            class_char(rest)?
        } else {
            first
        };
        ranges.push((first, last));
    }
    rest.next();
    Ok(Token::Class { negated, ranges })
}

/// The next character of a class.
fn class_char(rest: &mut Chars<'_>) -> Result<char, PatternError> {
    match rest.next() {
        None | Some('-' | ']') => Err(PatternError::Class),
        Some('\\') => rest.next().ok_or(PatternError::Class),
        Some(c) => Ok(c),
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::new(text)
    }
}

impl TryFrom<Cow<'_, str>> for Pattern {
    type Error = PatternError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, PatternError> {
        Self::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> UnitName {
        UnitName::new(text).unwrap()
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("a.service", "a.service", true),
            ("a", "a.service", false),
            ("a.servic", "a.service", false),
            ("*", "a.service", true),
            ("a*", "a.service", true),
            ("*a*", "xay.service", true),
            ("a**b*.service", "ab.service", true),
            ("*.service", "a.timer", false),
            ("conflict.*.service", "conflict.0.service", true),
            ("conflict.*.service", "conflict.service", false),
            ("*ab.service", "aab.service", true),
            ("?.service", "a.service", true),
            ("?.service", "ab.service", false),
            ("[a-c].service", "b.service", true),
            ("[^a-c].service", "b.service", false),
            ("[^a-c]*", "d.service", true),
            ("[!a].service", "a.service", true),
            ("[c-a].service", "b.service", false),
            (r"[\]\-\^].service", "-.service", true),
            ("[a^].service", "a.service", true),
            (r"a\*.service", "ab.service", false),
            (r"\a.service", "a.service", true),
            ("{a,b}.service", "a.service", false),
            (r"a\\x2d.swap", r"a\x2d.swap", true),
        ] {
            let pattern = Pattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(&name(text)), expected, "{pattern} {text}");
            let json = serde_json::to_string(&pattern).unwrap();
            assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern);
        }
    }

    #[test]
    fn other_texts_are_no_patterns() {
        use PatternError as E;
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        assert!(Pattern::new(&long[1..]).is_ok());
        for (text, error) in [
            ("", E::Empty),
            (long.as_str(), E::TooLong),
            ("a\n", E::Control),
            ("a\\", E::Backslash),
            ("[", E::Class),
            ("[a", E::Class),
            ("[]", E::Class),
            ("[]a]", E::Class),
            ("[^]a]", E::Class),
            ("[-a]", E::Class),
            ("[a-]", E::Class),
            ("[a-", E::Class),
            ("[\\", E::Class),
        ] {
            assert_eq!(text.parse::<Pattern>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn literal_patterns_name_one_unit() {
        for (pattern, expected) in [
            ("a.service", Some("a.service")),
            (r"\a.service", Some("a.service")),
            ("a*.service", None),
            ("[a].service", None),
            ("a", None),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().only_name(), expected.map(name), "{pattern}");
        }
    }

    /// Whether `text` matches, as the syntax says it: a star stands for nothing, or for one character and a star.
    fn matches_by_definition(tokens: &[Token], text: &[char]) -> bool {
        match (tokens.split_first(), text.split_first()) {
            (None, left) => left.is_none(),
            (Some((Token::Star, rest)), left) => {
                matches_by_definition(rest, text)
                    || left.is_some_and(|(_, left)| matches_by_definition(tokens, left))
            }
            (Some(_), None) => false,
            (Some((token, rest)), Some((c, left))) => token.takes(*c) && matches_by_definition(rest, left),
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_definition(
            pattern in "([ab]|\\*|\\?|\\[\\^?ab?\\]|\\[a-b\\]){0,8}\\*?(\\.service)?", text in "[abc]{1,8}\\.service",
        ) {
            let Ok(pattern) = Pattern::new(&pattern) else { return Ok(()) };
            let chars: Vec<char> = text.chars().collect();
            let unit = name(&text);
            let expected = matches_by_definition(&pattern.tokens, &chars);
            prop_assert_eq!(pattern.matches(&unit), expected);
            if let Some(only) = pattern.only_name() {
                prop_assert_eq!(only == unit, expected);
            }
        }

        #[test]
        fn no_text_panics(text in "[a\\[\\]^*?\\\\-]{0,20}|.{0,20}") {
            if let Ok(pattern) = Pattern::new(&text) {
                prop_assert_eq!(pattern.to_string(), text);
                pattern.matches(&name("a.service"));
            }
        }
    }
}
