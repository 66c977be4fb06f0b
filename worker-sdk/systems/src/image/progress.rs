//! What bootc and rpm-ostree print while they work. It is meant for people, so that it is shown as it is; only a percent is
//! looked for.

use crate::text::one_line;

/// A line of it: how much is done, if it says so, and what.
pub fn step(line: &str) -> Option<(Option<u8>, String)> {
    // Of what is drawn over and over, the last.
    let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let text = one_line(line);
    (!text.is_empty()).then(|| (percent(&text), text))
}

/// The number before the first percent sign, without what follows its point.
fn percent(text: &str) -> Option<u8> {
    let (before, _) = text.split_once('%')?;
    let number = before.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    number.split('.').next()?.parse().ok().filter(|percent| *percent <= 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
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
