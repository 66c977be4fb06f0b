//! Untrusted text, made safe to show.

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
