//! `os-upgrade dev`: a whole site on one machine. This module starts and ends the parts in order; the parts are in the
//! modules below.

mod api;
mod host;
mod progress;
mod upgrade;
mod worker;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use os_upgrade_api_types::routes::{hosts, runs, state};
use os_upgrade_cli::output::outln;
use os_upgrade_credentials::Access;
use os_upgrade_nats_config::NatsConfig;
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::HostName;
use os_upgrade_settings::{NatsMode, NatsUrls, Settings};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::serve::{Setup, with_nats};
use api::Api;
use host::DemoHost;
use worker::Workers;

/// How long the orchestrator may take to end after it was asked to.
const END_WAIT: Duration = Duration::from_secs(30);

/// The arguments of `os-upgrade dev`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// How many hosts to run, named h01, h02, ...
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=200))]
    hosts: u16,
    /// Upgrade all hosts once, show the progress, and exit; exit code 0 only if the run completed
    #[arg(long)]
    once: bool,
    /// The directory for the hosts, the history and the nats-server's data
    #[arg(long, value_name = "DIR", default_value = "data/dev")]
    data_dir: PathBuf,
    /// For your own NATS, at `OS_UPGRADE_NATS__URL`: the directory of `os-upgrade nats-config`, with credentials for the
    /// orchestrator and each host
    #[arg(long, value_name = "DIR")]
    nats_config: Option<PathBuf>,
    /// The address and port of the API; by default `[api] listen`
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

impl Options {
    /// Applies these arguments to `settings`, which come from defaults and environment.
    pub(super) fn settings(&self, mut settings: Settings) -> Settings {
        settings.store.path.clone_from(&self.data_dir);
        settings.api.listen = self.listen.unwrap_or(settings.api.listen);
        // The client and the printed commands use plain HTTP, which never leaves this machine.
        settings.api_tls = Settings::default().api_tls;
        // Whoever starts the demo hosts also approves them.
        settings.site.auto_approve = true;
        if let Some(directory) = &self.nats_config {
            let config = NatsConfig::new(directory);
            settings.nats.credentials.get_or_insert_with(|| config.orchestrator_credentials());
            settings.nats.ca.get_or_insert_with(|| config.ca());
        }
        settings
    }

    /// What the worker of `host` presents to NATS.
    fn access_of(&self, host: &str, settings: &Settings) -> anyhow::Result<Access> {
        let orchestrator = settings.nats.access();
        let credentials = match (settings.nats.mode(), &self.nats_config) {
            (NatsMode::Managed, Some(_)) => {
                bail!("--nats-config is for your own NATS: set OS_UPGRADE_NATS__URL to its address")
            }
            (NatsMode::External { .. }, None) if orchestrator.credentials.is_some() => bail!(
                "the hosts would have no credentials for this NATS: give the directory of `os-upgrade nats-config` as \
                 --nats-config, or unset OS_UPGRADE_NATS__URL and OS_UPGRADE_NATS__CREDENTIALS for a nats-server of dev's own"
            ),
            (NatsMode::Managed | NatsMode::External { .. }, None) => None,
            (NatsMode::External { urls }, Some(directory)) => {
                let file = NatsConfig::new(directory).host_credentials(&HostName::new(host)?);
                if !file.is_file() {
                    bail!(
                        "{host} has no credentials in {}: create them with `os-upgrade nats-config host {host} --dir {} --nats {urls}`",
                        file.display(),
                        directory.display()
                    );
                }
                Some(file)
            }
        };
        // Each worker has its own working directory, so paths must be absolute.
        let absolute = |file: Option<PathBuf>| file.map(std::path::absolute).transpose();
        Ok(Access {
            credentials: absolute(credentials)?,
            ca: absolute(orchestrator.ca)?,
            certificate: absolute(orchestrator.certificate)?,
            key: absolute(orchestrator.key)?,
        })
    }
}

/// Runs the site until `shutdown`, or with `--once` until its upgrade has ended.
pub(super) async fn run(
    mut settings: Settings,
    options: &Options,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    if settings.api.listen.port() == 0 {
        bail!("dev needs a fixed port; --listen {} has none", settings.api.listen);
    }
    let program = worker::find_program()?;
    let hosts = DemoHost::create_all(&options.data_dir, options.hosts)?;
    let access = hosts.iter().map(|host| options.access_of(&host.name, &settings));
    let access = access.collect::<anyhow::Result<Vec<_>>>()?;
    let api = Api::new(settings.api.listen)?;
    let setup = Setup::from_settings(&settings).await?;
    let bus = with_nats::start(&mut settings).await.map_err(with_advice)?;
    let nats = servers(&settings)?;

    let end = CancellationToken::new();
    let (_, no_changes) = watch::channel(settings.for_kernel());
    let mut orchestrator = tokio::spawn(with_nats::serve(settings, setup, no_changes, bus, end.clone()));
    let workers = Workers::start(&program, &nats.servers().join(","), &hosts, &access);
    let result = tokio::select! {
        result = upgrade_or_wait(&api, &hosts, &nats, options) => result,
        () = shutdown.cancelled() => interrupted(options.once),
        served = &mut orchestrator => {
            workers.stop().await;
            served?.context("the orchestrator has stopped")?;
            bail!("the orchestrator has stopped");
        }
    };
    workers.stop().await;
    end.cancel();
    let ended = tokio::time::timeout(END_WAIT, orchestrator).await;
    result.and(
        ended.with_context(|| format!("the orchestrator did not end within {} s", END_WAIT.as_secs()))??,
    )
}

/// Sets the site up, then upgrades it once or waits forever.
async fn upgrade_or_wait(
    api: &Api,
    hosts: &[DemoHost],
    nats: &NatsUrls,
    options: &Options,
) -> anyhow::Result<()> {
    upgrade::set_up(api, hosts).await?;
    if options.once {
        return upgrade::once(api, hosts).await;
    }
    explain_use(api, hosts, nats, &options.data_dir);
    std::future::pending().await
}

fn with_advice(error: anyhow::Error) -> anyhow::Error {
    let cause = error.downcast_ref::<managed_nats::Error>();
    if !matches!(cause, Some(managed_nats::Error::InUse { .. })) {
        return error;
    }
    anyhow!(
        "{error:#}: another `os-upgrade dev` runs there; give this one a directory of its own with --data-dir"
    )
}

fn interrupted(once: bool) -> anyhow::Result<()> {
    if once {
        bail!("interrupted before the run ended");
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
        outln!("For your own workers: export OS_UPGRADE_NATS_URL=$(cat {})", url.display());
    }
    outln!();
    outln!("Upgrade them:      curl -X POST {base}{}", runs::TRIGGER.path());
    outln!("Progress:          curl {base}{}", state::READ.path());
    outln!("Versions:          curl {base}{}", hosts::LIST.path());
    outln!("History:           curl {base}{}", runs::LIST.path());
    outln!("Stop a run:        curl -X POST {base}{}", runs::CANCEL.path());
    outln!();
    outln!("Ctrl-C ends everything; the state is kept.");
}

#[cfg(test)]
mod tests;
