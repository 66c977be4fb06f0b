//! What an instance says that accepts no changes.

use os_upgrade_shell::instance::{Action, Event, Instance};
use os_upgrade_shell::inventory::WorkerMessage;
use os_upgrade_shell::journal::append::AppendOutcome;
use os_upgrade_shell::lease::{LeaseOutcome, LeaseRequest};

use crate::loss::{at, instance, streams};

/// How often the instance is run in a second: more than leadership takes.
const TURNS: usize = 8;

/// Ticks in `second`, and answers what the instance asks for then; the lease is renewed if `is_granted`.
fn live(instance: &mut Instance, second: u64, is_granted: bool) {
    let now = at(second);
    instance.handle(now, Event::Tick);
    for _ in 0..TURNS {
        for action in instance.run(now) {
            if let Action::Inspect(known) = action {
                instance.handle(now, Event::Inspected { known, streams: Ok(streams()) });
            } else if let Action::FollowJournal { .. } = action {
                instance.handle(now, Event::JournalEnd);
            } else if let Action::Append { expected, message } = action {
                let outcome = AppendOutcome::Stored { sequence: expected + 1 };
                instance.handle(now, Event::Appended { append_id: message.append_id, outcome });
            } else if let Action::Lease(LeaseRequest { number, .. }) = action {
                let outcome = if is_granted {
                    LeaseOutcome::Written { revision: second, at: None }
                } else {
                    LeaseOutcome::Failed
                };
                instance.handle(now, Event::Lease { number, outcome });
            }
        }
    }
}

/// A deposed leader reads the journal on, which it had read to its end. That is not what keeps it from being ready.
#[test]
fn deposed_leader_says_that_nobody_leads() {
    let mut instance = instance();
    let why = |instance: &Instance, second| instance.not_ready(at(second)).map(|why| why.to_string());
    instance.handle(at(0), Event::Worker(WorkerMessage::AllAnnounced));
    live(&mut instance, 0, false);
    for second in 1..10 {
        live(&mut instance, second, true);
    }
    assert!(instance.is_leading());
    assert_eq!(why(&instance, 9), None);
    for second in 10..30 {
        instance.handle(at(second), Event::Tick);
        let _ = instance.run(at(second));
    }
    assert!(!instance.is_leading());
    assert_eq!(why(&instance, 29).as_deref(), Some("no instance leads yet, as far as this one knows"));
}
