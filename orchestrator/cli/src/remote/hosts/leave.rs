//! `hosts withdraw` and `hosts remove`: hosts that take part no longer, by name or by pattern.

use std::collections::BTreeSet;

use clap::Args;
use os_upgrade_api_types::body::HostWithReason;
use os_upgrade_api_types::route::{Call, Route};
use os_upgrade_api_types::routes::hosts::{self as routes, Host};
use os_upgrade_kernel::HostStatus;
use os_upgrade_protocol::HostName;

use super::selection;
use crate::Failure;
use crate::consent::{Consent, Yes};
use crate::remote::options::Remote;
use crate::rest::Client;

#[derive(Debug, Args)]
pub(crate) struct Leave {
    /// The hosts, or patterns with * and ?
    #[arg(value_name = "NAME", required = true)]
    hosts: Vec<HostName>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

/// Excludes hosts from runs.
pub(super) async fn withdraw(options: Leave) -> Result<(), Failure> {
    let client = options.remote.client()?;
    let hosts = selected(&client, "Withdraw", &options).await?;
    each(&client, &routes::WITHDRAW, "withdrawn", &hosts, &options).await?;
    for host in &hosts {
        let status = status(&client, host).await;
        if let Some(status) = status.filter(|status| status.is_under_way()) {
            options.remote.output.note(&format!("{host} is {status} in the active run, and finishes there"));
        }
    }
    Ok(())
}

/// Forgets hosts.
pub(super) async fn remove(options: Leave) -> Result<(), Failure> {
    let client = options.remote.client()?;
    let hosts = selected(&client, "Remove", &options).await?;
    each(&client, &routes::REMOVE, "removed", &hosts, &options).await
}

/// The hosts that are meant, confirmed if the operator did not name each of them.
async fn selected(client: &Client, act: &str, options: &Leave) -> Result<Vec<HostName>, Failure> {
    let Leave { hosts: patterns, yes, .. } = options;
    if !patterns.iter().any(selection::is_pattern) {
        return Ok(patterns.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect());
    }
    let known = selection::known(client).await.map_err(Failure::unchanged)?;
    // Whether there is a host of a name that is no pattern, the API says.
    let hosts = selection::expand(patterns, &known, |_| Ok(()))
        .map_err(|unknown| Failure::unchanged(anyhow::anyhow!(unknown)))?;
    let is_one_by_name = patterns.iter().all(|pattern| known.contains(pattern));
    let consent = if is_one_by_name { Consent::Given } else { yes.consent() };
    selection::confirmed(act, hosts.into_iter().collect(), consent)
}

/// Requests the change of each host, and prints which are `done`. The first refusal ends it.
async fn each(
    client: &Client,
    route: &Route<HostWithReason>,
    done: &str,
    hosts: &[HostName],
    options: &Leave,
) -> Result<(), Failure> {
    let output = options.remote.output;
    for (at, host) in hosts.iter().enumerate() {
        let body = HostWithReason { host: host.clone(), reason: options.reason.clone() };
        let call: Call<HostWithReason> = route.into();
        if let Err(error) = client.call_with_body(call, &body).await {
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
