//! The rules between keys. The values that a single key may have are in [`super::value`].

use std::path::PathBuf;
use std::time::Duration;

use os_upgrade_credentials::Access;
use os_upgrade_kernel as kernel;
use os_upgrade_protocol::GroupName;

use super::cluster::cluster_rules;
use super::merged::Merged;
use super::problem::Problem;
use super::reboot_commands::command_rules;
use super::schema::{Nats, Settings, Store};
use super::value::{FailedNode, Groups, HttpUrl, Interval, NatsUrls};

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

/// Checks every key, then the rules between keys; `None` if problems were found.
pub(super) fn validate(merged: &Merged, problems: &mut Vec<Problem>) -> Option<Settings> {
    let settings = Settings::read(merged, problems);
    let before = problems.len();
    // These rules look at the raw values, so that they are checked even if other keys have bad values.
    problems.extend(nats_rules(merged));
    problems.extend(lock_server_rules(merged));
    problems.extend(api_tls_rules(merged));
    problems.extend(api_oidc_rules(merged));
    problems.extend(default_group_exists(merged));
    problems.extend(reboot_rules(merged));
    problems.extend(backoff_rule(merged));
    problems.extend(command_rules(merged));
    problems.extend(cluster_rules(merged));
    settings.filter(|_| problems.len() == before)
}

fn reboot_rules(merged: &Merged) -> Option<Problem> {
    let is_set = |key| merged.read::<bool>("reboot", key, &mut Vec::new()) == Some(true);
    let raw = merged.given("reboot", "queue-required")?;
    (is_set("queue-required") && !is_set("in-windows")).then(|| {
        let why = "reboot.queue-required: needs reboot.in-windows = true, so that no host reboots outside of a window";
        raw.problem(why.to_owned())
    })
}

fn backoff_rule(merged: &Merged) -> Option<Problem> {
    let read = |key| merged.read::<Interval<1_000, 86_400_000>>("reboot", key, &mut Vec::new());
    if read("backoff-max")? >= read("backoff-first")? {
        return None;
    }
    let given = |key| merged.given("reboot", key).map(|raw| (key, raw));
    let (key, raw) = given("backoff-max").or_else(|| given("backoff-first"))?;
    Some(raw.problem(format!("reboot.{key}: reboot.backoff-max is less than reboot.backoff-first")))
}

fn nats_rules(merged: &Merged) -> Vec<Problem> {
    let given = |key| merged.given("nats", key);
    let managed = merged.read::<Option<bool>>("nats", "managed", &mut Vec::new()).flatten();
    let replicas = merged.read::<super::Bounded<1, 5>>("nats", "replicas", &mut Vec::new());
    let at = |key, message: String| given(key).map(|raw| raw.problem(message));
    let url_at = given("url").map(|raw| raw.origin.to_string()).unwrap_or_default();
    let found = match (given("url"), managed) {
        (Some(_), Some(true)) => vec![at(
            "managed",
            format!("nats.managed: true contradicts nats.url ({url_at}); set only one of them"),
        )],
        (Some(_), _) => vec![
            at("managed-port", format!("nats.managed-port: has no effect with nats.url ({url_at})")),
            at("certificate", "nats.certificate: needs nats.key, its private key".to_owned())
                .filter(|_| given("key").is_none()),
            at("key", "nats.key: needs nats.certificate, to which it belongs".to_owned())
                .filter(|_| given("certificate").is_none()),
        ],
        (None, Some(false)) => vec![at("managed", "nats.managed: false needs nats.url".to_owned())],
        (None, _) => vec![
            at(
                "credentials",
                "nats.credentials: needs nats.url, as a managed server has no accounts".to_owned(),
            ),
            at("ca", "nats.ca: needs nats.url, as a managed server has no TLS".to_owned()),
            at("certificate", "nats.certificate: needs nats.url, as a managed server has no TLS".to_owned()),
            at("key", "nats.key: needs nats.url, as a managed server has no TLS".to_owned()),
            at(
                "replicas",
                "nats.replicas: there is only one managed server; more than 1 replica needs nats.url"
                    .to_owned(),
            )
            .filter(|_| replicas.is_some_and(|replicas| replicas.get() > 1)),
        ],
    };
    found.into_iter().flatten().collect()
}

/// Certificates need TLS, and each needs its key.
fn lock_server_rules(merged: &Merged) -> Vec<Problem> {
    let given = |key| merged.given("fleet-lock", key);
    let at = |key, message: &str| given(key).map(|raw| raw.problem(format!("fleet-lock.{key}: {message}")));
    let url = merged.read::<Option<HttpUrl>>("fleet-lock", "url", &mut Vec::new());
    // With a bad URL it is not known whether TLS was meant.
    let no_tls = url.as_ref().is_some_and(|url| url.as_ref().is_none_or(|url| url.url().scheme() != "https"));
    let needs_tls = |key| at(key, "needs a fleet-lock.url that begins with https://").filter(|_| no_tls);
    let has_password =
        || url.as_ref().and_then(Option::as_ref).is_some_and(|url| !url.url().username().is_empty());
    let clash = given("url").is_none() || has_password();
    let secret =
        at("credentials-secret", "needs a fleet-lock.url without user and password").filter(|_| clash);
    let mut found: Vec<_> = ["ca", "certificate", "key"].map(needs_tls).into();
    found.push(secret);
    found.push(at("certificate", "needs fleet-lock.key, its private key").filter(|_| given("key").is_none()));
    found.push(
        at("key", "needs fleet-lock.certificate, to which it belongs")
            .filter(|_| given("certificate").is_none()),
    );
    found.into_iter().flatten().collect()
}

/// A certificate needs its key, and `client-ca` needs both.
fn api_tls_rules(merged: &Merged) -> Vec<Problem> {
    let given = |key| merged.given("api.tls", key);
    let without = |missing, key, message: &str| {
        let raw = given(key).filter(|_| given(missing).is_none())?;
        Some(raw.problem(format!("api.tls.{key}: {message}")))
    };
    let found = [
        without("key", "cert", "needs api.tls.key, its private key"),
        without("cert", "key", "needs api.tls.cert, to which it belongs"),
        without("cert", "client-ca", "needs api.tls.cert, as only TLS has client certificates"),
    ];
    found.into_iter().flatten().collect()
}

/// `issuer`, `audience` and `jwks` are set together or not at all.
fn api_oidc_rules(merged: &Merged) -> Vec<Problem> {
    let given = |key| merged.given("api.oidc", key);
    let needed = ["issuer", "audience", "jwks"];
    let missing: Vec<&str> = needed.into_iter().filter(|key| given(key).is_none()).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let missing: Vec<String> = missing.iter().map(|key| format!("api.oidc.{key}")).collect();
    let missing = missing.join(" and ");
    let problem = |key| Some(given(key)?.problem(format!("api.oidc.{key}: needs {missing}")));
    needed.into_iter().find_map(problem).into_iter().collect()
}

fn default_group_exists(merged: &Merged) -> Option<Problem> {
    let mut ignored = Vec::new();
    let groups = merged.read::<Groups>("fleet-lock", "groups", &mut ignored)?;
    let group = merged.read::<GroupName>("fleet-lock", "default-group", &mut ignored)?;
    // The groups of an external lock server are not known here.
    if groups.slots(&group).is_some() || merged.given("fleet-lock", "url").is_some() {
        return None;
    }
    let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let message = format!(
        "fleet-lock.default-group: \"{group}\" is not in [fleet-lock.groups], which has {}",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    );
    let culprit =
        merged.given("fleet-lock", "default-group").or_else(|| merged.given("fleet-lock", "groups"))?;
    Some(culprit.problem(message))
}
