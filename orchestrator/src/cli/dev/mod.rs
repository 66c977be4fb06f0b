//! `os-upgrade dev`: a whole site on one machine. Here is what is started and ended, and in which order; the parts
//! are in the modules below.

mod api;
mod host;
mod progress;
mod upgrade;
mod worker;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::bus;
use super::output::outln;
use crate::config::{NatsMode, NatsUrls, Settings};
use crate::managed_nats;
use crate::server::Means;
use api::Api;
use host::DemoHost;
use worker::Workers;

/// The worker application that the demo hosts run.
const APPLICATION: &str = "os-upgrade-demo";
/// How long the orchestrator may take to end after it was told to.
const END_WAIT: Duration = Duration::from_secs(30);

/// The arguments of `os-upgrade dev`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// How many hosts to run, named h01, h02, ...
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=200))]
    hosts: u16,
    /// Upgrade all hosts once, show how it goes, and end; exit code 0 only if the run completed
    #[arg(long)]
    once: bool,
    /// Where the hosts, the history and the nats-server's data are kept
    #[arg(long, value_name = "DIR", default_value = "data/dev")]
    data_dir: PathBuf,
    /// The address and port of the API; by default that of the configuration
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

impl Options {
    /// `settings`, of defaults and environment, as these arguments want them.
    pub(super) fn settings(&self, mut settings: Settings) -> Settings {
        settings.store.path.clone_from(&self.data_dir);
        settings.api.listen = self.listen.unwrap_or(settings.api.listen);
        // Its hosts and what is printed want plain HTTP, which never leaves this machine.
        settings.api_tls = Settings::default().api_tls;
        // Nobody is there to approve them but who has started them.
        settings.site.auto_approve = true;
        settings
    }
}

/// Runs the site until `shutdown`, or until its one upgrade has ended.
pub(super) async fn run(
    mut settings: Settings,
    options: &Options,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    if settings.api.listen.port() == 0 {
        bail!("dev needs a port that is known beforehand; --listen {} has none", settings.api.listen);
    }
    let program = worker::find_program()?;
    let hosts = DemoHost::make_all(&options.data_dir, options.hosts)?;
    let api = Api::new(settings.api.listen)?;
    let means = Means::of_settings(&settings).await?;
    let bus = bus::start(&mut settings).await?;
    let nats = servers(&settings)?;

    let end = CancellationToken::new();
    let (_, no_changes) = mpsc::channel(1);
    let mut orchestrator = tokio::spawn(bus::serve(settings, means, no_changes, bus, end.clone()));
    let workers = Workers::start(&program, &nats.servers().join(","), &hosts);
    let result = tokio::select! {
        result = attend(&api, &hosts, &nats, options) => result,
        () = shutdown.cancelled() => interrupted(options.once),
        served = &mut orchestrator => {
            workers.stop().await;
            served?.context("the orchestrator has ended")?;
            bail!("the orchestrator has ended");
        }
    };
    workers.stop().await;
    end.cancel();
    let ended = tokio::time::timeout(END_WAIT, orchestrator).await;
    result.and(
        ended.with_context(|| format!("the orchestrator did not end within {} s", END_WAIT.as_secs()))??,
    )
}

/// What there is to do while the site runs: its one upgrade, or nothing, for ever.
async fn attend(api: &Api, hosts: &[DemoHost], nats: &NatsUrls, options: &Options) -> anyhow::Result<()> {
    upgrade::set_up(api, hosts).await?;
    if options.once {
        return upgrade::once(api, hosts).await;
    }
    explain_use(api, hosts, nats, &options.data_dir);
    std::future::pending().await
}

fn interrupted(once: bool) -> anyhow::Result<()> {
    if once {
        bail!("interrupted before the run has ended");
    }
    Ok(())
}

fn servers(settings: &Settings) -> anyhow::Result<NatsUrls> {
    match settings.nats.mode() {
        NatsMode::External { urls, .. } => Ok(urls.clone()),
        NatsMode::Managed => bail!("the managed nats-server is not up"),
    }
}

fn explain_use(api: &Api, hosts: &[DemoHost], nats: &NatsUrls, data_dir: &Path) {
    let base = api.base();
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    outln!("{} hosts run: {}. Their files: {}", hosts.len(), names.join(", "), hosts[0].parent().display());
    outln!("NATS is at {nats}");
    let url = managed_nats::url_file(&data_dir.join("nats"));
    if url.is_file() {
        outln!("For workers of yours: export OS_UPGRADE_NATS_URL=$(cat {})", url.display());
    }
    outln!();
    outln!("Upgrade them:      curl -X POST {base}/v1/state/os-upgrade/trigger-upgrade-site");
    outln!("How it goes:       curl {base}/v1/state/os-upgrade");
    outln!("Versions:          curl {base}/v1/state/os-upgrade/hosts");
    outln!("History:           curl {base}/v1/state/os-upgrade/runs");
    outln!("Stop a run:        curl -X POST {base}/v1/state/os-upgrade/cancel");
    outln!();
    outln!("Ctrl-C ends everything; the state is kept.");
}

#[cfg(test)]
mod tests;
