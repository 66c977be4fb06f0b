//! Shutdown on signals: the first SIGINT (Ctrl-C) or SIGTERM ends the process gracefully, a second one at once.

use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long an orchestrator may take to end, even if something hangs. Its parts have less each: requests and the lease
/// 3 s, the store 0.5 s, a managed nats-server the rest.
pub(super) const LIMIT: Duration = Duration::from_millis(4_900);
/// How long threads may take to end after everything else.
pub(super) const THREADS_WITHIN: Duration = Duration::from_millis(100);

/// A token that the first signal cancels. Child processes end with this process in any case.
pub(super) fn on_signal() -> anyhow::Result<CancellationToken> {
    listen(None)
}

/// A token that the first signal cancels. The process ends at most `limit` after that signal.
pub(super) fn within(limit: Duration) -> anyhow::Result<CancellationToken> {
    listen(Some(limit))
}

fn listen(limit: Option<Duration>) -> anyhow::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot handle SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot handle SIGTERM")?;
    let shutdown = CancellationToken::new();
    tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            for round in 0.. {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if round > 0 {
                    std::process::exit(1);
                }
                tracing::info!("shutting down; repeat the signal to exit immediately");
                if let Some(limit) = limit {
                    end_after(limit);
                }
                shutdown.cancel();
            }
        }
    });
    Ok(shutdown)
}

/// Ends the process after `limit`. It uses a thread, because the runtime itself may hang.
fn end_after(limit: Duration) {
    let ender = std::thread::Builder::new().name("end".to_owned()).spawn(move || {
        std::thread::sleep(limit);
        tracing::error!("shutdown timed out");
        std::process::exit(1);
    });
    if let Err(error) = ender {
        tracing::error!(%error, "cannot enforce the shutdown timeout");
    }
}
