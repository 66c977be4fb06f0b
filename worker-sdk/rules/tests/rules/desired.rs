//! Configurations: a host with a stream, a state file and what its handlers have put in force, and random histories of it.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use os_upgrade_protocol::{
    AppliedItem, HostName, Item, ItemId, ItemKind, Manifest, ManifestRefusal, Revision,
};
use os_upgrade_worker_rules::desired::Accepted;
use os_upgrade_worker_rules::{DesiredAction, DesiredEvent, DesiredLogic, DesiredState, Loaded};
use proptest::prelude::*;

const SITE: &str = "hall-1";

fn host() -> HostName {
    HostName::new("h1").unwrap()
}

fn id(text: &str) -> ItemId {
    ItemId::new(text).unwrap()
}

fn item(name: &str, text: &str) -> Item {
    let sealed = Revision { epoch: 0, sequence: 1 };
    Item { kind: ItemKind::Configuration, name: name.to_owned(), id: id(text), sealed }
}

fn manifest(sequence: u64, items: &[(&str, &str)]) -> Manifest {
    let items = items.iter().map(|(name, id)| item(name, id)).collect();
    Manifest { site: SITE.to_owned(), revision: Revision { epoch: 0, sequence }, items }
}

fn reported(name: &str, id: Option<&str>, error: Option<&str>) -> AppliedItem {
    AppliedItem {
        kind: ItemKind::Configuration,
        name: name.to_owned(),
        id: id.map(|id| ItemId::new(id).unwrap()),
        error: error.map(str::to_owned),
        unit: None,
    }
}

/// A host. What the rules promise is checked at each action.
struct World {
    logic: DesiredLogic,
    now: TimeDelta,
    disk: Option<DesiredState>,
    /// What the worker would find in the stream.
    stream: Option<Manifest>,
    /// The newest manifest that was read and is to be followed.
    newest: Option<Manifest>,
    /// What is in force; `None` for what a handler may have changed.
    host: BTreeMap<String, Option<ItemId>>,
    /// Actions that are to be carried out.
    pending: Vec<DesiredAction>,
    /// What handlers were called with.
    calls: Vec<String>,
    /// The item whose content is kept.
    opened: Option<ItemId>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            logic: DesiredLogic::new(host()),
            now: TimeDelta::zero(),
            disk: None,
            stream: None,
            newest: None,
            host: BTreeMap::new(),
            pending: Vec::new(),
            calls: Vec::new(),
            opened: None,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        self.logic = DesiredLogic::new(host());
        self.pending.clear();
        self.opened = None;
        let loaded = self.disk.clone().map_or(Loaded::Nothing, |state| Loaded::File(Box::new(state)));
        self.feed(DesiredEvent::Started(loaded));
    }

    fn feed(&mut self, event: DesiredEvent) {
        let actions = self.logic.handle(self.now, event);
        for action in actions {
            self.check(&action);
            match action {
                DesiredAction::Log(_) => {}
                DesiredAction::Discard => self.opened = None,
                DesiredAction::SaveState(_)
                | DesiredAction::Get(_)
                | DesiredAction::Configure(_)
                | DesiredAction::Revoke(_) => self.pending.push(action),
            }
        }
        assert!(self.pending.len() <= 1, "one after the other: {:?}", self.pending);
    }

    fn read(&mut self) {
        let newest = self.newest.as_ref().map(|newest| newest.revision);
        if let Some(stream) = &self.stream
            && newest.is_none_or(|newest| stream.revision >= newest)
            && stream.site == SITE
        {
            self.newest = Some(stream.clone());
        }
        self.feed(DesiredEvent::ManifestRead(self.stream.as_ref().map(Manifest::to_payload)));
    }

    /// Publishes a manifest, and has it read.
    fn publish(&mut self, manifest: Manifest) {
        self.stream = Some(manifest);
        self.read();
    }

    fn pass(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
        self.feed(DesiredEvent::Tick);
    }

    /// Carries out what is pending; false if nothing is.
    fn act(&mut self, succeeds: bool) -> bool {
        let Some(action) = self.pending.pop() else { return false };
        let result = if succeeds { Ok(()) } else { Err("broken".to_owned()) };
        let event = match action {
            DesiredAction::SaveState(state) if succeeds => {
                let revision =
                    |state: &DesiredState| state.accepted.as_ref().map(|accepted| accepted.revision);
                assert!(self.disk.as_ref().and_then(revision) <= revision(&state), "it never goes back");
                self.disk = Some(*state);
                DesiredEvent::StateSaved
            }
            DesiredAction::SaveState(_) => DesiredEvent::StateSaveFailed("disk full".to_owned()),
            DesiredAction::Get(item) => {
                self.opened = succeeds.then_some(item.id);
                DesiredEvent::Got(result)
            }
            DesiredAction::Configure(item) => {
                assert_eq!(self.opened.take(), Some(item.id.clone()));
                self.calls.push(format!("{} {}", item.name, item.id));
                self.host.insert(item.name, succeeds.then_some(item.id));
                DesiredEvent::Finished(result)
            }
            DesiredAction::Revoke(name) => {
                self.calls.push(format!("{name} revoked"));
                self.host.insert(name.clone(), None);
                if succeeds {
                    self.host.remove(&name);
                }
                DesiredEvent::Finished(result)
            }
            DesiredAction::Discard | DesiredAction::Log(_) => unreachable!("it is not answered"),
        };
        self.feed(event);
        true
    }

    /// What must hold when an action is returned; a manifest that is read after that comes too late for it.
    fn check(&self, action: &DesiredAction) {
        let names = |name: &str| {
            let mut items = self.newest.iter().flat_map(|newest| &newest.items);
            items.find(|item| item.name == name)
        };
        let saved = |name: &str| {
            let disk = self.disk.as_ref().expect("it was saved");
            let newest = self.newest.as_ref().expect("a manifest was accepted");
            let accepted = Accepted { site: SITE.to_owned(), revision: newest.revision };
            assert_eq!(disk.accepted.as_ref(), Some(&accepted));
            assert_eq!(disk.configurations.get(name), Some(&None), "it is saved that {name} is unknown");
        };
        match action {
            DesiredAction::Get(item) => assert_eq!(names(&item.name), Some(item)),
            DesiredAction::Configure(item) => {
                saved(&item.name);
                assert_eq!(names(&item.name), Some(item));
            }
            DesiredAction::Revoke(name) => {
                saved(name);
                assert_eq!(names(name), None);
            }
            DesiredAction::SaveState(_) | DesiredAction::Discard | DesiredAction::Log(_) => {}
        }
    }

    /// The process dies while it carries out what is pending, before it takes effect or after it.
    fn crash(&mut self, after: bool) {
        if let Some(action) = self.pending.pop() {
            match action {
                DesiredAction::SaveState(state) if after => self.disk = Some(*state),
                DesiredAction::Configure(item) => {
                    self.host.insert(item.name, after.then_some(item.id));
                }
                DesiredAction::Revoke(name) => {
                    self.host.insert(name.clone(), None);
                    if after {
                        self.host.remove(&name);
                    }
                }
                DesiredAction::SaveState(_)
                | DesiredAction::Get(_)
                | DesiredAction::Discard
                | DesiredAction::Log(_) => {}
            }
        }
        self.start();
    }

    fn act_on(&mut self) {
        for _ in 0..1000 {
            if !self.act(true) {
                return;
            }
        }
        panic!("it does not come to an end");
    }

    fn calls(&mut self) -> Vec<String> {
        std::mem::take(&mut self.calls)
    }

    fn report(&self) -> Vec<AppliedItem> {
        self.logic.report().map(|report| report.items).unwrap_or_default()
    }

    fn refused(&self) -> Option<ManifestRefusal> {
        self.logic.report().and_then(|report| report.refused)
    }
}

#[test]
fn what_differs_is_applied_in_order() {
    let mut world = World::new();
    world.read();
    assert_eq!((world.logic.report(), world.act(true)), (None, false), "there is no manifest");
    world.publish(manifest(1, &[("b", "1"), ("a", "1"), ("c", "1")]));
    world.act_on();
    assert_eq!(world.calls(), ["b 1", "a 1", "c 1"]);
    world.publish(manifest(2, &[("a", "1"), ("c", "2"), ("d", "1")]));
    world.act_on();
    assert_eq!(world.calls(), ["b revoked", "c 2", "d 1"]);
    let items = ["a", "c", "d"].map(|name| reported(name, Some(if name == "c" { "2" } else { "1" }), None));
    let report = world.logic.report().unwrap();
    assert_eq!((report.revision.sequence, report.items, report.refused), (2, items.to_vec(), None));
    world.read();
    world.pass(600);
    assert!(!world.act(true));
}

/// If the stream was lost, orchestrators know nothing of what the host has.
#[test]
fn what_is_in_force_without_a_manifest_is_reported() {
    let mut world = World::new();
    world.publish(manifest(1, &[("a", "1")]));
    world.act_on();
    world.crash(false);
    world.stream = None;
    assert_eq!(world.logic.report(), None, "nothing was read yet");
    world.read();
    assert_eq!(world.report(), [reported("a", Some("1"), None)]);
    assert!(!world.act(true), "it stays in force");
}

#[test]
fn failures_cost_one_item() {
    let mut world = World::new();
    world.publish(manifest(1, &[("a", "1"), ("b", "1")]));
    assert!(world.act(true), "the manifest is saved");
    assert!(world.act(false), "a cannot be opened");
    world.act_on();
    assert_eq!(world.calls(), ["b 1"]);
    assert_eq!(world.report(), [reported("a", None, Some("broken")), reported("b", Some("1"), None)]);
    world.read();
    assert!(!world.act(true), "the same manifest hurries nothing");
    world.pass(1);
    // It is opened and saved, and its handler fails.
    assert!(world.act(true) && world.act(true) && world.act(false));
    assert_eq!(world.report()[0], reported("a", None, Some("broken")));
    world.pass(1);
    assert!(!world.act(true), "the pause has doubled");
    world.feed(DesiredEvent::RetryNow);
    world.act_on();
    assert_eq!(world.calls(), ["a 1", "a 1"]);
    assert_eq!(world.report()[0], reported("a", Some("1"), None));
}

#[test]
fn failed_update_reports_what_is_in_force() {
    let mut world = World::new();
    world.publish(manifest(1, &[("a", "1")]));
    world.act_on();
    world.publish(manifest(2, &[("a", "2")]));
    assert!(world.act(true) && world.act(false), "it cannot be opened");
    assert_eq!(world.report(), [reported("a", Some("1"), Some("broken"))]);
    world.publish(manifest(3, &[]));
    assert!(world.act(true) && world.act(true) && world.act(false), "it cannot be revoked");
    assert_eq!(world.report(), [reported("a", None, Some("broken"))]);
}

#[test]
fn older_and_foreign_manifests_change_nothing() {
    let mut world = World::new();
    world.publish(manifest(5, &[("a", "1")]));
    world.act_on();
    let other_site = Manifest { site: "hall-2".to_owned(), ..manifest(9, &[]) };
    for (manifest, refusal) in
        [(manifest(4, &[]), ManifestRefusal::Older), (other_site, ManifestRefusal::OtherSite)]
    {
        world.publish(manifest);
        assert_eq!((world.refused(), world.act(true)), (Some(refusal), false));
        world.crash(false);
        assert_eq!(world.logic.report(), None, "nothing was read yet");
        world.read();
        assert_eq!((world.refused(), world.act(true)), (Some(refusal), false));
        assert_eq!(world.report(), [reported("a", Some("1"), None)]);
    }
    world.feed(DesiredEvent::ManifestRead(Some(b"{}".to_vec())));
    assert_eq!(world.refused(), Some(ManifestRefusal::Malformed));
    world.feed(DesiredEvent::ManifestRead(None));
    assert_eq!((world.refused(), world.act(true)), (None, false));
    world.publish(Manifest { revision: Revision { epoch: 1, sequence: 1 }, ..manifest(1, &[]) });
    world.act_on();
    assert_eq!((world.refused(), world.report()), (None, vec![]));
}

#[test]
fn unknown_kinds_are_left_alone() {
    for kind in [ItemKind::Unit, ItemKind::Other] {
        let mut world = World::new();
        let mut mixed = manifest(1, &[("a", "1")]);
        mixed.items.push(Item { kind, ..item("a", "9") });
        world.publish(mixed);
        world.act_on();
        assert_eq!(world.calls(), ["a 1"], "{kind}");
        let other = AppliedItem {
            kind: ItemKind::Other,
            ..reported("a", None, Some("this worker knows no items of this kind"))
        };
        assert_eq!(world.report(), [reported("a", Some("1"), None), other], "{kind}");
    }
}

/// After a crash it is not known whether the handler had begun, so it is called again, whatever the manifest says by then.
#[test]
fn begun_items_are_applied_again_after_a_crash() {
    for (after, sequence, items, expected) in [
        (true, 2, vec![("a", "2")], vec!["a 2"]),
        (false, 3, vec![("a", "1")], vec!["a 1"]),
        (true, 3, vec![], vec!["a revoked"]),
    ] {
        let mut world = World::new();
        world.publish(manifest(1, &[("a", "1")]));
        world.act_on();
        world.calls();
        world.publish(manifest(2, &[("a", "2")]));
        assert!(world.act(true) && world.act(true) && world.act(true));
        assert!(matches!(world.pending[..], [DesiredAction::Configure(_)]));
        world.crash(after);
        assert!(!world.act(true), "the manifest may have changed");
        world.publish(manifest(sequence, &items));
        world.act_on();
        assert_eq!(world.calls(), expected);
    }
}

#[test]
fn nothing_is_begun_before_it_is_saved() {
    let mut world = World::new();
    world.publish(manifest(1, &[("a", "1")]));
    assert!(world.act(false) && !world.act(true), "the disk is full");
    let error = "cannot save the worker's state: disk full";
    assert_eq!(world.report(), [reported("a", None, Some(error))]);
    world.pass(1);
    world.act_on();
    assert_eq!(
        (world.calls(), world.report()),
        (vec!["a 1".to_owned()], vec![reported("a", Some("1"), None)])
    );
}

#[test]
fn lost_state_is_made_up_for() {
    let mut world = World::new();
    world.publish(manifest(5, &[("a", "1")]));
    world.act_on();
    (world.disk, world.newest) = (None, None);
    world.start();
    world.publish(manifest(4, &[("a", "1")]));
    world.act_on();
    assert_eq!((world.refused(), world.calls()), (None, vec!["a 1".to_owned(), "a 1".to_owned()]));
}

#[derive(Debug, Clone)]
enum Op {
    /// A manifest with the next revision, or an older one that was rolled back to; the stream has it before it is read.
    Publish(bool, Vec<(u8, u8)>),
    Read,
    Act(bool),
    Crash(bool),
    Pass(i64),
    RetryNow,
}

fn op() -> impl Strategy<Value = Op> {
    let items = prop::collection::vec((0..4u8, 0..3u8), 0..4);
    prop_oneof![
        2 => (prop::bool::weighted(0.8), items).prop_map(|(newer, items)| Op::Publish(newer, items)),
        3 => Just(Op::Read),
        12 => prop::bool::weighted(0.8).prop_map(Op::Act),
        2 => any::<bool>().prop_map(Op::Crash),
        1 => (0..40i64).prop_map(Op::Pass),
        1 => Just(Op::RetryNow),
    ]
}

fn random_manifest(sequence: u64, items: Vec<(u8, u8)>) -> Manifest {
    let items: BTreeMap<u8, u8> = items.into_iter().collect();
    let items = items.into_iter().map(|(name, id)| item(&format!("n{name}"), &id.to_string())).collect();
    Manifest { items, ..manifest(sequence, &[]) }
}

proptest! {
    /// Whatever fails and crashes, and once nothing does any more, the host has what the newest manifest names.
    #[test]
    fn hosts_have_what_the_newest_manifest_names(ops in prop::collection::vec(op(), 0..80)) {
        let mut world = World::new();
        let mut sequence = 10;
        for op in ops {
            match op {
                Op::Publish(newer, items) => {
                    sequence += u64::from(newer);
                    let at = if newer { sequence } else { sequence - 5 };
                    world.stream = Some(random_manifest(at, items));
                }
                Op::Read => world.read(),
                Op::Act(succeeds) => drop(world.act(succeeds)),
                Op::Crash(after) => {
                    world.crash(after);
                    // A manifest that was not saved was never accepted.
                    let accepted = world.disk.as_ref().and_then(|disk| disk.accepted.clone());
                    world.newest = world.newest.filter(|newest| {
                        accepted.is_some_and(|accepted| accepted.revision == newest.revision)
                    });
                }
                Op::Pass(seconds) => world.pass(seconds),
                Op::RetryNow => world.feed(DesiredEvent::RetryNow),
            }
        }
        let last = random_manifest(sequence + 1, vec![(0, 1), (3, 2)]);
        world.act_on();
        world.publish(last.clone());
        for _ in 0..40 {
            world.act_on();
            world.pass(60);
        }
        let expected: BTreeMap<_, _> =
            last.items.into_iter().map(|item| (item.name, Some(item.id))).collect();
        prop_assert_eq!(&world.host, &expected);
        prop_assert_eq!(&world.disk.as_ref().unwrap().configurations, &expected);
        let report = world.logic.report().unwrap();
        prop_assert!(report.items.iter().all(|item| item.error.is_none()), "{:?}", report);
    }
}
