//! What hosts announce and nobody has approved: keys to which configuration is sealed, and machines that run units. It is sent with the
//! approval as it was shown, so that nothing else is approved.

use std::collections::BTreeMap;

use os_upgrade_api_types::routes::hosts::{Host, HostsToApprove};
use os_upgrade_api_types::routes::units::{MACHINES, Machine, Machines};
use os_upgrade_kernel::{KeyState, MachineOffer};
use os_upgrade_protocol::text::sanitized;
use os_upgrade_protocol::{HostKey, HostName};
use os_upgrade_scheduler::MachineId;
use reqwest::StatusCode;

use super::selection;
use crate::failure::Refused;
use crate::rest::Client;

/// The keys and machines that hosts announce and nobody has approved.
#[derive(Debug, Default)]
pub(super) struct New {
    keys: BTreeMap<HostName, HostKey>,
    machines: BTreeMap<HostName, MachineOffer>,
}

impl New {
    pub(super) async fn read(client: &Client) -> anyhow::Result<Self> {
        let hosts: Vec<Host<'_>> = client.read(selection::list_call(false)).await?;
        let machines = match client.read::<Machines<'_>>(&MACHINES).await {
            Ok(list) => list.machines,
            // An instance of an older version has no machines.
            Err(error) if is_missing(&error) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            keys: hosts.iter().filter_map(key).collect(),
            machines: machines.iter().filter_map(machine).collect(),
        })
    }

    /// `host`, with what it announces.
    pub(super) fn described(&self, host: &HostName) -> String {
        let key = self.keys.get(host).map(|key| format!(", key {key}")).unwrap_or_default();
        let machine = self.machines.get(host).map(|offer| format!(", {}", named(offer))).unwrap_or_default();
        format!("{}{key}{machine}", sanitized(host.as_str()))
    }

    /// What follows for `host` from its approval.
    pub(super) fn lines(&self, host: &HostName) -> Vec<String> {
        let name = sanitized(host.as_str());
        let key =
            self.keys.get(host).map(|key| format!("{name}: its configuration is to be sealed to {key}"));
        let machine =
            self.machines.get(host).map(|offer| format!("{name}: it is to run units as {}", named(offer)));
        key.into_iter().chain(machine).collect()
    }

    /// The approval of `hosts`, with what they announce.
    pub(super) fn approval(&self, hosts: &[HostName]) -> HostsToApprove {
        let keys = hosts.iter().filter_map(|host| Some((host.clone(), *self.keys.get(host)?)));
        let machines = hosts.iter().filter_map(|host| Some((host.clone(), self.machines.get(host)?.clone())));
        HostsToApprove { hosts: hosts.to_vec(), keys: keys.collect(), machines: machines.collect() }
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|refused: &Refused| refused.status == StatusCode::NOT_FOUND)
}

fn key(host: &Host<'_>) -> Option<(HostName, HostKey)> {
    let key = host.key.as_ref().filter(|key| !key.status.is(|status| status == KeyState::Pinned))?;
    Some((HostName::new(&host.hostname).ok()?, key.announced?))
}

fn machine(machine: &Machine<'_>) -> Option<(HostName, MachineOffer)> {
    let announced = machine.announced.as_ref()?;
    let metadata = announced.metadata.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let offer = MachineOffer { id: MachineId::new(&announced.id).ok()?, metadata: metadata.collect() };
    Some((HostName::new(&machine.host).ok()?, offer))
}

/// A machine with its metadata, which decide which units it gets.
fn named(offer: &MachineOffer) -> String {
    let metadata: Vec<String> =
        offer.metadata.iter().map(|(key, value)| sanitized(&format!("{key}={value}"))).collect();
    let with = if metadata.is_empty() { String::new() } else { format!(" with {}", metadata.join(" ")) };
    format!("machine {}{with}", offer.id)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_shown_is_approved() {
        let id = "933fbdff1bdc4be0a7b64a9b58c3189d";
        let list = json!({ "machines": [
            { "host": "h01", "state": "waiting", "units": 0,
              "announced": { "id": id, "metadata": { "rack": "r\u{1b}1" } } },
            { "host": "h02", "state": "open", "units": 1, "id": id },
        ]});
        let list = Machines::deserialize(list).unwrap();
        let new = New { keys: BTreeMap::new(), machines: list.machines.iter().filter_map(machine).collect() };
        let hosts = ["h01", "h02"].map(|name| HostName::new(name).unwrap());
        let said = format!("h01: it is to run units as machine {id} with rack=r\u{fffd}1");
        assert_eq!(hosts.iter().flat_map(|host| new.lines(host)).collect::<Vec<_>>(), [said]);
        assert_eq!(new.described(&hosts[1]), "h02");
        let approval = serde_json::to_value(new.approval(&hosts)).unwrap();
        let machine = json!({ "id": id, "metadata": { "rack": "r\u{1b}1" } });
        assert_eq!(approval, json!({ "hosts": ["h01", "h02"], "machines": { "h01": machine } }));
    }
}
