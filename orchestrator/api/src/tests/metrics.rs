//! `/metrics`: runs, hosts and the instance, and whether alerts ask for metrics that there are.

use std::collections::BTreeSet;
use std::fs;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{ConfigFact, RunFact};
use os_upgrade_kernel::{
    Clock, ClockDoubt, Fact, KubernetesSettings, MissedReason, MissedRun, Reachability, Settings,
};
use os_upgrade_protocol::{Action, Outcome};
use os_upgrade_settings::ApiTls;
use os_upgrade_shell::instance::Leadership;
use os_upgrade_shell::lease::LeaseHolder;
use os_upgrade_test_site::authority::Authority;
use os_upgrade_test_site::{put_config, trigger};

use super::*;

const ALERTS: &str = include_str!("../../../../config/prometheus/alerts.yml");

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The metrics of an API, with the samples whose names begin with one of `prefixes`.
pub(super) async fn samples(api: &TestApi, options: &Options, prefixes: &[&str]) -> Vec<String> {
    let stored = resources::metrics::Stored {
        totals: Some(api.history.totals().await.unwrap()),
        ..Default::default()
    };
    let published = PublishedState { is_read: true, ..api.site.published().as_ref().clone() };
    let (answers, authenticator) = (Answers::default(), Authenticator::default());
    let now = at("2026-11-21T06:00:00Z");
    let text = resources::metrics::text(
        &answers,
        &published,
        &published.view.clock,
        &stored,
        &authenticator,
        options,
        now,
    )
    .unwrap();
    let lines = text.lines().filter(|line| prefixes.iter().any(|prefix| line.starts_with(prefix)));
    let mut lines: Vec<_> = lines.map(ToOwned::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn active_run_is_counted_by_status() {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    let settings = Settings { auto_approve: true, ..Settings::default() };
    let mut records = vec![site.decide_record(&[Input::Settings(settings), put_config()]), site.fence()];
    let idle = TestApi::new(site.clone(), &records).await;
    let run = ["os_upgrade_run_active", "os_upgrade_run_hosts"];
    let none = samples(&idle, &Options::default(), &run).await;
    assert_eq!((none.len(), none.iter().all(|line| line.ends_with(" 0"))), (15, true), "{none:?}");

    records.extend([site.decide_record(&[trigger("r1")]), site.send()]);
    records.push(site.reply(["h01"], Action::Prepare, &Outcome::Done));
    let api = TestApi::new(site, &records).await;
    let found = samples(&api, &Options::default(), &run).await;
    let some: Vec<_> = found.iter().filter(|line| !line.ends_with(" 0")).collect();
    let expected = [
        "os_upgrade_run_active 1",
        r#"os_upgrade_run_hosts{status="prepared"} 1"#,
        r#"os_upgrade_run_hosts{status="preparing"} 2"#,
    ];
    assert_eq!(some, expected);
}

#[tokio::test]
async fn ends_of_runs_and_hosts_are_counted_from_zero() {
    let mut site = TestSite::new(["h01", "h02"]);
    let settings = Settings { auto_approve: true, ..Settings::default() };
    let mut records = vec![site.decide_record(&[Input::Settings(settings), put_config()]), site.fence()];
    let ends =
        ["os_upgrade_runs_total", "os_upgrade_last_", "os_upgrade_host_upgrades", "os_upgrade_oldest_host"];
    let none = samples(&TestApi::new(site.clone(), &records).await, &Options::default(), &ends).await;
    assert_eq!(none.len(), 12 + 3 + 1, "{none:?}");
    assert!(none.iter().all(|line| line.ends_with(" 0")), "{none:?}");

    records.extend(site.whole_run("r1"));
    let ended = site.state.last_run.as_ref().unwrap().ended.unwrap().at;
    let oldest = *site.state.last_upgrades.of(&host("h01")).unwrap();
    let later = *site.state.last_upgrades.of(&host("h02")).unwrap();
    assert!(oldest < later, "one is upgraded after the other");
    let found = samples(&TestApi::new(site, &records).await, &Options::default(), &ends).await;
    let some: Vec<_> = found.iter().filter(|line| !line.ends_with(" 0")).map(String::as_str).collect();
    let expected = [
        r#"os_upgrade_host_upgrades_total{result="upgraded"} 2"#,
        &format!(r#"os_upgrade_last_run_end_timestamp_seconds{{result="completed"}} {}"#, ended.timestamp()),
        &format!("os_upgrade_last_success_timestamp_seconds {}", ended.timestamp()),
        &format!("os_upgrade_oldest_host_success_timestamp_seconds {}", oldest.timestamp()),
        r#"os_upgrade_runs_total{result="completed",trigger="operator"} 1"#,
    ];
    assert_eq!(some, expected);
}

#[tokio::test]
async fn hosts_are_counted_by_reachability() {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    site.view.hosts.get_mut(&host("h01")).unwrap().reachability = Reachability::Unreachable;
    let api = TestApi::new(site, &[]).await;
    let expected = [("awaited", 0), ("reachable", 0), ("unknown", 2), ("unreachable", 1)]
        .map(|(state, count)| format!(r#"os_upgrade_hosts_reachability{{state="{state}"}} {count}"#));
    assert_eq!(samples(&api, &Options::default(), &["os_upgrade_hosts_reachability"]).await, expected);
}

#[tokio::test]
async fn leader_clock_and_backup_of_an_instance() {
    let mut site = TestSite::new(["h01"]);
    site.view.clock = Clock { doubt: Some(ClockDoubt::ClockStepped), steady_since: None };
    let api = TestApi::new(site, &[]).await;
    let of_instance = ["os_upgrade_leader", "os_upgrade_clock", "os_upgrade_last_backup"];
    let expected = [
        r#"os_upgrade_clock_in_doubt{reason="clock-stepped"} 1"#,
        "os_upgrade_last_backup_timestamp_seconds 0",
        "os_upgrade_leader_known 0",
    ];
    assert_eq!(samples(&api, &Options::default(), &of_instance).await, expected);

    let mut published = api.site.published().as_ref().clone();
    published.leadership = Leadership::At(LeaseHolder::new("i2", "p1"));
    published.view.clock = Clock::TRUSTED;
    api.shown.store(Arc::new(published));
    let last_backup = api.directory.path().join("last-backup");
    let made = at("2026-11-21T03:00:00Z");
    fs::File::create(&last_backup).unwrap().set_modified(made.into()).unwrap();
    let found = samples(&api, &Options { last_backup, ..Options::default() }, &of_instance).await;
    let backup = format!("os_upgrade_last_backup_timestamp_seconds {}", made.timestamp());
    assert_eq!(found, [backup, "os_upgrade_leader_known 1".to_owned()]);
}

/// An alert on a metric that does not exist never fires.
#[tokio::test]
async fn alerts_ask_for_metrics_that_there_are() {
    let mut site = TestSite::new(["h01", "h02"]);
    let kubernetes =
        KubernetesSettings { drain_timeout: "10m".parse().unwrap(), uncordon_failed: false, hosts: None };
    let settings = Settings { auto_approve: true, ..Settings::default() };
    let mut records = vec![site.decide_record(&[Input::Settings(settings), put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    site.view.clock = Clock::default();
    Arc::make_mut(&mut site.state.settings).kubernetes = Some(kubernetes);
    let opened = at("2026-11-21T01:00:00Z");
    let missed = MissedRun {
        start: opened,
        latest: opened,
        end: opened,
        reason: MissedReason::NoLeader,
        unrecorded: 0,
    };
    site.state.apply(opened, &Fact::Run(RunFact::Missed(missed))).unwrap();
    let mut config = site.state.config.as_deref().unwrap().clone();
    let provider = json!([{ "name": "app", "kind": "http", "url": "https://files.example/{host}" }]);
    config.config_providers = serde_json::from_value(provider).unwrap();
    let replaced =
        ConfigFact::Replaced { config: Some(config), actor: "eve".to_owned(), difference: Vec::new() };
    site.state.apply(opened, &replaced.into()).unwrap();
    let api = TestApi::new(site, &records).await;
    let [cert, key] = Authority::new("servers").certify_into("localhost", api.directory.path(), "api");
    let tls = Tls::from_settings(&ApiTls { cert: Some(cert), key: Some(key), client_ca: None }).unwrap();
    let options = Options { tls, ..Options::default() };
    let samples = samples(&api, &options, &["os_upgrade_"]).await;
    let exported: BTreeSet<&str> = samples.iter().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let asked: BTreeSet<&str> =
        ALERTS.split(|c| !is_of_name(c)).filter(|word| word.starts_with("os_upgrade_")).collect();
    let unknown: Vec<_> = asked.difference(&exported).collect();
    assert!(unknown.is_empty() && asked.len() > 9, "{unknown:?} of {exported:?}");
}
