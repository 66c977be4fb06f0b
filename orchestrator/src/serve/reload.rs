//! SIGHUP: reloads the configuration, and applies the settings that can change while the orchestrator runs.

use std::path::PathBuf;

use anyhow::Context as _;
use os_upgrade_kernel as kernel;
use os_upgrade_settings::{self as settings, FleetLock, Settings, Site};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The kernel's settings, updated at each SIGHUP if the configuration is valid. `running` are the settings at the start.
pub(crate) fn on_hangup(
    file: Option<PathBuf>,
    running: Settings,
) -> anyhow::Result<watch::Receiver<kernel::Settings>> {
    warn_of(&running);
    let hangup = signal(SignalKind::hangup()).context("cannot handle SIGHUP")?;
    let (sender, changes) = watch::channel(running.for_kernel());
    tokio::spawn(reload(hangup, file, running, sender));
    Ok(changes)
}

async fn reload(
    mut hangup: Signal,
    file: Option<PathBuf>,
    running: Settings,
    changes: watch::Sender<kernel::Settings>,
) {
    while hangup.recv().await.is_some() {
        match settings::load(file.as_deref(), std::env::vars_os()) {
            Ok(read) => {
                let settings = changeable(&running, &read);
                for section in differing(&settings, &read) {
                    tracing::warn!(section, "changed settings need a restart to take effect");
                }
                tracing::info!("the configuration was read again");
                warn_of(&settings);
                if changes.send(settings.for_kernel()).is_err() {
                    return;
                }
            }
            Err(error) => {
                for line in error.to_string().lines() {
                    tracing::error!("the configuration is not applied: {line}");
                }
            }
        }
    }
}

fn warn_of(settings: &Settings) {
    for warning in settings.warnings() {
        tracing::warn!("{warning}; {}", warning.advice());
    }
}

/// The sections in which two configurations differ.
fn differing(one: &Settings, other: &Settings) -> impl Iterator<Item = &'static str> {
    let sections = [
        ("site", one.site != other.site),
        ("api", one.api != other.api),
        ("api.tls", one.api_tls != other.api_tls),
        ("api.oidc", one.api_oidc != other.api_oidc),
        ("nats", one.nats != other.nats),
        ("store", one.store != other.store),
        ("strongbox", one.strongbox != other.strongbox),
        ("history", one.history != other.history),
        ("fleet-lock", one.fleet_lock != other.fleet_lock),
        ("reboot", one.reboot != other.reboot),
        ("kubernetes", one.kubernetes != other.kubernetes),
    ];
    sections.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name)
}

/// `running` with those settings of `read` that can change without a restart: how slots are given, but not by which
/// server, and whether hosts wait for approval.
fn changeable(running: &Settings, read: &Settings) -> Settings {
    let FleetLock { default_group, on_failure, reclaim, stuck_after, groups, .. } = read.fleet_lock.clone();
    let fleet_lock =
        FleetLock { default_group, on_failure, reclaim, stuck_after, groups, ..running.fleet_lock.clone() };
    let site = Site { auto_approve: read.site.auto_approve, ..running.site.clone() };
    Settings { site, fleet_lock, ..running.clone() }
}
