//! Sixty hosts of which every third goes wrong: whatever the rollout, the run ends by itself, with every host accounted for.

use chrono::TimeDelta;
use os_upgrade_kernel::{
    Config, ConfigOperation, ControlMessage, Effect, Expected, InReplyTo, Input, Order, PauseOperation,
    Reachability, Request, RunOperation, RunResult, SeenHost, Settings, Targets, sends,
};
use os_upgrade_protocol::{Action, Outcome, Reply};
use serde_json::{Value, json};

use crate::common::{self, Site, group, host, run, seen, settings};

/// What goes wrong on every third host, each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    PrepareFails,
    PrepareSilent,
    UpgradeFails,
    UpgradeSilent,
    RebootsForEver,
}

const WRONG: [Wrong; 5] = [
    Wrong::PrepareFails,
    Wrong::PrepareSilent,
    Wrong::UpgradeFails,
    Wrong::UpgradeSilent,
    Wrong::RebootsForEver,
];

fn site(rollout: &Value) -> Site {
    let names: Vec<String> = (1..=60).map(|number| format!("h{number:02}")).collect();
    let mut site = Site::ready(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let heard =
        |name: &String| (host(name), SeenHost { reachability: Reachability::Reachable, ..seen(None) });
    site.view.hosts = names.iter().map(heard).collect();
    let settings = Settings {
        groups: [(group("default"), 4)].into(),
        failed: [(group("default"), 1_000_000_000)].into(),
        ..settings()
    };
    site.input(Input::Settings(settings));
    let config = json!({"worker-applications": [{"name": common::APPLICATION}], "rollout": rollout});
    let config: Config = serde_json::from_value(config).unwrap();
    config.validate().unwrap();
    request(&mut site, ConfigOperation::Put { config: config.into(), expected: Expected::Anything });
    site
}

fn request(site: &mut Site, operation: impl Into<os_upgrade_kernel::Operation>) {
    let request = Request { actor: "anna".to_owned(), validate: false, operation: operation.into() };
    site.input(Input::Request(request)).answer.unwrap().unwrap();
}

/// What the host answers to its command, if anything.
fn answer(wrong: Wrong, order: &Order) -> Option<Outcome> {
    let number: u32 = order.id.host.as_str()[1..].parse().unwrap();
    let is_wrong = number.is_multiple_of(3);
    match (order.id.action, wrong) {
        (Action::Prepare, Wrong::PrepareFails) | (Action::Upgrade, Wrong::UpgradeFails) if is_wrong => {
            Some(Outcome::error("it broke"))
        }
        (Action::Prepare, Wrong::PrepareSilent)
        | (Action::Upgrade, Wrong::UpgradeSilent)
        | (Action::Reboot, Wrong::RebootsForEver)
            if is_wrong =>
        {
            None
        }
        (Action::Upgrade, Wrong::RebootsForEver) => Some(Outcome::RebootRequired),
        (Action::Prepare | Action::Upgrade | Action::Reboot, _) => Some(Outcome::Done),
    }
}

/// Plays the active run to its end, while `meanwhile` happens after each command.
fn play(site: &mut Site, wrong: Wrong, mut meanwhile: impl FnMut(&mut Site)) {
    for _ in 0..10_000 {
        if site.state.run.is_none() {
            return;
        }
        let orders = sends(&site.state)
            .filter_map(|effect| if let Effect::Send(order) = effect { Some(order) } else { None });
        let orders: Vec<Order> = orders.collect();
        for order in &orders {
            site.command(order.id.clone());
            let command = site.last_sequence;
            meanwhile(site);
            if let Some(result) = answer(wrong, order) {
                let reply = Ok(Reply { action: order.id.action, result });
                let in_reply_to = InReplyTo { sequence: Some(command), run: None };
                site.control(ControlMessage::Reply { host: order.id.host.clone(), reply, in_reply_to });
            }
        }
        if orders.is_empty() {
            site.now += TimeDelta::minutes(1);
            site.input(Input::Tick);
        }
    }
    panic!("the run does not end: {:#?}", site.state.run);
}

fn check_accounts(site: &Site, what: &str) -> RunResult {
    let ended = site.state.last_run.as_ref().unwrap();
    assert!(ended.hosts().values().all(|host| host.status.is_final()), "{what}");
    assert_eq!(ended.counts().values().sum::<usize>(), 60, "{what}: {:?}", ended.counts());
    ended.ended.unwrap().result
}

fn trigger(site: &mut Site, id: &str) {
    let targets = Targets::default();
    request(site, RunOperation::Trigger { run: run(id), timeout: None, targets, reason: None });
}

#[test]
fn runs_end_with_every_host_accounted_for() {
    let largest = json!({
        "max-concurrent": 1_000_000_000, "max-failures": 1_000_000_000, "max-preparing": 1_000_000_000, "prepare-timeout": "366d",
        "upgrade-timeout": "366d", "boot-timeout": "366d",
        "retries": {"prepare": 1_000_000_000, "backoff": "366d", "max-backoff": "366d"},
    });
    for (rollout, what) in [
        (json!({}), "the default"),
        (
            json!({
                "max-concurrent": 4, "max-failures": "40%", "max-preparing": 20, "prepare-timeout": "30m", "upgrade-timeout": "1h",
                "boot-timeout": "30m", "expected-duration": "5m", "retries": {"prepare": 2, "backoff": "5m", "max-backoff": "1h"},
            }),
            "a careful night",
        ),
        (largest, "the largest numbers"),
    ] {
        for wrong in WRONG {
            let mut site = site(&rollout);
            for id in ["r1", "r2"] {
                trigger(&mut site, id);
                play(&mut site, wrong, |_| {});
                check_accounts(&site, &format!("{what}, {wrong:?}, {id}"));
            }
        }
    }
}

/// Hosts whose worker answers errors cost nobody else the night.
#[test]
fn errors_of_twenty_hosts_cost_twenty_hosts() {
    let rollout =
        json!({"max-concurrent": 4, "max-failures": "40%", "max-preparing": 20, "prepare-timeout": "30m"});
    for wrong in [Wrong::PrepareFails, Wrong::PrepareSilent, Wrong::UpgradeFails] {
        let mut site = site(&rollout);
        trigger(&mut site, "r1");
        play(&mut site, wrong, |_| {});
        assert_eq!(check_accounts(&site, "r1"), RunResult::Completed, "{wrong:?}");
        let upgraded = site.state.last_run.as_ref().unwrap().count(os_upgrade_kernel::HostStatus::Upgraded);
        assert_eq!(upgraded, 40, "{wrong:?}");
    }
}

#[test]
fn a_hundred_pauses_lose_nothing() {
    let mut site = site(&json!({"max-concurrent": 4, "max-failures": "40%"}));
    trigger(&mut site, "r1");
    let mut pauses = 0;
    play(&mut site, Wrong::UpgradeFails, |site| {
        let reason = "the fair is on".to_owned();
        request(site, PauseOperation::Pause { reason, until: None });
        assert!(!site.effects().iter().any(|effect| matches!(effect, Effect::Job(_))));
        request(site, PauseOperation::Resume { reason: None });
        pauses += 1;
    });
    assert!(pauses >= 100, "{pauses}");
    assert_eq!(check_accounts(&site, "r1"), RunResult::Completed);
}
