//! The events that a provider is told of, and the UUID of each call.

use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::name::ProviderName;

/// The namespace of the UUIDs of calls: a random UUID that nobody else uses.
const NAMESPACE: Uuid = Uuid::from_u128(0x315f_4c68_6ab6_49e7_b742_9c03_3bd1_1b80);

/// An event of a device. Those of one device are delivered in this order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
pub enum HookEvent {
    /// The device waits for approval, and would get the provider's configuration.
    #[serde(rename = "ON_ENROLLMENT_REQUEST")]
    #[strum(serialize = "ON_ENROLLMENT_REQUEST")]
    EnrollmentRequest,
    /// The device gets the provider's configuration for the first time.
    #[serde(rename = "ON_FLEET_JOIN")]
    #[strum(serialize = "ON_FLEET_JOIN")]
    FleetJoin,
    /// The device's metadata has changed, such as its labels.
    #[serde(rename = "ON_DEVICE_METADATA_UPDATE")]
    #[strum(serialize = "ON_DEVICE_METADATA_UPDATE")]
    DeviceMetadataUpdate,
    /// What the device is to have has changed.
    #[serde(rename = "ON_DEVICE_SPEC_UPDATE")]
    #[strum(serialize = "ON_DEVICE_SPEC_UPDATE")]
    DeviceSpecUpdate,
    /// Whether the device's configuration still holds is asked from time to time.
    #[serde(rename = "ON_DEVICE_POLL")]
    #[strum(serialize = "ON_DEVICE_POLL")]
    DevicePoll,
}

impl HookEvent {
    /// Every event, in the order of delivery.
    pub const ALL: [Self; 5] = [
        Self::EnrollmentRequest,
        Self::FleetJoin,
        Self::DeviceMetadataUpdate,
        Self::DeviceSpecUpdate,
        Self::DevicePoll,
    ];

    /// The event as the protocol names it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The UUID of the call that tells `provider` of `event` of `host`: the same arguments have the same one, so that a provider can tell a
/// repetition from a new event. `cause` distinguishes events of one kind, and `epoch` states in which they are counted anew.
pub fn event_uuid(
    provider: &ProviderName,
    host: &HostName,
    event: HookEvent,
    epoch: u64,
    cause: u64,
) -> Uuid {
    let event = event.as_str();
    // No name has a line feed.
    Uuid::new_v5(&NAMESPACE, format!("{provider}\n{host}\n{event}\n{epoch}\n{cause}").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_have_the_names_of_the_protocol() {
        let names = [
            "ON_ENROLLMENT_REQUEST",
            "ON_FLEET_JOIN",
            "ON_DEVICE_METADATA_UPDATE",
            "ON_DEVICE_SPEC_UPDATE",
            "ON_DEVICE_POLL",
        ];
        assert_eq!(HookEvent::ALL.map(HookEvent::as_str), names);
        for event in HookEvent::ALL {
            let json = serde_json::to_string(&event).unwrap();
            assert_eq!(json, format!("\"{}\"", event.as_str()));
            assert_eq!(serde_json::from_str::<HookEvent>(&json).unwrap(), event);
        }
        assert!(HookEvent::ALL.is_sorted());
        assert!(serde_json::from_str::<HookEvent>("\"ON_CONFIG_UPDATE\"").is_err());
    }

    fn uuid(provider: &str, host: &str, event: HookEvent, epoch: u64, cause: u64) -> Uuid {
        event_uuid(&ProviderName::new(provider).unwrap(), &HostName::new(host).unwrap(), event, epoch, cause)
    }

    #[test]
    fn uuids_tell_calls_apart() {
        let first = uuid("a", "h", HookEvent::FleetJoin, 1, 23);
        assert_eq!((first.get_version_num(), first), (5, uuid("a", "h", HookEvent::FleetJoin, 1, 23)));
        let mut seen = BTreeMap::new();
        for provider in ["a", "ab"] {
            for host in ["h", "bh", "h 1"] {
                for event in HookEvent::ALL {
                    for (epoch, cause) in [(1, 23), (12, 3), (1, 2), (0, 0)] {
                        let call = (provider, host, event, epoch, cause);
                        let other = seen.insert(uuid(provider, host, event, epoch, cause), call);
                        assert_eq!(other, None, "{call:?}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn different_calls_have_different_uuids(
            one in ("[ab1]{1,3}", "[ab1]{1,3}", 0_usize..5, 0_u64..20, 0_u64..20),
            other in ("[ab1]{1,3}", "[ab1]{1,3}", 0_usize..5, 0_u64..20, 0_u64..20),
        ) {
            let of = |(provider, host, event, epoch, cause): &(String, String, usize, u64, u64)| {
                uuid(provider, host, HookEvent::ALL[*event], *epoch, *cause)
            };
            prop_assert_eq!(of(&one) == of(&other), one == other);
        }
    }
}
