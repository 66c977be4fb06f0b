//! What would follow from a configuration: tables of configurations and their warnings.

use chrono::TimeDelta;
use os_upgrade_console::describe;
use os_upgrade_kernel::config::WARNINGS_MAX;
use os_upgrade_kernel::fact::{ConfigFact, EnrolmentFact, RunFact, SecretFact};
use os_upgrade_kernel::{
    Config, Fact, LockProvider, OnFailure, Reachability, SecretName, SeenHost, Settings, StartBlocker, State,
    View, Warning, lasting_warnings, next_start, warnings,
};
use os_upgrade_provider_rules::Origin;
use serde_json::{Value, json};

use crate::common::{self, group, host, run, seen, settings, start};

/// Two hosts of the group `default`, which has one slot. It is a Saturday, 01:00.
fn site(settings: Settings) -> (State, View) {
    let mut state = State::default();
    state.apply(start(), &Fact::Config(ConfigFact::SettingsAdopted { settings })).unwrap();
    let silent = SeenHost { reachability: Reachability::Unreachable, ..seen(None) };
    let hosts = [(host("h1"), seen(None)), (host("h2"), seen(None)), (host("h3"), silent)];
    let view = View {
        hosts: hosts.into_iter().collect(),
        clock: os_upgrade_kernel::Clock::TRUSTED,
        ..View::default()
    };
    (state, view)
}

/// A host that fails keeps no other one waiting.
fn lenient() -> Settings {
    Settings { failed: [(group("default"), 1)].into(), ..settings() }
}

fn parse(more: &Value) -> Config {
    let mut config = json!({"worker-applications": [{"name": common::APPLICATION}]});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(config).unwrap()
}

fn sentences(state: &State, view: &View, config: &Config) -> Vec<String> {
    let now = start() + TimeDelta::minutes(30);
    warnings(state, view, Some(config), now).iter().map(|warning| describe(warning).to_string()).collect()
}

const OPEN: &str = "0 0 1 * * *";
const LATER: &str = "0 0 20 * * *";

#[test]
fn next_start_is_that_of_the_proposed_configuration() {
    let (mut state, view) = site(lenient());
    let now = start() + TimeDelta::minutes(30);
    let windows = |cron: &str| parse(&json!({"maintenance-windows": [{"cron": cron, "duration": "2h"}]}));
    let fact = Fact::Config(ConfigFact::Replaced {
        config: Some(windows(LATER)),
        actor: "api".to_owned(),
        difference: Vec::new(),
    });
    state.apply(start(), &fact).unwrap();
    for (what, config, expected) in [
        ("the one in force", Some(windows(LATER)), Some(start() + TimeDelta::hours(19))),
        ("an open window", Some(windows(OPEN)), Some(now)),
        ("no window", Some(parse(&json!({}))), None),
        ("none", None, None),
    ] {
        assert_eq!(next_start(&state, &view, config.as_ref(), now), expected, "{what}");
    }
}

#[test]
fn each_warning_has_its_configuration() {
    let window = |cron: &str, more: Value| {
        let mut window = json!({"cron": cron, "duration": "2h"});
        window.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        window
    };
    let plain = |cron: &str| window(cron, json!({}));
    let past = window(OPEN, json!({"not-after": "2026-11-20"}));
    let at_once = "a window is open now: this starts a run of 2 hosts at once";
    let unused =
        "maintenance-windows/1: no run starts in it before its not-after, or it is too short for one";
    let slots = "rollout/max-concurrent: 2 is more than the slots of the hosts' groups (default: 1), so that at most 1 is \
                 upgraded at once";
    let denied = "maintenance-windows/0: no run starts in it, because deny-windows leave too little of it";
    let none = "no run starts automatically any more: no window is left in which one could";
    let no_failures =
        "rollout/max-failures: 33% of 3 hosts is less than one, so that the first failure stops a run";
    let table: [(&str, Value, &[&str]); 12] = [
        ("the usual", json!({"maintenance-windows": [plain(LATER)]}), &[]),
        ("no window", json!({}), &[]),
        ("an open window", json!({"maintenance-windows": [plain(OPEN)]}), &[at_once]),
        (
            "a mistyped application",
            json!({"worker-applications": [{"name": common::APPLICATION}, {"name": "debain"}]}),
            &["no host announces debain"],
        ),
        ("a window that is past", json!({"maintenance-windows": [plain(LATER), past]}), &[unused]),
        (
            "a window that is too short",
            json!({
                "maintenance-windows": [{"cron": LATER, "duration": "4h"}, plain("0 0 3 * * *")],
                "minimum-remaining": "3h",
            }),
            &[unused],
        ),
        (
            "a denied window",
            json!({"maintenance-windows": [plain(LATER)], "deny-windows": [plain(LATER)]}),
            &[none, denied],
        ),
        ("less than a host", json!({"rollout": {"max-failures": "33%"}}), &[no_failures]),
        ("none", json!({"rollout": {"max-failures": "0%"}}), &[]),
        ("just a host", json!({"rollout": {"max-failures": "34%"}}), &[]),
        ("more than slots", json!({"rollout": {"max-concurrent": 2}}), &[slots]),
        (
            "all at once",
            json!({"worker-applications": [{"name": "other"}], "rollout": {"max-concurrent": 2}}),
            &["no host announces other"],
        ),
    ];
    let (state, view) = site(lenient());
    for (name, config, expected) in table {
        assert_eq!(sentences(&state, &view, &parse(&config)), expected, "{name}");
    }
    let (external, view) =
        site(Settings { provider: LockProvider::External, on_failure: OnFailure::Release, ..settings() });
    let config = parse(&json!({"rollout": {"max-concurrent": 4}}));
    let expected = ["rollout/max-concurrent: 4 is more than the 3 hosts that take part"];
    assert_eq!(sentences(&external, &view, &config), expected);
}

/// A group needs a slot more than its hosts may fail, and one more than one at least, unless slots of failed hosts do not count.
#[test]
fn failures_that_would_hold_every_slot_are_told() {
    let holds = |needed, groups: &[&str]| {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        vec![Warning::FailuresHoldSlots { needed, groups }]
    };
    let default = |number: u32| [(group("default"), number)].into();
    let external = || Settings { provider: LockProvider::External, ..settings() };
    for (what, settings, max_failures, expected) in [
        ("one slot", settings(), 0, holds(2, &["default: 1"])),
        ("one slot, and one that does not count", lenient(), 0, Vec::new()),
        ("more failures", lenient(), 2, holds(3, &["default: 1"])),
        ("two slots", Settings { groups: default(2), ..settings() }, 1, Vec::new()),
        ("released", Settings { on_failure: OnFailure::Release, ..settings() }, 0, Vec::new()),
        ("a lock server", Settings { failed: default(9), ..external() }, 3, holds(4, &[])),
    ] {
        let (state, view) = site(settings);
        let config = parse(&json!({"rollout": {"max-failures": max_failures}}));
        let found = warnings(&state, &view, Some(&config), start());
        let found: Vec<_> =
            found.into_iter().filter(|it| matches!(it, Warning::FailuresHoldSlots { .. })).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn prepare_without_a_bound_is_told() {
    let told = Warning::PrepareUnbounded { max_preparing: 2 };
    for (rollout, expected) in [
        (json!({"max-preparing": 2}), true),
        (json!({"max-preparing": 2, "prepare-timeout": "30m"}), false),
        (json!({"prepare-timeout": "30m"}), false),
        // All are told to prepare at once, as the specification has it.
        (json!({}), false),
    ] {
        let (state, view) = site(lenient());
        let found = warnings(&state, &view, Some(&parse(&json!({"rollout": rollout}))), start());
        assert_eq!(found.contains(&told), expected, "{rollout}");
    }
}

/// Whether a run starts at once depends on the state, and on what the leader says of clock and secrets.
#[test]
fn a_run_starts_at_once_only_where_one_can() {
    let open = parse(&json!({"maintenance-windows": [{"cron": OPEN, "duration": "2h"}]}));
    let jitter =
        parse(&json!({"maintenance-windows": [{"cron": OPEN, "duration": "9h"}], "start-jitter": "8h"}));
    let (state, view) = site(lenient());
    let starts =
        |state: &State, view: &View, config: &Config| sentences(state, view, config).first().cloned();
    let at_once = Some("a window is open now: this starts a run of 2 hosts at once".to_owned());
    assert_eq!(starts(&state, &view, &open), at_once);
    let later = starts(&state, &view, &jitter).unwrap();
    assert!(
        later.starts_with("a window is open now: this starts a run of 2 hosts at 2026-11-21T0"),
        "{later}"
    );

    // The leader's word about the configuration in force says nothing about another one.
    let said = |by: StartBlocker| View { leader_startable: Some(Err(by.into())), ..view.clone() };
    assert_eq!(starts(&state, &said(StartBlocker::NoHosts { applications: "x".to_owned() }), &open), at_once);
    let doubt = os_upgrade_kernel::ClockDoubt::ClockSkew { seconds: 60 };
    assert_eq!(starts(&state, &said(doubt.into()), &open), None);
    let (unapproved, _) = site(Settings::default());
    assert_eq!(starts(&unapproved, &view, &open), None);

    // An occurrence that has had its run starts no other.
    let mut ran = state.clone();
    ran.apply(
        start(),
        &Fact::Config(ConfigFact::Replaced {
            config: Some(open.clone()),
            actor: "eve".to_owned(),
            difference: vec![],
        }),
    )
    .unwrap();
    let started = Fact::Run(RunFact::Started {
        run: run("r1"),
        trigger: os_upgrade_kernel::Trigger::Window { start: start(), end: start() + TimeDelta::hours(2) },
        not_after: start() + TimeDelta::hours(2),
        rollout: open.rollout.clone(),
        hosts: Vec::new(),
    });
    ran.apply(start(), &started).unwrap();
    assert_eq!(sentences(&ran, &view, &open), ["nothing changes: this is the configuration in force"]);

    // While an operator's run is active, the window's run starts after it.
    let mut active = state.clone();
    let Fact::Run(RunFact::Started { not_after, rollout, hosts, .. }) = started else { unreachable!() };
    let trigger =
        os_upgrade_kernel::Trigger::Operator { actor: "eve".to_owned(), reason: None, targeted: false };
    active
        .apply(start(), &Fact::Run(RunFact::Started { run: run("r2"), trigger, not_after, rollout, hosts }))
        .unwrap();
    let after = "a window is open now: this starts a run of 2 hosts as soon as run r2 has ended";
    assert_eq!(starts(&active, &view, &open).as_deref(), Some(after));
}

#[test]
fn providers_that_cannot_be_asked_are_told() {
    let (mut state, view) = site(lenient());
    for (name, origin) in
        [("files", Some("https://files.example")), ("other", Some("https://other.example")), ("none", None)]
    {
        let origin = origin.map(|origin| Origin::new(origin).unwrap());
        let (name, sealed) = (SecretName::new(name).unwrap(), "x".to_owned());
        let stored = SecretFact::Stored { name, sealed, origin, actor: "eve".to_owned() };
        state.apply(start(), &Fact::Secret(stored)).unwrap();
    }
    let approved = EnrolmentFact::HostsApproved { hosts: vec![host("h9")], actor: "eve".to_owned() };
    state.apply(start(), &Fact::Enrolment(approved)).unwrap();
    let put = |name: &str| format!("`os-upgrade strongbox put --origin='https://files.example' {name}`");
    let not_for = |key: &str, name: &str| {
        format!(
            "config-providers: app/{key}: the secret {name} may not be sent to https://files.example: {} stores it for that",
            put(name)
        )
    };
    let missing =
        format!("config-providers: app/credentials: no secret files2 is stored: {} stores it", put("files2"));
    let unknown = "config-providers: app/selector/names: ";
    for (what, more, expected) in [
        ("all is there", json!({"credentials": "files", "client-certificate": "files"}), vec![]),
        ("no secret", json!({"credentials": "files2"}), vec![missing]),
        ("another origin", json!({"credentials": "other"}), vec![not_for("credentials", "other")]),
        ("no origin", json!({"client-certificate": "none"}), vec![not_for("client-certificate", "none")]),
        ("known hosts", json!({"selector": {"names": ["h1", "h9"]}}), vec![]),
        (
            "one host",
            json!({"selector": {"names": ["h1", "h7"]}}),
            vec![format!("{unknown}1 host the site does not know: h7")],
        ),
        (
            "many hosts",
            json!({"selector": {"names": ["a", "b", "c", "d"]}}),
            vec![format!("{unknown}4 hosts the site does not know: a, b, c, ...")],
        ),
    ] {
        let mut app = json!({"name": "app", "kind": "http", "url": "https://files.example/{host}"});
        app.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let config = parse(&json!({"config-providers": [app]}));
        assert_eq!(sentences(&state, &view, &config), expected, "{what}");
    }
}

/// There may be two of each secret of 32 providers, and only the first warnings are shown.
#[test]
fn warnings_about_providers_come_last() {
    let (state, view) = site(lenient());
    let app = |number: usize| json!({"name": format!("app-{number}"), "kind": "http", "url": "https://a/", "credentials": "none"});
    let providers: Vec<Value> = (0..WARNINGS_MAX).map(app).collect();
    let config = parse(&json!({
        "config-providers": providers, "rollout": {"max-concurrent": 2, "max-preparing": 2},
    }));
    let now = start() + TimeDelta::minutes(30);
    let found = warnings(&state, &view, Some(&config), now);
    let kinds: Vec<_> = found.iter().map(Warning::kind).collect();
    let missing = kinds.iter().filter(|kind| **kind == "secret-missing").count();
    assert_eq!(
        (kinds[0], kinds[1], missing, kinds[WARNINGS_MAX - 1]),
        ("fewer-slots", "prepare-unbounded", 13, "more")
    );
}

#[test]
fn lasting_warnings_are_of_the_configuration_in_force() {
    let (mut state, view) = site(lenient());
    assert_eq!(lasting_warnings(&state, &view), [], "there is no configuration");
    let mut lasting = |config: Value| {
        let config = Some(parse(&config));
        let fact = Fact::Config(ConfigFact::Replaced { config, actor: "eve".to_owned(), difference: vec![] });
        state.apply(start(), &fact).unwrap();
        lasting_warnings(&state, &view).iter().map(Warning::kind).collect::<Vec<_>>()
    };
    assert_eq!(lasting(json!({})), [""; 0]);
    assert_eq!(lasting(json!({"rollout": {"max-concurrent": 2}})), ["fewer-slots"]);
    assert_eq!(lasting(json!({"worker-applications": [{"name": "typo"}]})), ["not-announced"]);
    assert_eq!(lasting(json!({"worker-applications": []})), ["no-applications"]);
}

#[test]
fn what_is_taken_away_is_named() {
    let (mut state, view) = site(lenient());
    let none = warnings(&state, &view, None, start());
    assert_eq!(none, [Warning::NothingChanges]);
    let config = parse(&json!({"maintenance-windows": [{"cron": LATER, "duration": "2h"}]}));
    let put = Fact::Config(ConfigFact::Replaced {
        config: Some(config),
        actor: "eve".to_owned(),
        difference: vec![],
    });
    state.apply(start(), &put).unwrap();
    assert_eq!(warnings(&state, &view, None, start()), [Warning::Deleted]);
    assert_eq!(warnings(&state, &view, Some(&common::config()), start()), [Warning::NoWindows]);
}

#[test]
fn many_warnings_are_counted() {
    let (state, view) = site(lenient());
    let names: Vec<Value> = (0..40).map(|number| json!({"name": format!("a{number}")})).collect();
    let found = warnings(&state, &view, Some(&parse(&json!({"worker-applications": names}))), start());
    assert_eq!(found.len(), WARNINGS_MAX);
    assert_eq!(found.last(), Some(&Warning::More { more: 40 - (WARNINGS_MAX - 1) }));
}
