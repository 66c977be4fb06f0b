//! The rules between keys. The values that a single key may have are in [`super::value`].

use std::path::PathBuf;
use std::time::Duration;

use os_upgrade_credentials::Access;
use os_upgrade_kernel as kernel;

use super::cluster::cluster_rules;
use super::merged::{Merged, Setting};
use super::problem::Problem;
use super::reboot_commands::command_rules;
use super::schema::{Nats, Settings, Store, read};
use super::value::{FailedNode, HttpUrl, NatsUrls};

/// The longest path of a Unix socket, in bytes: the system has 108, and the last one is zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Where the message bus is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatsMode<'a> {
    /// A nats-server is started as a child process.
    Managed,
    /// The operator's own servers.
    External {
        /// Their addresses.
        urls: &'a NatsUrls,
    },
}

impl Nats {
    /// Where the message bus is: `url` decides.
    pub fn mode(&self) -> NatsMode<'_> {
        match &self.url {
            Some(urls) => NatsMode::External { urls },
            None => NatsMode::Managed,
        }
    }

    /// The credentials to present to the servers of `url`, and the certificate authorities to trust.
    pub fn access(&self) -> Access {
        Access {
            credentials: self.credentials.clone(),
            ca: self.ca.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        }
    }

    /// Sets the servers to use, once a managed one is up.
    pub fn use_servers(&mut self, urls: NatsUrls) {
        self.url = Some(urls);
        self.managed = None;
    }
}

impl Settings {
    /// The settings on which the kernel's decisions depend.
    pub fn for_kernel(&self) -> kernel::Settings {
        let fleet_lock = &self.fleet_lock;
        let provider = match fleet_lock.url {
            Some(_) => kernel::LockProvider::External,
            None => kernel::LockProvider::Embedded,
        };
        kernel::Settings {
            site: self.site.name.as_str().to_owned(),
            timezone: self.site.timezone,
            provider,
            default_group: fleet_lock.default_group.clone(),
            on_failure: fleet_lock.on_failure,
            groups: fleet_lock.groups.iter().map(|(group, slots)| (group.clone(), slots)).collect(),
            failed: fleet_lock.groups.failed().map(|(group, failed)| (group.clone(), failed)).collect(),
            reclaim: fleet_lock.reclaim,
            stuck_after: seconds(fleet_lock.stuck_after.get()),
            auto_approve: self.site.auto_approve,
            reboot: kernel::RebootSettings {
                max_concurrent: self.reboot.max_concurrent_reboots.get(),
                unreachable_max: self.reboot.maximum_unreachable_nodes_for_reboot.get(),
                in_windows: self.reboot.in_windows,
                queue_required: self.reboot.queue_required,
                api_servers: self.reboot.api_servers,
                backoff: kernel::Backoff {
                    first: seconds(self.reboot.backoff_first.get()),
                    max: seconds(self.reboot.backoff_max.get()),
                    jitter: seconds(self.reboot.backoff_jitter.get()),
                },
                command: self.reboot_commands().map(|commands| kernel::RebootCommandSettings {
                    within: seconds(commands.within()),
                    checks_boot: commands.boot_check.is_some(),
                }),
            },
            kubernetes: self.cluster().map(|cluster| kernel::KubernetesSettings {
                drain_timeout: seconds(self.kubernetes.drain_timeout.get()),
                uncordon_failed: match self.kubernetes.on_failure {
                    FailedNode::KeepCordoned => false,
                    FailedNode::Uncordon => true,
                },
                hosts: cluster.node_from.hosts(),
            }),
        }
    }

    /// The URL of the external lock server without user and password; `None` if the own semaphores are used.
    pub fn lock_server(&self) -> Option<String> {
        self.fleet_lock.url.as_ref().map(|url| url.without_credentials().to_string())
    }
}

fn seconds(duration: Duration) -> os_upgrade_calendar::Duration {
    os_upgrade_calendar::Duration::from_secs(duration.as_secs())
}

impl Store {
    /// The path of the SQLite database.
    pub fn database(&self) -> PathBuf {
        self.path.join("os-upgrade.db")
    }

    /// The path of the file that is replaced at each backup.
    pub fn last_backup(&self) -> PathBuf {
        self.path.join("last-backup")
    }

    /// The path of a managed nats-server's directory.
    pub fn nats(&self) -> PathBuf {
        self.path.join("nats")
    }
}

/// Checks every key, then the rules between keys; `None` if a value is bad. The rules are checked even then.
pub(super) fn validate(merged: &Merged, problems: &mut Vec<Problem>) -> Option<Settings> {
    let read = read::Settings::new(merged, problems);
    problems.extend(nats_rules(&read.nats));
    problems.extend(lock_server_rules(&read.fleet_lock));
    problems.extend(public_url_rule(&read.api));
    problems.extend(fleet_socket_rules(&read.api));
    problems.extend(api_tls_rules(&read.api_tls));
    problems.extend(api_oidc_rules(&read.api_oidc));
    problems.extend(default_group_exists(&read.fleet_lock));
    problems.extend(reboot_rules(&read.reboot));
    problems.extend(backoff_rule(&read.reboot));
    problems.extend(command_rules(&read.reboot));
    problems.extend(cluster_rules(&read.kubernetes, &read.site.name));
    read.values()
}

fn reboot_rules(reboot: &read::Reboot<'_>) -> Option<Problem> {
    if reboot.queue_required.value != Some(true) || reboot.in_windows.value == Some(true) {
        return None;
    }
    reboot
        .queue_required
        .problem("needs reboot.in-windows = true, so that no host reboots outside of a window")
}

fn backoff_rule(read::Reboot { backoff_first, backoff_max, .. }: &read::Reboot<'_>) -> Option<Problem> {
    if backoff_max.value? >= backoff_first.value? {
        return None;
    }
    let message = "reboot.backoff-max is less than reboot.backoff-first";
    backoff_max.problem(message).or_else(|| backoff_first.problem(message))
}

/// A certificate needs its key, and the key needs the certificate.
fn pair<T>(certificate: &Setting<'_, T>, key: &Setting<'_, T>) -> [Option<Problem>; 2] {
    [certificate.needs(key, "its private key"), key.needs(certificate, "to which it belongs")]
}

fn nats_rules(nats: &read::Nats<'_>) -> Vec<Problem> {
    let read::Nats { url, managed, managed_port, credentials, ca, certificate, key, replicas, .. } = nats;
    let mut found = Vec::new();
    if let Some(raw) = url.given {
        let at = &raw.origin;
        if managed.value == Some(Some(true)) {
            found.push(managed.problem(&format!("true contradicts nats.url ({at}); set only one of them")));
        } else {
            found.push(managed_port.problem(&format!("has no effect with nats.url ({at})")));
            found.extend(pair(certificate, key));
        }
    } else if managed.value == Some(Some(false)) {
        found.push(managed.problem("false needs nats.url"));
    } else {
        found.push(credentials.needs(url, "as a managed server has no accounts"));
        found.extend([ca, certificate, key].map(|file| file.needs(url, "as a managed server has no TLS")));
        if replicas.value.is_some_and(|replicas| replicas.get() > 1) {
            let message = "there is only one managed server; more than 1 replica needs nats.url";
            found.push(replicas.problem(message));
        }
    }
    found.into_iter().flatten().collect()
}

/// Certificates need TLS, and each needs its key.
fn lock_server_rules(fleet_lock: &read::FleetLock<'_>) -> Vec<Problem> {
    let read::FleetLock { url, credentials_secret, ca, certificate, key, .. } = fleet_lock;
    let mut found = Vec::from(pair(certificate, key));
    // With a bad URL it is not known whether TLS was meant.
    let is_https = |url: &HttpUrl| url.url().scheme() == "https";
    if url.value.as_ref().is_some_and(|url| !url.as_ref().is_some_and(is_https)) {
        let message = "needs a fleet-lock.url that begins with https://";
        found.extend([ca, certificate, key].map(|file| file.problem(message)));
    }
    let has_user = |url: &HttpUrl| !url.url().username().is_empty();
    if url.given.is_none() || url.value.as_ref().and_then(Option::as_ref).is_some_and(has_user) {
        found.push(credentials_secret.problem("needs a fleet-lock.url without user and password"));
    }
    found.into_iter().flatten().collect()
}

/// Others append paths to it, and it is told to servers.
fn public_url_rule(api: &read::Api<'_>) -> Option<Problem> {
    let url = api.public_url.value.as_ref()?.as_ref()?;
    let has_more = url.url().query().is_some() || url.url().fragment().is_some();
    if !has_more && !url.has_credentials() {
        return None;
    }
    api.public_url.problem("must have neither user and password nor a query (?) or a fragment (#)")
}

/// The group is that of the socket, and the system limits the length of its path.
fn fleet_socket_rules(api: &read::Api<'_>) -> impl Iterator<Item = Problem> {
    let read::Api { fleet_socket, fleet_socket_group, .. } = api;
    let why = "as there is no socket otherwise";
    let path = fleet_socket.value.as_ref().and_then(Option::as_ref);
    let bytes = path.map_or(0, |path| path.as_os_str().len());
    let too_long =
        format!("has {bytes} bytes; the path of a Unix socket has at most {SOCKET_PATH_BYTES_MAX}");
    let problems = [
        if bytes > SOCKET_PATH_BYTES_MAX { fleet_socket.problem(&too_long) } else { None },
        fleet_socket_group.needs(fleet_socket, why),
    ];
    problems.into_iter().flatten()
}

/// A certificate needs its key, and `client-ca` needs both.
fn api_tls_rules(tls: &read::ApiTls<'_>) -> impl Iterator<Item = Problem> {
    let client_ca = tls.client_ca.needs(&tls.cert, "as only TLS has client certificates");
    pair(&tls.cert, &tls.key).into_iter().flatten().chain(client_ca)
}

/// `issuer`, `audience` and `jwks` are set together or not at all.
fn api_oidc_rules(read::ApiOidc { issuer, audience, jwks, .. }: &read::ApiOidc<'_>) -> Option<Problem> {
    let keys = [(issuer.key, issuer.given), (audience.key, audience.given), (jwks.key, jwks.given)];
    let missing: Vec<_> = keys.iter().filter(|(_, given)| given.is_none()).map(|(key, _)| *key).collect();
    let (key, raw) = keys.iter().find_map(|(key, given)| Some((key, (*given)?)))?;
    (!missing.is_empty()).then(|| raw.problem(format!("{key}: needs {}", missing.join(" and "))))
}

fn default_group_exists(fleet_lock: &read::FleetLock<'_>) -> Option<Problem> {
    let read::FleetLock { url, default_group, groups: all, .. } = fleet_lock;
    let (groups, group) = (all.value.as_ref()?, default_group.value.as_ref()?);
    // The groups of an external lock server are not known here.
    if groups.slots(group).is_some() || url.given.is_some() {
        return None;
    }
    let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let message = format!(
        "{}: \"{group}\" is not in [fleet-lock.groups], which has {}",
        default_group.key,
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    );
    Some(default_group.given.or(all.given)?.problem(message))
}
