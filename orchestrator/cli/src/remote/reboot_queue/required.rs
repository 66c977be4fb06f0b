//! The hosts that need a reboot, as their workers say, and can be queued.

use std::collections::BTreeSet;

use os_upgrade_api_types::routes::hosts::{self, Host};
use os_upgrade_api_types::routes::reboot_queue::{self, Entry};
use os_upgrade_api_types::word::Enrolment;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;

use crate::Failure;
use crate::output::Output;
use crate::rest::Client;

/// Those hosts that have no entry, by name. Those that are left out, although they need a reboot, are named in a note: one of
/// them would keep all others from being queued.
///
/// # Errors
/// The hosts or the queue cannot be read, so that nothing is queued.
pub(super) async fn hosts(client: &Client, output: Output) -> Result<Vec<HostName>, Failure> {
    let hosts: Vec<Host<'_>> = client.read(&hosts::LIST).await.map_err(Failure::unchanged)?;
    let entries: Vec<Entry<'_>> = client.read(&reboot_queue::LIST).await.map_err(Failure::unchanged)?;
    let queued = entries.iter().map(|entry| entry.node.as_ref()).collect();
    let (names, left_out) = split(&hosts, &queued);
    for (host, why) in left_out {
        output.aside(&format!("left out: {}, which {why}", sanitized(host)));
    }
    Ok(names)
}

/// The hosts to queue, and those that need a reboot and cannot be queued, with why.
fn split<'a>(
    hosts: &'a [Host<'_>],
    queued: &BTreeSet<&str>,
) -> (Vec<HostName>, Vec<(&'a str, &'static str)>) {
    let need = hosts
        .iter()
        .filter(|host| host.reboot_required.is_some() && !queued.contains(host.hostname.as_ref()));
    let (mut names, mut left_out) = (Vec::new(), Vec::new());
    for host in need {
        match HostName::new(&host.hostname) {
            _ if !host.enrolment.is(Enrolment::takes_part) => {
                left_out.push((host.hostname.as_ref(), "is not approved, or was withdrawn"));
            }
            Ok(name) if host.reboots_on_request => names.push(name),
            Ok(_) | Err(_) => {
                left_out.push((
                    host.hostname.as_ref(),
                    "has no worker, or one that does not reboot it on request",
                ));
            }
        }
    }
    (names, left_out)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;
    use crate::remote::hosts::tests::host;

    #[test]
    fn those_that_can_be_queued_are_meant() {
        let needing = |name: &str, needs: bool, can: bool, enrolment: &str| {
            host(json!({
                "hostname": name, "reboot-required": needs.then_some("a new kernel"), "reboots-on-request": can,
                "enrolment": enrolment,
            }))
        };
        let hosts = json!([
            needing("a", true, true, "approved"),
            needing("b", false, true, "approved"),
            needing("c", true, true, "auto"),
            needing("d", true, true, "pending"),
            needing("e", true, false, "auto"),
            needing("f", true, true, "auto"),
        ]);
        let hosts = Vec::<Host<'_>>::deserialize(hosts).unwrap();
        let (names, left_out) = split(&hosts, &["f"].into());
        assert_eq!(names.iter().map(HostName::as_str).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(left_out.iter().map(|(host, _)| *host).collect::<Vec<_>>(), ["d", "e"]);
    }
}
