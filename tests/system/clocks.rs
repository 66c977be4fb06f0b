//! Clocks of orchestrator, NATS and hosts that step while the programs run.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use futures::StreamExt as _;
use harness::clock::Clock;
use harness::host::APPLICATION;
use harness::rest::Rest;
use harness::site::Site;
use harness::wait::{eventually, within};
use reqwest::Method;
use serde_json::json;

const CONFIG: &str = "/v1/config/os-upgrade";
const CERTAIN: &str = "the time is certain";
const DISPUTED: &str = "hosts differ from those of the orchestrator and NATS";
const RIGHT: TimeDelta = TimeDelta::zero();
const SIX_HOURS: TimeDelta = TimeDelta::hours(6);
/// How long a clock is wrong that somebody corrects at once.
const GLITCH: Duration = Duration::from_millis(800);

#[tokio::test]
async fn step_into_a_window_starts_nothing() {
    let [ours, servers, theirs] = [Clock::new(), Clock::new(), Clock::new()];
    let set_ours = |offset| {
        ours.set(offset);
        servers.set(offset);
    };
    let site = Site::start_by(&ours, &servers).await;
    let rest = site.rest();
    let mut hosts = ["h01", "h02"].map(|name| site.host(name).with_program(theirs.worker()));
    site.run(&mut hosts).await;
    // It is open in six hours, for half an hour more.
    let opens =
        (Utc::now() + SIX_HOURS - TimeDelta::minutes(30)).with_second(0).unwrap().with_nanosecond(0).unwrap();
    let configuration =
        json!({ "worker-applications": [{ "name": APPLICATION }], "maintenance-windows": [daily(opens)] });
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration.to_string()).await.0, 204);
    await_forecast(&rest, opens).await;

    set_ours(SIX_HOURS);
    tokio::time::sleep(GLITCH).await;
    set_ours(RIGHT);
    await_forecast(&rest, opens).await;

    set_ours(SIX_HOURS);
    await_start_blocker(&rest, "clock-disputed").await;
    let mut heartbeats = site.nats.client().await.subscribe("os-upgrade.presence.*").await.unwrap();
    for _ in 0..4 {
        heartbeats.next().await.unwrap();
    }
    assert_eq!(rest.state().await["next-upgrade-why"]["kind"], "clock-disputed");
    set_ours(RIGHT);
    await_forecast(&rest, opens).await;
    assert_eq!((rest.runs().await, site.commands().await), (Vec::new(), Vec::new()));

    // Six hours later, by all clocks.
    set_ours(SIX_HOURS);
    theirs.set(SIX_HOURS);
    let id = eventually("the window's run", async || rest.newest_run_or_none().await).await;
    let run = rest.await_end(&id).await;
    assert_eq!((run.result(), &run.0["trigger"]), (Some("completed"), &json!("window")));
    assert_eq!(time(&run.0["not-after"]), opens + TimeDelta::hours(1));
}

/// Workers have the right time all along.
#[tokio::test]
async fn step_in_a_run_ends_nothing() {
    let [ours, servers] = [Clock::new(), Clock::new()];
    let site = Site::start_by(&ours, &servers).await;
    let rest = site.rest();
    let hosts = site.hosts(4).await;
    let names = ["h01", "h02", "h03", "h04"];
    for host in &hosts {
        host.hold("upgrade");
    }
    assert_eq!(rest.trigger(&json!({ "timeout": "1h" }).to_string()).await.0, 204);
    let id = rest.newest_run().await;
    let steps = [
        (SIX_HOURS, RIGHT, "clock-skew", "s ahead of NATS"),
        (RIGHT, SIX_HOURS, "clock-skew", "s behind NATS"),
        (SIX_HOURS, SIX_HOURS, "clock-disputed", DISPUTED),
    ];
    for (number, (our_step, server_step, kind, why)) in steps.into_iter().enumerate() {
        hosts[number].await_script("upgrade-begins").await;
        ours.set(our_step);
        servers.set(server_step);
        await_verdict(&site, why).await;
        hosts[number].release("upgrade");
        let reason = rest.await_reason(names[number + 1], kind).await;
        assert!(reason.contains(why), "{reason}");
        assert_eq!(rest.run(&id).await.result(), None);
        assert_eq!(site.commands_to("upgrade").await, names[..=number]);
        ours.set(RIGHT);
        servers.set(RIGHT);
    }
    hosts[3].await_script("upgrade-begins").await;
    hosts[3].release("upgrade");
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from(names.map(|name| (name, "upgraded"))));
    assert_eq!(site.commands_to("upgrade").await, names);
}

#[tokio::test]
async fn step_while_a_host_reboots_is_no_boot_timeout() {
    let [ours, servers, theirs] = [Clock::new(), Clock::new(), Clock::new()];
    let site = Site::start_by(&ours, &servers).await;
    let rest = site.rest();
    let mut hosts =
        [site.host("h01").reboots(), site.host("h02")].map(|host| host.with_program(theirs.worker()));
    site.run(&mut hosts).await;
    hosts[0].hold("reboot");
    let id = rest.start_run().await;
    hosts[0].await_script("reboot").await;
    rest.await_status("h01", "rebooting").await;
    // First it is a step of a wrong clock, then that of a right one: hosts show the same time.
    ours.set(TimeDelta::hours(1));
    servers.set(TimeDelta::hours(1));
    await_verdict(&site, DISPUTED).await;
    theirs.set(TimeDelta::hours(1));
    await_verdict(&site, CERTAIN).await;
    // It is answered by a record that was decided since.
    rest.configure(APPLICATION).await;
    let run = rest.run(&id).await;
    assert_eq!((run.result(), run.statuses()["h01"]), (None, "rebooting"), "{:?}", run.reasons());
    hosts[0].release("reboot");
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "upgraded")]));
}

/// The power was off, and no machine has a clock that runs meanwhile: nobody contradicts.
#[tokio::test]
async fn lost_time_starts_nothing() {
    let clock = Clock::new();
    let mut site = Site::start_by(&clock, &clock).await;
    let rest = site.rest();
    let mut hosts = ["h01", "h02"].map(|name| site.host(name).with_program(clock.worker()));
    site.run(&mut hosts).await;
    // It was open six hours ago.
    let opened =
        (Utc::now() - SIX_HOURS - TimeDelta::minutes(30)).with_second(0).unwrap().with_nanosecond(0).unwrap();
    let configuration =
        json!({ "worker-applications": [{ "name": APPLICATION }], "maintenance-windows": [daily(opened)] });
    assert_eq!(rest.call(Method::PUT, CONFIG, &configuration.to_string()).await.0, 204);
    await_forecast(&rest, opened + TimeDelta::days(1)).await;

    site.orchestrator.kill().await;
    clock.set(-SIX_HOURS);
    site.orchestrator.start_ready().await;
    await_start_blocker(&rest, "clock-behind").await;
    let mut heartbeats = site.nats.client().await.subscribe("os-upgrade.presence.*").await.unwrap();
    for _ in 0..4 {
        heartbeats.next().await.unwrap();
    }
    assert_eq!(rest.state().await["next-upgrade-why"]["kind"], "clock-behind");
    assert_eq!((rest.runs().await, site.commands().await), (Vec::new(), Vec::new()));

    // An operator says that the clock is right.
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
}

/// A window of an hour that opens each day at the time of `opens`.
fn daily(opens: DateTime<Utc>) -> serde_json::Value {
    json!({
        "days-of-week": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
        "start-time": opens.format("%H:%M").to_string(),
        "duration": "1h",
        "timezone": "UTC",
    })
}

/// Waits until the next run starts automatically at `opens`, and nothing stands against it.
async fn await_forecast(rest: &Rest, opens: DateTime<Utc>) {
    eventually("the window to be the next", async || {
        let state = rest.state().await;
        let is_next = state["next-upgrade-at"].is_string() && time(&state["next-upgrade-at"]) == opens;
        (is_next && state.get("next-upgrade-why").is_none()).then_some(())
    })
    .await;
}

async fn await_start_blocker(rest: &Rest, kind: &str) {
    eventually(kind, async || (rest.state().await["next-upgrade-why"]["kind"] == kind).then_some(())).await;
}

/// How long a verdict may take: hosts say their time every 10 s, a dispute lasts 30 s, and one of the programs is emulated.
const VERDICT_WITHIN: Duration = Duration::from_mins(3);

/// Waits until the last that the orchestrator has logged about the time has this in it.
async fn await_verdict(site: &Site, verdict: &str) {
    within(VERDICT_WITHIN, verdict, async || {
        let log = site.orchestrator.log();
        let is_about_time =
            |line: &&str| ["the time is in doubt", CERTAIN].iter().any(|told| line.contains(told));
        log.lines().rfind(is_about_time)?.contains(verdict).then_some(())
    })
    .await;
}

fn time(stamp: &serde_json::Value) -> DateTime<Utc> {
    stamp.as_str().unwrap().parse().unwrap()
}
