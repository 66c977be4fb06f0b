//! Providers that are told of events: what they answer, and what they say when they call back.

use std::collections::BTreeSet;

use chrono::DateTime;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::limits::ITEM_BYTES_MAX;
use os_upgrade_provider_rules::hooks::{
    AskedMember, CALLBACK_BYTES_MAX, CALLBACK_DEVICES_MAX, CALLBACK_MEMBERS_MAX, FILES_MAX, Given,
    HookAnswer, HookEvent, HookOutcome, POLL_INTERVAL_MAX, POLL_INTERVAL_MIN, read_callback,
};
use os_upgrade_provider_rules::{ContentBytes, ProviderName, RETRY_AFTER_MAX, is_file_path, is_owner};
use uuid::Uuid;

use crate::text::split;

/// The answer to three calls, two of which are about `h1`: a line each for the status and `Retry-After`, then the body. The UUIDs of the
/// calls are 1, 2 and 3.
pub fn hook_answer(input: &[u8]) {
    let [status, retry_after, body] = split(input, b'\n');
    let status = str::from_utf8(status).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let call = |number, host, event| AskedMember {
        event,
        uuid: Uuid::from_u128(number),
        host: HostName::new(host).expect("it is a name"),
    };
    let asked = [
        call(1, "h1", HookEvent::DeviceMetadataUpdate),
        call(2, "h1", HookEvent::DeviceSpecUpdate),
        call(3, "h2", HookEvent::DevicePoll),
    ];
    let answer = HookAnswer {
        status,
        date: None,
        retry_after: Some(retry_after).filter(|value| !value.is_empty()),
        content_encoding: None,
        body: Ok(ContentBytes::new(body.to_vec())),
    };
    let provider = ProviderName::new("app").expect("it is a name");
    let reply = answer.interpret(&provider, &asked, DateTime::UNIX_EPOCH);
    let may_pause = matches!(status, 429 | 500..=599);
    assert!(reply.retry_after.is_none_or(|pause| pause <= RETRY_AFTER_MAX && may_pause));
    assert_eq!(reply.members.len(), asked.len());
    assert!(reply.foreign == 0 || status == 200);
    for member in reply.members {
        let bounds = POLL_INTERVAL_MIN..=POLL_INTERVAL_MAX;
        assert!(member.poll_interval.is_none_or(|interval| bounds.contains(&interval) && status == 200));
        match member.outcome {
            HookOutcome::Content(given) => {
                assert_eq!(status, 200);
                check(&given);
            }
            HookOutcome::Unchanged => assert!(matches!(status, 200 | 304)),
            HookOutcome::Revoked => assert_eq!(status, 200),
            HookOutcome::Failed(_) => assert_ne!(status, 304),
        }
    }
}

/// Panics if a host could not be given it.
fn check(given: &Given) {
    let Given { files, bytes, hash } = given;
    assert!(bytes.as_slice().len() <= ITEM_BYTES_MAX && files.len() <= FILES_MAX);
    assert!(hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    let mut paths = BTreeSet::new();
    for file in files {
        assert!(is_file_path(&file.path) && paths.insert(&file.path));
        assert!(file.mode.is_none_or(|mode| mode <= 0o777));
        assert!([&file.user, &file.group].into_iter().flatten().all(|owner| is_owner(owner)));
    }
    let sum: usize = files.iter().map(|file| file.bytes).sum();
    assert!(files.is_empty() || sum == bytes.as_slice().len());
}

/// The body of a call-back.
pub fn hook_callback(body: &[u8]) {
    let Ok(members) = read_callback(body) else { return };
    assert!(body.len() <= CALLBACK_BYTES_MAX && members.len() <= CALLBACK_MEMBERS_MAX);
    let mut devices = 0;
    for update in members.into_iter().flatten() {
        let hosts: BTreeSet<&HostName> = update.hosts.iter().collect();
        assert!(!hosts.is_empty() && hosts.len() == update.hosts.len());
        devices += hosts.len();
    }
    assert!(devices <= CALLBACK_DEVICES_MAX);
}
