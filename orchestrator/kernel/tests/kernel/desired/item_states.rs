//! How far what providers gave is on hosts, as these report: what fails, what is for another file, and what is left over.

use os_upgrade_kernel::{FailedItem, ItemState, Settings};

use super::*;
use crate::common::settings;

/// `name` reports that it cannot do as it was told about `app`, or has not done it yet.
fn fails(site: &mut Site, name: &str, revision: Revision, error: Option<&str>) {
    says(site, name, revision, &["app"]);
    let mut applied = Applied::clone(&site.view.applied[&host(name)]);
    applied.items[0].id = None;
    applied.items[0].error = error.map(ToOwned::to_owned);
    site.view.applied.insert(host(name), Arc::new(applied));
}

fn state_of<'a>(site: &'a Site, name: &str) -> ItemState<'a> {
    site.state.item_state(&site.view, &host(name), &provider("app"))
}

/// An error is about the manifest that its report names, and about the file that the provider named then.
#[test]
fn failures_are_about_what_a_host_is_to_have_now() {
    const APP: &str = r#"[{"name":"app","on-removal":"remove"}]"#;
    const MOVED: &str = r#"[{"name":"app","on-removal":"remove","path":"/etc/app.conf"}]"#;
    let error = "no such directory";
    let mut site = site();
    give(&mut site, "h1", "app", "1");
    let first = publish(&mut site)[0];
    fails(&mut site, "h1", first, Some(error));
    assert_eq!(state_of(&site, "h1"), ItemState::Failed { error });
    configure(&mut site, APP);
    assert_eq!(state_of(&site, "h1"), ItemState::Failed { error }, "the file is the same");
    configure(&mut site, MOVED);
    assert_eq!(state_of(&site, "h1"), ItemState::Pending, "the provider names another file");
    let item = site.state.desired.item(&host("h1"), &provider("app")).unwrap();
    assert_eq!((item.other_file, &item.fingerprint), (true, &None), "it is to be given anew");
    give(&mut site, "h1", "app", "2");
    assert_eq!(state_of(&site, "h1"), ItemState::Pending, "the report is of the manifest before");
    let second = publish(&mut site)[0];
    assert_eq!(state_of(&site, "h1"), ItemState::Pending, "the host has not read the new one");
    fails(&mut site, "h1", second, Some(error));
    assert_eq!(state_of(&site, "h1"), ItemState::Failed { error }, "it is of the new one");
    site.input(Input::ItemRevoked { host: host("h1"), provider: provider("app") });
    assert_eq!(state_of(&site, "h1"), ItemState::Revoking, "it was about what is no longer wanted");
    let third = publish(&mut site)[0];
    assert_eq!(state_of(&site, "h1"), ItemState::Revoking, "the host has not read that yet");
    fails(&mut site, "h1", third, Some(error));
    assert_eq!(state_of(&site, "h1"), ItemState::Failed { error }, "it cannot revoke it");
}

/// What a host has applied does not count once the provider names another file, until the provider has given that.
#[test]
fn applied_items_for_another_file_are_pending() {
    let provider_of =
        |more: &str| format!(r#"[{{"name":"app","required":true,"selector":{{"names":["h1"]}}{more}}}]"#);
    let mut site = requiring(r#""h1""#);
    polled(&mut site, "h1", Some(TimeDelta::zero()), None);
    give(&mut site, "h1", "app", "9");
    let revision = publish(&mut site)[0];
    says(&mut site, "h1", revision, &["app"]);
    assert_eq!(state_of(&site, "h1"), ItemState::Applied);
    configure(&mut site, &provider_of(r#","path":"/etc/app.conf""#));
    assert_eq!(state_of(&site, "h1"), ItemState::Pending);
    perform(&mut site, "trigger r1");
    let silent = ConfigurationWait::Provider { failure: None };
    assert_eq!(waits(&site, "h1"), Some(silent), "the old file does not meet the requirement");
    give(&mut site, "h1", "app", "10");
    assert_eq!(waits(&site, "h1"), Some(ConfigurationWait::Host { error: None }));
}

/// What a provider gives that was asked before it named another file is for the file before, also where the host had nothing.
#[test]
fn late_items_are_for_the_file_before() {
    const MOVED: &str = r#"[{"name":"app","on-removal":"remove","path":"/etc/app.conf"}]"#;
    let mut site = site();
    give(&mut site, "h1", "app", "1");
    let late = ["h1", "h2"].map(|name| {
        let item = StoredItem { fingerprint: Some("same".to_owned()), ..stored(&site, name, "2") };
        Input::ItemStored { host: host(name), provider: provider("app"), item }
    });
    configure(&mut site, MOVED);
    for answer in late {
        site.input(answer);
    }
    for name in ["h1", "h2"] {
        let item_of = |site: &Site| site.state.desired.item(&host(name), &provider("app")).unwrap().clone();
        let item = item_of(&site);
        assert_eq!((item.id, item.other_file, item.fingerprint), (id("2"), true, None), "{name}");
        give(&mut site, name, "app", "3");
        assert!(!item_of(&site).other_file, "{name}: it was asked after that");
    }
    assert!(site.state.desired.files.contains_key(&provider("app")));
    configure(&mut site, "[]");
    assert!(site.state.desired.files.is_empty());
}

/// Which file a provider that was gone has named is not known, so what hosts have kept of it is for another one, unless it gives nothing to them.
#[test]
fn providers_that_come_back_may_name_another_file() {
    let mut site = site();
    give(&mut site, "h1", "net", "9");
    let revision = publish(&mut site)[0];
    says(&mut site, "h1", revision, &["net"]);
    let is_applied =
        |site: &Site| site.state.item_state(&site.view, &host("h1"), &provider("net")) == ItemState::Applied;
    configure(&mut site, "[]");
    assert!(is_applied(&site), "the host keeps it");
    configure(&mut site, r#"[{"name":"net","path":"/etc/net.conf"}]"#);
    assert!(!is_applied(&site));
    configure(&mut site, r#"[{"name":"net","path":"/etc/net.conf","selector":{"names":["h2"]}}]"#);
    assert_eq!(left_over(&site), [("net".to_owned(), ItemState::Applied, true)]);
}

/// Workers try again, so a first failure needs nobody.
#[test]
fn lasting_failures_on_hosts_are_found() {
    let mut site = site();
    give(&mut site, "h1", "app", "1");
    let revision = publish(&mut site)[0];
    let since = site.now;
    fails(&mut site, "h1", revision, Some("no such directory"));
    let found = |site: &Site| site.state.failed_items(&site.view, site.now).count();
    assert_eq!(found(&site), 0);
    site.now += TimeDelta::minutes(10);
    let name = host("h1");
    let failed = FailedItem {
        host: &name,
        provider: provider("app"),
        is_given: true,
        error: "no such directory",
        since: Some(since),
    };
    assert_eq!(site.state.failed_items(&site.view, site.now).collect::<Vec<_>>(), [failed]);
    fails(&mut site, "h1", revision, None);
    assert_eq!(found(&site), 0, "it is being tried");
    // Nobody knows since when a revocation fails.
    configure(&mut site, "[]");
    let revision = publish(&mut site)[0];
    fails(&mut site, "h1", revision, Some("in use"));
    let found: Vec<_> = site.state.failed_items(&site.view, site.now).collect();
    let brief: Vec<_> = found.iter().map(|it| (it.is_given, it.error, it.since)).collect();
    assert_eq!(brief, [(false, "in use", None)]);
}

/// Whoever can publish reports can make up names of hosts.
#[test]
fn failures_of_hosts_that_nobody_approved_need_nobody() {
    let mut site = site();
    site.input(Input::Settings(Settings { auto_approve: false, ..settings() }));
    let approved = EnrolmentFact::HostsApproved { hosts: vec![host("h1")], actor: "eve".to_owned() };
    site.state.apply(site.now, &approved.into()).unwrap();
    for name in ["h1", "made-up"] {
        fails(&mut site, name, Revision { epoch: 0, sequence: 0 }, Some("in use"));
    }
    let failed = site.state.failed_items(&site.view, site.now).map(|it| it.host.to_string());
    assert_eq!(failed.collect::<Vec<_>>(), ["h1"]);
    assert!(!site.state.concerns_host(&host("made-up")));
}

/// What `h1` has of providers that are gone: their names, how far that is, and whether it keeps it.
fn left_over(site: &Site) -> Vec<(String, ItemState<'_>, bool)> {
    let items = site.state.left_over(&site.view, &host("h1")).into_iter();
    items.map(|it| (it.provider.to_string(), it.state, it.kept_since.is_some())).collect()
}

/// What a provider that is gone has given is shown until the host has revoked it, or for as long as the host keeps it.
#[test]
fn what_gone_providers_gave_is_left_over() {
    let mut site = site();
    for of in ["app", "net"] {
        give(&mut site, "h1", of, "9");
    }
    let revision = publish(&mut site)[0];
    says(&mut site, "h1", revision, &["app", "net", "no provider"]);
    assert_eq!(left_over(&site), []);
    configure(&mut site, "[]");
    let [app, net] = ["app", "net"].map(ToOwned::to_owned);
    let kept = (net, ItemState::Applied, true);
    assert_eq!(left_over(&site), [kept.clone(), (app.clone(), ItemState::Revoking, false)]);
    let revision = publish(&mut site)[0];
    assert_eq!(left_over(&site), [kept.clone(), (app, ItemState::Revoking, false)], "it has not said so");
    says(&mut site, "h1", revision, &["net"]);
    assert_eq!(left_over(&site), [kept]);
    configure(&mut site, r#"[{"name":"net"}]"#);
    assert_eq!(left_over(&site), []);
}
