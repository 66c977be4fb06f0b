//! Facts as JSON.

use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{
    ApiServerOrder, Backoff, Difference, Enlisted, KubernetesSettings, MissedReason, MissedRun, NodeStep,
    OnFailure, Outstanding, RebootSettings, Reclaim, SecretName, Settings, Trigger,
};

use super::*;

/// The default rollout: the only place in these tests, including the stories, with all its fields.
macro_rules! rollout {
    () => {
        r#"{"max-concurrent":1,"max-failures":0,"unreachable":"skip","boot-timeout":"30m"}"#
    };
}

fn fact_variant(fact: &Fact) -> usize {
    match fact {
        Fact::SettingsAdopted { .. } => 0,
        Fact::ConfigReplaced { .. } => 1,
        Fact::Fenced { .. } => 2,
        Fact::FencePassed { .. } => 3,
        Fact::RunStarted { .. } => 4,
        Fact::UpgradesBegan { .. } => 5,
        Fact::RunStopping { .. } => 6,
        Fact::RunEnded { .. } => 7,
        Fact::Host { .. } => 8,
        Fact::SlotRequested { .. } => 9,
        Fact::SlotReleaseDue { .. } => 10,
        Fact::SlotReleased { .. } => 11,
        Fact::LateCommandSeen { .. } => 12,
        Fact::CommandRetracted { .. } => 13,
        Fact::Ignored { .. } => 14,
        Fact::LockGranted { .. } => 15,
        Fact::LockReleased { .. } => 16,
        Fact::Restored { .. } => 17,
        Fact::LockAwaited { .. } => 18,
        Fact::HoldPlaced { .. } => 19,
        Fact::HolderReleased { .. } => 20,
        Fact::StrongboxKeySet { .. } => 21,
        Fact::SecretStored { .. } => 22,
        Fact::SecretRemoved { .. } => 23,
        Fact::HostsApproved { .. } => 24,
        Fact::HostWithdrawn { .. } => 25,
        Fact::HostRemoved { .. } => 30,
        Fact::HostPurged { .. } => 31,
        Fact::SlotReleaseRefused { .. } => 26,
        Fact::SlotInDoubt { .. } => 27,
        Fact::SlotUnlocked { .. } => 28,
        Fact::RunMissed(_) => 29,
        Fact::RebootsQueued { .. } => 32,
        Fact::Reboot { .. } => 33,
        Fact::RebootQueueSwitched { .. } => 34,
        Fact::RebootBackoffReset { .. } => 35,
        Fact::Node { .. } => 36,
        Fact::LockWaitEnded { .. } => 37,
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn facts() {
    let settings = Settings {
        provider: LockProvider::External,
        default_group: group("default"),
        on_failure: OnFailure::Release,
        groups: [(group("default"), 1), (group("edge"), 2)].into(),
        ..Settings::default()
    };
    let reclaiming = Settings {
        site: "hall-3".to_owned(),
        timezone: Tz::Europe__Stockholm,
        reclaim: Reclaim::Inventory,
        stuck_after: Duration::from_secs(60),
        auto_approve: true,
        ..Settings::default()
    };
    let rebooting = Settings {
        reboot: RebootSettings {
            max_concurrent: 2,
            unreachable_max: 3,
            in_windows: true,
            queue_required: true,
            ..RebootSettings::default()
        },
        ..Settings::default()
    };
    let draining = Settings {
        reboot: RebootSettings {
            api_servers: ApiServerOrder::Last,
            backoff: Backoff {
                first: Duration::from_secs(60),
                max: Duration::from_secs(120),
                jitter: Duration::from_secs(0),
            },
            ..RebootSettings::default()
        },
        kubernetes: Some(KubernetesSettings {
            drain_timeout: Duration::from_secs(600),
            uncordon_failed: true,
            hosts: Some([host("h1")].into()),
        }),
        ..Settings::default()
    };
    let enlisted = |name: &str, skipped| Enlisted {
        host: host(name),
        application: application("debian"),
        group: group("default"),
        skipped,
        unheard: false,
    };
    let reply = Reply { action: Action::Upgrade, result: Outcome::error("no space left") };
    let (r, h) = (run("r1"), host("h1"));
    let difference = vec![
        Difference { path: "rollout/max-failures".to_owned(), before: Some(json!(1)), after: Some(json!(2)) },
        Difference { path: "deny-windows".to_owned(), before: None, after: Some(json!([])) },
    ];
    let table = [
        (
            Fact::SettingsAdopted { settings },
            r#"{"type":"settings-adopted","settings":{"provider":"external","default-group":"default","on-failure":"release","groups":{"default":1,"edge":2}}}"#,
        ),
        (
            Fact::SettingsAdopted { settings: reclaiming },
            r#"{"type":"settings-adopted","settings":{"site":"hall-3","timezone":"Europe/Stockholm","provider":"embedded","default-group":"default","on-failure":"hold","groups":{"default":1},"reclaim":"inventory","stuck-after":"1m","auto-approve":true}}"#,
        ),
        (
            Fact::ConfigReplaced {
                config: Some(config()),
                actor: "admin".to_owned(),
                difference: Vec::new(),
            },
            r#"{"type":"config-replaced","config":{"worker-applications":[{"name":"debian"}]},"actor":"admin"}"#,
        ),
        (
            Fact::ConfigReplaced { config: None, actor: "admin".to_owned(), difference },
            concat!(
                r#"{"type":"config-replaced","config":null,"actor":"admin","difference":["#,
                r#"{"path":"rollout/max-failures","before":1,"after":2},{"path":"deny-windows","after":[]}]}"#,
            ),
        ),
        (
            Fact::Fenced { sequence: 7, leader: "one".to_owned() },
            r#"{"type":"fenced","sequence":7,"leader":"one"}"#,
        ),
        (Fact::FencePassed { sequence: 7 }, r#"{"type":"fence-passed","sequence":7}"#),
        (
            Fact::RunStarted {
                run: r.clone(),
                trigger: Trigger::Operator { actor: "admin".to_owned(), reason: None },
                not_after: start(),
                rollout: Rollout::default(),
                hosts: vec![
                    enlisted("h1", None),
                    enlisted("häst", Some(Reason::Unreachable)),
                    Enlisted { unheard: true, ..enlisted("h2", None) },
                ],
            },
            concat!(
                r#"{"type":"run-started","run":"r1","trigger":{"kind":"operator","actor":"admin"},"#,
                r#""not-after":"2026-11-21T01:00:00Z","#,
                r#""rollout":"#,
                rollout!(),
                r#","hosts":["#,
                r#"{"host":"h1","application":"debian","group":"default"},"#,
                r#"{"host":"häst","application":"debian","group":"default","skipped":{"kind":"unreachable"}},"#,
                r#"{"host":"h2","application":"debian","group":"default","unheard":true}]}"#,
            ),
        ),
        (
            Fact::RunStarted {
                run: r.clone(),
                trigger: Trigger::Window { start: start(), end: start() },
                not_after: start(),
                rollout: Rollout::default(),
                hosts: Vec::new(),
            },
            concat!(
                r#"{"type":"run-started","run":"r1","trigger":{"kind":"window","start":"2026-11-21T01:00:00Z","#,
                r#""end":"2026-11-21T01:00:00Z"},"not-after":"2026-11-21T01:00:00Z","#,
                r#""rollout":"#,
                rollout!(),
                r#","hosts":[]}"#,
            ),
        ),
        (Fact::UpgradesBegan { run: r.clone() }, r#"{"type":"upgrades-began","run":"r1"}"#),
        (
            Fact::RunStopping { run: r.clone(), cause: cancelled(None) },
            r#"{"type":"run-stopping","run":"r1","cause":{"kind":"cancelled","actor":"eve"}}"#,
        ),
        (
            Fact::RunEnded { run: r.clone(), result: RunResult::TimedOut },
            r#"{"type":"run-ended","run":"r1","result":"timed-out"}"#,
        ),
        (
            Fact::Host { run: r.clone(), host: h.clone(), event: HostEvent::Prepared },
            r#"{"type":"host","run":"r1","host":"h1","event":{"type":"prepared"}}"#,
        ),
        (
            Fact::SlotRequested { host: h.clone(), group: group("edge"), owner: r.into() },
            r#"{"type":"slot-requested","host":"h1","group":"edge","run":"r1"}"#,
        ),
        (
            Fact::SlotReleaseDue { host: h.clone(), why: ReleaseCause::NotNeeded },
            r#"{"type":"slot-release-due","host":"h1","why":"not-needed"}"#,
        ),
        (
            Fact::SlotReleaseRefused {
                host: h.clone(),
                refusal: ReleaseRefusal::Denied { lock_kind: "server".to_owned(), value: "no".to_owned() },
            },
            r#"{"type":"slot-release-refused","host":"h1","refusal":{"kind":"denied","lock-kind":"server","value":"no"}}"#,
        ),
        (Fact::SlotInDoubt { host: h.clone() }, r#"{"type":"slot-in-doubt","host":"h1"}"#),
        (Fact::SlotUnlocked { host: h.clone() }, r#"{"type":"slot-unlocked","host":"h1"}"#),
        (
            Fact::SlotReleased { host: h.clone(), why: ReleaseCause::LateDone },
            r#"{"type":"slot-released","host":"h1","why":"late-done"}"#,
        ),
        (
            Fact::LateCommandSeen { host: h.clone(), action: Action::Reboot, sequence: 9 },
            r#"{"type":"late-command-seen","host":"h1","action":"reboot","sequence":9}"#,
        ),
        (
            Fact::CommandRetracted { host: h.clone(), sequence: 9, deleted: true },
            r#"{"type":"command-retracted","host":"h1","sequence":9,"deleted":true}"#,
        ),
        (
            Fact::Restored {
                source: RestoreSource::Backup,
                actor: "cli".to_owned(),
                control_kept: false,
                outstanding: vec![Outstanding {
                    host: h.clone(),
                    group: group("edge"),
                    owner: run("r1").into(),
                    action: Action::Upgrade,
                    sequence: 9,
                }],
            },
            concat!(
                r#"{"type":"restored","source":"backup","actor":"cli","control-kept":false,"outstanding":["#,
                r#"{"host":"h1","group":"edge","run":"r1","action":"upgrade","sequence":9}]}"#,
            ),
        ),
        (
            Fact::Ignored {
                sequence: 9,
                host: Some(h),
                reply: Some(reply),
                why: IgnoreCause::AlreadyAnswered,
            },
            concat!(
                r#"{"type":"ignored","sequence":9,"host":"h1","#,
                r#""reply":{"action":"upgrade","result":"no space left"},"why":{"kind":"already-answered"}}"#,
            ),
        ),
        (
            Fact::Ignored { sequence: 9, host: None, reply: None, why: IgnoreCause::ForeignCommand },
            r#"{"type":"ignored","sequence":9,"host":null,"reply":null,"why":{"kind":"foreign-command"}}"#,
        ),
        (
            Fact::LockGranted { group: group("edge"), id: client("Node 7"), actor: "token rack".to_owned() },
            r#"{"type":"lock-granted","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::LockReleased { group: group("edge"), id: client("Node 7"), actor: "token rack".to_owned() },
            r#"{"type":"lock-released","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::LockAwaited { group: group("edge"), id: client("Node 7"), actor: "token rack".to_owned() },
            r#"{"type":"lock-awaited","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::LockWaitEnded {
                group: group("edge"),
                id: client("Node 7"),
                actor: "token rack".to_owned(),
            },
            r#"{"type":"lock-wait-ended","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::HoldPlaced {
                group: group("edge"),
                id: client("Node 7"),
                actor: "eve".to_owned(),
                reason: "a new disk".to_owned(),
            },
            r#"{"type":"hold-placed","group":"edge","id":"Node 7","actor":"eve","reason":"a new disk"}"#,
        ),
        (
            Fact::HolderReleased {
                group: group("edge"),
                id: client("Node 7"),
                actor: "eve".to_owned(),
                reason: Some("it burnt".to_owned()),
            },
            r#"{"type":"holder-released","group":"edge","id":"Node 7","actor":"eve","reason":"it burnt"}"#,
        ),
        (
            Fact::StrongboxKeySet { check: "c2VhbA==".to_owned() },
            r#"{"type":"strongbox-made","check":"c2VhbA=="}"#,
        ),
        (
            Fact::SecretStored {
                name: SecretName::new("lock-server").unwrap(),
                sealed: "c2VjcmV0".to_owned(),
                actor: "eve".to_owned(),
            },
            r#"{"type":"secret-kept","name":"lock-server","sealed":"c2VjcmV0","actor":"eve"}"#,
        ),
        (
            Fact::SecretRemoved { name: SecretName::new("lock-server").unwrap(), actor: "eve".to_owned() },
            r#"{"type":"secret-removed","name":"lock-server","actor":"eve"}"#,
        ),
        (
            Fact::HostsApproved { hosts: vec![host("h1"), host("h2")], actor: "eve".to_owned() },
            r#"{"type":"hosts-approved","hosts":["h1","h2"],"actor":"eve"}"#,
        ),
        (
            Fact::HostWithdrawn {
                host: host("h1"),
                actor: "eve".to_owned(),
                reason: "stolen".to_owned(),
                forgotten: false,
            },
            r#"{"type":"host-withdrawn","host":"h1","actor":"eve","reason":"stolen"}"#,
        ),
        (
            Fact::HostWithdrawn {
                host: host("h1"),
                actor: "eve".to_owned(),
                reason: "scrapped".to_owned(),
                forgotten: true,
            },
            r#"{"type":"host-withdrawn","host":"h1","actor":"eve","reason":"scrapped","forgotten":true}"#,
        ),
        (
            Fact::HostRemoved {
                host: host("h1"),
                actor: "eve".to_owned(),
                reason: "scrapped".to_owned(),
                announced: 7,
            },
            r#"{"type":"host-removed","host":"h1","actor":"eve","reason":"scrapped","announced":7}"#,
        ),
        (Fact::HostPurged { host: host("h1") }, r#"{"type":"host-purged","host":"h1"}"#),
        (
            Fact::RunMissed(MissedRun {
                start: start(),
                latest: start(),
                end: start(),
                reason: MissedReason::NoLeader,
                unrecorded: 3,
            }),
            concat!(
                r#"{"type":"run-missed","start":"2026-11-21T01:00:00Z","latest":"2026-11-21T01:00:00Z","#,
                r#""end":"2026-11-21T01:00:00Z","reason":{"kind":"no-leader"},"unrecorded":3}"#,
            ),
        ),
        (
            Fact::RebootsQueued {
                hosts: vec![host("h1"), host("h2")],
                actor: "eve".to_owned(),
                reason: None,
                window: None,
            },
            r#"{"type":"reboots-queued","hosts":["h1","h2"],"actor":"eve"}"#,
        ),
        (
            Fact::RebootsQueued {
                hosts: vec![host("h1")],
                actor: "eve".to_owned(),
                reason: Some("a new kernel".to_owned()),
                window: Some(start()),
            },
            concat!(
                r#"{"type":"reboots-queued","hosts":["h1"],"actor":"eve","reason":"a new kernel","#,
                r#""window":"2026-11-21T01:00:00Z"}"#,
            ),
        ),
        (
            Fact::Reboot { index: 7, host: host("h1"), event: EntryEvent::Rebooted },
            r#"{"type":"reboot","index":7,"host":"h1","event":{"kind":"rebooted"}}"#,
        ),
        (
            Fact::RebootQueueSwitched { enabled: false, actor: "eve".to_owned(), reason: None },
            r#"{"type":"reboot-queue-switched","enabled":false,"actor":"eve"}"#,
        ),
        (
            Fact::RebootQueueSwitched {
                enabled: true,
                actor: "eve".to_owned(),
                reason: Some("the hall is cool".to_owned()),
            },
            r#"{"type":"reboot-queue-switched","enabled":true,"actor":"eve","reason":"the hall is cool"}"#,
        ),
        (
            Fact::RebootBackoffReset { actor: "eve".to_owned() },
            r#"{"type":"reboot-backoff-reset","actor":"eve"}"#,
        ),
        (
            Fact::Node { host: host("h1"), step: NodeStep::Uncordoned },
            r#"{"type":"node","host":"h1","step":{"kind":"uncordoned"}}"#,
        ),
        (
            Fact::SettingsAdopted { settings: draining },
            r#"{"type":"settings-adopted","settings":{"provider":"embedded","default-group":"default","on-failure":"hold","groups":{"default":1},"reboot":{"max-concurrent":1,"unreachable-max":0,"api-servers":"last","backoff":{"first":"1m","max":"2m","jitter":"0s"}},"kubernetes":{"drain-timeout":"10m","uncordon-failed":true,"hosts":["h1"]}}}"#,
        ),
        (
            Fact::SettingsAdopted { settings: rebooting },
            r#"{"type":"settings-adopted","settings":{"provider":"embedded","default-group":"default","on-failure":"hold","groups":{"default":1},"reboot":{"max-concurrent":2,"unreachable-max":3,"in-windows":true,"queue-required":true}}}"#,
        ),
    ];
    check(&table, fact_variant, Fact::names().count());
    for (fact, json) in &table {
        assert!(json.starts_with(&format!(r#"{{"type":"{}""#, fact.name())), "{json}");
    }
}
