//! Parts of a snapshot, and one that has them all.

use os_upgrade_calendar::Watermark;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::{
    ControlFact, DesiredFact, EnrolmentFact, IgnoreCause, PauseFact, RunFact, UnitFact,
};
use os_upgrade_kernel::reason::LockRefusal;
use os_upgrade_kernel::slot::{ReleaseCause, Semaphore, Waiter};
use os_upgrade_kernel::{
    Fact, LockProvider, MissedReason, MissedRun, NoAnswer, Settings, Slot, SlotState, State, Trigger,
};
use os_upgrade_protocol::Revision;
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_scheduler::UnitName;
use serde_json::json;

use super::words::check_words;
use super::{check, paused};
use crate::common::{client, config, group, host, run, start};

#[test]
fn parts() {
    // Waiters: one that has asked once, and one that has retried.
    let waiting = |interval_secs| {
        let waiter = Waiter { since: start(), asked: start(), turn: start(), interval_secs };
        let waiters = [(client("n1"), waiter)].into_iter().collect::<imbl::OrdMap<_, _>>().into();
        Semaphore { slots: 1, waiters, ..Semaphore::default() }
    };
    let table = [
        (
            waiting(None),
            concat!(
                r#"{"slots":1,"holders":{},"waiters":{"n1":{"since":"2026-11-21T01:00:00Z","#,
                r#""asked":"2026-11-21T01:00:00Z","turn":"2026-11-21T01:00:00Z"}}}"#,
            ),
        ),
        (
            waiting(Some(300)),
            concat!(
                r#"{"slots":1,"holders":{},"waiters":{"n1":{"since":"2026-11-21T01:00:00Z","#,
                r#""asked":"2026-11-21T01:00:00Z","turn":"2026-11-21T01:00:00Z","interval-secs":300}}}"#,
            ),
        ),
    ];
    check(&table, |_| 0, 1);

    // A slot that its lock server does not take back.
    let slot = |refusal| Slot {
        group: group("edge"),
        provider: LockProvider::External,
        state: SlotState::Releasing { why: ReleaseCause::Upgraded },
        since: start(),
        held_since: Some(start()),
        refusal,
        in_doubt: false,
        unlocked_at: None,
        owner: run("r1").into(),
        command: None,
        begun: false,
        failed: false,
        unsent_at_fence: None,
    };
    let refused = || slot(Some(LockRefusal::Unreachable { why: NoAnswer::TimedOut }));
    let json = concat!(
        r#"{"group":"edge","provider":"external","standing":{"releasing":{"why":"upgraded"}},"#,
        r#""since":"2026-11-21T01:00:00Z","held-since":"2026-11-21T01:00:00Z","#,
        r#""refusal":{"kind":"unreachable","why":{"kind":"timed-out"}},"#,
        r#""run":"r1","command":null,"begun":false,"unsent-at-fence":null}"#,
    );
    check(&[(refused(), json)], |_| 0, 1);

    // Hosts whose replies were ignored of late.
    let mut ignoring = State::default();
    ignoring.apply(start(), &ignored()).unwrap();
    let written = serde_json::to_value(&ignoring.ignored_replies).unwrap();
    let minute = start().timestamp() / 60;
    assert_eq!(written, json!({ "minute": minute, "hosts": ["h1"] }));
    assert_eq!(serde_json::to_value(&ignoring).unwrap()["ignored-replies"], written);
}

fn ignored() -> Fact {
    let why = IgnoreCause::NothingOutstanding;
    Fact::Control(ControlFact::Ignored { sequence: 3, host: Some(host("h1")), reply: None, why })
}

/// A new field of the state does not compile here, and fails if its words are not in the list.
#[test]
#[allow(clippy::too_many_lines, reason = "one state")]
fn state_with_every_field() {
    let time = "2026-11-21T01:00:00Z";
    let mut state: State = serde_json::from_value(json!({
        "desired": { "changes": 0, "hosts": {}, "causes": 7, "hooks": { "app": {
            "tokens": ["e3b0"],
            "devices": { "h1": {
                "pending": {
                    "ON_FLEET_JOIN": 3, "ON_DEVICE_METADATA_UPDATE": 6, "ON_DEVICE_SPEC_UPDATE": 7,
                },
                "spec": 7,
                "told": { "digest": u64::MAX, "since": time },
                "poll-interval": 3600,
            } },
        } } },
        "settings": Settings::default(),
        "config": config(),
        "config-revision": 1,
        "semaphores": { "default": {
            "slots": 1,
            "holders": {},
            "waiters": { "n1": { "since": time, "asked": time, "turn": time, "interval-secs": 300 } },
        } },
        "strongbox": { "check": "c2VhbA==", "secrets": {
            "h1": { "sealed": "c2VjcmV0", "origin": "https://files.example", "actor": "eve", "since": time },
        } },
        "slots": { "h1": {
            "group": "edge", "provider": "external", "standing": "held", "since": time, "run": "r1",
            "refusal": { "kind": "unreachable", "why": { "kind": "timed-out" } },
            "in-doubt": true, "unlocked-at": time, "command": null, "begun": false, "unsent-at-fence": null,
        } },
        "run": null,
        "last-run": null,
        "spent-at": serde_json::to_value(Watermark::up_to(start())).unwrap(),
        "retractions": { "7": "h1" },
        "fence": null,
        "control": 7,
        "last-upgraded-at": { "h2": time },
        "turns": { "runs": 2, "last": { "h1": 1 } },
        "reboot-queue": { "disabled": true, "next-index": 0, "entries": {} },
        "nodes": { "h1": { "stage": { "kind": "checking" }, "since": time } },
        "restored": 1,
        "units": {
            "units": { "a.service": {
                "file": "[Service]\n",
                "desired": "launched",
                "on": { "h2": {
                    "machine": "1f".repeat(16), "placement": 1, "leaving": { "epoch": 0, "sequence": 7 },
                } },
                "destroyed": true,
                "actor": "eve",
                "since": time,
            } },
            "machines": { "h1": {
                "id": "0f".repeat(16), "metadata": { "edge": "north" }, "address": "10.0.0.7", "since": time, "lost-since": time,
            } },
            "placements": 1,
        },
    }))
    .unwrap();
    let (host, actor, reason) = (host("h1"), "eve".to_owned(), "scrapped".to_owned());
    let missed = MissedRun {
        start: start(),
        latest: start(),
        end: start(),
        reason: MissedReason::NoLeader,
        unrecorded: 0,
    };
    let paused = PauseFact::Paused { cause: paused(), until: Some(start()) };
    let stored = super::facts::item_stored(Some("c2FtZQ=="), None);
    let revision = Revision { epoch: 0, sequence: 1 };
    let manifest = DesiredFact::ManifestStored { host: host.clone(), revision };
    let again = super::facts::item_stored(None, Some("aGFzaA=="));
    let resumed = DesiredFact::DeliveryResumed { host: Some(host.clone()), epoch: 1, actor: actor.clone() };
    let resumed_all = DesiredFact::DeliveryResumed { host: None, epoch: 1, actor: actor.clone() };
    let failed = super::facts::provider_failed();
    let placed = UnitFact::Placed { unit: UnitName::new("a.service").unwrap(), hosts: vec![host.clone()] };
    let found = DesiredFact::UnknownItemsFound { hosts: vec![host.clone()] };
    let removed = Fact::Enrolment(EnrolmentFact::HostRemoved {
        host: crate::common::host("h3"),
        actor: actor.clone(),
        reason,
        announced: 7,
    });
    for fact in [stored, manifest, again, resumed, resumed_all, failed, found]
        .map(Fact::from)
        .into_iter()
        .chain([ignored(), removed, Fact::Run(RunFact::Missed(missed)), paused.into(), placed.into()])
    {
        state.apply(start(), &fact).unwrap();
    }
    let items = state.desired.hosts.get_mut(&host).map(|host| &mut host.items).unwrap();
    let provider = ProviderName::new("app").unwrap();
    items.get_mut(&provider).unwrap().other_file = true;
    state.desired.files.insert(provider, 1);
    state.desired.emptied.insert(host, 1);
    let rollout = Rollout::default();
    let trigger = Trigger::Operator { actor: "eve".to_owned(), reason: None, targeted: true };
    let started =
        RunFact::Started { run: run("r1"), trigger, not_after: start(), rollout, hosts: Vec::new() };
    state.apply(start(), &Fact::Run(started)).unwrap();
    state.last_whole_run = state.run.take().map(Into::into);
    let written = serde_json::to_value(&state).unwrap();
    check_words("State", &written);
    let State {
        settings: _,
        config: _,
        config_revision: _,
        semaphores: _,
        strongbox: _,
        enrolment: _,
        desired: _,
        units: _,
        slots: _,
        run: _,
        last_run: _,
        last_whole_run: _,
        watermark: _,
        missed: _,
        pause: _,
        retractions: _,
        fence: _,
        control: _,
        last_upgrades: _,
        turns: _,
        ignored_replies: _,
        reboot_queue: _,
        nodes: _,
        restored: _,
    } = state;
    let fields = written.as_object().unwrap();
    assert_eq!(fields.len(), 24, "{:?}", fields.keys());
}
