//! The words of `[X-Fleet]`: quoted or not, with the unit's name in place of specifiers.

use std::collections::BTreeMap;

use crate::requirements::key::Key;
use crate::requirements::problem::{RequirementsError, RequirementsProblem, VALUES_MAX};
use crate::unit::{UnitFile, UnitName};

/// The section that fleet reads.
pub(super) const SECTION: &str = "X-Fleet";

/// The words of each option, in the order of the file.
pub(super) struct Words(BTreeMap<Key, Vec<Word>>);

struct Word {
    line: u32,
    /// `None` for a word of a template that only an instance completes.
    text: Option<String>,
}

impl Words {
    /// The words in the file of the unit `name`.
    pub(super) fn read(name: &UnitName, file: &UnitFile) -> Result<Self, RequirementsError> {
        let mut words: BTreeMap<Key, Vec<Word>> = BTreeMap::new();
        for assigned in file.assigned(SECTION) {
            let line = assigned.line;
            let error = |problem| RequirementsError { line, problem };
            let Some(key) = Key::new(assigned.name) else { continue };
            // As for systemd, an empty value drops those before it.
            if assigned.value.is_empty() {
                words.remove(&key);
                continue;
            }
            let of_key = words.entry(key).or_default();
            for text in split(key, assigned.value).ok_or(error(RequirementsProblem::Quote))? {
                if of_key.len() == VALUES_MAX {
                    return Err(error(RequirementsProblem::TooMany));
                }
                of_key.push(Word { line, text: fill(&text, name) });
            }
        }
        Ok(Self(words))
    }

    /// The line of the first word of `key`.
    pub(super) fn first_line(&self, key: Key) -> Option<u32> {
        self.0.get(&key)?.first().map(|word| word.line)
    }

    /// What `read` makes of each word of `key`.
    pub(super) fn each<T>(
        &self,
        key: Key,
        mut read: impl FnMut(&str) -> Result<T, RequirementsProblem>,
    ) -> Result<Vec<T>, RequirementsError> {
        let words = self.0.get(&key).into_iter().flatten();
        let known = words.filter_map(|word| Some((word.line, word.text.as_deref()?)));
        known.map(|(line, text)| read(text).map_err(|problem| RequirementsError { line, problem })).collect()
    }
}

/// The words of a value, divided by blanks outside of quotation marks; `None` if one of those is not closed. Metadata without quotation
/// marks are one word with the blanks in it, as in fleet.
fn split(key: Key, value: &str) -> Option<Vec<String>> {
    if key == Key::MachineMetadata && !value.contains('"') {
        return Some(vec![value.to_owned()]);
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in value.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' | '\t' if !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!is_quoted).then_some(words)
}

/// `text` with parts of the unit's name in place of fleet's four specifiers: `%n` the name, `%N` the name without its suffix, `%p` what
/// comes before the `@`, `%i` the instance, which is empty where there is none. Other percent signs stay. `None` if the unit is a template
/// and an instance would have something else there.
fn fill(text: &str, unit: &UnitName) -> Option<String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        filled.push_str(before);
        let value = match after.as_bytes().first() {
            Some(b'p') => unit.prefix(),
            Some(b'n' | b'N' | b'i') if unit.is_template() => return None,
            Some(b'n') => unit.as_str(),
            Some(b'N') => unit.stem(),
            Some(b'i') => unit.instance().unwrap_or_default(),
            Some(_) | None => {
                filled.push('%');
                rest = after;
                continue;
            }
        };
        filled.push_str(value);
        rest = &after[1..];
    }
    filled.push_str(rest);
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_divided_into_words() {
        let cases: [(Key, &str, Option<&[&str]>); 10] = [
            (Key::Conflicts, "a", Some(&["a"])),
            (Key::Conflicts, "a* \t b", Some(&["a*", "b"])),
            (Key::Conflicts, r#""a b" c"d e"f"#, Some(&["a b", "cd ef"])),
            (Key::Conflicts, r#""""#, Some(&[""])),
            (Key::Conflicts, r#"a "b"#, None),
            (Key::MachineMetadata, "a=b", Some(&["a=b"])),
            (Key::MachineMetadata, r#""a=b"  "c=d e""#, Some(&["a=b", "c=d e"])),
            (Key::MachineMetadata, r#""a=b" c=d"#, Some(&["a=b", "c=d"])),
            (Key::MachineMetadata, "a=b c", Some(&["a=b c"])),
            (Key::MachineMetadata, r#""a=b"#, None),
        ];
        for (key, value, expected) in cases {
            let words = split(key, value);
            let words = words.as_ref().map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(words.as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn specifiers_are_filled_in() {
        for (unit, text, expected) in [
            ("a@1.service", "%n %N %p %i", Some("a@1.service a@1 a 1")),
            ("a.service", "%n %N %p %i.", Some("a.service a a .")),
            ("a@1.service", "%%i %H 100%", Some("%1 %H 100%")),
            ("a@.service", "%p.socket", Some("a.socket")),
            ("a@.service", "x=%i", None),
            ("a@.service", "%n", None),
            ("a@.service", "%N", None),
            ("a@.service", "100% %ä", Some("100% %ä")),
        ] {
            let unit = UnitName::new(unit).unwrap();
            assert_eq!(fill(text, &unit).as_deref(), expected, "{unit} {text}");
        }
    }
}
