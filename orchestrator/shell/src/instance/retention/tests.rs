//! When the streams are trimmed, and to what.

use chrono::DateTime;
use os_upgrade_kernel::State;

use super::*;

const SETTINGS: RetentionSettings =
    RetentionSettings { snapshot_stands: Duration::from_mins(10), journal_messages_max: 1_000 };

fn at(seconds: u64) -> Now {
    Now { wall: DateTime::UNIX_EPOCH, monotonic: Duration::from_secs(seconds) }
}

/// A follower that has seen a snapshot at `start`, and the control stream up to 40.
fn follower(start: u64) -> Follower {
    let state = State { control: 40, ..State::default() };
    let mut follower = Follower::resume(state, crate::journal::Tip::default());
    follower.snapshot_appended(start);
    follower
}

/// A journal that was inspected just now.
fn journal(seconds: u64, first: u64, last: u64) -> Extent {
    Extent { first: Some(first), last, intact_at: Some(Duration::from_secs(seconds)) }
}

/// Retention in a leadership that began long ago.
fn retention() -> Retention {
    Retention { heard_since: Some(Duration::ZERO), ..Retention::default() }
}

fn trim(journal_from: u64) -> Trim {
    Trim { journal_from, control_from: 41 }
}

#[test]
fn journal_is_trimmed_to_a_standing_snapshot() {
    // Seconds, what all stores have, where the journal ends; whether it is trimmed.
    let cases: [(&str, u64, Option<u64>, u64, bool); 7] = [
        ("at once", 0, Some(100), 120, false),
        ("too early", 599, Some(100), 120, false),
        ("in time", 600, Some(100), 120, true),
        ("exactly what is deleted is stored", 600, Some(99), 120, true),
        ("a store is behind", 6_000, Some(98), 120, false),
        ("a store is not heard of", 6_000, None, 120, false),
        ("a store is behind for too long", 600, None, 1_002, true),
    ];
    for (name, seconds, stored, last, is_due) in cases {
        let mut retention = retention();
        retention.observe(at(0), &follower(100));
        retention.stored(stored);
        let begun = retention.begin(at(seconds), SETTINGS, journal(seconds, 1, last));
        assert_eq!(begun, is_due.then_some(trim(100)), "{name}");
    }
}

#[test]
fn newer_snapshots_do_not_restart_the_wait() {
    let mut retention = retention();
    retention.stored(Some(10_000));
    for minute in 0..10 {
        retention.observe(at(minute * 60), &follower(100 + minute));
        assert_eq!(retention.begin(at(minute * 60), SETTINGS, journal(minute * 60, 1, 200)), None);
    }
    assert_eq!(retention.begin(at(600), SETTINGS, journal(600, 1, 200)), Some(trim(100)));
    retention.trimmed(trim(100), true);
    retention.observe(at(600), &follower(109));
    assert_eq!(retention.begin(at(1_199), SETTINGS, journal(1_199, 100, 200)), None);
    assert_eq!(retention.begin(at(1_200), SETTINGS, journal(1_200, 100, 200)), Some(trim(109)));
}

#[test]
fn failed_trim_is_tried_again_and_a_done_one_is_not() {
    let mut retention = retention();
    retention.stored(Some(10_000));
    retention.observe(at(0), &follower(100));
    assert_eq!(retention.begin(at(600), SETTINGS, journal(600, 1, 200)), Some(trim(100)));
    retention.trimmed(trim(100), false);
    assert_eq!(retention.begin(at(659), SETTINGS, journal(659, 1, 200)), None);
    assert_eq!(retention.begin(at(660), SETTINGS, journal(660, 1, 200)), Some(trim(100)));
    retention.trimmed(trim(100), true);
    retention.observe(at(800), &follower(100));
    assert_eq!(retention.begin(at(100_000), SETTINGS, journal(100_000, 100, 200)), None);
}

#[test]
fn nothing_is_trimmed_that_was_not_inspected() {
    let mut retention = retention();
    retention.stored(Some(10_000));
    retention.observe(at(100), &follower(100));
    for (intact_at, is_due) in [(None, false), (Some(99), false), (Some(100), true)] {
        let seen = Extent { first: Some(1), last: 200, intact_at: intact_at.map(Duration::from_secs) };
        assert_eq!(retention.begin(at(700), SETTINGS, seen), is_due.then_some(trim(100)), "{intact_at:?}");
    }
}

/// An instance that says every second what its store has may not have been heard yet.
#[test]
fn others_are_listened_to_first() {
    let mut retention = Retention::default();
    retention.stored(Some(10_000));
    retention.observe(at(0), &follower(100));
    assert_eq!(retention.begin(at(1_000), SETTINGS, journal(1_000, 1, 200)), None);
    assert_eq!(retention.begin(at(1_009), SETTINGS, journal(1_009, 1, 200)), None);
    retention.listen();
    assert_eq!(retention.begin(at(1_010), SETTINGS, journal(1_010, 1, 200)), None);
    assert_eq!(retention.begin(at(1_020), SETTINGS, journal(1_020, 1, 200)), Some(trim(100)));
}
