//! Requests about the stream `os-upgrade:desired`, in which each host reads what it is to have, for itself alone.

use os_upgrade_protocol::{HostName, ItemId, subject};
use serde_json::json;

/// The id of an item.
pub(super) fn item(id: &str) -> ItemId {
    ItemId::new(id).expect("an id")
}

/// The request for what is desired at `subject`.
pub(super) fn get(subject: &str) -> String {
    format!("DIRECT.GET.{}.{subject}", subject::DESIRED_STREAM)
}

/// The messages that the credentials of `own` must not publish.
pub(super) fn publishes(own: &HostName, other: &HostName) -> [(String, String); 5] {
    [
        subject::desired_hint(own),
        subject::desired_hint(other),
        subject::desired_manifest(own),
        subject::desired_manifest(other),
        subject::desired_item(other, &item("1")),
    ]
    .map(|subject| (subject, "{}".to_owned()))
}

/// The requests to JetStream that the credentials of `own` must not allow.
pub(super) fn forbidden(own: &HostName, other: &HostName) -> Vec<(String, String)> {
    vec![
        (get(&subject::desired_manifest(other)), String::new()),
        (get(&subject::desired_item(other, &item("1"))), String::new()),
        (get("os-upgrade:desired.*.manifest"), String::new()),
        (get("os-upgrade:desired.>"), String::new()),
        ("DIRECT.GET.os-upgrade:desired".to_owned(), json!({ "seq": 1 }).to_string()),
        (
            "DIRECT.GET.os-upgrade:desired".to_owned(),
            json!({ "last_by_subj": subject::desired_manifest(own) }).to_string(),
        ),
        (
            "DIRECT.GET.os-upgrade:desired".to_owned(),
            json!({ "multi_last": ["os-upgrade:desired.>"] }).to_string(),
        ),
        ("STREAM.MSG.GET.os-upgrade:desired".to_owned(), json!({ "seq": 1 }).to_string()),
        ("STREAM.PURGE.os-upgrade:desired".to_owned(), String::new()),
        ("STREAM.DELETE.os-upgrade:desired".to_owned(), String::new()),
        ("STREAM.INFO.os-upgrade:desired".to_owned(), String::new()),
    ]
}
