//! Label selectors of Kubernetes, in the syntax of kubectl.

use super::read::{Shape, Value};

/// The longest name of a label's key, and the longest value.
const NAME_MAX: usize = 63;
/// The longest prefix of a label's key.
const PREFIX_MAX: usize = 253;

/// What labels must be like: all requirements apply. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector(Vec<LabelRequirement>);

/// What one label must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// How its value is compared.
    pub operator: LabelOperator,
    /// The values with which it is compared; none if only its presence counts.
    pub values: Vec<String>,
}

/// How a label's value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOperator {
    /// It is one of the values.
    In,
    /// It is none of the values, or the label is missing.
    NotIn,
    /// The label is there, whatever its value.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

impl LabelOperator {
    /// The word in objects of Kubernetes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}

impl LabelSelector {
    /// The requirements, in their order.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.0
    }
}

impl Value for LabelSelector {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "a label selector as kubectl takes it, such as \"team=core,env in (a,b),!spare\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("; leave the key out to choose all".to_owned());
        }
        split_outside_parentheses(text).into_iter().map(requirement).collect::<Result<_, _>>().map(Self)
    }
}

/// The parts of `text` between commas. Commas in parentheses separate values.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    let is_separator = |character| {
        match character {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ => {}
        }
        character == ',' && !is_inside
    };
    text.split(is_separator).collect()
}

fn requirement(text: &str) -> Result<LabelRequirement, String> {
    let text = text.trim();
    let of = |operator, key: &str, values: Vec<&str>| {
        let key = key.trim();
        if !is_label_key(key) {
            return Err(format!(": {key:?} is not the key of a label"));
        }
        let values: Vec<String> = values.into_iter().map(|value| value.trim().to_owned()).collect();
        match values.iter().find(|value| !is_label_value(value)) {
            Some(value) => Err(format!(": {value:?} is not the value of a label")),
            None => Ok(LabelRequirement { key: key.to_owned(), operator, values }),
        }
    };
    if let Some(key) = text.strip_prefix('!') {
        return of(LabelOperator::DoesNotExist, key, Vec::new());
    }
    if let Some((head, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let operator = match head.split_whitespace().collect::<Vec<_>>()[..] {
            [_, "in"] => LabelOperator::In,
            [_, "notin"] => LabelOperator::NotIn,
            _ => {
                return Err(format!(
                    ": in {text:?}, `in` or `notin` is missing between a key and its values"
                ));
            }
        };
        let key = head.split_whitespace().next().unwrap_or_default();
        let values: Vec<&str> = values.split(',').collect();
        if values.iter().any(|value| value.trim().is_empty()) {
            return Err(format!(": in {text:?}, a value is empty"));
        }
        return of(operator, key, values);
    }
    if let Some((key, value)) = text.split_once("!=") {
        return of(LabelOperator::NotIn, key, vec![value]);
    }
    match text.split_once("==").or_else(|| text.split_once('=')) {
        Some((key, value)) => of(LabelOperator::In, key, vec![value]),
        None => of(LabelOperator::Exists, text, Vec::new()),
    }
}

/// Whether `text` can be the key of a label: a name, after a domain and a slash or not.
pub(super) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=NAME_MAX).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}

/// Whether `text` is like a domain in lower case, as names of nodes and the prefixes of keys are.
pub(super) fn is_subdomain(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(is_inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    (1..=PREFIX_MAX).contains(&text.len()) && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        for (text, expected) in [
            ("team=core", "team In core"),
            ("team==core", "team In core"),
            (" team = core ", "team In core"),
            ("team!=core", "team NotIn core"),
            ("team=", "team In "),
            ("team", "team Exists"),
            ("!team", "team DoesNotExist"),
            ("env in (a,b)", "env In a b"),
            ("env notin ( a , b ),x", "env NotIn a b; x Exists"),
            ("env in(a)", "env In a"),
            ("team=core,env in (a,b),!spare", "team In core; env In a b; spare DoesNotExist"),
            ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/control-plane Exists"),
            ("a.b/C_d.e=X-1", "a.b/C_d.e In X-1"),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            let words = |requirement: &LabelRequirement| {
                let LabelRequirement { key, operator, values } = requirement;
                let words = [&[key.clone(), operator.as_str().to_owned()], &values[..]].concat();
                words.join(" ")
            };
            let found: Vec<String> = selector.requirements().iter().map(words).collect();
            assert_eq!(found.join("; "), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for (text, hint) in [
            ("", "; leave the key out to choose all"),
            (" ", "; leave the key out to choose all"),
            ("a,", ": \"\" is not the key of a label"),
            (",a", ": \"\" is not the key of a label"),
            ("=a", ": \"\" is not the key of a label"),
            ("!", ": \"\" is not the key of a label"),
            ("a b", ": \"a b\" is not the key of a label"),
            ("a>1", ": \"a>1\" is not the key of a label"),
            ("a/b/c", ": \"a/b/c\" is not the key of a label"),
            ("A.b/c", ": \"A.b/c\" is not the key of a label"),
            ("a=b c", ": \"b c\" is not the value of a label"),
            ("a=b=c", ": \"b=c\" is not the value of a label"),
            ("a in (b", ": \"a in (b\" is not the key of a label"),
            ("a in b)", ": \"a in b)\" is not the key of a label"),
            ("a in (b,)", ": in \"a in (b,)\", a value is empty"),
            ("a in ()", ": in \"a in ()\", a value is empty"),
            ("a (b)", ": in \"a (b)\", `in` or `notin` is missing between a key and its values"),
            ("in (b)", ": in \"in (b)\", `in` or `notin` is missing between a key and its values"),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err(), hint, "{text}");
        }
        assert!(LabelSelector::parse(&"a".repeat(63)).is_ok());
        assert!(LabelSelector::parse(&"a".repeat(64)).is_err());
    }
}
