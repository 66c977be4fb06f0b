//! Lines for people, on standard output and standard error. Logs are in [`super::logging`].

use std::fmt::Write as _;

use clap::ValueEnum;

/// How a command prints what it has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people
    Text,
    /// JSON, for programs
    Json,
}

/// A line on standard output. A reader that has gone is no error.
macro_rules! outln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($arg)*);
    }};
}

/// A line on standard error.
macro_rules! errln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}

pub(super) use {errln, outln};

/// Columns as wide as their widest entry.
pub(super) fn table(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let heads = heads.iter().map(|head| (*head).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
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
