//! The lease: gained, renewed, lost by expiry or to another process, and taken over within an instance.

use std::time::Duration;

use chrono::DateTime;
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::lease::{self, LEASE_TTL, LeaseAction, LeaseChange, LeaseHolder, LeaseOutcome};

/// A lease, and the number of its last question, which `outcome` answers.
struct Lease(lease::Lease, u64);

impl Lease {
    fn new(me: LeaseHolder) -> Self {
        Self(lease::Lease::new(me), 0)
    }

    fn record(&mut self, question: Option<lease::LeaseRequest>) -> Option<LeaseAction> {
        let question = question?;
        self.1 = question.number;
        Some(question.action)
    }

    fn tick(&mut self, now: Now) -> (Option<LeaseAction>, Option<LeaseChange>) {
        let (question, change) = self.0.tick(now);
        (self.record(question), change)
    }

    fn outcome(&mut self, now: Now, outcome: &LeaseOutcome) -> (Option<LeaseAction>, Option<LeaseChange>) {
        let (question, change) = self.0.outcome(now, self.1, outcome);
        (self.record(question), change)
    }

    fn leave(&mut self, now: Now) -> Option<LeaseAction> {
        let question = self.0.leave(now);
        self.record(question)
    }
}

impl std::ops::Deref for Lease {
    type Target = lease::Lease;

    fn deref(&self) -> &lease::Lease {
        &self.0
    }
}

fn at(secs: u64) -> Now {
    Now { wall: DateTime::UNIX_EPOCH, monotonic: Duration::from_secs(secs) }
}

fn holder(instance: &str, nonce: &str) -> LeaseHolder {
    LeaseHolder::new(instance, nonce)
}

/// A lease that was gained at second 0, with revision 1.
fn held() -> Lease {
    let mut lease = Lease::new(holder("me", "1"));
    assert_eq!(lease.tick(at(0)), (Some(LeaseAction::Create(holder("me", "1"))), None));
    let gained = lease.outcome(at(0), &LeaseOutcome::Written { revision: 1, at: None });
    assert_eq!(gained, (None, Some(LeaseChange::Gained)));
    lease
}

#[test]
fn held_lease_is_renewed() {
    let mut lease = held();
    assert_eq!(lease.tick(at(1)), (None, None));
    let update = LeaseAction::Update { holder: holder("me", "1"), revision: 1 };
    assert_eq!(lease.tick(at(2)), (Some(update), None));
    assert_eq!(lease.tick(at(3)), (None, None), "one question at a time");
    assert_eq!(lease.outcome(at(3), &LeaseOutcome::Written { revision: 5, at: None }), (None, None));
    let update = LeaseAction::Update { holder: holder("me", "1"), revision: 5 };
    assert_eq!(lease.tick(at(5)), (Some(update), None));
}

#[test]
fn unrenewed_lease_expires() {
    let mut lease = held();
    let mut changes = Vec::new();
    for second in 1..=LEASE_TTL.as_secs() + 1 {
        let (action, change) = lease.tick(at(second));
        changes.extend(change.map(|change| (second, change)));
        if action.is_some() {
            lease.outcome(at(second), &LeaseOutcome::Failed);
        }
    }
    assert_eq!(changes, [(LEASE_TTL.as_secs(), LeaseChange::Lost)]);
    assert!(!lease.is_held());
}

/// Otherwise its period would be counted from the later question.
#[test]
fn answers_to_earlier_questions_are_ignored() {
    let mut lease = held();
    assert!(lease.tick(at(2)).0.is_some());
    let earlier = lease.1;
    assert!(lease.tick(at(4)).0.is_some());
    let written = LeaseOutcome::Written { revision: 2, at: None };
    assert_eq!(lease.0.outcome(at(5), earlier, &written), (None, None));
    assert_eq!(lease.held_until(), Some(LEASE_TTL));
    assert_eq!(lease.outcome(at(5), &written), (None, None));
    assert_eq!(lease.held_until(), Some(Duration::from_secs(4) + LEASE_TTL));
}

#[test]
fn unanswered_question_is_repeated() {
    let mut lease = Lease::new(holder("me", "1"));
    assert!(lease.tick(at(0)).0.is_some());
    assert_eq!(lease.tick(at(1)), (None, None));
    assert!(lease.tick(at(2)).0.is_some());
}

#[test]
fn another_holder_is_respected() {
    let mut lease = Lease::new(holder("me", "1"));
    lease.tick(at(0));
    let taken = LeaseOutcome::Taken { holder: holder("other", "9"), revision: 3 };
    assert_eq!(lease.outcome(at(0), &taken), (None, None));
    assert_eq!(lease.leader(), Some(&holder("other", "9")));
    // The lease is checked again soon, and the other holder is forgotten after a while.
    assert_eq!(lease.tick(at(1)), (Some(LeaseAction::Create(holder("me", "1"))), None));
    assert_eq!(lease.outcome(at(1), &LeaseOutcome::Failed), (None, None));
    assert_eq!(lease.leader(), Some(&holder("other", "9")));
    lease.tick(at(LEASE_TTL.as_secs()));
    assert_eq!(lease.leader(), None);
    // A restoration holds it too, and leads nobody.
    let restoration = LeaseHolder { restores: true, ..holder("other", "10") };
    lease.outcome(at(LEASE_TTL.as_secs()), &LeaseOutcome::Taken { holder: restoration, revision: 4 });
    assert_eq!((lease.seen(), lease.leader(), lease.is_restoring()), (None, None, true));

    let mut lease = held();
    lease.tick(at(2));
    assert_eq!(lease.outcome(at(2), &taken), (None, Some(LeaseChange::Lost)));
}

#[test]
fn earlier_process_of_the_instance_is_replaced() {
    let mut lease = Lease::new(holder("me", "2"));
    lease.tick(at(0));
    let taken = LeaseOutcome::Taken { holder: holder("me", "1"), revision: 3 };
    let replacing = holder("me", "2").replacing(&holder("me", "1"));
    let update = LeaseAction::Update { holder: replacing, revision: 3 };
    assert_eq!(lease.outcome(at(0), &taken), (Some(update), None));
    let gained = lease.outcome(at(0), &LeaseOutcome::Written { revision: 4, at: None });
    assert_eq!(gained, (None, Some(LeaseChange::Gained)));
}

#[test]
fn leaving_releases_the_lease() {
    let release = |revision| Some(LeaseAction::Release { revision });
    let mut lease = held();
    assert_eq!(lease.leave(at(1)), release(1));
    assert!(!lease.is_held() && !lease.is_left());
    assert_eq!(lease.outcome(at(1), &LeaseOutcome::Released), (None, None));
    assert!(lease.is_left());
    assert_eq!(lease.tick(at(9)), (None, None));

    // A renewal is under way: its answer has the revision.
    let mut lease = held();
    assert!(lease.tick(at(2)).0.is_some());
    assert_eq!(lease.leave(at(2)), None);
    assert!(!lease.is_left());
    assert_eq!(lease.outcome(at(2), &LeaseOutcome::Written { revision: 4, at: None }), (release(4), None));
    assert_eq!(lease.outcome(at(2), &LeaseOutcome::Failed), (None, None));
    assert!(lease.is_left());

    // The answer to the renewal is missing.
    let mut lease = held();
    assert!(lease.tick(at(2)).0.is_some());
    assert_eq!(lease.leave(at(3)), None);
    assert_eq!(lease.tick(at(4)), (release(1), None));

    // A lease that was never held, or belongs to another or to an earlier process of this instance.
    for instance in ["me", "other"] {
        let mut lease = Lease::new(holder("me", "2"));
        assert!(lease.tick(at(0)).0.is_some());
        assert_eq!(lease.leave(at(0)), None);
        let taken = LeaseOutcome::Taken { holder: holder(instance, "1"), revision: 3 };
        assert_eq!(lease.outcome(at(0), &taken), (None, None));
        assert!(lease.is_left());
    }
    let mut lease = Lease::new(holder("me", "1"));
    assert_eq!(lease.leave(at(0)), None);
    assert!(lease.is_left());
}

/// Only a process that runs on a copy of the data directory can take the lease from one that lives.
#[test]
fn lease_taken_by_a_copy_is_noticed() {
    let taken = |holder: LeaseHolder| LeaseOutcome::Taken { holder, revision: 3 };
    let copy = || holder("me", "2");
    let mut lease = held();
    lease.tick(at(2));
    let other = taken(holder("other", "9").replacing(&holder("me", "1")));
    assert_eq!(lease.outcome(at(2), &other), (None, Some(LeaseChange::Lost)), "the lease had expired");
    lease.tick(at(3));
    let copied = taken(copy().replacing(&holder("me", "1")));
    assert_eq!(lease.outcome(at(3), &copied), (None, Some(LeaseChange::Copied)));
    assert!(!lease.is_held());

    // A late write of an earlier process, which has replaced another one, is none.
    let mut lease = held();
    lease.tick(at(2));
    let late = copy().replacing(&holder("me", "0"));
    let taken_back = LeaseAction::Update { holder: holder("me", "1").replacing(&late), revision: 3 };
    let earlier = taken(late);
    assert_eq!(lease.outcome(at(2), &earlier), (Some(taken_back), None));
    // Nor is its own, whose outcome was unknown.
    let mut lease = held();
    lease.tick(at(2));
    let again = LeaseAction::Update { holder: holder("me", "1"), revision: 3 };
    assert_eq!(lease.outcome(at(2), &taken(holder("me", "1"))), (Some(again), None));
}

/// Each of three copies takes the lease from another one than that which took it from itself.
#[test]
fn copies_that_take_the_lease_in_turns_notice() {
    let copies = [holder("me", "1"), holder("me", "2"), holder("me", "3"), holder("me", "1")];
    let in_turns = |last: LeaseHolder, next: &LeaseHolder| next.clone().replacing(&last);
    let third = copies[1..3].iter().fold(copies[0].clone(), in_turns);
    let mut lease = held();
    lease.tick(at(2));
    let taken = LeaseOutcome::Taken { holder: third.clone(), revision: 3 };
    assert_eq!(lease.outcome(at(2), &taken), (None, Some(LeaseChange::Copied)));
    // What an entry names is bounded, and never the holder itself.
    let many: Vec<LeaseHolder> = (4..40).map(|nonce| holder("me", &nonce.to_string())).collect();
    let last = many.iter().chain(&many).fold(third, in_turns);
    let nonces: Vec<String> = (30..39).rev().map(|nonce| nonce.to_string()).collect();
    assert_eq!((last.nonce.as_str(), last.replaces.as_ref()), ("39", nonces.first()));
    assert_eq!(last.replaced_before, nonces[1..]);
}

/// The entry of an earlier version, and what an earlier version reads of ours.
#[test]
fn entry_of_an_earlier_version_is_read() {
    let read = |json: &str| serde_json::from_str::<LeaseHolder>(json).unwrap();
    let earlier = r#"{"instance":"me","nonce":"2","replaces":"1"}"#;
    let known = holder("me", "2").replacing(&holder("me", "1"));
    assert_eq!(read(earlier), known);
    assert_eq!(serde_json::to_string(&known).unwrap(), earlier);
    let third = holder("me", "3").replacing(&known);
    let written = r#"{"instance":"me","nonce":"3","replaces":"2","replaced-before":["1"]}"#;
    assert_eq!(serde_json::to_string(&third).unwrap(), written);
    assert_eq!(read(written), third);
    // A restoration says what it is, and whoever leads after it is none.
    let restoration = LeaseHolder { restores: true, ..holder("me", "4") }.replacing(&holder("me", "3"));
    let written = r#"{"instance":"me","nonce":"4","replaces":"3","restores":true}"#;
    assert_eq!(serde_json::to_string(&restoration).unwrap(), written);
    assert_eq!(read(written), restoration);
    assert!(!holder("me", "5").replacing(&restoration).restores);
}
