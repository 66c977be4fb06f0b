//! The order of Debian's version numbers.

use std::cmp::Ordering;

/// Compares two versions, `[epoch:]upstream[-revision]`, as dpkg does.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Parts::of(a), Parts::of(b));
    number(a.epoch, b.epoch)
        .then_with(|| part(a.upstream, b.upstream))
        .then_with(|| part(a.revision, b.revision))
}

struct Parts<'a> {
    epoch: &'a str,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> Parts<'a> {
    fn of(version: &'a str) -> Self {
        let (epoch, rest) = version.split_once(':').unwrap_or(("", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Self { epoch, upstream, revision }
    }
}

/// Compares alternating text and digits; a tilde sorts before the end, and letters before all other characters.
fn part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, rest_a) = split(a, |byte| !byte.is_ascii_digit());
        let (text_b, rest_b) = split(b, |byte| !byte.is_ascii_digit());
        let (digits_a, rest_a) = split(rest_a, u8::is_ascii_digit);
        let (digits_b, rest_b) = split(rest_b, u8::is_ascii_digit);
        let order = text(text_a, text_b).then_with(|| number(digits_a, digits_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

fn split(text: &str, in_first: impl Fn(&u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !in_first(&byte)).unwrap_or(text.len());
    // Digits are one byte each, so the position next to one is a character boundary.
    text.split_at(end)
}

fn text(a: &str, b: &str) -> Ordering {
    let weight = |byte: Option<u8>| match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(byte),
        Some(byte) => i32::from(byte) + 256,
    };
    (0..a.len().max(b.len()))
        .map(|at| weight(a.as_bytes().get(at).copied()).cmp(&weight(b.as_bytes().get(at).copied())))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Compares numbers of any length.
fn number(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_matches_dpkg() {
        for (a, order, b) in [
            ("1.0", Ordering::Equal, "1.0"),
            ("1.0", Ordering::Equal, "0:1.0"),
            ("1.0", Ordering::Equal, "1.0-0"),
            ("1.0", Ordering::Equal, "1.00"),
            ("1:0", Ordering::Greater, "9"),
            ("1.10", Ordering::Greater, "1.9"),
            ("1.0~rc1", Ordering::Less, "1.0"),
            ("1.0~~", Ordering::Less, "1.0~"),
            ("1.0a", Ordering::Less, "1.0+"),
            ("1.0", Ordering::Less, "1.0+deb12u1"),
            ("2.36-9+deb12u10", Ordering::Greater, "2.36-9+deb12u9"),
            ("1-1", Ordering::Less, "1-1.1"),
            ("1.0-rc-1", Ordering::Greater, "1.0-1"),
            ("6.1.0-9-amd64", Ordering::Less, "6.1.0-37-amd64"),
            ("6.12.9+deb13-amd64", Ordering::Less, "6.12.38+deb13-amd64"),
            ("99999999999999999999999", Ordering::Greater, "9999999999999999999999"),
            ("", Ordering::Equal, "0"),
        ] {
            assert_eq!(compare(a, b), order, "{a} and {b}");
            assert_eq!(compare(b, a), order.reverse(), "{b} and {a}");
        }
    }
}
