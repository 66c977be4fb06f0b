//! Documents for programs. People look at them in terminals, too, so characters that could affect one are escaped in strings:
//! a program reads the same.

use std::fmt::Write as _;

use os_upgrade_protocol::text::sanitized_character;
use serde::Serialize;

/// JSON with indentation.
///
/// # Errors
/// `value` cannot be written.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(escaped(&serde_json::to_string_pretty(value)?, json_escape))
}

/// JSON on a line.
///
/// # Errors
/// `value` cannot be written.
pub(super) fn json_line(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(escaped(&serde_json::to_string(value)?, json_escape))
}

/// YAML; in the form of JSON if a character has to be escaped, which most styles of YAML's strings cannot.
///
/// # Errors
/// `value` cannot be written.
pub(super) fn yaml(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(value)?;
    if text.chars().all(is_harmless) {
        return Ok(text);
    }
    Ok(escaped(&serde_json::to_string_pretty(value)?, yaml_escape))
}

fn is_harmless(character: char) -> bool {
    character == '\n' || sanitized_character(character) == character
}

/// `json`, in which only strings can have characters that are not harmless.
fn escaped(json: &str, escape: fn(char) -> String) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut text, character| {
        if is_harmless(character) {
            text.push(character);
        } else {
            text.push_str(&escape(character));
        }
        text
    })
}

fn json_escape(character: char) -> String {
    character.encode_utf16(&mut [0; 2]).iter().fold(String::new(), |mut escape, unit| {
        let _ = write!(escape, "\\u{unit:04x}");
        escape
    })
}

/// YAML knows no surrogates.
fn yaml_escape(character: char) -> String {
    format!("\\U{:08x}", u32::from(character))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn characters_that_affect_terminals_are_escaped() {
        let hostile = "a\u{9b}31m\u{7f}\u{202e}b\u{200b}\u{e0041}\u{1b}[2J\r\n\tö\u{1f600}";
        let value = serde_json::json!({ "plain": "ö", hostile: [hostile, 1, null, true] });
        for text in [json(&value).unwrap(), json_line(&value).unwrap()] {
            assert!(text.chars().all(is_harmless), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
        assert!(!json_line(&value).unwrap().contains('\n'));
        let text = yaml(&value).unwrap();
        assert!(text.chars().all(is_harmless), "{text}");
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(yaml(&serde_json::json!({ "plain": "ö" })).unwrap(), "plain: ö\n");
    }
}
