//! How an operator releases the slot of a host that will not give it back, and ends the cordon of its node.

use os_upgrade_api_types::routes::hosts::{self as routes, Host};
use os_upgrade_console::commands::{hosts_uncordon, lock_release};
use os_upgrade_protocol::text::sanitized;

use crate::output::Output;
use crate::rest::Client;

/// The command that releases the slot of `id` in `group`, to be copied.
pub(super) fn command(group: &str, id: &str) -> String {
    format!("{} --reason=TEXT", lock_release(group, id))
}

/// The command that has the node of `host` uncordoned, to be copied.
pub(super) fn uncordon(host: &str) -> String {
    hosts_uncordon(host)
}

/// Says what `host`, which was given up, keeps, and how an operator ends that.
pub(super) async fn note_kept(client: &Client, host: &str, output: Output) {
    // It is only for a note, so that a host that cannot be read has none.
    let kept: Option<Host<'_>> = client.read(routes::READ.named([host])).await.ok();
    if let Some(note) = kept.and_then(|kept| note(&kept)) {
        output.note(&note);
    }
}

fn note(host: &Host<'_>) -> Option<String> {
    let slot = host.slot.as_ref().filter(|slot| slot.kept);
    let node = host.node.as_ref().filter(|node| node.kept);
    let release = slot.map(|slot| command(&slot.group, &host.hostname));
    let uncordon = node.map(|_| uncordon(&host.hostname));
    let group = slot.map(|slot| sanitized(&slot.group));
    let keeps = match (group, node) {
        (None, None) => return None,
        (Some(group), None) => format!("it keeps its slot of group {group}"),
        (None, Some(_)) => "its node stays cordoned".to_owned(),
        (Some(group), Some(_)) => {
            format!("it keeps its slot of group {group}, and its node stays cordoned")
        }
    };
    let then = if slot.is_some_and(|slot| slot.awaits_worker) {
        " until its worker reports that it is done. If that never happens, look after the host, and then:"
    } else {
        ", and nothing ends that by itself. Look after the host, and then:"
    };
    let commands = release.into_iter().chain(uncordon).map(|command| format!("\n{command}"));
    Some([keeps, then.to_owned()].into_iter().chain(commands).collect())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;
    use crate::remote::hosts::tests::host;

    #[test]
    fn what_is_kept_is_named_with_the_commands_that_end_it() {
        let note = |fields| {
            let mut host = host(fields);
            host["hostname"] = json!("-h 1");
            note(&Host::deserialize(host).unwrap())
        };
        let release = "os-upgrade lock release --group=default --id='-h 1' --reason=TEXT";
        let uncordon = "os-upgrade hosts uncordon --reason=TEXT -- '-h 1'";
        let since = "2026-11-21T01:00:00Z";
        let slot = |awaits: bool| json!({ "group": "default", "since": since, "kept": true, "awaits-worker": awaits });
        let of_worker = "it keeps its slot of group default until its worker reports that it is done. If that never happens, look \
                         after the host, and then:";
        assert_eq!(note(json!({ "slot": slot(true) })), Some(format!("{of_worker}\n{release}")));
        let by_command = "it keeps its slot of group default, and its node stays cordoned, and nothing ends that by itself. Look \
                          after the host, and then:";
        let kept =
            json!({ "slot": slot(false), "node": { "stage": "drained", "since": since, "kept": true } });
        assert_eq!(note(kept), Some(format!("{by_command}\n{release}\n{uncordon}")));
        assert_eq!(
            note(
                json!({ "slot": { "group": "default", "since": since }, "node": { "stage": "evicting", "since": since } })
            ),
            None
        );
        assert_eq!(note(json!({})), None);
    }
}
