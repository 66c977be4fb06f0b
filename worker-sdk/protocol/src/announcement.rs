//! Announcements: a worker publishes which host it serves.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::json::{is_false, parse_bounded};
use crate::limits::ANNOUNCEMENT_BYTES_MAX;
use crate::{ApplicationName, GroupName, HostKey, HostName, ParseError};

/// What a worker publishes about itself when it starts and when something changes. Only `host` and `application` are
/// required.
///
/// The last announcement of each application and host counts; an empty payload on its subject removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Announcement {
    /// The host it serves.
    pub host: HostName,
    /// The application it is an instance of.
    pub application: ApplicationName,
    /// `/etc/machine-id` of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// The kernel's boot id, which changes with every boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Addresses at which operators can reach the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Arbitrary labels, for selecting hosts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The FleetLock group whose slot the host needs; the site's default group when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// The worker's clock when it announced itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<DateTime<Utc>>,
    /// Whether it sends heartbeats. If so, missing heartbeats mean an unreachable host from the start.
    #[serde(default, skip_serializing_if = "is_false")]
    pub heartbeats: bool,
    /// Whether it takes a `reboot` that names the boot to leave.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reboots_on_request: bool,
    /// Whether it runs units that are placed on the host, and sends heartbeats with `units`. One application of a host does; `machine-id`
    /// says which machine the host is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub runs_units: bool,
    /// The key to which configuration for the host is sealed, if it takes some. One application of a host does.
    #[serde(default, deserialize_with = "known_key", skip_serializing_if = "Option::is_none")]
    pub configures: Option<HostKey>,
    /// Why the host needs a reboot, in one line; absent if it needs none, or the worker does not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot_required: Option<String>,
    /// What a reboot should have brought and did not, such as a kernel, in one line; absent if it brought everything. Such a
    /// host needs an operator and not another reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot_ineffective: Option<String>,
}

/// A key of a form that only newer orchestrators know is none, and the announcement counts otherwise.
fn known_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HostKey>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Key {
        Known(HostKey),
        Unknown(IgnoredAny),
    }
    Ok(match Key::deserialize(deserializer)? {
        Key::Known(key) => Some(key),
        Key::Unknown(_) => None,
    })
}

impl Announcement {
    /// An announcement with the required fields only.
    pub fn new(host: HostName, application: ApplicationName) -> Self {
        Self {
            host,
            application,
            machine_id: None,
            boot_id: None,
            addresses: Vec::new(),
            labels: BTreeMap::new(),
            group: None,
            time: None,
            heartbeats: false,
            reboots_on_request: false,
            runs_units: false,
            configures: None,
            reboot_required: None,
            reboot_ineffective: None,
        }
    }

    /// Reads an announcement from a message's payload.
    ///
    /// # Errors
    /// The payload is larger than [`ANNOUNCEMENT_BYTES_MAX`] or not an announcement of this protocol.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        parse_bounded(payload, ANNOUNCEMENT_BYTES_MAX)
    }

    /// The payload of this announcement.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an announcement has string keys and no fallible part")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimal_and_full_announcements_round_trip() {
        let short = r#"{"host":"h01","application":"os-upgrade-debian"}"#;
        let parsed = Announcement::parse(short.as_bytes()).unwrap();
        let expected = Announcement::new(
            HostName::new("h01").unwrap(),
            ApplicationName::new("os-upgrade-debian").unwrap(),
        );
        assert_eq!(parsed, expected);
        assert_eq!(String::from_utf8(parsed.to_payload()).unwrap(), short);

        let full = concat!(
            r#"{"host":"h01","application":"os-upgrade-debian","machine-id":"m","boot-id":"b","#,
            r#""addresses":["10.0.0.1"],"labels":{"rack":"r1"},"group":"default","time":"2026-11-21T05:00:00Z","#,
            r#""heartbeats":true,"reboots-on-request":true,"runs-units":true,"#,
            r#""configures":"-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s","reboot-required":"a new kernel"}"#
        );
        let parsed = Announcement::parse(full.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(parsed.to_payload()).unwrap(), full);
    }

    #[test]
    fn keys_of_unknown_forms_are_none() {
        for key in [r#""x-wing:AQEB""#, "7", "null", r#"{"kind":"x"}"#] {
            let json = format!(r#"{{"host":"h","application":"a","configures":{key},"heartbeats":true}}"#);
            let parsed = Announcement::parse(json.as_bytes()).unwrap();
            assert_eq!((parsed.configures, parsed.heartbeats), (None, true), "{key}");
        }
    }

    #[test]
    fn malformed_announcements_are_rejected() {
        for json in ["", "{}", r#"{"host":"h"}"#, r#"{"host":"","application":"a"}"#, r#"["h","a"]"#] {
            assert!(Announcement::parse(json.as_bytes()).is_err(), "{json}");
        }
        let large = format!(r#"{{"host":"h","application":"{}"}}"#, "x".repeat(ANNOUNCEMENT_BYTES_MAX));
        assert!(matches!(Announcement::parse(large.as_bytes()), Err(ParseError::TooLarge { .. })));
    }
}
