//! Missed runs.

use os_upgrade_calendar::{CalendarError, Watermark};
use os_upgrade_console::describe;
use os_upgrade_kernel::{
    ClockDoubt, MissedReason, MissedRun, MissedRuns, PauseCause, Sealed, SecretName, StartBlocker, State,
    WindowBlocker,
};

use super::words::check_words;
use super::{check, paused};
use crate::common::{run, start};

#[test]
fn missed_runs() {
    let blockers = [
        (WindowBlocker::NoWindows, r#"{"kind":"no-windows"}"#),
        (WindowBlocker::NoOccurrence { are_denied: false }, r#"{"kind":"no-occurrence"}"#),
        (
            WindowBlocker::UnclearWindows { why: CalendarError::TooMany },
            r#"{"kind":"unclear-windows","why":{"kind":"too-many"}}"#,
        ),
        (WindowBlocker::HostsAwaited { hosts: 2 }, r#"{"kind":"hosts-awaited","hosts":2}"#),
        (StartBlocker::NoConfiguration.into(), r#"{"kind":"no-configuration"}"#),
        (StartBlocker::RunActive { run: run("r1") }.into(), r#"{"kind":"run-active","run":"r1"}"#),
        (
            StartBlocker::Paused(paused()).into(),
            r#"{"kind":"paused","cause":"operator","actor":"eve","reason":"the fair is on"}"#,
        ),
        (
            StartBlocker::Paused(PauseCause::Restored { actor: "cli".to_owned() }).into(),
            r#"{"kind":"paused","cause":"restored","actor":"cli"}"#,
        ),
        (
            StartBlocker::StrongboxSealed { why: Sealed::NoKey }.into(),
            r#"{"kind":"strongbox-sealed","why":{"kind":"no-key"}}"#,
        ),
        (
            StartBlocker::NoHosts { applications: "debian".to_owned() }.into(),
            r#"{"kind":"no-hosts","applications":"debian"}"#,
        ),
        (
            StartBlocker::NoneApproved { hosts: 3, withdrawn: 0 }.into(),
            r#"{"kind":"none-approved","hosts":3}"#,
        ),
        (
            StartBlocker::NoneApproved { hosts: 3, withdrawn: 1 }.into(),
            r#"{"kind":"none-approved","hosts":3,"withdrawn":1}"#,
        ),
        (
            StartBlocker::Clock(ClockDoubt::ClockSkew { seconds: 40 }).into(),
            r#"{"kind":"clock-skew","seconds":40}"#,
        ),
        (StartBlocker::Clock(ClockDoubt::ClockUnmeasured).into(), r#"{"kind":"clock-unmeasured"}"#),
        (
            StartBlocker::Clock(ClockDoubt::ClockDisputed { differ: 2, hosts: 3 }).into(),
            r#"{"kind":"clock-disputed","differ":2,"hosts":3}"#,
        ),
        (StartBlocker::Clock(ClockDoubt::ClockStepped).into(), r#"{"kind":"clock-stepped"}"#),
        (StartBlocker::AllDeferred { hosts: 3 }.into(), r#"{"kind":"all-deferred","hosts":3}"#),
        (
            StartBlocker::Clock(ClockDoubt::ClockBehind { newest: start() }).into(),
            r#"{"kind":"clock-behind","newest":"2026-11-21T01:00:00Z"}"#,
        ),
    ];
    let kinds: Vec<_> = WindowBlocker::kinds().chain(["run-active"]).collect();
    let variant = |blocker: &WindowBlocker| kinds.iter().position(|kind| *kind == blocker.kind()).unwrap();
    check(&blockers, variant, kinds.len());
    for (blocker, json) in blockers {
        check(&[(MissedReason::Blocked(blocker), json)], |_| 0, 1);
    }
    let reason = MissedReason::NoLeader;
    let missed = MissedRun { start: start(), latest: start(), end: start(), reason, unrecorded: 0 };
    let missed = MissedRuns { settled: Watermark::up_to(start()), total: 1, last: Some(missed.into()) };
    let state = State { missed, ..State::default() };
    check_words("State", &serde_json::to_value(&state).unwrap());
}

/// When it is read, what blocked the run may have ended.
#[test]
fn reasons_are_in_the_past() {
    let sealed = |why| StartBlocker::StrongboxSealed { why };
    let name = || SecretName::new("lock").unwrap();
    let start: [(StartBlocker, &str); 18] = [
        (StartBlocker::NoConfiguration, "nothing was configured"),
        (StartBlocker::RunActive { run: run("r1") }, "run r1 was active"),
        (StartBlocker::Paused(paused()), "the site was paused by eve: the fair is on"),
        (
            StartBlocker::Paused(PauseCause::Restored { actor: "cli".to_owned() }),
            "the site was paused since cli restored it, until somebody has looked after its hosts",
        ),
        (sealed(Sealed::NoKey), "the strongbox was sealed"),
        (sealed(Sealed::NoSecret { name: name() }), "the strongbox had no secret lock"),
        (sealed(Sealed::Damaged { name: name() }), "the secret lock could not be opened"),
        (
            StartBlocker::NoHosts { applications: "debian".to_owned() },
            "no reachable host ran a configured application",
        ),
        (
            StartBlocker::NoneApproved { hosts: 1, withdrawn: 0 },
            "the only host of the configured applications was not approved",
        ),
        (
            StartBlocker::NoneApproved { hosts: 3, withdrawn: 1 },
            "none of the 3 hosts of the configured applications was approved (1 of them withdrawn)",
        ),
        (
            StartBlocker::NoneApproved { hosts: 3, withdrawn: 3 },
            "all 3 hosts of the configured applications were withdrawn",
        ),
        (StartBlocker::AllDeferred { hosts: 1 }, "the only host that is approved was deferred"),
        (StartBlocker::AllDeferred { hosts: 3 }, "all 3 hosts that are approved were deferred"),
        (
            ClockDoubt::ClockUnmeasured.into(),
            "the orchestrator's clock had not been compared with that of NATS lately",
        ),
        (ClockDoubt::ClockSkew { seconds: 40 }.into(), "the orchestrator's clock was 40 s ahead of NATS"),
        (
            ClockDoubt::ClockDisputed { differ: 2, hosts: 3 }.into(),
            "the clocks of 2 of 3 hosts differed from those of the orchestrator and NATS",
        ),
        (ClockDoubt::ClockStepped.into(), "the clock of NATS had just stepped"),
        (
            ClockDoubt::ClockBehind { newest: start() }.into(),
            "the orchestrator's clock was behind the newest record, of 2026-11-21T01:00:00Z",
        ),
    ];
    let start = start.map(|(by, expected)| (WindowBlocker::from(by), expected));
    let window = [
        (WindowBlocker::NoWindows, "no run started automatically: no maintenance windows were configured"),
        (WindowBlocker::HostsAwaited { hosts: 1 }, "the heartbeat of a host was awaited"),
        (WindowBlocker::HostsAwaited { hosts: 2 }, "the heartbeats of 2 hosts were awaited"),
    ];
    for (by, expected) in start.into_iter().chain(window) {
        assert_eq!(describe(&MissedReason::Blocked(by)).to_string(), expected);
    }
}
