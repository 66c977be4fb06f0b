//! What the API says of the kernel's types: their bodies, with the sentences of the console.

pub(crate) mod configuration;
mod event;
mod node;
pub(crate) mod units;
mod why;

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{HostOfRun, LateAnswer, Stamp};
use os_upgrade_api_types::routes::config;
use os_upgrade_console::describe;
use os_upgrade_kernel::{self as kernel, RunHost, Warning};
use os_upgrade_protocol::HostName;

pub(crate) use self::event::event;
#[cfg(test)]
pub(crate) use self::event::site_event;
pub(crate) use self::node::{node, waiting_pod};
pub(crate) use self::why::{why, whys};

/// The late answer of a host in a run.
pub(crate) fn late_answer(host: &RunHost) -> Option<LateAnswer> {
    let os_upgrade_kernel::LateAnswer { at, result } = host.late_answer?;
    let action = host.command?.action.as_str().into();
    Some(LateAnswer { time: Stamp(at), action, result: result.into() })
}

/// The state of `host` in its run, with why it waits or did not succeed.
pub(crate) fn host_of_run<'a>(
    name: &'a HostName,
    host: &'a RunHost,
    why: Option<kernel::Why>,
    last_upgrade: Option<DateTime<Utc>>,
) -> HostOfRun<'a> {
    HostOfRun {
        hostname: name.as_str().into(),
        status: host.status.into(),
        since: Stamp(host.since),
        why: why.map(self::why),
        late_answer: late_answer(host),
        upgraded_since: last_upgrade.filter(|at| *at > host.since).map(Stamp),
    }
}

/// What an operator should know before a configuration takes effect.
pub(crate) fn warning(warning: Warning) -> config::Warning {
    config::Warning::new(describe(&warning).to_string(), warning)
}
