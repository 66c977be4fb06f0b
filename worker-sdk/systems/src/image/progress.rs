//! The progress output of bootc and rpm-ostree. It is written for humans and passed on unchanged; only a percentage is
//! extracted.

use crate::text::one_line;

/// Parses a line: the percentage, if it contains one, and the text; `None` for an empty line.
pub fn step(line: &str) -> Option<(Option<u8>, String)> {
    // Progress bars rewrite the line after a carriage return; only the last text counts.
    let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let text = one_line(line);
    (!text.is_empty()).then(|| (percent(&text), text))
}

/// The integer part of the number before the first percent sign, if it is at most 100.
fn percent(text: &str) -> Option<u8> {
    let (before, _) = text.split_once('%')?;
    let number = before.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    number.split('.').next()?.parse().ok().filter(|percent| *percent <= 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_extracted() {
        for (line, expected) in [
            ("", None),
            ("   \r", None),
            ("Fetched layers: 143.28 MiB in 12 seconds", Some(None)),
            ("Staging deployment... done", Some(None)),
            ("Receiving objects: 98% (2241/2285) 1.2 MB/s", Some(Some(98))),
            ("\rReceiving objects:  3%\rReceiving objects: 12.7%", Some(Some(12))),
            ("Download is 400% of what is free", Some(None)),
            ("% done", Some(None)),
        ] {
            assert_eq!(step(line).map(|(percent, _)| percent), expected, "{line:?}");
        }
        assert_eq!(step("a: 1%\rb: 2%\r"), Some((Some(2), "b: 2%".to_owned())));
    }
}
