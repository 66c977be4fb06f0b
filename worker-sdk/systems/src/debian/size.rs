//! How much an upgrade downloads and installs, according to APT.

/// The space that an upgrade needs, in bytes; APT rounds to three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// The size of the archives not yet downloaded.
    pub download: u64,
    /// The additional space for the installed packages; 0 if the upgrade frees space.
    pub installed: u64,
}

impl Sizes {
    /// Parses the sizes that `apt-get --assume-no` prints before its confirmation prompt; a missing size is 0.
    pub fn parse(text: &str) -> Self {
        let mut sizes = Self::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("Need to get ") {
                sizes.download = size(rest).unwrap_or_default();
            } else if let Some(rest) = line.strip_prefix("After this operation, ")
                && !line.contains("freed")
            {
                sizes.installed = size(rest).unwrap_or_default();
            }
        }
        sizes
    }
}

/// The first size in `12.3 MB of ...` or `0 B/60.1 MB of ...`, in bytes.
fn size(text: &str) -> Option<u64> {
    let mut words = text.split([' ', '/']);
    let (number, unit) = (words.next()?, words.next()?);
    let factor: u64 = match unit {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    let number = number.replace(',', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let tenths: u64 = fraction.get(..1).unwrap_or("0").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    Some(whole.saturating_mul(factor).saturating_add(tenths * factor / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        for (text, download, installed) in [
            (
                "Need to get 2060 B of archives.\nAfter this operation, 0 B of additional disk space will be used.\n",
                2060,
                0,
            ),
            (
                "Need to get 12.3 MB/1,060 MB of archives.\nAfter this operation, 101 kB disk space will be freed.\n",
                12_300_000,
                0,
            ),
            (
                "Need to get 0 B/1354 B of archives.\nAfter this operation, 1.5 GB of additional disk space will be used.",
                0,
                1_500_000_000,
            ),
            ("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.", 0, 0),
            ("Need to get lots of archives.\nAfter this operation, 3 XB", 0, 0),
        ] {
            assert_eq!(Sizes::parse(text), Sizes { download, installed }, "{text}");
        }
    }
}
