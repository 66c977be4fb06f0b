//! Which hosts an operator means. Strangers choose the names of hosts, and `*` and `?` are legal in them: a pattern is
//! expanded here, over the hosts that exist, and only names are sent.

use std::collections::BTreeSet;

use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::hosts::{self as routes, Host};
use os_upgrade_console::rows::hosts::is_unannounced;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;
use wildmatch::WildMatch;

use crate::Failure;
use crate::consent::Consent;
use crate::output::{Output, errln};
use crate::rest::Client;

/// The hosts that `patterns` name, of those that are `known`, in the order of their names. A name that exists is that name
/// alone, whatever characters it has; else `*` and `?` stand for characters of names.
///
/// # Errors
/// A pattern matches no host, or `check` refuses a name that is no pattern.
pub(in crate::remote) fn expand(
    patterns: &[HostName],
    known: &BTreeSet<HostName>,
    check: impl Fn(&HostName) -> Result<(), String>,
) -> Result<BTreeSet<HostName>, String> {
    let mut hosts = BTreeSet::new();
    for pattern in patterns {
        if is_pattern(pattern) && !known.contains(pattern) {
            let matcher = WildMatch::new(pattern.as_str());
            let meant: Vec<_> = known.iter().filter(|host| matcher.matches(host.as_str())).collect();
            if meant.is_empty() {
                return Err(format!("no host matches {pattern}"));
            }
            hosts.extend(meant.into_iter().cloned());
        } else {
            check(pattern)?;
            hosts.insert(pattern.clone());
        }
    }
    Ok(hosts)
}

/// Whether a name can stand for others.
pub(in crate::remote) fn is_pattern(name: &HostName) -> bool {
    name.as_str().contains(['*', '?'])
}

/// The call that lists the hosts, or those that wait for approval.
pub(super) fn list_call(pending: bool) -> Call {
    let call = routes::LIST.call();
    if pending { call.with("pending", "true") } else { call }
}

/// Shows each of `hosts` as `described`, and asks whether they are meant: whether to `act` on them, such as `Approve`.
pub(super) fn confirmed(
    act: &str,
    hosts: Vec<HostName>,
    described: impl Fn(&HostName) -> String,
    consent: Consent,
) -> Result<Vec<HostName>, Failure> {
    if consent == Consent::Asked && !hosts.is_empty() {
        for host in &hosts {
            errln!("{}", described(host));
        }
        let these =
            if hosts.len() == 1 { "this host".to_owned() } else { format!("these {} hosts", hosts.len()) };
        consent.confirm(&format!("{act} {these}?"))?;
    }
    Ok(hosts)
}

/// The names of the hosts that wait for approval.
pub(super) async fn pending(client: &Client) -> anyhow::Result<Vec<HostName>> {
    client.read(list_call(true).with("keys", "true")).await
}

/// Says that there is no `host`, if there is none: a list of what concerns it may be empty because its name is mistyped.
pub(in crate::remote) async fn note_unknown(client: &Client, host: &HostName, output: Output) {
    if !output.has_asides() {
        return;
    }
    // What cannot be read is left out: it is only a note.
    if known(client).await.is_ok_and(|known| !known.contains(host)) {
        output.aside(&format!("there is no host {}", sanitized(host.as_str())));
    }
}

/// The names of the hosts that have announced themselves, or that operators have decided about. A node of the cluster without a worker is
/// none of them: a stranger could announce itself by its name.
pub(in crate::remote) async fn known(client: &Client) -> anyhow::Result<BTreeSet<HostName>> {
    let hosts: Vec<Host<'_>> = client.read(list_call(false)).await?;
    let known = hosts.iter().filter(|host| !is_unannounced(host));
    Ok(known.filter_map(|host| HostName::new(&host.hostname).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<HostName> {
        names.iter().map(|name| HostName::new(name).unwrap()).collect()
    }

    #[test]
    fn patterns_stand_for_hosts_that_exist() {
        let known: BTreeSet<HostName> = names(&["a1", "a2", "b1", "a*", "ä?"]).into_iter().collect();
        for (patterns, expected) in [
            (&["a1"][..], Ok(&["a1"][..])),
            (&["b*", "a?"], Ok(&["a*", "a1", "a2", "b1"])),
            (&["?1"], Ok(&["a1", "b1"])),
            // A host that somebody has called so, and no other.
            (&["a*"], Ok(&["a*"])),
            (&["ä?"], Ok(&["ä?"])),
            (&["a1", "c1"], Err("no host has announced itself as c1")),
            (&["c*"], Err("no host matches c*")),
            // Nothing else has a meaning.
            (&["[ab]1"], Err("no host has announced itself as [ab]1")),
        ] {
            let check = |name: &HostName| {
                known
                    .contains(name)
                    .then_some(())
                    .ok_or_else(|| format!("no host has announced itself as {name}"))
            };
            let expanded = expand(&names(patterns), &known, check);
            match expected {
                Ok(expected) => assert_eq!(expanded.unwrap(), names(expected).into_iter().collect()),
                Err(expected) => assert!(expanded.unwrap_err().starts_with(expected), "{patterns:?}"),
            }
        }
    }
}
