//! When to end: SIGINT (Ctrl-C) or SIGTERM ends in order, a second one at once.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that the first signal cancels. Child processes end with this one either way.
pub(super) fn on_signal() -> anyhow::Result<CancellationToken> {
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
                tracing::info!("ending; again to end at once");
                shutdown.cancel();
            }
        }
    });
    Ok(shutdown)
}
