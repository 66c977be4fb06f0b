//! Untrusted text, made safe for terminals and log lines.

use os_upgrade_protocol::text::sanitized_character;

/// The beginning of `text` on one line, with an ellipsis if it is longer, and with control, bidi and invisible characters
/// replaced, so that it cannot affect a terminal or the text around it.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut characters = line.chars().map(sanitized_character);
    let mut shown: String = characters.by_ref().take(chars_max).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// `text` with control, bidi and invisible characters replaced, so that it cannot affect a terminal or the text around it,
/// and texts that differ look different.
pub fn sanitized(text: &str) -> String {
    text.chars().map(sanitized_character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_affect_a_terminal() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a\u{1b}[2Jb", "a\u{fffd}[2Jb"),
            ("a\u{202e}b", "a\u{fffd}b"),
            ("a\u{200b}b", "a\u{fffd}b"),
            ("a\nb", "a\u{fffd}b"),
        ] {
            assert_eq!(sanitized(text), expected);
        }
        assert_eq!(one_line(" a\n  b\u{7}c ", 5), "a b\u{fffd}c");
        assert_eq!(one_line("abcdef", 5), "abcde…");
    }
}
