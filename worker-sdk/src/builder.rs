//! Putting a worker together.

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
use crate::store::Store;
use crate::{BootIdSource, Error, VersionsNotifier, Worker, bus};

const STATE_DIR_DEFAULT: &str = "/var/lib/os-upgrade-worker";
const MACHINE_ID: &str = "/etc/machine-id";

/// Everything that a worker needs to know, with defaults where they make sense.
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
}

#[derive(Debug)]
enum Nats {
    Absent,
    Url(String),
    Client(Client),
}

impl WorkerBuilder {
    /// A worker of `application` for `host`. It needs a NATS URL or client as well.
    pub fn new(host: &str, application: &str) -> Result<Self, Error> {
        Ok(Self {
            host: HostName::new(host).map_err(|source| Error::Name { of: "host", source })?,
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
        })
    }

    /// Connects to `url`, `nats://[user:password@]host[:port]`, or several with commas between; a user without a
    /// password is a token. The server need not be there yet, and may go away at any time.
    #[must_use]
    pub fn nats_url(mut self, url: &str) -> Self {
        self.nats = Nats::Url(url.to_owned());
        self
    }

    /// Shows these credentials to the servers of [`Self::nats_url`]: a file as `os-upgrade nats-config host` makes it.
    /// It is read anew at every connection, so it can be replaced while the worker runs.
    #[must_use]
    pub fn credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.access.credentials = Some(file.into());
        self
    }

    /// Trusts the authorities in this PEM file, instead of the system's, for the servers of [`Self::nats_url`], and
    /// speaks to them by TLS only.
    #[must_use]
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.access.ca = Some(file.into());
        self
    }

    /// Shows this certificate, with its private key, both PEM files, to the servers of [`Self::nats_url`].
    #[must_use]
    pub fn tls_certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.access.certificate = Some(certificate.into());
        self.access.key = Some(key.into());
        self
    }

    /// Uses this client, which should reconnect without a bound, and ping its server every few seconds, so that it
    /// notices one that hangs.
    #[must_use]
    pub fn nats_client(mut self, client: Client) -> Self {
        self.nats = Nats::Client(client);
        self
    }

    /// The FleetLock group whose slot the host needs; the site's default group otherwise.
    #[must_use]
    pub fn group(mut self, group: GroupName) -> Self {
        self.group = Some(group);
        self
    }

    /// A label, for selecting hosts.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// An address at which operators find the host.
    #[must_use]
    pub fn address(mut self, address: &str) -> Self {
        self.addresses.push(address.to_owned());
        self
    }

    /// Where the state is kept; it must survive a reboot. `/var/lib/os-upgrade-worker` by default.
    #[must_use]
    pub fn state_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state_dir = directory.into();
        self
    }

    /// Where the boot id comes from; this machine's kernel by default.
    #[must_use]
    pub fn boot_id(mut self, source: BootIdSource) -> Self {
        self.boot_id = source;
        self
    }

    /// How long a reboot may take to end this process before it is started again; five minutes by default.
    #[must_use]
    pub const fn reboot_wait(mut self, wait: Duration) -> Self {
        self.reboot_wait = wait;
        self
    }

    /// Ends the worker when cancelled. Here that is when Ctrl-C is pressed:
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
    /// Then nothing new is begun, a handler under way is asked to stop, and what was cut
    /// off is taken up at the next start.
    #[must_use]
    pub fn shutdown(mut self, token: CancellationToken) -> Self {
        self.shutdown = token;
        self
    }

    /// For saying, from outside a handler, that versions have changed.
    pub fn versions_notifier(&self) -> VersionsNotifier {
        self.versions.clone()
    }

    /// Serves the host until the shutdown token is cancelled.
    ///
    /// # Errors
    /// The worker cannot start: its state directory, boot id or NATS URL cannot be used. Once it has started, nothing
    /// but the token ends it.
    pub async fn run<W: Worker>(self, worker: W) -> Result<(), Error> {
        let boot_id = self.boot_id.read()?;
        let store = Store::open(&self.state_dir, &self.host)?;
        let client = match self.nats {
            Nats::Absent => return Err(Error::NoNats),
            Nats::Url(url) => bus::connect(&url, self.access, &self.application, &self.host).await?,
            Nats::Client(client) => client,
        };
        let announcement = Announcement {
            machine_id: read_machine_id(),
            boot_id: Some(boot_id.0.clone()),
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
        };
        driver.run(boot_id, worker).await
    }
}

fn read_machine_id() -> Option<String> {
    let text = std::fs::read_to_string(MACHINE_ID).ok()?;
    let id = text.trim();
    (!id.is_empty()).then(|| id.to_owned())
}
