//! Facts as JSON.

use os_upgrade_kernel::fact::{
    ConfigFact, ControlFact, DesiredFact, EnrolmentFact, LockFact, NodeFact, PauseFact, QueueFact,
    RestorationFact, RunFact, SecretFact, SlotFact, UnitFact,
};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::run::CountedAs;
use os_upgrade_kernel::{
    ApiServerOrder, Backoff, Difference, Enlisted, KubernetesSettings, MissedReason, MissedRun, NodeStep,
    OnFailure, Outstanding, RebootSettings, Reclaim, SecretName, Settings, Trigger,
};
use os_upgrade_protocol::{HostKey, ItemId, Revision};
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{Failure, Origin, ProviderName};

use super::*;

/// The default rollout: the only place in these tests, including the stories, with all its fields.
macro_rules! rollout {
    () => {
        r#"{"max-concurrent":1,"max-failures":0,"unreachable":"skip","boot-timeout":"30m"}"#
    };
}

fn fact_variant(fact: &Fact) -> usize {
    match fact {
        Fact::Config(ConfigFact::SettingsAdopted { .. }) => 0,
        Fact::Config(ConfigFact::Replaced { .. }) => 1,
        Fact::Control(ControlFact::Fenced { .. }) => 2,
        Fact::Control(ControlFact::FencePassed { .. }) => 3,
        Fact::Run(RunFact::Started { .. }) => 4,
        Fact::Run(RunFact::UpgradesBegan { .. }) => 5,
        Fact::Run(RunFact::Stopping { .. }) => 6,
        Fact::Run(RunFact::Ended { .. }) => 7,
        Fact::Run(RunFact::Host { .. }) => 8,
        Fact::Slot(SlotFact::Requested { .. }) => 9,
        Fact::Slot(SlotFact::ReleaseDue { .. }) => 10,
        Fact::Slot(SlotFact::Released { .. }) => 11,
        Fact::Control(ControlFact::LateCommandSeen { .. }) => 12,
        Fact::Control(ControlFact::CommandRetracted { .. }) => 13,
        Fact::Control(ControlFact::Ignored { .. }) => 14,
        Fact::Lock(LockFact::Granted { .. }) => 15,
        Fact::Lock(LockFact::Released { .. }) => 16,
        Fact::Restoration(RestorationFact::Restored { .. }) => 17,
        Fact::Lock(LockFact::Awaited { .. }) => 18,
        Fact::Lock(LockFact::HoldPlaced { .. }) => 19,
        Fact::Lock(LockFact::HolderReleased { .. }) => 20,
        Fact::Secret(SecretFact::KeySet { .. }) => 21,
        Fact::Secret(SecretFact::Stored { .. }) => 22,
        Fact::Secret(SecretFact::Removed { .. }) => 23,
        Fact::Enrolment(EnrolmentFact::HostsApproved { .. }) => 24,
        Fact::Enrolment(EnrolmentFact::KeyPinned { .. }) => 43,
        Fact::Enrolment(EnrolmentFact::HostWithdrawn { .. }) => 25,
        Fact::Enrolment(EnrolmentFact::HostRemoved { .. }) => 30,
        Fact::Enrolment(EnrolmentFact::HostPurged { .. }) => 31,
        Fact::Slot(SlotFact::ReleaseRefused { .. }) => 26,
        Fact::Slot(SlotFact::InDoubt { .. }) => 27,
        Fact::Slot(SlotFact::Unlocked { .. }) => 28,
        Fact::Run(RunFact::Missed(_)) => 29,
        Fact::Queue(QueueFact::RebootsQueued { .. }) => 32,
        Fact::Queue(QueueFact::Reboot { .. }) => 33,
        Fact::Queue(QueueFact::Switched { .. }) => 34,
        Fact::Queue(QueueFact::BackoffReset { .. }) => 35,
        Fact::Node(NodeFact::Step { .. }) => 36,
        Fact::Lock(LockFact::WaitEnded { .. }) => 37,
        Fact::Slot(SlotFact::Refused { .. }) => 38,
        Fact::Pause(PauseFact::Paused { .. }) => 39,
        Fact::Pause(PauseFact::Resumed { .. }) => 40,
        Fact::Enrolment(EnrolmentFact::HostDeferred { .. }) => 41,
        Fact::Enrolment(EnrolmentFact::DeferralEnded { .. }) => 42,
        Fact::Desired(DesiredFact::ItemStored { .. }) => 44,
        Fact::Desired(DesiredFact::ItemRevoked { .. }) => 45,
        Fact::Desired(DesiredFact::ManifestStored { .. }) => 46,
        Fact::Desired(DesiredFact::PollRequested { .. }) => 47,
        Fact::Desired(DesiredFact::DeliveryResumed { .. }) => 48,
        Fact::Desired(DesiredFact::UnknownItemsFound { .. }) => 49,
        Fact::Desired(DesiredFact::ProviderFailed { .. }) => 50,
        Fact::Desired(DesiredFact::ProviderRecovered { .. }) => 51,
        Fact::Desired(DesiredFact::HookTokenDrawn { .. }) => 52,
        Fact::Desired(DesiredFact::HookTokensRevoked { .. }) => 53,
        Fact::Desired(DesiredFact::HookAnswered { .. }) => 54,
        Fact::Desired(DesiredFact::HookMetadataChanged { .. }) => 55,
        Fact::Desired(DesiredFact::CallbackReceived { .. }) => 56,
        Fact::Unit(UnitFact::Submitted { .. }) => 57,
        Fact::Unit(UnitFact::Wanted { .. }) => 58,
        Fact::Unit(UnitFact::Destroyed { .. }) => 59,
        Fact::Unit(UnitFact::MachineJoined { .. }) => 60,
        Fact::Unit(UnitFact::MachineLost { .. }) => 61,
        Fact::Unit(UnitFact::MachineFound { .. }) => 62,
        Fact::Unit(UnitFact::Placed { .. }) => 63,
        Fact::Unit(UnitFact::Taken { .. }) => 64,
        Fact::Unit(UnitFact::Stopped { .. }) => 65,
    }
}

fn provider() -> ProviderName {
    ProviderName::new("app").unwrap()
}

fn revision() -> Revision {
    Revision { epoch: 0, sequence: 7 }
}

/// What `app` gave for h1 is stored.
pub(super) fn item_stored(fingerprint: Option<&str>, hash: Option<&str>) -> DesiredFact {
    DesiredFact::ItemStored {
        host: host("h1"),
        provider: provider(),
        item: ItemId::new("Zm9v").unwrap(),
        bytes: 600,
        sealed: revision(),
        fingerprint: fingerprint.map(ToOwned::to_owned),
        hash: hash.map(ToOwned::to_owned),
    }
}

/// `app` has answered to `event`, of which it was told because of `cause`.
fn hook_answered(event: HookEvent, cause: u64, poll_interval: Option<u64>) -> DesiredFact {
    let (provider, host) = (provider(), host("h1"));
    DesiredFact::HookAnswered { provider, host, event, cause, metadata: u64::MAX, poll_interval }
}

/// `app` fails for every host.
pub(super) fn provider_failed() -> DesiredFact {
    let failure = Failure::Unavailable { status: 503 };
    DesiredFact::ProviderFailed { provider: provider(), host: host("h1"), failure }
}

#[test]
#[allow(clippy::too_many_lines, clippy::large_stack_arrays, reason = "one table")]
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
            Fact::Config(ConfigFact::SettingsAdopted { settings }),
            r#"{"type":"settings-adopted","settings":{"provider":"external","default-group":"default","on-failure":"release","groups":{"default":1,"edge":2}}}"#,
        ),
        (
            Fact::Config(ConfigFact::SettingsAdopted { settings: reclaiming }),
            r#"{"type":"settings-adopted","settings":{"site":"hall-3","timezone":"Europe/Stockholm","provider":"embedded","default-group":"default","on-failure":"hold","groups":{"default":1},"reclaim":"inventory","stuck-after":"1m","auto-approve":true}}"#,
        ),
        (
            Fact::Config(ConfigFact::Replaced {
                config: Some(config()),
                actor: "admin".to_owned(),
                difference: Vec::new(),
            }),
            r#"{"type":"config-replaced","config":{"worker-applications":[{"name":"debian"}]},"actor":"admin"}"#,
        ),
        (
            Fact::Config(ConfigFact::Replaced { config: None, actor: "admin".to_owned(), difference }),
            concat!(
                r#"{"type":"config-replaced","config":null,"actor":"admin","difference":["#,
                r#"{"path":"rollout/max-failures","before":1,"after":2},{"path":"deny-windows","after":[]}]}"#,
            ),
        ),
        (
            Fact::Control(ControlFact::Fenced { sequence: 7, leader: "one".to_owned() }),
            r#"{"type":"fenced","sequence":7,"leader":"one"}"#,
        ),
        (Fact::Control(ControlFact::FencePassed { sequence: 7 }), r#"{"type":"fence-passed","sequence":7}"#),
        (
            Fact::Run(RunFact::Started {
                run: r.clone(),
                trigger: Trigger::Operator { actor: "admin".to_owned(), reason: None, targeted: false },
                not_after: start(),
                rollout: Rollout::default(),
                hosts: vec![
                    enlisted("h1", None),
                    enlisted("häst", Some(Reason::Unreachable)),
                    Enlisted { unheard: true, ..enlisted("h2", None) },
                ],
            }),
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
            Fact::Run(RunFact::Started {
                run: r.clone(),
                trigger: Trigger::Window { start: start(), end: start() },
                not_after: start(),
                rollout: Rollout::default(),
                hosts: Vec::new(),
            }),
            concat!(
                r#"{"type":"run-started","run":"r1","trigger":{"kind":"window","start":"2026-11-21T01:00:00Z","#,
                r#""end":"2026-11-21T01:00:00Z"},"not-after":"2026-11-21T01:00:00Z","#,
                r#""rollout":"#,
                rollout!(),
                r#","hosts":[]}"#,
            ),
        ),
        (Fact::Run(RunFact::UpgradesBegan { run: r.clone() }), r#"{"type":"upgrades-began","run":"r1"}"#),
        (
            Fact::Run(RunFact::Stopping { run: r.clone(), cause: cancelled(None) }),
            r#"{"type":"run-stopping","run":"r1","cause":{"kind":"cancelled","actor":"eve"}}"#,
        ),
        (
            Fact::Run(RunFact::Ended {
                run: r.clone(),
                result: RunResult::TimedOut,
                counts: [
                    (CountedAs::Status(HostStatus::Upgraded), 57),
                    (CountedAs::Status(HostStatus::NotReached), 1),
                    (CountedAs::Deferred, 1),
                    (CountedAs::GivenUp, 1),
                ]
                .into(),
            }),
            r#"{"type":"run-ended","run":"r1","result":"timed-out","counts":{"deferred":1,"given-up":1,"upgraded":57,"not-reached":1}}"#,
        ),
        (
            Fact::Run(RunFact::Ended {
                run: r.clone(),
                result: RunResult::TimedOut,
                counts: std::collections::BTreeMap::new(),
            }),
            r#"{"type":"run-ended","run":"r1","result":"timed-out"}"#,
        ),
        (
            Fact::Run(RunFact::Host { run: r.clone(), host: h.clone(), event: HostEvent::Prepared }),
            r#"{"type":"host","run":"r1","host":"h1","event":{"type":"prepared"}}"#,
        ),
        (
            Fact::Slot(SlotFact::Requested { host: h.clone(), group: group("edge"), owner: r.into() }),
            r#"{"type":"slot-requested","host":"h1","group":"edge","run":"r1"}"#,
        ),
        (
            Fact::Slot(SlotFact::ReleaseDue { host: h.clone(), why: ReleaseCause::NotNeeded }),
            r#"{"type":"slot-release-due","host":"h1","why":"not-needed"}"#,
        ),
        (
            Fact::Slot(SlotFact::ReleaseRefused {
                host: h.clone(),
                refusal: LockRefusal::Denied { lock_kind: "server".to_owned(), value: "no".to_owned() },
            }),
            r#"{"type":"slot-release-refused","host":"h1","refusal":{"kind":"denied","lock-kind":"server","value":"no"}}"#,
        ),
        (
            Fact::Slot(SlotFact::Refused {
                host: h.clone(),
                refusal: LockRefusal::Unreachable { why: NoAnswer::TimedOut },
            }),
            r#"{"type":"slot-refused","host":"h1","refusal":{"kind":"unreachable","why":{"kind":"timed-out"}}}"#,
        ),
        (Fact::Slot(SlotFact::InDoubt { host: h.clone() }), r#"{"type":"slot-in-doubt","host":"h1"}"#),
        (Fact::Slot(SlotFact::Unlocked { host: h.clone() }), r#"{"type":"slot-unlocked","host":"h1"}"#),
        (
            Fact::Slot(SlotFact::Released { host: h.clone(), why: ReleaseCause::LateDone }),
            r#"{"type":"slot-released","host":"h1","why":"late-done"}"#,
        ),
        (
            Fact::Control(ControlFact::LateCommandSeen {
                host: h.clone(),
                action: Action::Reboot,
                sequence: 9,
            }),
            r#"{"type":"late-command-seen","host":"h1","action":"reboot","sequence":9}"#,
        ),
        (
            Fact::Control(ControlFact::CommandRetracted { host: h.clone(), sequence: 9, deleted: true }),
            r#"{"type":"command-retracted","host":"h1","sequence":9,"deleted":true}"#,
        ),
        (
            Fact::Restoration(RestorationFact::Restored {
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
            }),
            concat!(
                r#"{"type":"restored","source":"backup","actor":"cli","control-kept":false,"outstanding":["#,
                r#"{"host":"h1","group":"edge","run":"r1","action":"upgrade","sequence":9}]}"#,
            ),
        ),
        (
            Fact::Control(ControlFact::Ignored {
                sequence: 9,
                host: Some(h),
                reply: Some(reply),
                why: IgnoreCause::AlreadyAnswered,
            }),
            concat!(
                r#"{"type":"ignored","sequence":9,"host":"h1","#,
                r#""reply":{"action":"upgrade","result":"no space left"},"why":{"kind":"already-answered"}}"#,
            ),
        ),
        (
            Fact::Control(ControlFact::Ignored {
                sequence: 9,
                host: None,
                reply: None,
                why: IgnoreCause::ForeignCommand,
            }),
            r#"{"type":"ignored","sequence":9,"host":null,"reply":null,"why":{"kind":"foreign-command"}}"#,
        ),
        (
            Fact::Lock(LockFact::Granted {
                group: group("edge"),
                id: client("Node 7"),
                actor: "token rack".to_owned(),
            }),
            r#"{"type":"lock-granted","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::Lock(LockFact::Released {
                group: group("edge"),
                id: client("Node 7"),
                actor: "token rack".to_owned(),
            }),
            r#"{"type":"lock-released","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::Lock(LockFact::Awaited {
                group: group("edge"),
                id: client("Node 7"),
                actor: "token rack".to_owned(),
            }),
            r#"{"type":"lock-awaited","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::Lock(LockFact::WaitEnded {
                group: group("edge"),
                id: client("Node 7"),
                actor: "token rack".to_owned(),
            }),
            r#"{"type":"lock-wait-ended","group":"edge","id":"Node 7","actor":"token rack"}"#,
        ),
        (
            Fact::Lock(LockFact::HoldPlaced {
                group: group("edge"),
                id: client("Node 7"),
                actor: "eve".to_owned(),
                reason: "a new disk".to_owned(),
            }),
            r#"{"type":"hold-placed","group":"edge","id":"Node 7","actor":"eve","reason":"a new disk"}"#,
        ),
        (
            Fact::Lock(LockFact::HolderReleased {
                group: group("edge"),
                id: client("Node 7"),
                actor: "eve".to_owned(),
                reason: Some("it burnt".to_owned()),
            }),
            r#"{"type":"holder-released","group":"edge","id":"Node 7","actor":"eve","reason":"it burnt"}"#,
        ),
        (
            Fact::Secret(SecretFact::KeySet { check: "c2VhbA==".to_owned() }),
            r#"{"type":"strongbox-made","check":"c2VhbA=="}"#,
        ),
        (
            Fact::Secret(SecretFact::Stored {
                name: SecretName::new("lock-server").unwrap(),
                sealed: "c2VjcmV0".to_owned(),
                origin: None,
                actor: "eve".to_owned(),
            }),
            r#"{"type":"secret-kept","name":"lock-server","sealed":"c2VjcmV0","actor":"eve"}"#,
        ),
        (
            Fact::Secret(SecretFact::Stored {
                name: SecretName::new("files").unwrap(),
                sealed: "c2VjcmV0".to_owned(),
                origin: Some(Origin::new("https://files.example").unwrap()),
                actor: "eve".to_owned(),
            }),
            r#"{"type":"secret-kept","name":"files","sealed":"c2VjcmV0","origin":"https://files.example","actor":"eve"}"#,
        ),
        (
            item_stored(Some("c2FtZQ=="), None).into(),
            concat!(
                r#"{"type":"item-stored","host":"h1","provider":"app","item":"Zm9v","bytes":600,"#,
                r#""sealed":{"epoch":0,"sequence":7},"fingerprint":"c2FtZQ=="}"#
            ),
        ),
        (
            item_stored(None, Some("aGFzaA==")).into(),
            concat!(
                r#"{"type":"item-stored","host":"h1","provider":"app","item":"Zm9v","bytes":600,"#,
                r#""sealed":{"epoch":0,"sequence":7},"hash":"aGFzaA=="}"#
            ),
        ),
        (
            item_stored(None, None).into(),
            concat!(
                r#"{"type":"item-stored","host":"h1","provider":"app","item":"Zm9v","bytes":600,"#,
                r#""sealed":{"epoch":0,"sequence":7}}"#
            ),
        ),
        (
            DesiredFact::ItemRevoked { host: host("h1"), provider: provider() }.into(),
            r#"{"type":"item-revoked","host":"h1","provider":"app"}"#,
        ),
        (
            DesiredFact::ManifestStored { host: host("h1"), revision: revision() }.into(),
            r#"{"type":"manifest-stored","host":"h1","revision":{"epoch":0,"sequence":7}}"#,
        ),
        (
            DesiredFact::PollRequested {
                provider: provider(),
                host: Some(host("h1")),
                actor: "eve".to_owned(),
            }
            .into(),
            r#"{"type":"poll-requested","provider":"app","host":"h1","actor":"eve"}"#,
        ),
        (
            DesiredFact::DeliveryResumed { host: Some(host("h1")), epoch: 8, actor: "eve".to_owned() }.into(),
            r#"{"type":"delivery-resumed","host":"h1","epoch":8,"actor":"eve"}"#,
        ),
        (
            DesiredFact::DeliveryResumed { host: None, epoch: 8, actor: "eve".to_owned() }.into(),
            r#"{"type":"delivery-resumed","epoch":8,"actor":"eve"}"#,
        ),
        (
            DesiredFact::UnknownItemsFound { hosts: vec![host("h1")] }.into(),
            r#"{"type":"unknown-items-found","hosts":["h1"]}"#,
        ),
        (
            provider_failed().into(),
            concat!(
                r#"{"type":"provider-failed","provider":"app","host":"h1","#,
                r#""failure":{"kind":"unavailable","status":503}}"#
            ),
        ),
        (
            DesiredFact::ProviderRecovered { provider: provider() }.into(),
            r#"{"type":"provider-recovered","provider":"app"}"#,
        ),
        (
            DesiredFact::HookTokenDrawn { provider: provider(), digest: "e3b0".to_owned() }.into(),
            r#"{"type":"hook-token-drawn","provider":"app","digest":"e3b0"}"#,
        ),
        (
            DesiredFact::HookTokensRevoked { provider: provider(), actor: "eve".to_owned() }.into(),
            r#"{"type":"hook-tokens-revoked","provider":"app","actor":"eve"}"#,
        ),
        (
            hook_answered(HookEvent::FleetJoin, 7, None).into(),
            concat!(
                r#"{"type":"hook-answered","provider":"app","host":"h1","event":"ON_FLEET_JOIN","cause":7,"#,
                r#""metadata":18446744073709551615}"#
            ),
        ),
        (
            hook_answered(HookEvent::DevicePoll, 0, Some(3600)).into(),
            concat!(
                r#"{"type":"hook-answered","provider":"app","host":"h1","event":"ON_DEVICE_POLL","cause":0,"#,
                r#""metadata":18446744073709551615,"poll-interval":3600}"#
            ),
        ),
        (
            DesiredFact::HookMetadataChanged { provider: provider(), hosts: vec![host("h1")] }.into(),
            r#"{"type":"hook-metadata-changed","provider":"app","hosts":["h1"]}"#,
        ),
        (
            DesiredFact::CallbackReceived { provider: provider(), hosts: vec![host("h1")] }.into(),
            r#"{"type":"callback-received","provider":"app","hosts":["h1"]}"#,
        ),
        (
            Fact::Secret(SecretFact::Removed {
                name: SecretName::new("lock-server").unwrap(),
                actor: "eve".to_owned(),
            }),
            r#"{"type":"secret-removed","name":"lock-server","actor":"eve"}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::HostsApproved {
                hosts: vec![host("h1"), host("h2")],
                actor: "eve".to_owned(),
            }),
            r#"{"type":"hosts-approved","hosts":["h1","h2"],"actor":"eve"}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::KeyPinned {
                host: host("h1"),
                key: HostKey::new([1; 32]),
                actor: Some("eve".to_owned()),
            }),
            r#"{"type":"key-pinned","host":"h1","key":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE","actor":"eve"}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::HostWithdrawn {
                host: host("h1"),
                actor: "eve".to_owned(),
                reason: "stolen".to_owned(),
                forgotten: false,
            }),
            r#"{"type":"host-withdrawn","host":"h1","actor":"eve","reason":"stolen"}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::HostWithdrawn {
                host: host("h1"),
                actor: "eve".to_owned(),
                reason: "scrapped".to_owned(),
                forgotten: true,
            }),
            r#"{"type":"host-withdrawn","host":"h1","actor":"eve","reason":"scrapped","forgotten":true}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::HostRemoved {
                host: host("h1"),
                actor: "eve".to_owned(),
                reason: "scrapped".to_owned(),
                announced: 7,
            }),
            r#"{"type":"host-removed","host":"h1","actor":"eve","reason":"scrapped","announced":7}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::HostDeferred {
                host: host("h1"),
                actor: "eve".to_owned(),
                reason: "the quarter closes".to_owned(),
                until: Some(start()),
            }),
            r#"{"type":"host-deferred","host":"h1","actor":"eve","reason":"the quarter closes","until":"2026-11-21T01:00:00Z"}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::DeferralEnded {
                host: host("h1"),
                actor: Some("eve".to_owned()),
                reason: None,
            }),
            r#"{"type":"deferral-ended","host":"h1","actor":"eve"}"#,
        ),
        (
            Fact::Enrolment(EnrolmentFact::HostPurged { host: host("h1") }),
            r#"{"type":"host-purged","host":"h1"}"#,
        ),
        (
            Fact::Run(RunFact::Missed(MissedRun {
                start: start(),
                latest: start(),
                end: start(),
                reason: MissedReason::NoLeader,
                unrecorded: 3,
            })),
            concat!(
                r#"{"type":"run-missed","start":"2026-11-21T01:00:00Z","latest":"2026-11-21T01:00:00Z","#,
                r#""end":"2026-11-21T01:00:00Z","reason":{"kind":"no-leader"},"unrecorded":3}"#,
            ),
        ),
        (
            Fact::Queue(QueueFact::RebootsQueued {
                hosts: vec![host("h1"), host("h2")],
                actor: "eve".to_owned(),
                reason: None,
                window: None,
            }),
            r#"{"type":"reboots-queued","hosts":["h1","h2"],"actor":"eve"}"#,
        ),
        (
            Fact::Queue(QueueFact::RebootsQueued {
                hosts: vec![host("h1")],
                actor: "eve".to_owned(),
                reason: Some("a new kernel".to_owned()),
                window: Some(start()),
            }),
            concat!(
                r#"{"type":"reboots-queued","hosts":["h1"],"actor":"eve","reason":"a new kernel","#,
                r#""window":"2026-11-21T01:00:00Z"}"#,
            ),
        ),
        (
            Fact::Queue(QueueFact::Reboot { index: 7, host: host("h1"), event: EntryEvent::Rebooted }),
            r#"{"type":"reboot","index":7,"host":"h1","event":{"kind":"rebooted"}}"#,
        ),
        (
            Fact::Queue(QueueFact::Switched { enabled: false, actor: "eve".to_owned(), reason: None }),
            r#"{"type":"reboot-queue-switched","enabled":false,"actor":"eve"}"#,
        ),
        (
            Fact::Queue(QueueFact::Switched {
                enabled: true,
                actor: "eve".to_owned(),
                reason: Some("the hall is cool".to_owned()),
            }),
            r#"{"type":"reboot-queue-switched","enabled":true,"actor":"eve","reason":"the hall is cool"}"#,
        ),
        (
            Fact::Queue(QueueFact::BackoffReset { actor: "eve".to_owned() }),
            r#"{"type":"reboot-backoff-reset","actor":"eve"}"#,
        ),
        (
            Fact::Pause(PauseFact::Paused { cause: paused(), until: Some(start()) }),
            concat!(
                r#"{"type":"site-paused","cause":"operator","actor":"eve","reason":"the fair is on","#,
                r#""until":"2026-11-21T01:00:00Z"}"#,
            ),
        ),
        (
            PauseFact::Paused { cause: PauseCause::Restored { actor: "cli".to_owned() }, until: None }.into(),
            r#"{"type":"site-paused","cause":"restored","actor":"cli"}"#,
        ),
        (PauseFact::Resumed { actor: None, reason: None }.into(), r#"{"type":"site-resumed"}"#),
        (
            PauseFact::Resumed { actor: Some("eve".to_owned()), reason: Some("it is over".to_owned()) }
                .into(),
            r#"{"type":"site-resumed","actor":"eve","reason":"it is over"}"#,
        ),
        (
            Fact::Node(NodeFact::Step { host: host("h1"), step: NodeStep::Uncordoned }),
            r#"{"type":"node","host":"h1","step":{"kind":"uncordoned"}}"#,
        ),
        (
            Fact::Config(ConfigFact::SettingsAdopted { settings: draining }),
            r#"{"type":"settings-adopted","settings":{"provider":"embedded","default-group":"default","on-failure":"hold","groups":{"default":1},"reboot":{"max-concurrent":1,"unreachable-max":0,"api-servers":"last","backoff":{"first":"1m","max":"2m","jitter":"0s"}},"kubernetes":{"drain-timeout":"10m","uncordon-failed":true,"hosts":["h1"]}}}"#,
        ),
        (
            Fact::Config(ConfigFact::SettingsAdopted { settings: rebooting }),
            r#"{"type":"settings-adopted","settings":{"provider":"embedded","default-group":"default","on-failure":"hold","groups":{"default":1},"reboot":{"max-concurrent":2,"unreachable-max":3,"in-windows":true,"queue-required":true}}}"#,
        ),
    ];
    let table: Vec<_> = table.into_iter().chain(units::facts()).collect();
    check(&table, fact_variant, Fact::names().count());
    for (fact, json) in &table {
        assert!(json.starts_with(&format!(r#"{{"type":"{}""#, fact.name())), "{json}");
    }
}
