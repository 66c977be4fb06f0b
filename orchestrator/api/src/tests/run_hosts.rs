//! What happened to a host in a run: its phases, and answers that came too late; and lists of runs by host, result and
//! time.

use std::collections::BTreeMap;

use std::borrow::Cow;

use chrono::TimeDelta;
use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::routes::hosts::Host;
use os_upgrade_api_types::routes::run_hosts::HostReport;
use os_upgrade_api_types::routes::runs::Run;
use os_upgrade_kernel::{self as kernel, EnrolmentOperation, Settings};
use os_upgrade_protocol::{Action, Outcome};
use os_upgrade_test_site::{cancel, put_config, trigger};

use super::*;

async fn report(api: &TestApi, run: &str, host: &str) -> HostReport<'static> {
    api.read(&format!("GET /v1/state/os-upgrade/runs/{run}/hosts/{host}")).await
}

#[tokio::test]
async fn phases_of_a_host_have_times() {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    let api = TestApi::new(site, &records).await;
    let report = report(&api, "r1", "h01").await;
    assert_eq!(report.host.status.as_str(), "upgraded");
    let phases = report.phases.iter().map(|phase| (phase.status.as_str(), phase.seconds, phase.attempts));
    let expected = [
        ("pending", Some(1), None),
        ("preparing", Some(1), Some(1)),
        // Prepared, and granted a slot, in the same moment.
        ("prepared", Some(0), None),
        ("upgrading", Some(2), Some(1)),
    ];
    assert_eq!(phases.collect::<Vec<_>>(), expected);
    let ends: Vec<_> = report.phases.iter().map(|phase| phase.end_time).collect();
    let starts_of_next = report.phases[1..].iter().map(|phase| Some(phase.start_time));
    assert_eq!(ends, starts_of_next.chain([report.host.end_time]).collect::<Vec<_>>());
    assert_eq!(report.late_answers, []);
    let shown: Host<'_> = api.read("GET /v1/state/os-upgrade/hosts/h01").await;
    assert_eq!(shown.last_upgraded_at, report.host.end_time);
    assert_eq!(shown.last_result.unwrap().status.as_str(), "upgraded");
}

#[tokio::test]
async fn skipped_host_has_no_phases() {
    let mut site = TestSite::new(["h01", "h02"]);
    site.state.settings = Settings { auto_approve: false, ..(*site.state.settings).clone() }.into();
    let (hosts, keys) = (vec![host("h01")], BTreeMap::new());
    let approve = EnrolmentOperation::Approve { hosts, keys, machines: BTreeMap::new() };
    let approve = Input::Request(kernel::Request::new("api", approve).into());
    let mut records = vec![site.decide_record(&[put_config(), approve]), site.fence()];
    records.push(site.decide_record(&[trigger("r1")]));
    let api = TestApi::new(site, &records).await;
    let skipped = report(&api, "r1", "h02").await;
    assert_eq!((skipped.host.status.as_str(), skipped.phases.len()), ("skipped", 0));
}

#[tokio::test]
async fn phase_that_lasts_has_no_end() {
    let mut site = TestSite::new(["h01"]);
    let records = [
        site.decide_record(&[put_config()]),
        site.fence(),
        site.decide_record(&[trigger("r1")]),
        site.send(),
    ];
    let api = TestApi::new(site, &records).await;
    let last = &report(&api, "r1", "h01").await.phases[1];
    assert_eq!((last.status.as_str(), last.end_time, last.seconds), ("preparing", None, None));
}

#[tokio::test]
async fn versions_before_and_after_are_of_this_run() {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    records.extend(site.whole_run("r2"));
    let api = TestApi::new(site, &records).await;
    let of_run = report(&api, "r1", "h01").await.host;
    let (start, end) = (of_run.start_time.unwrap().0, of_run.end_time.unwrap().0);
    let published =
        |linux: &str, at| Stored { report: Bytes::from(json!({ "linux": linux }).to_string()), at };
    let versions = vec![
        published("1", start - TimeDelta::days(30)),
        published("2", start),
        // By a worker that publishes them twice, and after its answer.
        published("3", end),
        published("4", end + TimeDelta::milliseconds(500)),
    ];
    let api = api.with_reports(Kept { outputs: Ok(Vec::new()), versions: Ok(versions) });
    let first = report(&api, "r1", "h01").await;
    let linux = |versions: Option<Cow<'_, Versions>>| versions?.0.get("linux").cloned();
    assert_eq!(linux(first.versions_before).as_deref(), Some("2"));
    assert_eq!(linux(first.versions_after).as_deref(), Some("4"));
    // It published none in the second run.
    let second = report(&api, "r2", "h01").await;
    assert_eq!(linux(second.versions_before).as_deref(), Some("4"));
    assert_eq!(second.versions_after, None);
    let unreadable = Err(ReportsError("NATS is unreachable".to_owned()));
    let api = api.with_reports(Kept { outputs: Ok(Vec::new()), versions: unreadable });
    let report = report(&api, "r1", "h01").await;
    assert_eq!((report.host.status.as_str(), report.versions_before), ("upgraded", None));
    assert_eq!(report.versions_unavailable.as_deref(), Some("NATS is unreachable"));
}

#[tokio::test]
async fn late_answers_are_shown_with_the_host() {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.push(site.decide_record(&[trigger("r1")]));
    records.push(site.send());
    records.push(site.decide_record(&[cancel()]));
    // The run has ended: nothing waits for this answer any more.
    records.push(site.reply(["h01"], Action::Prepare, &Outcome::error("too late")));
    let api = TestApi::new(site, &records).await;
    let report = report(&api, "r1", "h01").await;
    assert_eq!(report.host.status.as_str(), "cancelled");
    let late = &report.late_answers[0];
    assert_eq!((&*late.action, late.result.as_str()), ("prepare", "error"), "{report:?}");
}

#[tokio::test]
async fn runs_are_chosen_by_host_result_and_time() {
    let mut site = TestSite::new(["h01"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    records.push(site.decide_record(&[trigger("r2")]));
    records.push(site.decide_record(&[cancel()]));
    records.push(site.decide_record(&[trigger("r3")]));
    let api = TestApi::new(site, &records).await;
    let all: Page<Run<'_>> = api.read("GET /v1/state/os-upgrade/runs").await;
    let second = all.items[1].start_time;
    for (query, expected) in [
        ("host=h01", vec!["r3", "r2", "r1"]),
        ("host=h02", vec![]),
        ("result=completed", vec!["r1"]),
        ("result=cancelled&host=h01", vec!["r2"]),
        (&format!("from={second}"), vec!["r3", "r2"]),
        (&format!("to={second}"), vec!["r1"]),
        (&format!("from={second}&limit=1&after=r3"), vec!["r2"]),
    ] {
        let keys: Page<String> = api.read(&format!("GET /v1/state/os-upgrade/runs?keys=true&{query}")).await;
        assert_eq!(keys.items, expected, "{query}");
    }
    let count = api.call("GET /v1/state/os-upgrade/runs?count=true&result=cancelled", "").await;
    assert_eq!(count, (200, json!({"count": 1})));
    for bad in ["result=done", "from=yesterday", "host=%00"] {
        assert_eq!(api.call(&format!("GET /v1/state/os-upgrade/runs?{bad}"), "").await.0, 400, "{bad}");
    }
}
