//! The reboot queue as JSON.

use os_upgrade_kernel::reboot_queue::{Asked, EntryEvent, EntryStatus, RebootQueue};

use super::*;

fn variant(event: &EntryEvent) -> usize {
    match event {
        EntryEvent::Waiting { .. } => 0,
        EntryEvent::Started { .. } => 1,
        EntryEvent::BackedOff { .. } => 2,
        EntryEvent::RebootBegan { .. } => 3,
        EntryEvent::CommandSent { .. } => 4,
        EntryEvent::Failed { .. } => 5,
        EntryEvent::Cancelled { .. } => 6,
        EntryEvent::Removed => 7,
        EntryEvent::Rebooted => 8,
        EntryEvent::GivenUp { .. } => 9,
        EntryEvent::Booted { .. } => 10,
        EntryEvent::AttemptDue { .. } => 11,
        EntryEvent::AttemptBegan => 12,
        EntryEvent::AttemptSucceeded => 13,
        EntryEvent::AttemptUnknown { .. } => 14,
        EntryEvent::NotRebooted => 15,
    }
}

fn events() -> Vec<(EntryEvent, &'static str)> {
    let eve = || "eve".to_owned();
    let reason = || Reason::AskingForSlot { group: group("edge") };
    vec![
        (
            EntryEvent::Waiting { reason: reason() },
            r#"{"kind":"waiting","reason":{"kind":"asking-for-slot","group":"edge"}}"#,
        ),
        (
            EntryEvent::Started { group: group("edge"), provider: LockProvider::Embedded, drain: false },
            r#"{"kind":"started","group":"edge","provider":"embedded"}"#,
        ),
        (
            EntryEvent::BackedOff { until: start(), reason: None },
            r#"{"kind":"backed-off","until":"2026-11-21T01:00:00Z"}"#,
        ),
        (EntryEvent::RebootBegan { boot_id: "one".to_owned() }, r#"{"kind":"reboot-began","boot-id":"one"}"#),
        (
            EntryEvent::CommandSent { attempt: 1, sequence: 7 },
            r#"{"kind":"command-sent","attempt":1,"sequence":7}"#,
        ),
        (
            EntryEvent::Failed { reason: reason() },
            r#"{"kind":"failed","reason":{"kind":"asking-for-slot","group":"edge"}}"#,
        ),
        (EntryEvent::Cancelled { actor: eve(), reason: None }, r#"{"kind":"cancelled","actor":"eve"}"#),
        (
            EntryEvent::Cancelled { actor: eve(), reason: Some("later".to_owned()) },
            r#"{"kind":"cancelled","actor":"eve","reason":"later"}"#,
        ),
        (EntryEvent::Removed, r#"{"kind":"removed"}"#),
        (EntryEvent::Rebooted, r#"{"kind":"rebooted"}"#),
        (
            EntryEvent::GivenUp { actor: eve(), reason: "burnt".to_owned() },
            r#"{"kind":"given-up","actor":"eve","reason":"burnt"}"#,
        ),
        (
            EntryEvent::Started { group: group("edge"), provider: LockProvider::Embedded, drain: true },
            r#"{"kind":"started","group":"edge","provider":"embedded","drain":true}"#,
        ),
        (
            EntryEvent::BackedOff { until: start(), reason: Some(Reason::ClusterUnseen) },
            r#"{"kind":"backed-off","until":"2026-11-21T01:00:00Z","reason":{"kind":"cluster-unseen"}}"#,
        ),
        (EntryEvent::Booted { checked: false }, r#"{"kind":"booted"}"#),
        (EntryEvent::Booted { checked: true }, r#"{"kind":"booted","checked":true}"#),
        (
            EntryEvent::AttemptDue { node: "node-1".to_owned(), boot_id: Some("one".to_owned()) },
            r#"{"kind":"attempt-due","node":"node-1","boot-id":"one"}"#,
        ),
        (
            EntryEvent::AttemptDue { node: "node-1".to_owned(), boot_id: None },
            r#"{"kind":"attempt-due","node":"node-1"}"#,
        ),
        (EntryEvent::AttemptBegan, r#"{"kind":"attempt-began"}"#),
        (EntryEvent::AttemptSucceeded, r#"{"kind":"attempt-succeeded"}"#),
        (
            EntryEvent::AttemptUnknown {
                reason: Reason::RebootUnknown { detail: "killed".to_owned(), output: "x".to_owned() },
            },
            r#"{"kind":"attempt-unknown","reason":{"kind":"reboot-unknown","detail":"killed","output":"x"}}"#,
        ),
        (
            EntryEvent::Failed {
                reason: Reason::RebootCommandFailed { detail: "no".to_owned(), output: "x".to_owned() },
            },
            r#"{"kind":"failed","reason":{"kind":"reboot-command-failed","detail":"no","output":"x"}}"#,
        ),
        (EntryEvent::NotRebooted, r#"{"kind":"not-rebooted"}"#),
    ]
}

#[test]
fn entry_events() {
    let table = events();
    check(&table, variant, 16);
    for (event, json) in &table {
        assert!(json.starts_with(&format!(r#"{{"kind":"{}""#, event.name())), "{json}");
    }
}

/// A queue with everything that an entry can have, as a snapshot keeps it.
#[test]
fn queue() {
    let mut queue = RebootQueue { disabled: true, ..RebootQueue::default() };
    let asked = Asked { actor: "eve".to_owned(), reason: Some("burnt".to_owned()) };
    queue.add([host("h1"), host("h2")], asked, start());
    queue.add_required(&[host("h3")], start(), start());
    let events: Vec<EntryEvent> = events().into_iter().map(|(event, _)| event).collect();
    let (started, backed_off) = (&events[1], &events[2]);
    for event in [started, &events[3], &events[4], &events[5], &events[6]] {
        queue.apply(0, event, start()).unwrap();
    }
    for event in [started, backed_off] {
        queue.apply(1, event, start()).unwrap();
    }
    let state = State { reboot_queue: queue.clone(), ..State::default() };
    let json = concat!(
        r#"{"disabled":true,"next-index":3,"entries":{"#,
        r#""0":{"host":"h1","added-at":"2026-11-21T01:00:00Z","status":"rebooting","#,
        r#""last-transition":"2026-11-21T01:00:00Z","cancel-requested":true,"#,
        r#""reason":{"kind":"asking-for-slot","group":"edge"},"boot-id":"one","#,
        r#""command":{"action":"reboot","attempt":1,"sequence":7,"sent-at":"2026-11-21T01:00:00Z","answered":true}},"#,
        r#""1":{"host":"h2","added-at":"2026-11-21T01:00:00Z","status":"queued","#,
        r#""last-transition":"2026-11-21T01:00:00Z","backoff-count":1,"backoff-expire":"2026-11-21T01:00:00Z"},"#,
        r#""2":{"host":"h3","added-at":"2026-11-21T01:00:00Z","required":true,"status":"queued","#,
        r#""last-transition":"2026-11-21T01:00:00Z"}},"#,
        r#""required":{"window":"2026-11-21T01:00:00Z","hosts":["h3"]},"#,
        r#""requests":{"0":{"actor":"eve","reason":"burnt"}}}"#,
    );
    check(&[(queue, json)], |_| 0, 1);
    check_words("State", &serde_json::to_value(&state).unwrap());
    let statuses = EntryStatus::ALL.map(|status| (status, format!("{:?}", status.as_str())));
    let table: Vec<_> = statuses.iter().map(|(status, json)| (*status, json.as_str())).collect();
    check(&table, |status| *status as usize, EntryStatus::ALL.len());
}
