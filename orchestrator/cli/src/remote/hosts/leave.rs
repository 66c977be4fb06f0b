//! `hosts withdraw`, `hosts remove` and `hosts defer`: hosts that take part no longer, or not for now, by name or by pattern.

use std::collections::BTreeSet;

use clap::Args;
use os_upgrade_api_types::body::{HostWithReason, Stamp};
use os_upgrade_api_types::route::{Call, Route};
use os_upgrade_api_types::routes::hosts::{self as routes, DeferralToEnd, Host, HostToDefer};
use os_upgrade_kernel::HostStatus;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;
use serde::Serialize;

use super::selection;
use crate::Failure;
use crate::consent::{Consent, Yes};
use crate::moment::future;
use crate::output::Output;
use crate::remote::completion;
use crate::remote::options::Remote;
use crate::rest::Client;

#[derive(Debug, Args)]
pub(crate) struct Leave {
    /// The hosts, or patterns with * and ?
    #[arg(value_name = "NAME", required = true, add = completion::hosts())]
    hosts: Vec<HostName>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Defer {
    /// The hosts, or patterns with * and ?
    #[arg(value_name = "NAME", required = true, add = completion::hosts())]
    hosts: Vec<HostName>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", required_unless_present = "end")]
    reason: Option<String>,
    /// When it ends by itself: 2h or 3d from now, HH:MM, tomorrow, Friday, YYYY-MM-DD, or a time in RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with = "end")]
    until: Option<String>,
    /// End the deferral
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

/// Defers hosts, or ends that.
pub(super) async fn defer(options: Defer) -> Result<(), Failure> {
    let Defer { hosts, reason, until, end, yes, remote } = options;
    let zone = remote.output.canvas().zone;
    let until = until.map(|text| future(zone, &text)).transpose().map_err(Failure::Usage)?;
    let client = remote.client()?;
    if end {
        let hosts = selected(&client, "End the deferral of", &hosts, yes).await?;
        let body = |host| DeferralToEnd { host, reason: reason.clone() };
        return each(&client, &routes::END_DEFERRAL, "no longer deferred", &hosts, body, remote.output).await;
    }
    let hosts = selected(&client, "Defer", &hosts, yes).await?;
    let (reason, until) = (reason.unwrap_or_default(), until.map(Stamp));
    let body = |host| HostToDefer { host, reason: reason.clone(), until };
    each(&client, &routes::DEFER, "deferred", &hosts, body, remote.output).await?;
    let end = zone.stamp_or(until, "`os-upgrade hosts defer --end HOST`");
    remote.output.note(&format!("nothing begins there until {end}"));
    note_under_way(&client, &hosts, remote.output).await;
    Ok(())
}

/// Excludes hosts from runs.
pub(super) async fn withdraw(options: Leave) -> Result<(), Failure> {
    let Leave { hosts, reason, yes, remote } = options;
    let client = remote.client()?;
    let hosts = selected(&client, "Withdraw", &hosts, yes).await?;
    let body = |host| HostWithReason { host, reason: reason.clone() };
    each(&client, &routes::WITHDRAW, "withdrawn", &hosts, body, remote.output).await?;
    note_under_way(&client, &hosts, remote.output).await;
    Ok(())
}

/// Says which of `hosts` the active run finishes.
async fn note_under_way(client: &Client, hosts: &[HostName], output: Output) {
    for host in hosts {
        let status = status(client, host).await;
        if let Some(status) = status.filter(|status| status.is_under_way()) {
            output.note(&format!("{host} is {status} in the active run, and finishes there"));
        }
    }
}

/// Forgets hosts.
pub(super) async fn remove(options: Leave) -> Result<(), Failure> {
    let Leave { hosts, reason, yes, remote } = options;
    let client = remote.client()?;
    let hosts = selected(&client, "Remove", &hosts, yes).await?;
    let body = |host| HostWithReason { host, reason: reason.clone() };
    each(&client, &routes::REMOVE, "removed", &hosts, body, remote.output).await
}

/// The hosts that are meant, confirmed if the operator did not name each of them.
async fn selected(
    client: &Client,
    act: &str,
    patterns: &[HostName],
    yes: Yes,
) -> Result<Vec<HostName>, Failure> {
    if !patterns.iter().any(selection::is_pattern) {
        return Ok(patterns.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect());
    }
    let known = selection::known(client).await.map_err(Failure::unchanged)?;
    // Whether there is a host of a name that is no pattern, the API says.
    let hosts = selection::expand(patterns, &known, |_| Ok(()))
        .map_err(|unknown| Failure::unchanged(anyhow::anyhow!(unknown)))?;
    let is_one_by_name = patterns.iter().all(|pattern| known.contains(pattern));
    let consent = if is_one_by_name { Consent::Given } else { yes.consent() };
    let named = |host: &HostName| sanitized(host.as_str());
    selection::confirmed(act, hosts.into_iter().collect(), named, consent)
}

/// Requests the change of each host, and prints which are `done`. The first refusal ends it.
async fn each<B: Serialize>(
    client: &Client,
    route: &Route<B>,
    done: &str,
    hosts: &[HostName],
    body: impl Fn(HostName) -> B,
    output: Output,
) -> Result<(), Failure> {
    for (at, host) in hosts.iter().enumerate() {
        let call: Call<B> = route.into();
        if let Err(error) = client.call_with_body(call, &body(host.clone())).await {
            if at == 0 {
                return Err(error.into());
            }
            let before: Vec<&str> = hosts[..at].iter().map(HostName::as_str).collect();
            output.done(done, &before)?;
            // Those before it are changed.
            return Err(Failure::Unknown(
                error.context(format!("{host} was not confirmed, and those after it stay as they were")),
            ));
        }
    }
    output.done(done, &hosts.iter().map(HostName::as_str).collect::<Vec<_>>())
}

/// The status of the host in the active run. `None` also if that cannot be read: it is only for a note.
async fn status(client: &Client, host: &HostName) -> Option<HostStatus> {
    client.read::<Host<'_>>(routes::READ.named([host.as_str()])).await.ok()?.status?.known()
}
