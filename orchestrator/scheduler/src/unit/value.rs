//! Values of options: over several lines, and joined.

/// What is stripped of names and values.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// `text` without blanks around it.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(BLANKS)
}

/// Whether a line continues on the next one: it ends in a backslash that no other one escapes.
pub(super) fn is_continued(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Whether systemd passes over a line, even between continued ones.
pub(super) fn is_skipped(line: &str) -> bool {
    matches!(trim(line).chars().next(), None | Some('#' | ';'))
}

/// The value that stands on `lines`, of which all but the last one are continued, in a form that reads as the same value again. A last
/// one that is continued is at the end of the file, where its backslash means nothing.
pub(super) fn written<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut lines: Vec<&str> = lines.collect();
    while let Some(last) = lines.last_mut()
        && is_continued(last)
    {
        *last = &last[..last.len() - 1];
        if trim(last).is_empty() && lines.len() > 1 {
            lines.pop();
        }
    }
    let mut value = trim(&lines.join("\n")).to_owned();
    // Without the blank that followed it, the backslash would continue the line.
    if is_continued(&value) {
        value.push(' ');
    }
    value
}

/// What systemd makes of a written value: one line, in which a space replaces each backslash at the end of one. `None` if it is the value
/// as it is written.
pub(super) fn joined(value: &str) -> Option<String> {
    let mut line = String::with_capacity(value.len());
    for part in value.split('\n') {
        if is_continued(part) {
            line.push_str(&part[..part.len() - 1]);
            line.push(' ');
        } else {
            line.push_str(part);
        }
    }
    let line = trim(&line);
    (line != value).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_as_by_systemd() {
        let cases: [(&[&str], &str, &str); 11] = [
            (&[" a b "], "a b", "a b"),
            (&[""], "", ""),
            (&["a \\", "  b"], "a \\\n  b", "a    b"),
            (&["a\\", "b\\", "c"], "a\\\nb\\\nc", "a b c"),
            (&["\\", "b"], "\\\nb", "b"),
            (&[r"a\\"], r"a\\", r"a\\"),
            // At the end of a file.
            (&["a \\"], "a", "a"),
            (&["a \\", "\\", " \\"], "a", "a"),
            (&[r"a\\\"], r"a\\", r"a\\"),
            (&["\\"], "", ""),
            // A backslash before a blank continues nothing.
            (&[r"a\ "], r"a\ ", r"a\"),
        ];
        for (lines, value, expected) in cases {
            let written = written(lines.iter().copied());
            assert_eq!(written, value, "{lines:?}");
            assert_eq!(joined(&written).unwrap_or(written), expected, "{lines:?}");
        }
    }

    #[test]
    fn comments_and_blank_lines_are_skipped() {
        for (line, expected) in
            [("", true), (" \t", true), ("# a", true), ("  ;a", true), ("a # b", false), ("\\", false)]
        {
            assert_eq!(is_skipped(line), expected, "{line:?}");
        }
    }
}
