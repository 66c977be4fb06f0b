//! Names of units.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::unit::kind::UnitKind;

/// The longest name, in bytes. It is systemd's.
const NAME_BYTES_MAX: usize = 255;

/// The name of a unit, such as `web.service`; `web@.service` is a template, and `web@1.service` an instance of it. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct UnitName {
    text: Arc<str>,
    kind: UnitKind,
}

/// Why a text is not the name of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnitNameError {
    /// It is longer than systemd's names are.
    #[error("the name of a unit has at most {NAME_BYTES_MAX} bytes")]
    TooLong,
    /// It does not end in a dot and a kind.
    #[error("the name of a unit ends in its kind, such as .service, .socket or .timer")]
    Kind,
    /// It has an `@`, but units of its kind are no templates.
    #[error("units of the kind {0} have no templates, so their names have no @")]
    Template(UnitKind),
    /// It has a character that names do not have.
    #[error("the name of a unit consists of a-z, A-Z, 0-9 and :-_.\\@")]
    Character,
    /// There is nothing before the `@`.
    #[error("the name of a unit does not begin with @")]
    At,
    /// There is nothing before the suffix.
    #[error("the name of a unit has something before its suffix")]
    Empty,
}

impl UnitName {
    /// Parses `text` as a name.
    ///
    /// # Errors
    /// See [`UnitNameError`].
    pub fn new(text: &str) -> Result<Self, UnitNameError> {
        if text.len() > NAME_BYTES_MAX {
            return Err(UnitNameError::TooLong);
        }
        let (stem, suffix) = text.rsplit_once('.').ok_or(UnitNameError::Kind)?;
        let kind: UnitKind = suffix.parse().map_err(|_| UnitNameError::Kind)?;
        if stem.contains('@') && !kind.can_be_template() {
            return Err(UnitNameError::Template(kind));
        }
        if !stem.chars().all(|c| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c)) {
            return Err(UnitNameError::Character);
        }
        match stem.chars().next() {
            None => Err(UnitNameError::Empty),
            Some('@') => Err(UnitNameError::At),
            Some(_) => Ok(Self { text: text.into(), kind }),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The kind of the unit.
    pub const fn kind(&self) -> UnitKind {
        self.kind
    }

    /// The name without its suffix: `web@1` of `web@1.service`.
    pub fn stem(&self) -> &str {
        self.text.rsplit_once('.').map_or("", |(stem, _)| stem)
    }

    /// What comes before the first `@`, or before the suffix: `web` of `web@1.service` and of `web.service`.
    pub fn prefix(&self) -> &str {
        self.stem().split('@').next().unwrap_or_default()
    }

    /// What an instance has behind the first `@`: `1` of `web@1.service`. Never empty.
    pub fn instance(&self) -> Option<&str> {
        let (_, instance) = self.stem().split_once('@')?;
        Some(instance).filter(|instance| !instance.is_empty())
    }

    /// Whether this is a template, such as `web@.service`.
    pub fn is_template(&self) -> bool {
        self.stem().contains('@') && self.instance().is_none()
    }

    /// The template of an instance: `web@.service` of `web@1.service`.
    pub fn template(&self) -> Option<Self> {
        self.instance()?;
        Some(Self { text: format!("{}@.{}", self.prefix(), self.kind).into(), kind: self.kind })
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for UnitName {
    type Err = UnitNameError;

    fn from_str(text: &str) -> Result<Self, UnitNameError> {
        Self::new(text)
    }
}

impl TryFrom<Cow<'_, str>> for UnitName {
    type Error = UnitNameError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, UnitNameError> {
        Self::new(&text)
    }
}

impl From<UnitName> for String {
    fn from(name: UnitName) -> Self {
        name.text.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every kind, as the suffix of names.
    const SUFFIXES: [&str; 13] = [
        "service",
        "socket",
        "timer",
        "target",
        "path",
        "mount",
        "automount",
        "device",
        "scope",
        "slice",
        "swap",
        "busname",
        "snapshot",
    ];

    #[test]
    fn names_are_taken_apart() {
        for (text, prefix, instance, is_template, template) in [
            ("a.service", "a", None, false, None),
            ("a.b.service", "a.b", None, false, None),
            (r"dev-disk\x2did.swap", r"dev-disk\x2did", None, false, None),
            ("a@.timer", "a", None, true, None),
            ("a@1.service", "a", Some("1"), false, Some("a@.service")),
            ("a@b@c.d.socket", "a", Some("b@c.d"), false, Some("a@.socket")),
            ("a@@.path", "a", Some("@"), false, Some("a@.path")),
        ] {
            let name = UnitName::new(text).unwrap();
            assert_eq!((name.prefix(), name.instance()), (prefix, instance), "{text}");
            assert_eq!(name.is_template(), is_template, "{text}");
            assert_eq!(name.template(), template.map(|it| UnitName::new(it).unwrap()), "{text}");
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<UnitName>(&json).unwrap(), name);
        }
    }

    #[test]
    fn other_texts_are_no_names() {
        use UnitNameError as E;
        let long = |bytes: usize| format!("{}.service", "a".repeat(bytes - ".service".len()));
        assert_eq!(UnitName::new(&long(255)).map(|name| name.kind()), Ok(UnitKind::Service));
        for (text, error) in [
            (long(256).as_str(), E::TooLong),
            ("", E::Kind),
            ("a", E::Kind),
            ("service", E::Kind),
            ("a.", E::Kind),
            ("a.Service", E::Kind),
            ("a.conf", E::Kind),
            ("a.service ", E::Kind),
            ("a@1.mount", E::Template(UnitKind::Mount)),
            ("a b.service", E::Character),
            ("a/b.service", E::Character),
            ("a\n.service", E::Character),
            ("%i.service", E::Character),
            ("ä.service", E::Character),
            ("@.service", E::At),
            ("@1.service", E::At),
            (".service", E::Empty),
        ] {
            assert_eq!(text.parse::<UnitName>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn five_kinds_have_templates() {
        for suffix in SUFFIXES {
            let kind = UnitName::new(&format!("a.{suffix}")).unwrap().kind();
            assert_eq!(kind.as_str(), suffix);
            let expected = ["path", "service", "socket", "target", "timer"].contains(&suffix);
            assert_eq!(UnitName::new(&format!("a@.{suffix}")).is_ok(), expected, "{suffix}");
        }
    }

    proptest! {
        #[test]
        fn a_name_consists_of_its_parts(text in "[a-z0-9:_.@\\\\-]{0,12}\\.(service|timer|slice)") {
            let Ok(name) = UnitName::new(&text) else { return Ok(()) };
            let at = if name.is_template() || name.instance().is_some() { "@" } else { "" };
            let instance = name.instance().unwrap_or_default();
            prop_assert_eq!(format!("{}{at}{instance}.{}", name.prefix(), name.kind()), text);
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            if let Ok(name) = UnitName::new(&text) {
                prop_assert_eq!(name.as_str(), text);
            }
        }
    }
}
