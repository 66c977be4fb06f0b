//! The words of the format, and what must hold for every value that is stored.

use std::collections::BTreeSet;

use os_upgrade_kernel::format::read;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The words of format 11, one a line. What is added before the first release belongs here.
const WORDS: &str = include_str!("words.txt");

/// Checks that each value reads and writes exactly as its JSON, that the format has every word in it, and that nothing that
/// is added to it is ignored.
pub(super) fn check_values<T>(table: &[(T, &str)])
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    for (value, json) in table {
        assert_eq!(serde_json::to_string(value).unwrap(), *json);
        assert_eq!(read::<T>(json.as_bytes()).unwrap(), *value);
        let written: Value = serde_json::from_str(json).unwrap();
        for more in with_unknown_fields(&written) {
            let more = more.to_string();
            assert!(read::<T>(more.as_bytes()).is_err(), "{more}");
        }
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap();
        check_words(name, &written);
    }
}

/// Checks that every word of a value is in the list; with `UPDATE_EXPECTED` it is put there.
pub(super) fn check_words(name: &str, written: &Value) {
    let known: BTreeSet<&str> = WORDS.lines().collect();
    let mut words = BTreeSet::new();
    collect_words(name, written, &mut words);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel/format/words.txt");
        let listed = std::fs::read_to_string(path).unwrap();
        let listed: BTreeSet<&str> = listed.lines().chain(words.iter().map(String::as_str)).collect();
        let listed: Vec<&str> = listed.into_iter().collect();
        return std::fs::write(path, listed.join("\n") + "\n").unwrap();
    }
    let unknown: Vec<_> = words.iter().filter(|word| !known.contains(word.as_str())).collect();
    assert!(
        unknown.is_empty(),
        "the format has no words {unknown:?}, so an instance of the last released version cannot read {written}; \
         kernel/src/format.rs says what to do"
    );
}

/// The kinds, fields and words of the value in the field `name`: `name:kind`, `name:kind.field`. Names of hosts, clients
/// and groups are none of them, nor are indexes.
fn collect_words(name: &str, value: &Value, words: &mut BTreeSet<String>) {
    const TAGS: [&str; 3] = ["type", "kind", "provider"];
    match value {
        Value::Object(fields) => {
            let mut tags = TAGS.into_iter().filter_map(|tag| fields.get(tag)?.as_str());
            let name = tags.next_back().map_or_else(|| name.to_owned(), |kind| format!("{name}:{kind}"));
            words.insert(name.clone());
            for (field, value) in fields {
                let names = ["h1", "h2", "h3", "h4", "n1", "default", "edge", "a.service"];
                if names.contains(&field.as_str()) || field.parse::<u64>().is_ok() {
                    collect_words(&name, value, words);
                } else if !TAGS.contains(&field.as_str()) {
                    words.insert(format!("{name}.{field}"));
                    collect_words(field, value, words);
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_words(name, element, words)),
        // A type is capitalized: an enumeration of words.
        Value::String(word) if name.starts_with(char::is_uppercase) => {
            words.insert(format!("{name}:{word}"));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The value with a further field in each of its objects, one after the other.
pub(super) fn with_unknown_fields(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    match value {
        Value::Object(fields) => {
            let mut more = fields.clone();
            more.insert("unknown".to_owned(), json!({ "more": true }));
            all.push(Value::Object(more));
            for (name, field) in fields {
                all.extend(with_unknown_fields(field).into_iter().map(|field| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), field);
                    Value::Object(fields)
                }));
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                all.extend(with_unknown_fields(element).into_iter().map(|element| {
                    let mut elements = elements.clone();
                    elements[index] = element;
                    Value::Array(elements)
                }));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    all
}
