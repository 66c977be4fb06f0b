//! Exclusive access to a site for a restoration: the data directory locked, the bus connected, and the lease held, so
//! that no orchestrator runs in the meantime.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use os_upgrade_bus::Bus;
use os_upgrade_bus::connect::connect;
use os_upgrade_bus::streams::Layout;
use os_upgrade_platform::data_directory::DataDirectory;
use os_upgrade_platform::managed_nats::{self, ManagedNats};
use os_upgrade_platform::nats_server;
use os_upgrade_settings::{NatsMode, Settings};
use os_upgrade_shell::lease::{LEASE_TTL, LeaseAction, LeaseHolder, LeaseOutcome};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::RecoveryError;

/// How often the lease is renewed: three times in its duration.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);

/// How much of the lease must be left when a step begins.
const LEFT_MIN: Duration = Duration::from_secs(1);

/// A site that no orchestrator on this machine runs.
#[derive(Debug)]
pub struct Site {
    pub settings: Settings,
    pub bus: Bus,
    /// Its data directory, locked.
    pub directory: DataDirectory,
    /// The managed nats-server, if it has one; it ends with this.
    nats: Option<ManagedNats>,
}

impl Site {
    /// Locks the data directory and connects to the bus; a managed one is started.
    ///
    /// # Errors
    /// An orchestrator uses the directory, or the bus is not available.
    pub async fn open(settings: Settings) -> Result<Self, RecoveryError> {
        let directory = DataDirectory::lock(&settings.store.path).map_err(anyhow::Error::from)?;
        let nats = match settings.nats.mode() {
            NatsMode::Managed => Some(start_managed(&settings).await?),
            NatsMode::External { .. } => None,
        };
        let bus = connect_to(&settings, nats.as_ref().map(ManagedNats::url)).await?;
        Ok(Self { settings, bus, directory, nats })
    }

    /// The layout of its streams.
    pub fn layout(&self) -> Layout<'_> {
        layout(&self.settings)
    }

    /// Stops the managed nats-server.
    pub async fn close(self) {
        if let Some(nats) = &self.nats {
            nats.stop().await;
        }
    }
}

/// The layout of a site's streams.
pub fn layout(settings: &Settings) -> Layout<'_> {
    Layout { site: settings.site.name.as_str(), replicas: settings.nats.replicas.get() as usize }
}

async fn start_managed(settings: &Settings) -> Result<ManagedNats, RecoveryError> {
    let port = settings.nats.managed_port.map(|port| u16::try_from(port.get())).transpose();
    let port = port.map_err(anyhow::Error::from)?;
    let options = managed_nats::Options { directory: settings.store.nats(), port };
    let server = nats_server::find().await.map_err(anyhow::Error::from)?;
    Ok(ManagedNats::start(server, &options).await.map_err(anyhow::Error::from)?)
}

/// Connects to the servers of the settings, or to `managed`.
pub async fn connect_to(settings: &Settings, managed: Option<String>) -> Result<Bus, RecoveryError> {
    let servers = match settings.nats.mode() {
        NatsMode::External { urls } => urls.servers().to_vec(),
        NatsMode::Managed => managed.into_iter().collect(),
    };
    let name = format!("os-upgrade {} (recovery)", settings.site.name.as_str());
    let (bus, _) = connect(&servers, settings.nats.access(), &name).await.map_err(anyhow::Error::from)?;
    Ok(bus)
}

/// The lease, renewed until it is released. If this is dropped, the lease expires.
#[derive(Debug)]
pub struct HeldLease {
    bus: Bus,
    /// The last renewal; `None` once one has failed.
    renewal: watch::Receiver<Option<Renewal>>,
    renewing: JoinHandle<()>,
}

/// A write of the lease.
#[derive(Debug, Clone, Copy)]
struct Renewal {
    revision: u64,
    /// When it was requested: the lease lasts no shorter from then on.
    asked: Instant,
}

impl Renewal {
    /// Whether the lease still lasts at `now`, long enough to begin a step. A process that was paused has not renewed it.
    fn lasts(self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked) + LEFT_MIN <= LEASE_TTL
    }
}

impl HeldLease {
    /// Takes the lease in the name of `instance`, also from an earlier process of it that was killed.
    ///
    /// # Errors
    /// Another instance holds it, or the bus does not answer.
    pub async fn take(bus: &Bus, layout: &Layout<'_>, instance: &str) -> Result<Self, RecoveryError> {
        bus.ensure_lease(layout).await?;
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let mut me = LeaseHolder { restores: true, ..LeaseHolder::new(instance, &nonce) };
        let mut asked = Instant::now();
        let mut outcome = bus.lease(&LeaseAction::Create(me.clone())).await;
        if let LeaseOutcome::Taken { holder, revision } = &outcome
            && holder.instance == me.instance
        {
            // The data directory is locked, so that process has ended.
            me = me.replacing(holder);
            let action = LeaseAction::Update { holder: me.clone(), revision: *revision };
            asked = Instant::now();
            outcome = bus.lease(&action).await;
        }
        let revision = match outcome {
            LeaseOutcome::Written { revision, .. } => revision,
            LeaseOutcome::Taken { holder, .. } => return Err(RecoveryError::Led(holder.instance)),
            LeaseOutcome::Full(limit) => return Err(anyhow::Error::from(limit).into()),
            LeaseOutcome::Released | LeaseOutcome::Failed => {
                return Err(anyhow!("the lease was not granted").into());
            }
        };
        let (sender, renewal) = watch::channel(Some(Renewal { revision, asked }));
        let renewing = tokio::spawn(renew(bus.clone(), me, revision, sender));
        Ok(Self { bus: bus.clone(), renewal, renewing })
    }

    /// Checks that no other process can have begun to lead.
    ///
    /// # Errors
    /// The lease could not be renewed, or not for too long.
    pub fn check(&self) -> Result<(), RecoveryError> {
        let renewal = *self.renewal.borrow();
        renewal.filter(|renewal| renewal.lasts(Instant::now())).map(drop).ok_or(RecoveryError::LeaseLost)
    }

    /// Releases the lease, so that the next orchestrator need not wait.
    pub async fn release(self) {
        self.renewing.abort();
        let renewal = *self.renewal.borrow();
        if let Some(Renewal { revision, .. }) = renewal {
            // If this fails, the lease expires.
            self.bus.lease(&LeaseAction::Release { revision }).await;
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

async fn renew(bus: Bus, me: LeaseHolder, mut revision: u64, held: watch::Sender<Option<Renewal>>) {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        let asked = Instant::now();
        match bus.lease(&LeaseAction::Update { holder: me.clone(), revision }).await {
            LeaseOutcome::Written { revision: renewed, .. } => {
                revision = renewed;
                held.send_replace(Some(Renewal { revision, asked }));
            }
            LeaseOutcome::Taken { .. }
            | LeaseOutcome::Released
            | LeaseOutcome::Full(_)
            | LeaseOutcome::Failed => {
                held.send_replace(None);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_lasts_as_long_as_the_lease() {
        let asked = Instant::now();
        let lasts = |after: Duration| Renewal { revision: 1, asked }.lasts(asked + after);
        assert!(lasts(RENEW_INTERVAL));
        let most = LEASE_TTL.saturating_sub(LEFT_MIN);
        assert!(lasts(most));
        assert!(!lasts(most + Duration::from_nanos(1)));
        assert!(!lasts(Duration::from_hours(1)));
    }
}
