//! Which entry of the reboot queue starts next: a table, and laws that hold for every queue.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use imbl::OrdSet;
use os_upgrade_console::describe;
use os_upgrade_kernel::reboot_queue::{
    Asked, Entry, EntryEvent, EntryStatus, Nodes, NotReady, QueueBlocker, QueueError, RebootQueue,
};
use os_upgrade_kernel::{ApiServerOrder, Backoff, LockProvider, RebootCommandSettings, RebootSettings};
use os_upgrade_protocol::HostName;
use proptest::prelude::*;

use crate::common::{group, host};

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::minutes(minute)
}

fn limits(api_servers: ApiServerOrder) -> RebootSettings {
    RebootSettings { max_concurrent: 2, unreachable_max: 1, api_servers, ..RebootSettings::default() }
}

fn asked() -> Asked {
    Asked { actor: "eve".to_owned(), reason: None }
}

fn started() -> EntryEvent {
    EntryEvent::Started { group: group("default"), provider: LockProvider::Embedded, drain: false }
}

fn reboot_began() -> EntryEvent {
    EntryEvent::RebootBegan { boot_id: "one".to_owned() }
}

fn cancelled() -> EntryEvent {
    EntryEvent::Cancelled { actor: "eve".to_owned(), reason: None }
}

/// A queue such as `w1 a1:draining w2:backed-off`. What has no status is queued.
fn queue(text: &str) -> RebootQueue {
    let mut queue = RebootQueue::default();
    for (index, word) in (0..).zip(text.split_whitespace()) {
        let (name, status) = word.split_once(':').unwrap_or((word, "queued"));
        queue.add([host(name)], asked(), at(0));
        let events = match status {
            "queued" => vec![],
            "draining" => vec![started()],
            "rebooting" => vec![started(), reboot_began()],
            "backed-off" => vec![started(), EntryEvent::BackedOff { until: at(5), reason: None }],
            "cancelled" => vec![cancelled()],
            other => panic!("{other}"),
        };
        for event in events {
            queue.apply(index, &event, at(0)).unwrap();
        }
    }
    queue
}

/// What is known of the hosts.
#[derive(Default)]
struct Known {
    api_servers: OrdSet<HostName>,
    elsewhere: OrdSet<HostName>,
    unreachable: OrdSet<HostName>,
    not_ready: OrdSet<HostName>,
}

impl Known {
    fn choose(
        &self,
        queue: &RebootQueue,
        order: ApiServerOrder,
        now: DateTime<Utc>,
    ) -> Result<u64, QueueBlocker> {
        self.choose_by(queue, &limits(order), now)
    }

    fn choose_by(
        &self,
        queue: &RebootQueue,
        limits: &RebootSettings,
        now: DateTime<Utc>,
    ) -> Result<u64, QueueBlocker> {
        let nodes = Nodes {
            api_servers: &self.api_servers,
            draining_elsewhere: &self.elsewhere,
            unreachable: &|| self.unreachable.clone(),
            not_ready: &|_, entry| self.not_ready.contains(&entry.host).then_some(NotReady::NoWorker),
        };
        queue.choose(limits, nodes, now)
    }
}

/// Nodes such as `unreachable=w8,w9 not-ready=w1 elsewhere=w2`. Those whose names begin with `a` are API servers.
fn nodes(text: &str) -> Known {
    let mut nodes =
        Known { api_servers: (1..=9).map(|n| host(&format!("a{n}"))).collect(), ..Known::default() };
    for word in text.split_whitespace() {
        let (kind, names) = word.split_once('=').unwrap();
        let hosts = names.split(',').map(host).collect();
        match kind {
            "unreachable" => nodes.unreachable = hosts,
            "not-ready" => nodes.not_ready = hosts,
            "elsewhere" => nodes.elsewhere = hosts,
            other => panic!("{other}"),
        }
    }
    nodes
}

/// The host that starts next with API servers first and last, or the clause that says why none does.
#[rustfmt::skip]
const TABLE: &[(&str, &str, &str, &str)] = &[
    // In the order of their indexes, as far as the limit allows.
    ("", "", "no further entry is queued", "no further entry is queued"),
    ("w1 w2", "", "w1", "w1"),
    ("w1:draining w2 w3", "", "w2", "w2"),
    ("w1:draining w2:rebooting w3", "", "2 are under way, as many as may be at once", "2 are under way, as many as may be at once"),
    ("w1:cancelled w2", "", "w2", "w2"),
    ("w1:cancelled", "", "no further entry is queued", "no further entry is queued"),
    // What has backed off lets others go first.
    ("w1:backed-off w2", "", "w2", "w2"),
    ("w1:backed-off", "", "every entry that is queued has backed off, the first until 2024-10-04T00:05:00Z", "every entry that is queued has backed off, the first until 2024-10-04T00:05:00Z"),
    // A host's second entry waits for its first.
    ("w1:rebooting w1", "", "no further entry is queued", "no further entry is queued"),
    ("w1:cancelled w1 w2", "", "w2", "w2"),
    ("w1:backed-off w1", "", "every entry that is queued has backed off, the first until 2024-10-04T00:05:00Z", "every entry that is queued has backed off, the first until 2024-10-04T00:05:00Z"),
    // A host that is not ready lets others go first.
    ("w1 w2", "not-ready=w1", "w2", "w2"),
    ("w1", "not-ready=w1", "w1 cannot reboot now: it has no worker, or one that does not reboot it on request", "w1 cannot reboot now: it has no worker, or one that does not reboot it on request"),
    // Unreachable nodes, those under way excepted.
    ("w1", "unreachable=w8", "w1", "w1"),
    ("w1", "unreachable=w8,w9", "too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: 2, w8 for example; [reboot] maximum-unreachable-nodes-for-reboot allows 1", "too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: 2, w8 for example; [reboot] maximum-unreachable-nodes-for-reboot allows 1"),
    ("w1:rebooting w2", "unreachable=w1,w9", "w2", "w2"),
    ("w1:cancelled w2", "unreachable=w1,w9", "too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: 2, w1 for example; [reboot] maximum-unreachable-nodes-for-reboot allows 1", "too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: 2, w1 for example; [reboot] maximum-unreachable-nodes-for-reboot allows 1"),
    ("w1", "unreachable=w8,w9 elsewhere=w8", "w1", "w1"),
    ("w1", "unreachable=a1", "w1", "w1"),
    // API servers: one at a time, and nothing beside them.
    ("a1 a2", "", "a1", "a1"),
    ("a1:draining a2", "", "the API server a1 is under way, and nothing starts beside it", "the API server a1 is under way, and nothing starts beside it"),
    ("a1:rebooting w1", "", "the API server a1 is under way, and nothing starts beside it", "the API server a1 is under way, and nothing starts beside it"),
    ("w1", "elsewhere=a1", "the API server a1 is under way, and nothing starts beside it", "the API server a1 is under way, and nothing starts beside it"),
    ("a1", "elsewhere=w1", "the API server a1 is next, and starts once nothing else is under way", "the API server a1 is next, and starts once nothing else is under way"),
    // First or last.
    ("w1 a1", "", "a1", "w1"),
    ("w1:draining w2 a1", "", "the API server a1 is next, and starts once nothing else is under way", "w2"),
    ("w1:draining a1", "", "the API server a1 is next, and starts once nothing else is under way", "the API server a1 is next, and starts once nothing else is under way"),
    // Only an API server that could start holds others back.
    ("w1:draining w2 a1:backed-off", "", "w2", "w2"),
    ("w1:draining w2 a1", "not-ready=a1", "w2", "w2"),
    ("a1 w1:backed-off", "", "a1", "a1"),
    ("a1 w1", "not-ready=w1", "a1", "a1"),
];

#[test]
fn choices_are_as_listed() {
    for (entries, world, first, last) in TABLE {
        for (order, expected) in [(ApiServerOrder::First, first), (ApiServerOrder::Last, last)] {
            let queue = queue(entries);
            let chosen = match nodes(world).choose(&queue, order, at(1)) {
                Ok(index) => queue.entries[&index].host.to_string(),
                Err(blocker) => describe(&blocker).to_string(),
            };
            assert_eq!(chosen, *expected, "{entries} | {world} | {order:?}");
        }
    }
}

/// A host that hangs is rebooted by command although it is the one that is unreachable; its worker could not reboot it.
#[test]
fn unreachable_host_does_not_block_itself() {
    let command = RebootCommandSettings { within: "1m".parse().unwrap(), checks_boot: false };
    let settings = |command| RebootSettings { command, unreachable_max: 0, ..limits(ApiServerOrder::First) };
    for (entries, world, expected) in [
        ("w1", "unreachable=w1", Ok("w1")),
        ("w1 w2 w3", "unreachable=w2", Ok("w2")),
        ("w1 w2", "unreachable=w2 not-ready=w2", Err("too many hosts")),
        ("w1 w2:backed-off", "unreachable=w2", Err("too many hosts")),
        ("w1 w2", "unreachable=w2,w3", Err("too many hosts")),
        ("w1:rebooting w2", "unreachable=w1", Ok("w2")),
        ("a1 w2", "unreachable=w2 elsewhere=w3", Ok("w2")),
        ("w2 a1", "unreachable=a1 elsewhere=w3", Err("the API server a1 is next")),
    ] {
        let queue = queue(entries);
        let chosen = nodes(world).choose_by(&queue, &settings(Some(command)), at(1));
        match expected {
            Ok(host) => {
                assert_eq!(queue.entries[&chosen.unwrap()].host.as_str(), host, "{entries} | {world}");
            }
            Err(why) => {
                assert!(describe(&chosen.unwrap_err()).to_string().starts_with(why), "{entries} | {world}");
            }
        }
    }
    let by_worker = nodes("unreachable=w1").choose_by(&queue("w1"), &settings(None), at(1));
    assert!(describe(&by_worker.unwrap_err()).to_string().starts_with("too many hosts"));
}

#[test]
fn disabled_queue_starts_nothing_and_keeps_its_entries() {
    let mut queue = queue("w1 w2:rebooting");
    queue.disabled = true;
    let why = nodes("").choose(&queue, ApiServerOrder::First, at(1)).unwrap_err();
    assert_eq!(describe(&why).to_string(), "the queue is disabled");
    queue.apply(1, &EntryEvent::Rebooted, at(1)).unwrap();
    assert_eq!(queue.entries.len(), 1);
}

/// A request is remembered as long as one of its entries is there, also beside entries that were queued by themselves.
#[test]
fn entries_know_who_queued_them() {
    let mut queue = RebootQueue::default();
    let asked = |actor: &str| Asked { actor: actor.to_owned(), reason: Some("a new kernel".to_owned()) };
    queue.add([host("w1"), host("w2")], asked("anna"), at(0));
    queue.add_required(&[host("w3")], at(0), at(0));
    queue.add([host("w4")], asked("eve"), at(0));
    let known = |queue: &RebootQueue| {
        (0..5).map(|index| queue.asked(index).map(|asked| asked.actor.clone())).collect::<Vec<_>>()
    };
    let some = |actor: &str| Some(actor.to_owned());
    assert_eq!(known(&queue), [some("anna"), some("anna"), None, some("eve"), None]);
    let end = |queue: &mut RebootQueue, index| {
        queue.apply(index, &cancelled(), at(1)).unwrap();
        queue.apply(index, &EntryEvent::Removed, at(1)).unwrap();
    };
    end(&mut queue, 0);
    assert_eq!(known(&queue), [None, some("anna"), None, some("eve"), None]);
    end(&mut queue, 1);
    end(&mut queue, 3);
    assert_eq!((queue.entries.len(), queue.requests.len()), (1, 0));
}

#[test]
fn indexes_are_never_used_again() {
    let mut queue = queue("w1 w2:cancelled");
    queue.apply(1, &EntryEvent::Removed, at(1)).unwrap();
    queue.add([host("w2")], asked(), at(1));
    assert_eq!(queue.entries.keys().copied().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(queue.apply(1, &cancelled(), at(1)), Err(QueueError::Unknown(1)));
}

#[test]
fn backoff_ends_or_is_reset() {
    let mut queue = queue("w1:backed-off");
    let choose = |queue: &RebootQueue, now| nodes("").choose(queue, ApiServerOrder::First, now).ok();
    assert_eq!((choose(&queue, at(4)), choose(&queue, at(5))), (None, Some(0)));
    queue.reset_backoff();
    assert_eq!(choose(&queue, at(4)), Some(0));
}

#[test]
fn cancelled_while_it_reboots_ends_when_the_host_is_back() {
    let mut queue = queue("w1:rebooting");
    queue.apply(0, &cancelled(), at(1)).unwrap();
    let entry = &queue.entries[&0];
    assert_eq!(
        (entry.status, entry.cancel_requested, entry.last_transition),
        (EntryStatus::Rebooting, true, at(0))
    );
    queue.apply(0, &EntryEvent::Rebooted, at(2)).unwrap();
    assert!(queue.entries.is_empty());
}

/// What an operator, a drain or a host does next, each with a number that picks the entry.
#[derive(Debug, Clone)]
enum Move {
    Add(u8),
    Start,
    BackOff(usize),
    Reboot(usize),
    Cancel(usize),
    End(usize),
    Toggle,
    Reset,
    Wait(u8),
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => (0..8_u8).prop_map(Move::Add),
        4 => Just(Move::Start),
        1 => any::<usize>().prop_map(Move::BackOff),
        2 => any::<usize>().prop_map(Move::Reboot),
        1 => any::<usize>().prop_map(Move::Cancel),
        3 => any::<usize>().prop_map(Move::End),
        1 => Just(Move::Toggle),
        1 => Just(Move::Reset),
        1 => (0..20_u8).prop_map(Move::Wait),
    ]
}

/// Four API servers and four other nodes.
fn node(number: u8) -> HostName {
    host(&format!("{}{}", if number < 4 { "a" } else { "w" }, number % 4 + 1))
}

proptest! {
    /// Whatever happens, and whatever chooses: never two API servers at once, never one beside another node, never more
    /// than the limit, no host twice; and a queue that is enabled with nothing in its way starts something.
    #[test]
    fn limits_hold(
        steps in proptest::collection::vec(moves(), 0..80),
        last in any::<bool>(),
        not_ready in proptest::collection::vec(0..8_u8, 0..3),
        unreachable in proptest::collection::vec(0..8_u8, 0..4),
    ) {
        let order = if last { ApiServerOrder::Last } else { ApiServerOrder::First };
        let (mut queue, mut nodes, mut now) = (RebootQueue::default(), nodes(""), at(0));
        nodes.not_ready = not_ready.into_iter().map(node).collect();
        nodes.unreachable = unreachable.into_iter().map(node).collect();
        for step in steps {
            let picked = |number: usize| {
                let count = queue.entries.len().max(1);
                queue.entries.keys().nth(number % count).copied().unwrap_or(0)
            };
            let event = match step {
                Move::Add(number) => { queue.add([node(number)], asked(), now); None }
                Move::Start => nodes.choose(&queue, order, now).ok().map(|index| (index, started())),
                Move::BackOff(number) => {
                    let index = picked(number);
                    let count = queue.entries.get(&index).map_or(0, |entry| entry.backoff_count);
                    Some((index, EntryEvent::BackedOff { until: now + Backoff::DEFAULT.pause(&index.to_string(), count + 1, None), reason: None }))
                }
                Move::Reboot(number) => Some((picked(number), reboot_began())),
                Move::Cancel(number) => Some((picked(number), cancelled())),
                Move::End(number) => {
                    let index = picked(number);
                    let is_cancelled = |entry: &Entry| entry.status == EntryStatus::Cancelled;
                    let removed = queue.entries.get(&index).is_some_and(is_cancelled);
                    Some((index, if removed { EntryEvent::Removed } else { EntryEvent::Rebooted }))
                }
                Move::Toggle => { queue.disabled = !queue.disabled; None }
                Move::Reset => { queue.reset_backoff(); None }
                Move::Wait(minutes) => { now += TimeDelta::minutes(minutes.into()); None }
            };
            if let Some((index, event)) = event {
                let starts = event == started();
                let applied = queue.apply(index, &event, now);
                prop_assert!(applied.is_ok() || !starts, "what is chosen can start");
                if starts {
                    prop_assert!(!nodes.not_ready.contains(&queue.entries[&index].host));
                }
            }
            let hosts: Vec<_> = queue.under_way().map(|(_, entry)| entry.host.clone()).collect();
            let servers = hosts.iter().filter(|host| host.as_str().starts_with('a')).count();
            prop_assert_eq!(hosts.iter().collect::<BTreeSet<_>>().len(), hosts.len());
            prop_assert!(hosts.len() <= 2);
            prop_assert!(servers == 0 || hosts.len() == 1, "{hosts:?}");
        }
        queue.disabled = false;
        queue.reset_backoff();
        (nodes.not_ready, nodes.unreachable) = Default::default();
        let is_idle = queue.under_way().next().is_none();
        let has_cancelled = queue.entries.values().any(|entry| entry.status == EntryStatus::Cancelled);
        let has_queued = queue.entries.values().any(|entry| entry.status == EntryStatus::Queued);
        if is_idle && !has_cancelled && has_queued {
            prop_assert!(nodes.choose(&queue, order, now).is_ok());
        }
    }
}
