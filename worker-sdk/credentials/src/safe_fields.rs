//! How log lines are written: what scripts, hosts and servers say may be in them.

use std::fmt;

use os_upgrade_protocol::text::sanitized_character;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

/// Writes the message and the fields of a log line as usual, but in one line, and without what could affect a terminal.
#[derive(Debug, Default)]
pub struct SafeFields(DefaultFields);

impl<'writer> FormatFields<'writer> for SafeFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut text = String::new();
        self.0.format_fields(Writer::new(&mut text), fields)?;
        text.chars().try_for_each(|character| fmt::Write::write_char(&mut writer, shown(character)))
    }
}

/// The character to write in place of this one. Tools print tabs to align what they say.
fn shown(character: char) -> char {
    if character == '\t' { ' ' } else { sanitized_character(character) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tabs_become_spaces() {
        let shown: String = "a\tb\u{1b}c\nd".chars().map(shown).collect();
        assert_eq!(shown, "a b\u{fffd}c\u{fffd}d");
    }
}
