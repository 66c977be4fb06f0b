//! What counts as lost: every acknowledged message that is missing or replaced.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::Settings;
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::dispatch::DispatchSettings;
use os_upgrade_shell::instance::{
    Acknowledged, Action, ControlMark, Event, Halt, Instance, InstanceSettings, RetentionSettings,
    StoreKnowledge, StreamFacts, StreamSettings, Streams, Warning, losses,
};
use os_upgrade_shell::journal::{AppendId, Tip};
use os_upgrade_shell::lease::{LeaseOutcome, LeaseRequest};

/// What an instance has said about inspections that come to nothing, and in which second.
type Said = Vec<(u64, Option<String>)>;

/// How a case damages the streams.
type Change = fn(&mut Streams);

/// Ten messages of the journal, and twenty of the control stream with the last fence at 12.
fn known() -> Acknowledged {
    Acknowledged {
        inspection: 1,
        journal: Tip { sequence: 10, append_id: Some(AppendId::new("a-10")) },
        journal_created: Some(DateTime::UNIX_EPOCH),
        control: 20,
        control_created: Some(DateTime::UNIX_EPOCH),
        mark: Some(ControlMark { sequence: 12, subject: "leader".to_owned() }),
        journal_from: Some(4),
        control_from: Some(8),
        asks_start: false,
    }
}

/// Streams that contain all of it, and a few messages more.
pub(crate) fn streams() -> Streams {
    let facts =
        |last_sequence| StreamFacts { created: DateTime::UNIX_EPOCH, first_sequence: 1, last_sequence };
    Streams {
        journal: Some(facts(11)),
        control: Some(facts(25)),
        at_known: Some(AppendId::new("a-10")),
        at_mark: Some("leader".to_owned()),
        follow_from: 1,
        begins_with_snapshot: false,
        settings: StreamSettings::Unchanged,
    }
}

/// Checks what each change loses.
fn check(table: &[(&str, Change, &str)]) {
    for (name, change, expected) in table {
        let mut streams = streams();
        change(&mut streams);
        let reported: Vec<_> = losses(&known(), &streams).iter().map(ToString::to_string).collect();
        assert_eq!(reported.join("; "), *expected, "{name}");
    }
}

#[test]
fn each_kind_of_loss_is_reported() {
    let later = DateTime::UNIX_EPOCH + TimeDelta::seconds(1);

    let table: [(&str, Change, &str); 11] = [
        ("nothing", |_| {}, ""),
        (
            "the journal",
            |streams| streams.journal = None,
            "the journal is not there, messages up to 10 had been acknowledged",
        ),
        (
            "the control stream",
            |streams| streams.control = None,
            "the control stream is not there, messages up to 20 had been acknowledged",
        ),
        (
            "a journal made anew",
            |streams| streams.journal.as_mut().unwrap().created += TimeDelta::seconds(1),
            "the journal was created at 1970-01-01 00:00:01 UTC, not at 1970-01-01 00:00:00 UTC: messages up to 10 \
             are gone, or this is another site's",
        ),
        (
            "the journal's end",
            |streams| streams.journal.as_mut().unwrap().last_sequence = 7,
            "the journal ends at 7: messages 8 to 10 are missing",
        ),
        (
            "its last message",
            |streams| streams.journal.as_mut().unwrap().last_sequence = 9,
            "the journal ends at 9: message 10 is missing",
        ),
        (
            "an end that has grown again",
            |streams| streams.at_known = Some(AppendId::new("b-1")),
            "the journal has b-1 at 10, where a-10 had been acknowledged",
        ),
        (
            "one message",
            |streams| streams.at_known = None,
            "the journal has nothing at 10, where a-10 had been acknowledged",
        ),
        (
            "the beginning, and more than that",
            |streams| {
                streams.at_known = None;
                *streams.journal.as_mut().unwrap() =
                    StreamFacts { created: DateTime::UNIX_EPOCH, first_sequence: 14, last_sequence: 15 };
            },
            "the journal begins at 14: messages 4 to 13 are missing",
        ),
        (
            "a control stream's end that has grown again",
            |streams| streams.at_mark = Some("reply.h1".to_owned()),
            "the control stream has a message to reply.h1 at 12, where one to leader had been acknowledged",
        ),
        (
            "the ends of both",
            |streams| {
                streams.journal.as_mut().unwrap().last_sequence = 0;
                streams.control.as_mut().unwrap().last_sequence = 19;
            },
            "the journal ends at 0: messages 1 to 10 are missing; the control stream ends at 19: message 20 is missing",
        ),
    ];
    check(&table);
    // Without prior knowledge nothing counts as lost, whether the streams exist or not.
    let mut streams = streams();
    assert_eq!(losses(&Acknowledged::default(), &streams), []);
    streams.journal.as_mut().unwrap().created = later;
    assert_eq!(losses(&Acknowledged::default(), &streams), []);
    streams.journal = None;
    assert_eq!(losses(&Acknowledged::default(), &streams), []);
}

/// A purged stream keeps its last sequence.
#[test]
fn purged_streams_are_reported() {
    let table: [(&str, Change, &str); 6] = [
        (
            "the beginning, up to what is needed",
            |streams| {
                streams.journal.as_mut().unwrap().first_sequence = 4;
                streams.control.as_mut().unwrap().first_sequence = 8;
            },
            "",
        ),
        (
            "all but the last messages",
            |streams| {
                streams.journal.as_mut().unwrap().first_sequence = 10;
                streams.control.as_mut().unwrap().first_sequence = 12;
            },
            "the journal begins at 10: messages 4 to 9 are missing; the control stream begins at 12: messages 8 to 11 \
             are missing",
        ),
        (
            "everything before a snapshot",
            |streams| {
                streams.begins_with_snapshot = true;
                streams.journal.as_mut().unwrap().first_sequence = 10;
            },
            "",
        ),
        (
            "everything before a snapshot that this instance has not seen",
            |streams| {
                streams.begins_with_snapshot = true;
                streams.at_known = None;
                *streams.journal.as_mut().unwrap() =
                    StreamFacts { created: DateTime::UNIX_EPOCH, first_sequence: 14, last_sequence: 15 };
            },
            "",
        ),
        (
            "everything before a snapshot, and a known message after it",
            |streams| {
                streams.begins_with_snapshot = true;
                streams.at_known = None;
                streams.journal.as_mut().unwrap().first_sequence = 5;
            },
            "the journal has nothing at 10, where a-10 had been acknowledged",
        ),
        (
            "every message",
            |streams| {
                streams.at_known = None;
                streams.at_mark = None;
                streams.journal.as_mut().unwrap().first_sequence = 12;
                streams.control.as_mut().unwrap().first_sequence = 26;
            },
            "the journal begins at 12: messages 4 to 11 are missing; the control stream begins at 26: messages 8 to 25 \
             are missing",
        ),
    ];
    check(&table);
}

/// An instance that expects ten messages in the journal.
pub(crate) fn instance() -> Instance {
    Instance::new(InstanceSettings {
        zones: Zones::default(),
        name: "a".to_owned(),
        nonce: "a-1".to_owned(),
        settings: Settings::default(),
        dispatch: DispatchSettings { publishes_max: 1, systems: BTreeMap::new() },
        snapshot_weight: 100,
        retention: RetentionSettings {
            snapshot_stands: Duration::from_mins(10),
            journal_messages_max: 1_000,
        },
        store: Some(StoreKnowledge {
            sequence: 10,
            append_id: AppendId::new("a-10"),
            control: 0,
            journal_created: DateTime::UNIX_EPOCH,
            control_created: DateTime::UNIX_EPOCH,
        }),
        newest_record: None,
        loss_confirmed_after: Duration::from_secs(20),
    })
}

/// An instance that expects ten messages in the journal, and inspects the streams each time that it asks to for `secs` seconds.
fn instance_that_finds(streams_at: impl Fn(u64) -> Streams, secs: u64) -> Instance {
    instance_that_inspects(|second| Some(Ok(streams_at(second))), secs).0
}

/// The same, if some inspections fail or are never answered, and what it has said about that.
fn instance_that_inspects(
    streams_at: impl Fn(u64) -> Option<Result<Streams, String>>,
    secs: u64,
) -> (Instance, Said) {
    let (instance, said, _) = instance_that_asks(streams_at, false, secs);
    (instance, said)
}

/// The same, and when it has asked for the lease, which it is granted each time or never.
fn instance_that_asks(
    streams_at: impl Fn(u64) -> Option<Result<Streams, String>>,
    is_granted: bool,
    secs: u64,
) -> (Instance, Said, Vec<u64>) {
    let mut instance = instance();
    let (mut said, mut asked) = (Vec::new(), Vec::new());
    for second in 0..=secs {
        let now = at(second);
        instance.handle(now, Event::Tick);
        for action in instance.run(now) {
            if let Action::Inspect(known) = action {
                if let Some(streams) = streams_at(second) {
                    instance.handle(now, Event::Inspected { known, streams });
                }
            } else if let Action::Warn(Warning::Streams { concern }) = action {
                said.push((second, concern));
            } else if let Action::Lease(LeaseRequest { number, .. }) = action {
                asked.push(second);
                if is_granted {
                    let outcome = LeaseOutcome::Written { revision: second, at: None };
                    instance.handle(now, Event::Lease { number, outcome });
                }
            }
        }
    }
    (instance, said, asked)
}

pub(crate) fn at(second: u64) -> Now {
    Now { wall: DateTime::UNIX_EPOCH, monotonic: Duration::from_secs(second) }
}

fn without_journal() -> Streams {
    let facts = StreamFacts { last_sequence: 0, ..streams().journal.unwrap() };
    Streams { journal: Some(facts), at_known: None, at_mark: None, ..streams() }
}

/// Streams can be deleted or purged while the connection lives.
#[test]
fn loss_on_a_live_connection_is_found() {
    let lost_after_a_minute = |second| if second < 60 { streams() } else { without_journal() };
    assert!(instance_that_finds(lost_after_a_minute, 59).halted().is_none());
    // Found 10 s later at the latest, and believed after another 20 s.
    assert!(instance_that_finds(lost_after_a_minute, 92).halted().is_some());
}

/// A loss would go unnoticed.
#[test]
fn inspections_that_come_to_nothing_are_reported() {
    let overdue =
        |why: &str| format!("the streams cannot be inspected, so that a loss would go unnoticed: {why}");
    let refuses_from_5 =
        |second| Some(if (5..200).contains(&second) { Err("no".to_owned()) } else { Ok(streams()) });
    let (instance, said) = instance_that_inspects(refuses_from_5, 69);
    assert_eq!(
        (said, instance.not_ready(at(69)).map(|why| why.to_string())),
        (vec![], Some(UNREAD.to_owned()))
    );
    let (instance, said) = instance_that_inspects(refuses_from_5, 199);
    assert_eq!(said, [(70, Some(overdue("no")))]);
    assert_eq!(instance.not_ready(at(199)).unwrap().to_string(), overdue("no"));
    let (instance, said) = instance_that_inspects(refuses_from_5, 201);
    assert_eq!(said, [(70, Some(overdue("no"))), (201, None)]);
    assert_eq!(instance.not_ready(at(201)).unwrap().to_string(), UNREAD);
    let silent = |second| (second < 5).then(|| Ok(streams()));
    assert_eq!(instance_that_inspects(silent, 200).1, [(130, Some(overdue("no answer")))]);
    // One now and then proves that the streams are there.
    let often_refuses = |second| Some(if second % 60 == 0 { Ok(streams()) } else { Err("no".to_owned()) });
    assert_eq!(instance_that_inspects(often_refuses, 600).1, []);
}

#[test]
fn changed_settings_of_streams_are_reported() {
    let changed = || "the stream lease has max-age = 4h; 10s is needed".to_owned();
    let changed_from_5 = |second| {
        let settings = match second {
            5..50 => StreamSettings::Changed(changed()),
            // What was found before still holds.
            50..100 => StreamSettings::Unknown,
            _ => StreamSettings::Unchanged,
        };
        Some(Ok(Streams { settings, ..streams() }))
    };
    assert_eq!(instance_that_inspects(changed_from_5, 120).1, [(11, Some(changed())), (101, None)]);
    // It is said, too, if it is found once the streams can be inspected again.
    let refused_first = |second| {
        let settings = StreamSettings::Changed(changed());
        Some(if second > 0 && second < 100 {
            Err("no".to_owned())
        } else {
            Ok(Streams { settings, ..streams() })
        })
    };
    let said = instance_that_inspects(refused_first, 120).1;
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(said[2].1, Some(changed()));
}

/// An instance that cannot inspect the streams would hold the lease, and neither lead nor let another lead.
#[test]
fn lease_is_left_while_inspections_fail() {
    let refuses_from_5 =
        |second| Some(if (5..200).contains(&second) { Err("no".to_owned()) } else { Ok(streams()) });
    let (_, _, asked) = instance_that_asks(refuses_from_5, true, 300);
    let gap = asked.windows(2).map(|pair| (pair[0], pair[1])).max_by_key(|(last, next)| next - last);
    let (last, next) = gap.unwrap();
    assert!((70..=72).contains(&last) && (200..=212).contains(&next), "{last}, then {next}");
}

/// What keeps the instances here from being ready otherwise.
const UNREAD: &str = "the hosts that have announced themselves are still being read";

#[test]
fn only_a_lasting_loss_is_believed() {
    let instance_missing_its_journal = |secs| instance_that_finds(|_| without_journal(), secs);
    let instance = instance_missing_its_journal(19);
    assert!(instance.halted().is_none());
    let why = instance.not_ready(at(19)).unwrap();
    assert_eq!(
        why.to_string(),
        "NATS has lost data: the journal ends at 0: messages 1 to 10 are missing; checking again, as the server that \
         answers so may have been cut off"
    );
    assert!(matches!(instance_missing_its_journal(20).halted(), Some(Halt::Lost(_))));
}
