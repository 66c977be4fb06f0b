//! What an instance says that accepts no changes.

use os_upgrade_shell::inventory::WorkerMessage;
use os_upgrade_shell::journal::append::AppendOutcome;
use os_upgrade_shell::lease::{LeaseOutcome, LeaseRequest};
use os_upgrade_shell::node::{Action, Event, Node};

use crate::loss::{at, node, streams};

/// How often the node is run in a second: more than leadership takes.
const TURNS: usize = 8;

/// Ticks in `second`, and answers what the node asks for then; the lease is renewed if `is_granted`.
fn live(node: &mut Node, second: u64, is_granted: bool) {
    let now = at(second);
    node.handle(now, Event::Tick);
    for _ in 0..TURNS {
        for action in node.run(now) {
            if let Action::Inspect(known) = action {
                node.handle(now, Event::Inspected { known, streams: Ok(streams()) });
            } else if let Action::FollowJournal { .. } = action {
                node.handle(now, Event::JournalEnd);
            } else if let Action::Append { expected, message } = action {
                let outcome = AppendOutcome::Stored { sequence: expected + 1 };
                node.handle(now, Event::Appended { append_id: message.append_id, outcome });
            } else if let Action::Lease(LeaseRequest { number, .. }) = action {
                let outcome = if is_granted {
                    LeaseOutcome::Written { revision: second, at: None }
                } else {
                    LeaseOutcome::Failed
                };
                node.handle(now, Event::Lease { number, outcome });
            }
        }
    }
}

/// A deposed leader reads the journal on, which it had read to its end. That is not what keeps it from being ready.
#[test]
fn deposed_leader_says_that_nobody_leads() {
    let mut node = node();
    let why = |node: &Node, second| node.not_ready(at(second)).map(|why| why.to_string());
    node.handle(at(0), Event::Worker(WorkerMessage::AllAnnounced));
    live(&mut node, 0, false);
    for second in 1..10 {
        live(&mut node, second, true);
    }
    assert!(node.is_leading());
    assert_eq!(why(&node, 9), None);
    for second in 10..30 {
        node.handle(at(second), Event::Tick);
        let _ = node.run(at(second));
    }
    assert!(!node.is_leading());
    assert_eq!(why(&node, 29).as_deref(), Some("no instance leads yet, as far as this one knows"));
}
