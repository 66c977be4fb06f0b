//! Untrusted text, made safe for terminals and log lines.

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

/// `character`, or U+FFFD in place of a control, bidi or invisible character, which could affect a terminal or the text
/// around it, or make texts that differ look the same.
pub fn sanitized_character(character: char) -> char {
    if is_shown_as_is(character) { character } else { char::REPLACEMENT_CHARACTER }
}

fn is_shown_as_is(character: char) -> bool {
    let is_bidi_control = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // Without a width: soft hyphen, zero-width spaces and joiners, invisible operators, tags.
    let is_invisible = matches!(character, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    !character.is_control() && !is_bidi_control && !is_invisible
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
