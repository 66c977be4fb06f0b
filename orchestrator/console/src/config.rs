//! What is wrong with a configuration, or worth knowing of one.

use std::fmt::{self, Formatter};

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{ConfigRefusal, Warning};
use os_upgrade_protocol::{RunId, time};

use crate::commands::strongbox_put_for;
use crate::describe::Describe;
use crate::tense::are;

impl Describe for Warning {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingChanges => f.write_str("nothing changes: this is the configuration in force"),
            Self::Deleted => f.write_str(
                "without a configuration no run starts, neither in a window nor on an operator's trigger",
            ),
            Self::StartsRun { hosts, at, after, .. } => write!(
                f,
                "a window is open now: this starts a run of {} {}",
                number_of(*hosts),
                at_once(*at, after.as_ref())
            ),
            Self::NoApplications => f.write_str(
                "no application is configured, so no host takes part in runs: list them as \
                 worker-applications",
            ),
            Self::NotAnnounced { application } => write!(f, "no host announces {application}"),
            Self::SelectsUnknown { provider, hosts, names } => write!(
                f,
                "config-providers: {provider}/selector/names: {} the site does not know: {}{}",
                number_of(*hosts),
                names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                if *hosts > names.len() { ", ..." } else { "" }
            ),
            Self::SecretMissing { provider, key, secret, origin } => write!(
                f,
                "config-providers: {provider}/{key}: no secret {secret} is stored: `{}` stores it",
                strongbox_put_for(&origin.to_string(), secret.as_str())
            ),
            Self::SecretNotForProvider { provider, key, secret, origin } => write!(
                f,
                "config-providers: {provider}/{key}: the secret {secret} may not be sent to {origin}: `{}` stores it for that",
                strongbox_put_for(&origin.to_string(), secret.as_str())
            ),
            Self::NoWindows => f.write_str("without windows no run starts automatically"),
            Self::NoStart => {
                f.write_str("no run starts automatically any more: no window is left in which one could")
            }
            Self::WindowUnused { index } => write!(
                f,
                "maintenance-windows/{index}: no run starts in it before its not-after, or it is too short \
                 for one"
            ),
            Self::WindowDenied { index } => write!(
                f,
                "maintenance-windows/{index}: no run starts in it, because deny-windows leave too little of \
                 it"
            ),
            Self::FewerSlots { max_concurrent, at_once, groups } => write!(
                f,
                "rollout/max-concurrent: {max_concurrent} is more than the slots of the hosts' groups ({}), \
                 so that at most {at_once} {} upgraded at once",
                groups.join(", "),
                are(*at_once)
            ),
            Self::FailuresHoldSlots { needed, groups } if groups.is_empty() => write!(
                f,
                "a host that fails keeps its slot until somebody has looked after it: unless each group of the lock server has \
                 {needed} slots at least, it keeps the other hosts of its group waiting"
            ),
            Self::FailuresHoldSlots { needed, groups } => write!(
                f,
                "a host that fails keeps its slot until somebody has looked after it, and the other hosts of its group ({}) wait \
                 meanwhile: {needed} slots would let a run go on, or [fleet-lock.groups] NAME = {{slots = ..., failed = ...}} \
                 with that sum",
                groups.join(", ")
            ),
            Self::PrepareUnbounded { max_preparing } => write!(
                f,
                "rollout/max-preparing: a host that does not answer prepare takes one of the {max_preparing} places until the run ends: \
                 set rollout/prepare-timeout, such as 30m"
            ),
            Self::NoFailures { percent, hosts } => write!(
                f,
                "rollout/max-failures: {percent}% of {} is less than one, so that the first failure stops a run",
                number_of(*hosts)
            ),
            Self::FewerHosts { max_concurrent, hosts } => write!(
                f,
                "rollout/max-concurrent: {max_concurrent} is more than the {} that take part",
                number_of(*hosts)
            ),
            Self::More { more } => write!(f, "there are {more} more warnings"),
        }
    }
}

impl Describe for ConfigRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidConfig { message } => f.write_str(message),
            Self::ConfigChanged { tag } => f.write_str(&unexpected(tag.as_deref())),
            Self::NoConfiguration => {
                f.write_str("there is no configuration yet: `os-upgrade config apply -f FILE` makes one")
            }
        }
    }
}

/// `1 host`, or `2 hosts`.
pub(crate) fn number_of(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}

fn at_once(at: Option<DateTime<Utc>>, after: Option<&RunId>) -> String {
    match (at, after) {
        (None, None) => "at once".to_owned(),
        (None, Some(run)) => format!("as soon as run {run} has ended"),
        (Some(at), None) => format!("at {}", time::format(at)),
        (Some(at), Some(run)) => format!("at {}, if run {run} has ended by then", time::format(at)),
    }
}

fn unexpected(tag: Option<&str>) -> String {
    match tag {
        Some(tag) => {
            format!("the configuration is not the one you expect; its tag is now {tag:?}: read it again")
        }
        None => "the configuration is not the one you expect: there is none".to_owned(),
    }
}
