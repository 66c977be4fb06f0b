//! The hosts that need a reboot, as their workers say, and can be queued.

use std::collections::BTreeSet;

use os_upgrade_api_types::routes::hosts;
use os_upgrade_api_types::routes::reboot_queue::{self, Entry};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;

use crate::Failure;
use crate::output::Output;
use crate::rest::Client;

/// The part of a host that decides.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Host {
    hostname: String,
    reboot_required: Option<String>,
    reboots_on_request: bool,
    enrolment: String,
}

/// Those hosts that have no entry, by name. Those that are left out, although they need a reboot, are named in a note: one of
/// them would keep all others from being queued.
///
/// # Errors
/// The hosts or the queue cannot be read, so that nothing is queued.
pub(super) async fn hosts(client: &Client, output: Output) -> Result<Vec<HostName>, Failure> {
    let hosts: Vec<Host> = client.read(&hosts::LIST).await.map_err(Failure::unchanged)?;
    let entries: Vec<Entry<'_>> = client.read(&reboot_queue::LIST).await.map_err(Failure::unchanged)?;
    let queued = entries.iter().map(|entry| entry.node.as_ref()).collect();
    let (names, left_out) = split(&hosts, &queued);
    for (host, why) in left_out {
        output.aside(&format!("left out: {}, which {why}", sanitized(host)));
    }
    Ok(names)
}

/// The hosts to queue, and those that need a reboot and cannot be queued, with why.
fn split<'a>(hosts: &'a [Host], queued: &BTreeSet<&str>) -> (Vec<HostName>, Vec<(&'a str, &'static str)>) {
    let need = hosts
        .iter()
        .filter(|host| host.reboot_required.is_some() && !queued.contains(host.hostname.as_str()));
    let (mut names, mut left_out) = (Vec::new(), Vec::new());
    for host in need {
        match HostName::new(&host.hostname) {
            _ if !["approved", "auto"].contains(&host.enrolment.as_str()) => {
                left_out.push((host.hostname.as_str(), "is not approved, or was withdrawn"));
            }
            Ok(name) if host.reboots_on_request => names.push(name),
            Ok(_) | Err(_) => {
                left_out.push((
                    host.hostname.as_str(),
                    "has no worker, or one that does not reboot it on request",
                ));
            }
        }
    }
    (names, left_out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn those_that_can_be_queued_are_meant() {
        let host = |name: &str, needs: bool, can: bool, enrolment: &str| {
            json!({
                "hostname": name, "reboot-required": needs.then_some("a new kernel"), "reboots-on-request": can,
                "enrolment": enrolment,
            })
        };
        let hosts = json!([
            host("a", true, true, "approved"),
            host("b", false, true, "approved"),
            host("c", true, true, "auto"),
            host("d", true, true, "pending"),
            host("e", true, false, "auto"),
            host("f", true, true, "auto"),
        ]);
        let hosts = Vec::<Host>::deserialize(hosts).unwrap();
        let (names, left_out) = split(&hosts, &["f"].into());
        assert_eq!(names.iter().map(HostName::as_str).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(left_out.iter().map(|(host, _)| *host).collect::<Vec<_>>(), ["d", "e"]);
    }
}
