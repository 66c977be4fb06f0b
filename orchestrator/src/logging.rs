//! Logging: to standard error, filtered by `RUST_LOG`, coloured on a terminal.
//!
//! Whatever strangers and hosts do, the log of a server stays small: each place in the code logs [`LINES_MAX`] lines at
//! once and [`LINES_PER_MINUTE`] from then on. Exempt are lines about runs and hosts, which runs bound, and debug output,
//! which somebody asked for. A line has [`LINE_BYTES_MAX`] bytes at most, and nothing that could affect a terminal.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota};
use os_upgrade_credentials::SafeFields;
use tokio_util::sync::CancellationToken;
use tracing::callsite::Identifier;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata};
use tracing_subscriber::filter::FilterExt as _;
use tracing_subscriber::layer::{Context, Filter, Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt};

use crate::driver::DECISIONS;

/// The filter of a server, without `RUST_LOG`. The client libraries of NATS and Kubernetes log each failed attempt to connect,
/// and the latter each answer of an API server that cannot serve; this program only logs changes.
pub(crate) const SERVER: &str = "info,async_nats=off,kube_client=warn,kube_client::client::builder=off";

/// The most lines of one place in the code at once.
const LINES_MAX: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// The most lines of one place in the code within a minute, after the first ones.
const LINES_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).unwrap();
/// The most bytes of a line; of a longer one the end is left out.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How often the number of lines that were left out is logged.
const REPORT_EVERY: Duration = Duration::from_mins(1);

/// How many lines were left out of the log, by place in the code. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut(Arc<Mutex<HashMap<&'static str, u64>>>);

impl LeftOut {
    fn add(&self, place: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(place).or_default() += 1;
    }

    /// Logs once a minute, and at the end, how many lines of which place were left out, until `shutdown`.
    pub(crate) async fn report(self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        loop {
            let is_last = shutdown.run_until_cancelled(ticks.tick()).await.is_none();
            let left_out = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
            for (place, lines) in left_out {
                tracing::warn!(place, lines, "lines were left out of the log: too many of one kind");
            }
            if is_last {
                return;
            }
        }
    }
}

/// Lets [`LINES_MAX`] lines of each place in the code pass, and [`LINES_PER_MINUTE`] from then on.
struct Pace {
    lines: DefaultKeyedRateLimiter<Identifier>,
    left_out: LeftOut,
}

impl Pace {
    fn new(left_out: LeftOut) -> Self {
        let quota = Quota::per_minute(LINES_PER_MINUTE).allow_burst(LINES_MAX);
        Self { lines: DefaultKeyedRateLimiter::keyed(quota), left_out }
    }
}

impl<S> Filter<S> for Pace {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    // Lines that the level disables cost as little as without this filter.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let is_exempt = metadata.target() == DECISIONS || *metadata.level() > Level::INFO;
        let passes = is_exempt || self.lines.check_key(&metadata.callsite()).is_ok();
        if !passes {
            self.left_out.add(metadata.name());
        }
        passes
    }
}

/// Writes lines, each in one call, and cuts off what exceeds [`LINE_BYTES_MAX`].
struct Short<W>(W);

impl<W: Write> Write for Short<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= LINE_BYTES_MAX {
            self.0.write_all(line)?;
        } else {
            let mut end = LINE_BYTES_MAX;
            // Not within a character.
            while line[end] & 0b1100_0000 == 0b1000_0000 {
                end -= 1;
            }
            let mut short = line[..end].to_vec();
            short.extend(format!("... ({} bytes left out)\n", line.len() - end).bytes());
            self.0.write_all(&short)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Starts logging for a command, with the filter `level`, or that of `RUST_LOG` if it is set.
pub(super) fn start(level: &str) {
    start_filtered(filter(level));
}

/// Starts logging for a server, with a pace; the caller runs [`LeftOut::report`].
pub(super) fn start_paced(level: &str) -> LeftOut {
    let left_out = LeftOut::default();
    start_filtered(filter(level).and(Pace::new(left_out.clone())));
    left_out
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level))
}

/// Lines for people, written to what `open` returns.
fn lines<W: Write>(
    open: impl Fn() -> W + 'static,
) -> fmt::Layer<Registry, SafeFields, fmt::format::Format, impl Fn() -> Short<W>> {
    fmt::layer().fmt_fields(SafeFields::default()).with_writer(move || Short(open()))
}

fn start_filtered(filter: impl Filter<Registry> + Send + Sync + 'static) {
    let lines = lines(io::stderr).with_ansi(io::stderr().is_terminal());
    // Fails if another test in this process has started it already.
    let _ = Registry::default().with(lines.with_filter(filter)).try_init();
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What `log` writes.
    fn written(left_out: &LeftOut, log: impl FnOnce()) -> String {
        written_through(Pace::new(left_out.clone()), log)
    }

    /// What of `log` passes `filter`.
    fn written_through(filter: impl Filter<Registry> + Send + Sync + 'static, log: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let lines = lines(move || writer.clone()).with_ansi(false);
        with_default(Registry::default().with(lines.with_filter(filter)), log);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn lines_of_one_place_are_paced() {
        let left_out = LeftOut::default();
        let log = written(&left_out, || {
            for number in 0..5_000 {
                tracing::info!(number, "request refused");
                tracing::info!(target: DECISIONS, number, "host upgraded");
            }
            tracing::warn!("something else");
        });
        let refused = log.lines().filter(|line| line.contains("request refused")).count();
        let most = usize::try_from(LINES_MAX.get()).unwrap();
        assert!((most..most + 60).contains(&refused), "{refused}");
        assert_eq!(log.lines().filter(|line| line.contains("host upgraded")).count(), 5_000);
        assert!(log.contains("something else"), "other places have a pace of their own");
        assert_eq!(left_out.0.lock().unwrap().values().sum::<u64>(), 5_000 - refused as u64);
    }

    #[test]
    fn client_libraries_do_not_log_each_attempt() {
        let log = written_through(EnvFilter::new(SERVER), || {
            tracing::error!(target: "kube_client::client::builder", "failed with status 503");
            tracing::error!(target: "async_nats::connector", "connection refused");
            tracing::info!(target: "kube_client::config", "of no interest");
            tracing::warn!(target: "kube_client::client::tls", "bad file");
            tracing::info!("ours");
        });
        let said = ["503", "refused", "no interest", "bad file", "ours"].map(|word| log.contains(word));
        assert_eq!(said, [false, false, false, true, true], "{log}");
    }

    #[test]
    fn lines_do_not_affect_terminals() {
        let said = "\u{1b}[31mred\u{1b}[0m \u{7}\u{9b}m \u{202e} x\r\nforged";
        let log = written(&LeftOut::default(), || {
            let span = tracing::info_span!("command", host = %said);
            let _entered = span.enter();
            tracing::info!(reason = %said, quoted = said, "{said}");
        });
        assert_eq!(log.matches("forged").count(), 4, "{log}");
        let line = log.strip_suffix('\n').unwrap();
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{log:?}");
    }

    #[test]
    fn lines_are_short() {
        let log =
            written(&LeftOut::default(), || tracing::info!(path = "ä".repeat(30_000), "request refused"));
        assert!(log.len() < LINE_BYTES_MAX + 60, "{}", log.len());
        assert!(log.ends_with("bytes left out)\n") && log.contains("request refused"), "{log}");
    }
}
