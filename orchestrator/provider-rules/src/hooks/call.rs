//! What a provider is told.

use std::collections::BTreeMap;
use std::{fmt, io};

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::event::HookEvent;
use super::token::CallbackToken;
use crate::digest::number_of;
use crate::name::ProviderName;

/// One event, as a provider is told of it. A request has an array of them.
#[derive(Serialize)]
pub struct Call<'a> {
    pub event: HookEvent,
    pub event_uuid: Uuid,
    pub config_name: &'a ProviderName,
    pub device_metadata: DeviceMetadata,
    /// The URL to which the provider posts call-backs.
    pub callback_endpoint: &'a str,
    pub callback_token: &'a CallbackToken,
    /// The hash of the configuration that the device has applied last, which is [`Given::hash`](super::Given::hash); empty if it has
    /// none or its hash is unknown.
    pub last_config_hash: &'a str,
}

/// A device as flightctl describes it in its `ObjectMeta`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceMetadata {
    pub name: HostName,
    pub labels: BTreeMap<String, String>,
    /// What the device belongs to: [`DeviceMetadata::owner_of`].
    pub owner: String,
    pub annotations: BTreeMap<String, String>,
    /// How many times what the device is to have has changed.
    pub generation: i64,
    /// Any text that differs whenever something about the device has changed.
    pub resource_version: String,
    /// When the device was first seen.
    pub creation_timestamp: DateTime<Utc>,
}

impl DeviceMetadata {
    /// The owner of the devices that `provider` is about, as flightctl writes it.
    pub fn owner_of(provider: &ProviderName) -> String {
        format!("Fleet/{provider}")
    }
}

/// Without the hash, which tells a short secret.
impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, event_uuid, config_name, device_metadata, .. } = self;
        write!(f, "Call({event:?} {event_uuid} {config_name} {})", device_metadata.name)
    }
}

/// The body of a request: the JSON array of `calls`. It holds their tokens, so it is cleared from memory when dropped.
pub fn call_body(calls: &[Call<'_>]) -> Zeroizing<Vec<u8>> {
    let mut length = Length(0);
    write(calls, &mut length);
    // A vector that grows leaves copies of the tokens behind.
    let mut body: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(length.0));
    write(calls, &mut *body);
    body
}

/// A number that differs whenever providers are to hear of new metadata of a host: when its `labels`, a map of texts, or its machine id have
/// changed. The owner changes with the provider, which is then told all.
pub fn metadata_digest(labels: &impl Serialize, machine_id: Option<&str>) -> u64 {
    // In JSON no text runs into the next, and a missing id is not an empty one.
    let json = serde_json::to_vec(&(labels, machine_id)).expect("texts serialize to JSON");
    number_of(&json)
}

fn write(calls: &[Call<'_>], to: impl io::Write) {
    serde_json::to_writer(to, calls).expect("calls have no fallible part, and memory takes all");
}

/// Counts the bytes written.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn metadata(provider: &ProviderName) -> DeviceMetadata {
        DeviceMetadata {
            name: HostName::new("h1").unwrap(),
            labels: labels(&[("site", "lab")]),
            owner: DeviceMetadata::owner_of(provider),
            annotations: labels(&[("boot-id", "b")]),
            generation: 3,
            resource_version: "17".to_owned(),
            creation_timestamp: "2026-03-01T12:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn calls_are_written_as_the_protocol_says() {
        let (provider, token) = (ProviderName::new("app").unwrap(), CallbackToken::from_bytes(&[0; 32]));
        let call = |last_config_hash| Call {
            event: HookEvent::DeviceSpecUpdate,
            event_uuid: Uuid::from_u128(1),
            config_name: &provider,
            device_metadata: metadata(&provider),
            callback_endpoint: "https://upgrade.example/callback/",
            callback_token: &token,
            last_config_hash,
        };
        let calls = [call("2ab9"), call("")];
        let json = |hash| {
            [
                r#"{"event":"ON_DEVICE_SPEC_UPDATE","event_uuid":"00000000-0000-0000-0000-000000000001","#,
                r#""config_name":"app","device_metadata":{"name":"h1","labels":{"site":"lab"},"owner":"Fleet/app","#,
                r#""annotations":{"boot-id":"b"},"generation":3,"resourceVersion":"17","#,
                r#""creationTimestamp":"2026-03-01T12:00:00Z"},"callback_endpoint":"https://upgrade.example/callback/","#,
                r#""callback_token":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","last_config_hash":""#,
                hash,
                r#""}"#,
            ]
            .concat()
        };
        let body = call_body(&calls);
        assert_eq!(str::from_utf8(&body).unwrap(), format!("[{},{}]", json("2ab9"), json("")));
        assert_eq!(call_body(&[]).as_slice(), b"[]");
        let shown = format!("{calls:?}");
        assert!(shown.contains("h1") && !shown.contains("AAAA") && !shown.contains("2ab9"), "{shown}");
    }

    #[test]
    fn metadata_round_trips() {
        let metadata = metadata(&ProviderName::new("app").unwrap());
        let json = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<DeviceMetadata>(&json).unwrap(), metadata);
    }

    #[test]
    fn digests_notice_every_change() {
        let none = labels(&[]);
        let (ab, a_b) = (labels(&[("a", "b")]), labels(&[("a", ""), ("b", "")]));
        let all = [
            (&none, None),
            (&none, Some("")),
            (&none, Some("m")),
            (&ab, None),
            (&a_b, None),
            (&ab, Some("m")),
        ];
        for (index, (labels, machine_id)) in all.into_iter().enumerate() {
            let digest = metadata_digest(labels, machine_id);
            for (earlier, (labels, machine_id)) in all.into_iter().take(index).enumerate() {
                assert_ne!(metadata_digest(labels, machine_id), digest, "{earlier} and {index}");
            }
        }
        // Fixed: what is kept of it outlives a version.
        assert_eq!(metadata_digest(&ab, None), number_of(br#"[{"a":"b"},null]"#));
    }
}
