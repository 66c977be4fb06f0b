//! Lines for people, on standard output and standard error.

use std::fmt::Write as _;

use clap::ValueEnum;
use os_upgrade_shell::text::sanitized;

/// The format in which a command prints its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// JSON, for programs
    Json,
}

/// Prints a line to standard output. A closed pipe is not an error.
#[macro_export]
macro_rules! outln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($arg)*);
    }};
}

/// Prints a line to standard error.
#[macro_export]
macro_rules! errln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}

pub use crate::{errln, outln};

/// A table with columns as wide as their widest entry. Names and reasons are untrusted, so control characters in them are
/// replaced.
pub fn table(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let heads = heads.iter().map(|head| (*head).to_owned()).collect();
    let shown = rows.into_iter().map(|row| row.iter().map(|entry| sanitized(entry)).collect());
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(shown).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|entry| entry.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (entry, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{entry:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let rows = vec![vec!["a\u{202e}b\u{1b}[2J\nc".to_owned(), "ä馬".to_owned()]];
        assert_eq!(table(&["ID", "X"], rows), "ID         X\na\u{fffd}b\u{fffd}[2J\u{fffd}c  ä馬\n");
    }
}
