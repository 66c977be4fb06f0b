//! What an operator should know before a configuration takes effect, though it is valid. Nothing is decided here: when a
//! run starts is asked of [`forecast`](mod@crate::start), and with which hosts of the decision about starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Watermark;
use os_upgrade_protocol::{ApplicationName, GroupName, HostName, RunId};
use os_upgrade_provider_rules::{Origin, ProviderName};
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use super::max_failures::MaxFailures;
use super::provider::ConfigProvider;
use super::settings::{LockProvider, OnFailure};
use super::state::Config;
use crate::in_seconds::{in_seconds, in_seconds_if_any};
use crate::secrets::SecretName;
use crate::start::{self, NextRun, StartBlocker, WindowBlocker, enlisted_now, forecast};
use crate::state::State;
use crate::view::View;

/// Most warnings about one configuration; the last one says how many more there are.
pub const WARNINGS_MAX: usize = 16;

/// Most maintenance windows that are looked at one by one: the first ones.
const WINDOWS_MAX: usize = 32;

/// What an operator should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Warning {
    /// The configuration is the one in force.
    NothingChanges,
    /// The configuration is deleted.
    Deleted,
    /// A window is open and starts a run.
    StartsRun {
        /// How many hosts take part.
        hosts: usize,
        /// When it starts; absent if that is at once, or as soon as the active run has ended.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_seconds_if_any")]
        at: Option<DateTime<Utc>>,
        /// The active run, which ends first.
        #[serde(skip_serializing_if = "Option::is_none")]
        after: Option<RunId>,
        /// When the window closes.
        #[serde(serialize_with = "in_seconds")]
        open_until: DateTime<Utc>,
    },
    /// No application is configured.
    NoApplications,
    /// No host announces a worker of a configured application.
    NotAnnounced { application: ApplicationName },
    /// A provider's selector names hosts that the site does not know.
    SelectsUnknown {
        provider: ProviderName,
        /// How many.
        hosts: usize,
        /// The first ones.
        names: Vec<HostName>,
    },
    /// A provider names a secret that is not stored.
    SecretMissing {
        provider: ProviderName,
        /// The key of the provider that names it.
        key: &'static str,
        secret: SecretName,
        /// The origin of the provider's URL.
        origin: Origin,
    },
    /// A provider names a secret that may not be sent to it: it is for another origin, or for none.
    SecretNotForProvider {
        provider: ProviderName,
        /// The key of the provider that names it.
        key: &'static str,
        secret: SecretName,
        /// The origin of the provider's URL.
        origin: Origin,
    },
    /// The last window is taken away.
    NoWindows,
    /// No window starts a run any more.
    NoStart,
    /// A window starts no run, because its last day passes before it opens for long enough.
    WindowUnused {
        /// Its place in the list, from 0.
        index: usize,
    },
    /// A window starts no run, because deny windows leave nothing of it.
    WindowDenied {
        /// Its place in the list, from 0.
        index: usize,
    },
    /// The groups of the hosts have fewer slots than may be upgraded at once.
    FewerSlots {
        /// The configured limit.
        max_concurrent: u32,
        /// How many hosts the slots allow at once.
        at_once: usize,
        /// The first groups, each with its slots, such as `edge: 2`.
        groups: Vec<String>,
    },
    /// Hosts that fail hold every slot of some groups before a run has had as many failures as it may have, and one at least.
    FailuresHoldSlots {
        /// How many slots such a group needs, those of failed hosts that do not count included.
        needed: u64,
        /// The first groups, each with its slots, such as `edge: 2`; empty where a lock server has them.
        groups: Vec<String>,
    },
    /// A host that does not answer `prepare` is one of the `max_preparing` until the run ends.
    PrepareUnbounded { max_preparing: u32 },
    /// So many percent of the hosts that take part are less than one: the first failure stops a run.
    NoFailures {
        /// The configured limit.
        percent: u8,
        /// How many hosts take part.
        hosts: usize,
    },
    /// There are fewer hosts than may be upgraded at once.
    FewerHosts {
        /// The configured limit.
        max_concurrent: u32,
        /// How many hosts take part.
        hosts: usize,
    },
    /// There are more warnings.
    More {
        /// How many.
        more: usize,
    },
}

/// Most groups that a warning names.
const GROUPS_NAMED_MAX: usize = 3;
/// Most hosts that a warning names.
const HOSTS_NAMED_MAX: usize = 3;

impl Warning {
    /// Every kind, as in the JSON.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }

    /// The kind in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

/// What would follow if `proposed` replaced the configuration at `now`, or if that were deleted (`None`). It is at most
/// [`WARNINGS_MAX`] entries long.
pub fn warnings(state: &State, view: &View, proposed: Option<&Config>, now: DateTime<Utc>) -> Vec<Warning> {
    let current = state.config.as_deref();
    let Some(config) = proposed else {
        return vec![if current.is_some() { Warning::Deleted } else { Warning::NothingChanges }];
    };
    let (after, then) = (state.run.as_ref().map(|run| run.id.clone()), with_config(state, config));
    let view = with_general_blockers(view);
    let mut found = Vec::new();
    found.extend((current == Some(config)).then_some(Warning::NothingChanges));
    found.extend(starts_run(&then, &view, after, now));
    found.extend(no_applications(config));
    found.extend(not_announced(config, &view));
    found.extend(unused_windows(current, config, &then, &view, now));
    found.extend(too_concurrent(&then, &view));
    found.extend(failures_hold_slots(&then, &view));
    found.extend(no_failures(&then, &view));
    found.extend(prepare_unbounded(config));
    // There may be several of each provider, and only the first warnings are shown.
    for provider in &config.config_providers {
        found.extend(unusable_secrets(provider, state));
        found.extend(selects_unknown(provider, state, &view));
    }
    shorten(found)
}

/// When the next run would start automatically if `proposed` were the configuration at `now`, or if there were none; `None`
/// if none would. An active run counts as ended.
pub fn next_start(
    state: &State,
    view: &View,
    proposed: Option<&Config>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let then = with_config(state, proposed?);
    Some(forecast(&then, &with_general_blockers(view), now).start()?.at)
}

/// What an operator should know of the configuration in force, as long as it is so: no application, one that no host announces, and
/// fewer slots than hosts may be upgraded at once. It is at most [`WARNINGS_MAX`] entries long.
pub fn lasting_warnings(state: &State, view: &View) -> Vec<Warning> {
    let Some(config) = state.config.as_deref() else { return Vec::new() };
    let fewer_slots = too_concurrent(state, view).filter(|found| matches!(found, Warning::FewerSlots { .. }));
    let unserved = no_applications(config).into_iter().chain(not_announced(config, view));
    shorten(unserved.chain(fewer_slots).collect())
}

fn no_applications(config: &Config) -> Option<Warning> {
    config.worker_applications.is_empty().then_some(Warning::NoApplications)
}

/// The state with another configuration, in which no run is active.
fn with_config(state: &State, config: &Config) -> State {
    State { config: Some(Arc::new(config.clone())), run: None, ..state.clone() }
}

/// The view, in which the leader's word about the configuration in force does not count. What it says of the clock and
/// the secrets holds for any configuration.
fn with_general_blockers(view: &View) -> View {
    let is_general = |by: &WindowBlocker| {
        matches!(by, WindowBlocker::Any(StartBlocker::Clock(_) | StartBlocker::StrongboxSealed { .. }))
    };
    let leader_startable = view.leader_startable.clone().filter(|word| word.as_ref().is_err_and(is_general));
    View { leader_startable, ..view.clone() }
}

fn starts_run(state: &State, view: &View, after: Option<RunId>, now: DateTime<Utc>) -> Option<Warning> {
    let NextRun::At(start) = forecast(state, view, now).next else { return None };
    let is_open = start.occurrence.start <= now;
    let hosts = enlisted_now(state, view)?.iter().filter(|host| host.skipped.is_none()).count();
    let at = Some(start.at).filter(|at| *at > now);
    is_open.then_some(Warning::StartsRun { hosts, at, after, open_until: start.occurrence.end })
}

fn not_announced<'a>(config: &'a Config, view: &View) -> impl Iterator<Item = Warning> + use<'a> {
    let announced: BTreeSet<ApplicationName> =
        view.hosts.values().flat_map(|host| host.applications.iter().cloned()).collect();
    let names = config.worker_applications.iter().map(|entry| &entry.name);
    names
        .filter(move |name| !announced.contains(*name))
        .map(|name| Warning::NotAnnounced { application: name.clone() })
}

/// The secrets with which `provider` cannot be asked. Whether they can be opened is the leader's to say.
fn unusable_secrets(provider: &ConfigProvider, state: &State) -> impl Iterator<Item = Warning> {
    let named =
        [("credentials", &provider.credentials), ("client-certificate", &provider.client_certificate)];
    named.into_iter().filter_map(move |(key, secret)| {
        let (origin, secret) = (provider.url.origin(), secret.clone()?);
        let name = provider.name.clone();
        match state.strongbox.secrets.get(&secret) {
            None => Some(Warning::SecretMissing { provider: name, key, secret, origin }),
            Some(kept) if kept.origin.as_ref() != Some(&origin) => {
                Some(Warning::SecretNotForProvider { provider: name, key, secret, origin })
            }
            Some(_) => None,
        }
    })
}

/// The hosts that `provider` selects by name and that have neither announced themselves nor been decided about.
fn selects_unknown(provider: &ConfigProvider, state: &State, view: &View) -> Option<Warning> {
    let is_known = |host: &HostName| view.hosts.contains_key(host) || state.enrolment.knows(host);
    let selected = provider.selector.iter().flat_map(|selector| &selector.names);
    let unknown: Vec<&HostName> = selected.filter(|host| !is_known(host)).collect();
    let hosts = unknown.len();
    let names = unknown.into_iter().take(HOSTS_NAMED_MAX).cloned().collect();
    (hosts > 0).then_some(Warning::SelectsUnknown { provider: provider.name.clone(), hosts, names })
}

/// The windows in which no run would ever start.
fn unused_windows(
    current: Option<&Config>,
    config: &Config,
    state: &State,
    view: &View,
    now: DateTime<Utc>,
) -> Vec<Warning> {
    if config.maintenance_windows.is_empty() {
        let had_windows = current.is_some_and(|current| !current.maintenance_windows.is_empty());
        return had_windows.then_some(Warning::NoWindows).into_iter().collect();
    }
    let starts = |config: &Config| {
        // Windows that cannot be worked out are refused elsewhere.
        !start::next(config, &state.settings, &view.zones, Watermark::NONE, now)
            .is_ok_and(|start| start.is_none())
    };
    let unused = |(index, window)| {
        let alone = Config { maintenance_windows: vec![window], ..config.clone() };
        if starts(&alone) {
            return None;
        }
        let undenied = Config { deny_windows: Vec::new(), ..alone };
        let is_denied = !config.deny_windows.is_empty() && starts(&undenied);
        Some(if is_denied { Warning::WindowDenied { index } } else { Warning::WindowUnused { index } })
    };
    let windows = config.maintenance_windows.iter().take(WINDOWS_MAX).cloned().enumerate();
    // Windows that overlap or touch may start a run together though none does alone.
    let unused: Vec<Warning> = windows.filter_map(unused).collect();
    (!starts(config)).then_some(Warning::NoStart).into_iter().chain(unused).collect()
}

/// How many hosts take part, by group.
fn by_group<'a>(state: &'a State, view: &'a View, config: &'a Config) -> BTreeMap<&'a GroupName, usize> {
    let mut by_group: BTreeMap<&GroupName, usize> = BTreeMap::new();
    for (name, host, _) in view.serving(&config.worker_applications) {
        if state.enrolled(name).takes_part() {
            *by_group.entry(host.group.as_ref().unwrap_or(&state.settings.default_group)).or_default() += 1;
        }
    }
    by_group
}

/// Whether a limit on failures that is not 0 is 0 for the hosts that take part.
fn no_failures(state: &State, view: &View) -> Option<Warning> {
    let config = state.config.as_deref()?;
    let hosts = by_group(state, view, config).values().sum();
    match config.rollout.max_failures {
        limit @ MaxFailures::Percent(percent) if percent > 0 && hosts > 0 && limit.of(hosts) == 0 => {
            Some(Warning::NoFailures { percent, hosts })
        }
        MaxFailures::Hosts(_) | MaxFailures::Percent(_) => None,
    }
}

/// Whether hosts that fail keep all others waiting, until somebody has looked after them.
fn failures_hold_slots(state: &State, view: &View) -> Option<Warning> {
    let config = state.config.as_deref()?;
    match state.settings.on_failure {
        OnFailure::Release => return None,
        OnFailure::Hold => {}
    }
    let by_group = by_group(state, view, config);
    let max_failures = config.rollout.max_failures.of(by_group.values().sum());
    let needed = u64::try_from(max_failures.max(1)).unwrap_or(u64::MAX).saturating_add(1);
    let slots = |group: &GroupName| state.semaphores.get(group).map_or(0, |semaphore| semaphore.slots);
    let failed = |group: &GroupName| state.settings.failed.get(group).copied().unwrap_or(0);
    // A host that fails keeps nobody waiting where there is no other.
    let shared = by_group.into_iter().filter(|(_, hosts)| *hosts > 1).map(|(group, _)| group);
    let groups: Vec<&GroupName> = match state.settings.provider {
        LockProvider::Embedded => shared
            .filter(|group| slots(group) > 0 && u64::from(slots(group)) + u64::from(failed(group)) < needed)
            .collect(),
        LockProvider::External => shared.collect(),
    };
    let named = groups.iter().take(GROUPS_NAMED_MAX).map(|group| format!("{group}: {}", slots(group)));
    let named = match state.settings.provider {
        LockProvider::Embedded => named.collect(),
        LockProvider::External => Vec::new(),
    };
    (!groups.is_empty()).then_some(Warning::FailuresHoldSlots { needed, groups: named })
}

fn prepare_unbounded(config: &Config) -> Option<Warning> {
    let max_preparing = config.rollout.max_preparing?;
    config.rollout.prepare_timeout.is_none().then_some(Warning::PrepareUnbounded { max_preparing })
}

fn too_concurrent(state: &State, view: &View) -> Option<Warning> {
    let config = state.config.as_deref()?;
    let max_concurrent = config.rollout.max_concurrent;
    let by_group = by_group(state, view, config);
    let hosts: usize = by_group.values().sum();
    let slots = |group: &GroupName| state.semaphores.get(group).map_or(0, |semaphore| semaphore.slots);
    let at_once = |(group, hosts): (&&GroupName, &usize)| {
        usize::try_from(slots(group)).unwrap_or(usize::MAX).min(*hosts)
    };
    let limit = usize::try_from(max_concurrent).unwrap_or(usize::MAX);
    let at_once = match state.settings.provider {
        LockProvider::Embedded => by_group.iter().map(at_once).sum(),
        // How many slots a lock server has is not known.
        LockProvider::External => hosts,
    };
    if hosts == 0 || limit <= at_once {
        None
    } else if at_once < hosts {
        let groups = by_group.keys().take(GROUPS_NAMED_MAX);
        let groups = groups.map(|group| format!("{group}: {}", slots(group))).collect();
        Some(Warning::FewerSlots { max_concurrent, at_once, groups })
    } else {
        Some(Warning::FewerHosts { max_concurrent, hosts })
    }
}

/// At most [`WARNINGS_MAX`] of the warnings, and how many more there are.
fn shorten(mut found: Vec<Warning>) -> Vec<Warning> {
    if found.len() > WARNINGS_MAX {
        let more = found.len() - (WARNINGS_MAX - 1);
        found.truncate(WARNINGS_MAX - 1);
        found.push(Warning::More { more });
    }
    found
}
