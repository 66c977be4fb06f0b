//! Runs the orchestrator, with a managed nats-server if one is configured.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, bail};
use os_upgrade_kernel as kernel;
use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;
use os_upgrade_settings::{NatsMode, NatsUrls, Settings};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Setup;

/// How often a managed nats-server may end within [`RESTARTS_WITHIN`] before the orchestrator gives up.
const RESTARTS_MAX: usize = 5;
/// See [`RESTARTS_MAX`].
const RESTARTS_WITHIN: Duration = Duration::from_mins(1);

/// How long after `shutdown` a managed nats-server is killed if it has not ended. Acknowledged data is synced by then.
const NATS_ENDS_WITHIN: Duration = Duration::from_secs(4);

/// Runs an orchestrator until `shutdown`, with a managed nats-server if `settings` ask for one. Each of `changes` is
/// applied when it arrives.
pub(crate) async fn run(
    mut settings: Settings,
    setup: Setup,
    changes: watch::Receiver<kernel::Settings>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let bus = tokio::select! {
        bus = start(&mut settings) => bus?,
        // A server that has been started ends with its handle.
        () = shutdown.cancelled() => return Ok(()),
    };
    serve(settings, setup, changes, bus, shutdown).await
}

/// Starts the managed nats-server, if `settings` ask for one, and puts its address into them.
pub(crate) async fn start(settings: &mut Settings) -> anyhow::Result<Option<ManagedNats>> {
    let NatsMode::Managed = settings.nats.mode() else {
        return Ok(None);
    };
    let port = settings.nats.managed_port.map(|port| u16::try_from(port.get()));
    let options = managed_nats::Options { directory: settings.store.nats(), port: port.transpose()? };
    let nats = ManagedNats::start(nats_server::find().await?, &options).await?;
    let urls: NatsUrls = nats.url().parse().map_err(anyhow::Error::msg)?;
    tracing::info!(url = %urls, log = %nats.log().display(), "the managed nats-server is up");
    settings.nats.use_servers(urls);
    Ok(Some(nats))
}

/// Runs an orchestrator until `shutdown`. `bus` is the running managed nats-server, if any.
pub(crate) async fn serve(
    settings: Settings,
    setup: Setup,
    changes: watch::Receiver<kernel::Settings>,
    bus: Option<ManagedNats>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let Some(mut nats) = bus else {
        return Ok(Box::pin(super::run(settings, setup, changes, shutdown)).await?);
    };
    let shutdown_at = tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            shutdown.cancelled().await;
            Instant::now()
        }
    });
    let served = tokio::select! {
        served = Box::pin(super::run(settings, setup, changes, shutdown.clone())) => served.map_err(anyhow::Error::from),
        lost = keep_running(&mut nats) => lost,
    };
    // The server ends last: the other parts may still publish while they end.
    shutdown.cancel();
    let taken = shutdown_at.await?.elapsed();
    nats.stop_within(NATS_ENDS_WITHIN.saturating_sub(taken)).await;
    served
}

/// Restarts the server whenever it ends. Returns only if it ends too often or cannot be restarted.
async fn keep_running(nats: &mut ManagedNats) -> anyhow::Result<()> {
    let mut ends = VecDeque::new();
    loop {
        let status = nats.exited().await;
        tracing::error!(%status, log = %nats.log().display(), "the managed nats-server exited; restarting it");
        let now = Instant::now();
        ends.push_back(now);
        ends.retain(|&end| now.duration_since(end) < RESTARTS_WITHIN);
        if ends.len() > RESTARTS_MAX {
            let log = nats.log().display();
            bail!("the managed nats-server keeps exiting ({status}), see {log}");
        }
        nats.start_again().await.context("cannot restart the managed nats-server")?;
    }
}
