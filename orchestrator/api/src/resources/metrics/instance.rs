//! Metrics of this instance: whether it knows a leader, waits for an operator or doubts its clock, and when the site was
//! backed up from here.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use os_upgrade_kernel::Clock;
use os_upgrade_shell::instance::Leadership;
use os_upgrade_site::published_state::{PublishedState, Readiness};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::value::gauge;

/// Describes this instance. `last_backup` is the file that `os-upgrade backup` replaces.
pub(super) fn describe(
    registry: &mut Registry,
    published: &PublishedState,
    own_clock: &Clock,
    last_backup: &Path,
) {
    let is_known = match published.leadership {
        Leadership::Here(_) | Leadership::At(_) => true,
        Leadership::Unknown => false,
    };
    let help = "Whether this instance leads, or knows who does";
    registry.register("os_upgrade_leader_known", help, gauge(is_known.into()));

    let halted = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    if let Readiness::Halted { kind, .. } = &published.readiness {
        halted.get_or_create(&[("kind", *kind)]).set(1);
    }
    let help =
        "Whether this instance has halted until an operator intervenes: it reads and decides nothing more";
    registry.register("os_upgrade_halted", help, halted);

    let doubted = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    if let Some(doubt) = &own_clock.doubt {
        doubted.get_or_create(&[("reason", doubt.kind())]).set(1);
    }
    let help = "Whether this instance doubts its clock, so that it would start no run by itself";
    registry.register("os_upgrade_clock_in_doubt", help, doubted);

    let help = "When os-upgrade backup last succeeded with the data directory of this instance, in seconds since 1970; 0 if it \
                never did";
    registry.register(
        "os_upgrade_last_backup_timestamp_seconds",
        help,
        gauge(modified(last_backup).unwrap_or(0)),
    );
}

/// When the file was written, in seconds since 1970; absent without a file.
fn modified(file: &Path) -> Option<i64> {
    let since = fs::metadata(file).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}
