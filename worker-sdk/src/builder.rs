//! Configures and starts a worker.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::Client;
use os_upgrade_credentials::Access;
use os_upgrade_protocol::{Announcement, ApplicationName, GroupName, HostName};
use os_upgrade_worker_rules::{WorkerConfig, limits};
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::driver::Driver;
use crate::files::Roots;
use crate::store::Store;
use crate::{BootIdSource, Error, VersionsNotifier, Worker, connect};

const STATE_DIR_DEFAULT: &str = "/var/lib/os-upgrade-worker";
const MACHINE_ID: &str = "/etc/machine-id";

/// The configuration of a worker.
#[derive(Debug)]
pub struct WorkerBuilder {
    host: HostName,
    application: ApplicationName,
    nats: Nats,
    access: Access,
    group: Option<GroupName>,
    labels: BTreeMap<String, String>,
    addresses: Vec<String>,
    state_dir: PathBuf,
    boot_id: BootIdSource,
    reboot_wait: Duration,
    shutdown: CancellationToken,
    versions: VersionsNotifier,
    configures: bool,
    roots: Vec<PathBuf>,
}

#[derive(Debug)]
enum Nats {
    Absent,
    Url(String),
    Client(Client),
}

impl WorkerBuilder {
    /// A worker of `application` for `host`. A NATS URL or client is also required.
    pub fn new(host: &str, application: &str) -> Result<Self, Error> {
        Ok(Self {
            host: HostName::first_seen(host).map_err(|source| Error::Name { of: "host", source })?,
            application: ApplicationName::new(application)
                .map_err(|source| Error::Name { of: "application", source })?,
            nats: Nats::Absent,
            access: Access::default(),
            group: None,
            labels: BTreeMap::new(),
            addresses: Vec::new(),
            state_dir: PathBuf::from(STATE_DIR_DEFAULT),
            boot_id: BootIdSource::default(),
            reboot_wait: limits::REBOOT_WAIT_DEFAULT.to_std().expect("the default wait is positive"),
            shutdown: CancellationToken::new(),
            versions: VersionsNotifier::default(),
            configures: false,
            roots: Vec::new(),
        })
    }

    /// Connects to `url`, `nats://[user:password@]host[:port]`, or to several separated by commas; a user without a
    /// password is a token. The server may be unreachable, at the start and at any later time.
    #[must_use]
    pub fn nats_url(mut self, url: &str) -> Self {
        self.nats = Nats::Url(url.to_owned());
        self
    }

    /// Presents these credentials to the servers of [`Self::nats_url`]: a file as `os-upgrade nats-config host` creates it.
    /// It is read for every connection, so it can be replaced while the worker runs.
    #[must_use]
    pub fn credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.access.credentials = Some(file.into());
        self
    }

    /// Trusts the certificate authorities in this PEM file, instead of the system's, for the servers of
    /// [`Self::nats_url`], and requires TLS.
    #[must_use]
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.access.ca = Some(file.into());
        self
    }

    /// Presents this client certificate to the servers of [`Self::nats_url`]. It and its private key are PEM files.
    #[must_use]
    pub fn tls_certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.access.certificate = Some(certificate.into());
        self.access.key = Some(key.into());
        self
    }

    /// Uses this client. It should reconnect without a limit, and ping its server every few seconds to notice one that
    /// hangs.
    #[must_use]
    pub fn nats_client(mut self, client: Client) -> Self {
        self.nats = Nats::Client(client);
        self
    }

    /// Sets the FleetLock group whose slot the host needs; the site's default group by default.
    #[must_use]
    pub fn group(mut self, group: GroupName) -> Self {
        self.group = Some(group);
        self
    }

    /// Adds a label, for selecting hosts.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds an address at which operators can reach the host.
    #[must_use]
    pub fn address(mut self, address: &str) -> Self {
        self.addresses.push(address.to_owned());
        self
    }

    /// Sets the directory of the state file, which must survive a reboot; `/var/lib/os-upgrade-worker` by default.
    #[must_use]
    pub fn state_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state_dir = directory.into();
        self
    }

    /// Sets the source of the boot id; this machine's kernel by default.
    #[must_use]
    pub fn boot_id(mut self, source: BootIdSource) -> Self {
        self.boot_id = source;
        self
    }

    /// Sets how long a reboot may take to end this process before it is tried again; five minutes by default.
    #[must_use]
    pub const fn reboot_wait(mut self, wait: Duration) -> Self {
        self.reboot_wait = wait;
        self
    }

    /// Ends the worker when `token` is cancelled, in this example when Ctrl-C is pressed:
    ///
    /// ```no_run
    /// use os_upgrade_worker_sdk::{CancellationToken, Error, WorkerBuilder};
    ///
    /// fn builder() -> Result<WorkerBuilder, Error> {
    ///     let token = CancellationToken::new();
    ///     let shutdown = token.clone();
    ///     tokio::spawn(async move {
    ///         if tokio::signal::ctrl_c().await.is_ok() {
    ///             token.cancel();
    ///         }
    ///     });
    ///     Ok(WorkerBuilder::new("h01", "my-worker")?.shutdown(shutdown))
    /// }
    /// ```
    ///
    /// Then nothing new is begun, a handler under way is asked to stop, and the next start resumes work that was cut off.
    #[must_use]
    pub fn shutdown(mut self, token: CancellationToken) -> Self {
        self.shutdown = token;
        self
    }

    /// Takes configurations from the orchestrator: [`Worker::configure`] and [`Worker::revoke`] are called for what the host is to have. The
    /// state directory then has the host's private key, to which they are sealed.
    #[must_use]
    pub const fn configures(mut self) -> Self {
        self.configures = true;
        self
    }

    /// Lets configurations have files below `directory`, an absolute path without links: the library puts them in place before it calls
    /// [`Worker::configure`]. Also makes the worker take configurations, as [`Self::configures`] does.
    #[must_use]
    pub fn configuration_root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.roots.push(directory.into());
        self.configures = true;
        self
    }

    /// A notifier for changed versions, for use outside of handlers.
    pub fn versions_notifier(&self) -> VersionsNotifier {
        self.versions.clone()
    }

    /// Serves the host until the shutdown token is cancelled.
    ///
    /// # Errors
    /// The worker cannot start: its state directory, boot id or NATS URL cannot be used. Once it has started, only the
    /// token ends it.
    pub async fn run<W: Worker>(self, worker: W) -> Result<(), Error> {
        let boot_id = self.boot_id.read()?;
        let roots = Roots::new(self.roots).map_err(|error| Error::ConfigurationRoot(error.to_string()))?;
        let store = Store::open(&self.state_dir, &self.host)?;
        let key = self.configures.then(|| store.key()).transpose()?;
        let client = match self.nats {
            Nats::Absent => return Err(Error::NoNats),
            Nats::Url(url) => connect::connect(&url, self.access, &self.application, &self.host).await?,
            Nats::Client(client) => client,
        };
        let announcement = Announcement {
            machine_id: read_machine_id(),
            addresses: self.addresses,
            labels: self.labels,
            group: self.group,
            heartbeats: true,
            ..Announcement::new(self.host.clone(), self.application.clone())
        };
        let config = WorkerConfig {
            host: self.host,
            application: self.application,
            reboot_wait: chrono::TimeDelta::from_std(self.reboot_wait).unwrap_or(chrono::TimeDelta::MAX),
        };
        let driver = Driver {
            config,
            announcement,
            boot_ids: self.boot_id,
            versions: self.versions,
            shutdown: self.shutdown,
            bus: Bus::new(client),
            store,
            key,
            roots,
        };
        driver.run(boot_id, worker).await
    }
}

fn read_machine_id() -> Option<String> {
    let text = std::fs::read_to_string(MACHINE_ID).ok()?;
    let id = text.trim();
    (!id.is_empty()).then(|| id.to_owned())
}
