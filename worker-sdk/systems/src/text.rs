//! Formatting of messages for operators: shortened lists, sizes, and several lines joined to one.

use std::fmt::Display;

/// How many names of a list are written out.
const NAMES_MAX: usize = 10;

/// `a, b, c`, up to ten names, and the number of the others.
pub fn names<T: Display>(all: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = all.into_iter().map(|name| name.to_string()).collect();
    let shown = all.len().min(NAMES_MAX);
    let text = all[..shown].join(", ");
    match all.len() - shown {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// `1 package`, `2 packages`.
pub fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A human-readable number of bytes, with decimal units as APT uses them.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut unit = 0;
    let mut divisor: u64 = 1;
    while unit + 1 < UNITS.len() && number / divisor >= 1000 {
        divisor *= 1000;
        unit += 1;
    }
    let whole = number / divisor;
    if unit > 0 && whole < 100 {
        let tenth = number % divisor / (divisor / 10);
        return format!("{whole}.{tenth} {}", UNITS[unit]);
    }
    format!("{whole} {}", UNITS[unit])
}

/// `text` in one line: its trimmed, non-empty lines, joined with `; `.
pub fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_shortened() {
        assert_eq!(names(["a", "b"]), "a, b");
        assert_eq!(names(1..=12), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
        assert_eq!((count(1, "package"), count(0, "package")), ("1 package".into(), "0 packages".into()));
    }

    #[test]
    fn sizes_are_readable() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (12_345_678, "12.3 MB"),
            (999_999_999, "999 MB"),
            (u64::MAX, "18446 PB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn lines_are_joined() {
        assert_eq!(one_line(" a \n\n\tb\n"), "a; b");
    }
}
