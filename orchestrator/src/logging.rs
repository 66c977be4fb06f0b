//! Logging: to standard error, filtered by `RUST_LOG`, coloured on a terminal.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Starts logging with the filter `level`, or that of `RUST_LOG` if it is set.
pub(super) fn start(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    // Fails if another test in this process has started it already.
    let _ = subscriber.try_init();
}
