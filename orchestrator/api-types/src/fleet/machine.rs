//! The machine entity, which is the same in both dialects.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fleet::shown::ShownMachine;

/// A machine. Clients read all three fields without asking whether they are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineBody<'a> {
    /// Its machine id.
    pub id: Cow<'a, str>,
    /// Its address; may be empty.
    #[serde(rename = "primaryIP", default)]
    pub primary_ip: Cow<'a, str>,
    /// Its metadata; may be empty.
    #[serde(default)]
    pub metadata: Cow<'a, BTreeMap<String, String>>,
}

impl<'a> MachineBody<'a> {
    /// The entity of a machine.
    pub fn new(machine: ShownMachine<'a>) -> Self {
        Self {
            id: machine.id.to_string().into(),
            primary_ip: machine.primary_ip.into(),
            metadata: Cow::Borrowed(machine.metadata),
        }
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_scheduler::MachineId;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_of_a_machine_is_there() {
        let id = MachineId::new("933fbdff1bdc4be0a7b64a9b58c3189d").unwrap();
        let rack = BTreeMap::from([("rack".to_owned(), "7".to_owned())]);
        for (primary_ip, metadata, expected) in [
            (
                "192.0.2.7",
                &rack,
                json!({"id": "933fbdff1bdc4be0a7b64a9b58c3189d", "primaryIP": "192.0.2.7", "metadata": {"rack": "7"}}),
            ),
            (
                "",
                &BTreeMap::new(),
                json!({"id": "933fbdff1bdc4be0a7b64a9b58c3189d", "primaryIP": "", "metadata": {}}),
            ),
        ] {
            let body = MachineBody::new(ShownMachine { id: &id, primary_ip, metadata });
            assert_eq!(serde_json::to_value(&body).unwrap(), expected);
            assert_eq!(serde_json::from_value::<MachineBody<'_>>(expected).unwrap(), body);
        }
    }
}
