//! Lines for people, on standard output and standard error. Logs are in [`super::logging`].

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
