//! What hosts are to have: which items count, when a manifest is to be published, and what becomes of that after a restoration.

mod item_states;

use std::sync::Arc;

use chrono::TimeDelta;
use imbl::OrdMap;
use os_upgrade_kernel::fact::{DesiredFact, EnrolmentFact};
use os_upgrade_kernel::{
    Accepted, Answer, Cause, ConfigOperation, ConfigurationWait, Configures, DesiredOperation,
    DesiredRefusal, Effect, EnrolmentOperation, Expected, Explainer, Fact, HostStatus, Input, ManifestOrder,
    Operation, PauseOperation, Poll, Purge, Reason, Refusal, Request, Resumption, RunResult, StoredItem,
    Withholding, forecast, manifests,
};
use os_upgrade_protocol::limits::ITEMS_MAX;
use os_upgrade_protocol::{Applied, AppliedItem, HostKey, HostName, ItemId, ItemKind, Revision};
use os_upgrade_provider_rules::{Failure, ProviderName};

use crate::common::script::perform;
use crate::common::{APPLICATION, Site, application, config, host, restore};

const KEY: HostKey = HostKey::new([1; 32]);

fn provider(name: &str) -> ProviderName {
    ProviderName::new(name).unwrap()
}

fn id(text: &str) -> ItemId {
    ItemId::new(text).unwrap()
}

/// A site with h1, h2 and h3, whose keys are approved, but for that of h3, and with the providers `app`, which revokes, and `net`.
fn site() -> Site {
    let mut site = Site::ready(&["h1", "h2", "h3"]);
    for name in ["h1", "h2"] {
        let (host, actor) = (host(name), Some("eve".to_owned()));
        let pinned = Fact::Enrolment(EnrolmentFact::KeyPinned { host, key: KEY, actor });
        site.state.apply(site.now, &pinned).unwrap();
    }
    configure(&mut site, r#"[{"name":"app","on-removal":"remove"},{"name":"net"}]"#);
    site
}

/// Configures these providers, each with what is left out.
fn configure(site: &mut Site, providers: &str) {
    let mut providers: Vec<serde_json::Value> = serde_json::from_str(providers).unwrap();
    for provider in &mut providers {
        let provider = provider.as_object_mut().unwrap();
        provider.insert("kind".to_owned(), "http".into());
        provider.insert("url".to_owned(), "https://files.example/{host}".into());
    }
    let mut config = config();
    config.config_providers = serde_json::from_value(providers.into()).unwrap();
    request(site, ConfigOperation::Put { config: config.into(), expected: Expected::Anything }).unwrap();
}

fn request(site: &mut Site, operation: impl Into<Operation>) -> Answer {
    let request: Request = Request { actor: "eve".to_owned(), validate: false, operation: operation.into() };
    site.input(Input::Request(request)).answer.unwrap()
}

fn stored(site: &Site, name: &str, item: &str) -> StoredItem {
    let sealed = site.state.next_sealed(&host(name));
    StoredItem { id: id(item), bytes: 600, key: KEY, sealed, fingerprint: None, hash: None }
}

/// `of` gave `item` for a host.
fn give(site: &mut Site, name: &str, of: &str, item: &str) -> Vec<Fact> {
    let item = stored(site, name, item);
    site.input(Input::ItemStored { host: host(name), provider: provider(of), item }).facts
}

/// The manifests to publish: host, the ids that it names, and those to delete.
fn due(site: &Site) -> Vec<(String, Vec<String>, Vec<String>)> {
    let texts = |ids: &[ItemId]| ids.iter().map(ToString::to_string).collect();
    let named = |order: &ManifestOrder| {
        let items = order.manifest(&site.state).unwrap().items;
        items.iter().map(|item| format!("{}={}", item.name, item.id)).collect()
    };
    manifests(&site.state)
        .map(|order| (order.host.to_string(), named(&order), texts(&order.replaced)))
        .collect()
}

/// Every manifest is published. Returns their revisions.
fn publish(site: &mut Site) -> Vec<Revision> {
    let orders: Vec<_> = manifests(&site.state).collect();
    for ManifestOrder { host, revision, .. } in &orders {
        site.input(Input::ManifestStored { host: host.clone(), revision: *revision });
    }
    assert_eq!(manifests(&site.state).count(), 0);
    orders.into_iter().map(|order| order.revision).collect()
}

fn manifest(name: &str, items: &[&str], replaced: &[&str]) -> (String, Vec<String>, Vec<String>) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    (name.to_owned(), texts(items), texts(replaced))
}

fn says(site: &mut Site, name: &str, revision: Revision, items: &[&str]) {
    let item = |name: &&str| AppliedItem {
        kind: ItemKind::Configuration,
        name: (*name).to_owned(),
        id: Some(id("9")),
        error: None,
        unit: None,
    };
    let items = items.iter().map(item).collect();
    let site_name = site.state.settings.site.clone();
    let applied = Applied { site: site_name, revision, items, refused: None };
    site.view.applied.insert(host(name), Arc::new(applied));
}

#[test]
fn manifests_follow_what_providers_give() {
    let mut site = site();
    assert_eq!(due(&site), []);
    give(&mut site, "h1", "net", "1");
    give(&mut site, "h1", "app", "2");
    assert_eq!(due(&site), [manifest("h1", &["app=2", "net=1"], &[])]);
    let first = publish(&mut site);
    give(&mut site, "h1", "app", "3");
    give(&mut site, "h2", "app", "4");
    let expected = [manifest("h1", &["app=3", "net=1"], &["2"]), manifest("h2", &["app=4"], &[])];
    assert_eq!(due(&site), expected);
    let second = publish(&mut site);
    assert!(second.iter().all(|revision| *revision > first[0]), "{first:?} {second:?}");
    // Only `app` revokes.
    for of in ["app", "net"] {
        site.input(Input::ItemRevoked { host: host("h1"), provider: provider(of) });
    }
    assert_eq!(due(&site), [manifest("h1", &["net=1"], &["3"])]);
}

/// What was published in between does not count, and what a manifest that is on its way names stays.
#[test]
fn only_the_newest_manifest_counts() {
    let mut site = site();
    give(&mut site, "h1", "app", "1");
    let order = manifests(&site.state).next().unwrap();
    give(&mut site, "h1", "app", "2");
    assert_eq!(order.manifest(&site.state), None);
    let stored = Input::ManifestStored { host: order.host, revision: order.revision };
    assert_eq!(site.input(stored).facts, []);
    assert_eq!(due(&site), [manifest("h1", &["app=2"], &["1"])]);
}

#[test]
fn nothing_is_sealed_to_hosts_that_may_not_have_it() {
    let mut site = site();
    assert_eq!(give(&mut site, "h3", "app", "1"), [], "its key is not approved");
    assert_eq!(give(&mut site, "h1", "other", "1"), [], "there is no such provider");
    let item = StoredItem { key: HostKey::new([2; 32]), ..stored(&site, "h1", "1") };
    let to_other = Input::ItemStored { host: host("h1"), provider: provider("app"), item };
    assert_eq!(site.input(to_other).facts, [], "it was sealed to another key");
    configure(&mut site, r#"[{"name":"app","selector":{"names":["h2"]}}]"#);
    assert_eq!(give(&mut site, "h1", "app", "1"), [], "it is not selected");
    assert_ne!(give(&mut site, "h2", "app", "1"), []);
}

#[test]
fn what_providers_no_longer_give_is_kept_or_revoked() {
    let mut site = site();
    for (of, item) in [("app", "1"), ("net", "2")] {
        give(&mut site, "h1", of, item);
    }
    publish(&mut site);
    // `app` says that it is revoked, `net` that it is kept.
    configure(&mut site, "[]");
    assert_eq!(due(&site), [manifest("h1", &["net=2"], &["1"])]);
    publish(&mut site);
    // Who wants to get rid of it says so.
    configure(&mut site, r#"[{"name":"net","on-removal":"remove","selector":{"names":["h2"]}}]"#);
    assert_eq!(due(&site), [manifest("h1", &[], &["2"])]);
    publish(&mut site);
    assert!(site.state.desired.hosts.is_empty());
}

/// A host that is withdrawn or removed has nothing; what the streams have of a removed one is deleted after that.
#[test]
fn hosts_that_go_get_an_empty_manifest() {
    for operation in [
        EnrolmentOperation::Withdraw { host: host("h1"), reason: "stolen".to_owned() },
        EnrolmentOperation::Remove { host: host("h1"), reason: "scrapped".to_owned() },
    ] {
        let mut site = site();
        give(&mut site, "h1", "net", "1");
        publish(&mut site);
        let is_removed = matches!(operation, EnrolmentOperation::Remove { .. });
        request(&mut site, operation).unwrap();
        assert_eq!(due(&site), [manifest("h1", &[], &["1"])]);
        let purges =
            |site: &Site| site.effects().iter().filter(|effect| matches!(effect, Effect::Purge(_))).count();
        assert_eq!(purges(&site), 0);
        publish(&mut site);
        assert!(site.state.desired.hosts.is_empty());
        assert_eq!(purges(&site), usize::from(is_removed));
        assert_eq!(give(&mut site, "h1", "net", "2"), [], "its key counts no more");
        assert!(site.state.desired.emptied.contains_key(&host("h1")));
        for effect in site.effects() {
            let Effect::Purge(Purge { host, announced, .. }) = effect else { continue };
            site.input(Input::Purged { host, announced });
            assert!(site.state.desired.emptied.is_empty(), "its reports are gone, too");
        }
    }
}

/// That its delivery was resumed in an epoch of its own stays known of a removed host.
#[test]
fn removed_hosts_are_purged_though_they_were_resumed() {
    let mut site = site();
    give(&mut site, "h1", "net", "1");
    publish(&mut site);
    says(&mut site, "h1", Revision { epoch: 7, sequence: 0 }, &["net"]);
    request(&mut site, DesiredOperation::Resume { host: Some(host("h1")) }).unwrap();
    publish(&mut site);
    let reason = "scrapped".to_owned();
    request(&mut site, EnrolmentOperation::Remove { host: host("h1"), reason }).unwrap();
    let is_purged = |site: &Site| site.effects().iter().any(|effect| matches!(effect, Effect::Purge(_)));
    assert!(!is_purged(&site), "it has not been told yet");
    publish(&mut site);
    assert!(is_purged(&site));
}

#[test]
fn restorations_stop_delivery_until_it_is_resumed() {
    let mut site = site();
    give(&mut site, "h1", "app", "1");
    give(&mut site, "h2", "app", "2");
    let before = publish(&mut site);
    restore(&mut site);
    assert_eq!(due(&site), []);
    give(&mut site, "h1", "app", "3");
    assert_eq!(due(&site), [], "it is known, and not delivered");
    request(&mut site, DesiredOperation::Resume { host: Some(host("h1")) }).unwrap();
    assert_eq!(due(&site), [manifest("h1", &["app=3"], &["1"])]);
    assert!(publish(&mut site)[0] > before[1]);
    request(&mut site, DesiredOperation::Resume { host: None }).unwrap();
    assert_eq!(due(&site), [manifest("h2", &["app=2"], &[])]);
    publish(&mut site);
    assert_eq!(request(&mut site, DesiredOperation::Resume { host: None }), Ok(Accepted::Done));
    assert_eq!(due(&site), []);
    restore(&mut site);
    assert!(!site.state.is_delivered(&host("h1")), "each restoration needs a word of its own");
}

/// What is lost gave something to a host, which takes part or not, and tells of it before the delivery is resumed or after.
/// No backup has items: after a restoration none is taken for stored.
#[test]
fn a_restored_site_has_items_stored_anew() {
    let mut site = site();
    let item = StoredItem { fingerprint: Some("same".to_owned()), ..stored(&site, "h1", "1") };
    site.input(Input::ItemStored { host: host("h1"), provider: provider("app"), item });
    let fingerprint =
        |site: &Site| site.state.desired.item(&host("h1"), &provider("app")).unwrap().fingerprint.clone();
    assert_eq!(fingerprint(&site).as_deref(), Some("same"));
    restore(&mut site);
    assert_eq!(fingerprint(&site), None);
}

#[test]
fn hosts_get_rid_of_what_a_restored_site_does_not_know() {
    for (is_withdrawn, is_told_before) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut site = site();
        give(&mut site, "h2", "app", "1");
        let lost = publish(&mut site)[0];
        if is_withdrawn {
            let reason = "sold".to_owned();
            request(&mut site, EnrolmentOperation::Withdraw { host: host("h1"), reason }).unwrap();
        }
        says(&mut site, "h1", lost, &["app", "net"]);
        site.input(Input::Tick);
        assert_eq!(due(&site), [], "nothing was lost yet: the manifest that ends it is on its way");
        restore(&mut site);
        site.input(Input::Tick);
        let withheld: Vec<_> = site.state.withheld_hosts(&site.view).collect();
        let [h1, h2] = ["h1", "h2"].map(host);
        assert_eq!(withheld, [(&h1, Withholding::Restored), (&h2, Withholding::Restored)]);
        let lost_items = Resumption { gains: vec![], loses: vec!["app", "net"] };
        assert_eq!(site.state.resumption(&site.view, &h1), lost_items);
        if !is_told_before {
            site.view.applied.remove(&host("h1"));
        }
        request(&mut site, DesiredOperation::Resume { host: None }).unwrap();
        assert_eq!(site.state.desired.found.contains(&host("h1")), is_told_before);
        says(&mut site, "h1", lost, &["app", "net"]);
        let found = site.input(Input::Tick).facts;
        let fact = DesiredFact::UnknownItemsFound { hosts: vec![host("h1")] };
        assert_eq!(found, if is_told_before { vec![] } else { vec![fact.into()] });
        assert_eq!(due(&site), [manifest("h1", &[], &[]), manifest("h2", &["app=1"], &[])]);
        let told = publish(&mut site)[0];
        assert_eq!(site.input(Input::Tick).facts, [], "its report is as old as before");
        says(&mut site, "h1", told, &[]);
        assert_eq!((site.input(Input::Tick).facts, due(&site)), (vec![], vec![]));
    }
}

/// That a provider fails for every host is a fact, and that it answers again; that it fails for some is none.
#[test]
fn providers_fail_and_recover() {
    let mut site = requiring(r#""h1","h2""#);
    let failed = |site: &mut Site| {
        site.input(Input::Tick);
        site.state.desired.failed.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    let refused = || Some(Failure::Refused { status: 403 });
    assert_eq!(failed(&mut site), Vec::<String>::new(), "nothing is known");
    polled(&mut site, "h1", None, refused());
    assert_eq!(failed(&mut site), Vec::<String>::new(), "nothing is known of h2");
    polled(&mut site, "h2", None, Some(Failure::NotStored));
    assert_eq!(failed(&mut site), Vec::<String>::new(), "the bus has failed for h2");
    polled(&mut site, "h2", None, refused());
    assert_eq!(failed(&mut site), ["app"]);
    assert_eq!(site.input(Input::Tick).facts, [], "it is told once");
    polled(&mut site, "h2", Some(TimeDelta::zero()), None);
    assert_eq!(failed(&mut site), Vec::<String>::new(), "it has answered about one");
    polled(&mut site, "h2", Some(TimeDelta::hours(1)), refused());
    assert_eq!(failed(&mut site), ["app"], "all fail now, though one had an answer");
    site.view.polls = Some(OrdMap::new());
    assert_eq!(failed(&mut site), ["app"], "a new leader knows nothing else yet");
    let hosts = site.view.hosts.clone();
    for name in ["h1", "h2"] {
        site.view.hosts.get_mut(&host(name)).unwrap().configures = None;
    }
    assert_eq!(failed(&mut site), Vec::<String>::new(), "there is no host about which it could fail");
    site.view.hosts = hosts;
    polled(&mut site, "h1", None, refused());
    polled(&mut site, "h2", None, refused());
    assert_eq!(failed(&mut site), ["app"]);
    site.view.polls = Some(OrdMap::new());
    configure(&mut site, r#"[{"name":"app","max-in-flight":8}]"#);
    assert_eq!(failed(&mut site), ["app"], "nothing is known of it yet");
    configure(&mut site, r#"[{"name":"app","path":"/etc/app.conf"}]"#);
    assert_eq!(failed(&mut site), Vec::<String>::new(), "it is defined otherwise");
    polled(&mut site, "h1", None, refused());
    polled(&mut site, "h2", None, refused());
    assert_eq!(failed(&mut site), ["app"]);
    configure(&mut site, r#"[{"name":"net"}]"#);
    assert_eq!(failed(&mut site), Vec::<String>::new(), "it is gone");
}

/// A host that has something newer is told nothing until an operator says so; then in an epoch that is newer still.
#[test]
fn hosts_that_are_ahead_wait_for_an_operator() {
    let mut site = site();
    give(&mut site, "h1", "app", "1");
    let revision = publish(&mut site)[0];
    for (told, is_ahead) in [
        (revision, false),
        (Revision { sequence: site.state.desired.changes + 1, ..revision }, true),
        (Revision { epoch: 7, sequence: 0 }, true),
    ] {
        says(&mut site, "h1", told, &["app"]);
        assert_eq!(site.state.is_ahead(&site.view, &host("h1")), is_ahead, "{told:?}");
    }
    // Whatever else changes on the site, its manifest is not newer.
    says(&mut site, "h1", Revision { sequence: revision.sequence + 1, ..revision }, &["app"]);
    for item in ["7", "8"] {
        give(&mut site, "h2", "app", item);
    }
    assert!(site.state.is_ahead(&site.view, &host("h1")));
    publish(&mut site);
    says(&mut site, "h1", Revision { epoch: 7, sequence: 0 }, &["app"]);
    request(&mut site, DesiredOperation::Resume { host: Some(host("h1")) }).unwrap();
    let revisions = publish(&mut site);
    assert_eq!(revisions.iter().map(|revision| revision.epoch).collect::<Vec<_>>(), [8]);
    assert!(!site.state.is_ahead(&site.view, &host("h1")));
    says(&mut site, "h1", Revision { epoch: u64::MAX, sequence: 1 }, &["app"]);
    let refused = request(&mut site, DesiredOperation::Resume { host: Some(host("h1")) });
    assert_eq!(refused, Err(Refusal::Desired(DesiredRefusal::NoNewerEpoch { host: host("h1") })));
    // Another site's report says nothing about this site's manifests.
    let mut applied = Applied::clone(&site.view.applied[&host("h1")]);
    applied.site = "hall-9".to_owned();
    site.view.applied.insert(host("h1"), Arc::new(applied));
    assert!(!site.state.is_ahead(&site.view, &host("h1")));
}

#[test]
fn requests_are_refused_for_what_there_is_not() {
    let mut site = site();
    let poll = |of: &str, of_host: Option<HostName>| DesiredOperation::Poll {
        provider: provider(of),
        host: of_host,
    };
    let asked = request(&mut site, poll("app", Some(host("h1"))));
    assert_eq!(asked, Ok(Accepted::Done));
    let unknown = DesiredRefusal::UnknownProvider { provider: provider("x") };
    assert_eq!(request(&mut site, poll("x", None)), Err(Refusal::Desired(unknown)));
    let unselected = DesiredRefusal::NotSelected { provider: provider("app"), host: host("h3") };
    assert_eq!(request(&mut site, poll("app", Some(host("h3")))), Err(Refusal::Desired(unselected)));
    let nothing = DesiredRefusal::NothingDesired { host: host("h2") };
    let resumed = request(&mut site, DesiredOperation::Resume { host: Some(host("h2")) });
    assert_eq!(resumed, Err(Refusal::Desired(nothing)));
    // One that has something of which the site knows nothing gets rid of it.
    says(&mut site, "h2", Revision { epoch: 0, sequence: 0 }, &["app"]);
    request(&mut site, DesiredOperation::Resume { host: Some(host("h2")) }).unwrap();
    assert_eq!(due(&site), [manifest("h2", &[], &[])]);
}

/// What `app` said of `name` last, so long ago.
fn polled(site: &mut Site, name: &str, ago: Option<TimeDelta>, failure: Option<Failure>) {
    let confirmed_at = ago.map(|ago| site.now - ago);
    let poll = Poll { confirmed_at, failures: u32::from(failure.is_some()), failure };
    let polls = site.view.polls.get_or_insert_default();
    polls.entry(provider("app")).or_default().insert(host(name), poll);
}

/// A site with h1 and h2, which announce the keys that are approved, and `app`, which is required for `selected`.
fn requiring(selected: &str) -> Site {
    let mut site = site();
    site.view.hosts.remove(&host("h3"));
    for name in ["h1", "h2"] {
        let configures = Configures { application: application(APPLICATION), key: KEY };
        site.view.hosts.get_mut(&host(name)).unwrap().configures = Some(configures);
    }
    let names = format!(r#"[{{"name":"app","required":true,"selector":{{"names":[{selected}]}}}}]"#);
    configure(&mut site, &names);
    site.view.polls = Some(OrdMap::new());
    site
}

fn status(site: &Site, name: &str) -> HostStatus {
    site.state.run.as_ref().or(site.state.last_run.as_ref()).unwrap().host(&host(name)).unwrap().status
}

fn waits(site: &Site, name: &str) -> Option<ConfigurationWait> {
    let explainer = Explainer::new(&site.state, &site.view, site.now);
    let forecast = forecast(&site.state, &site.view, site.now);
    let whys = explainer.explain(&forecast, &host(name)).whys;
    whys.into_iter().find_map(|why| {
        let Cause::Recorded(Reason::ConfigurationMissing { wait, .. }) = why.cause else { return None };
        Some(wait)
    })
}

/// A host is prepared once it has what the provider has confirmed of late. The others do not wait for it.
#[test]
fn required_configuration_comes_before_prepare() {
    let mut site = requiring(r#""h1""#);
    perform(&mut site, "trigger r1");
    perform(&mut site, "deliver");
    assert_eq!((status(&site, "h1"), status(&site, "h2")), (HostStatus::Pending, HostStatus::Preparing));
    perform(&mut site, "reply h2 prepare done");
    perform(&mut site, "deliver");
    assert_eq!(status(&site, "h2"), HostStatus::Upgrading);
    let silent = ConfigurationWait::Provider { failure: None };
    assert_eq!(waits(&site, "h1"), Some(silent));
    let refused = Failure::Refused { status: 403 };
    polled(&mut site, "h1", Some(TimeDelta::hours(25)), Some(refused.clone()));
    assert_eq!(waits(&site, "h1"), Some(ConfigurationWait::Provider { failure: Some(refused) }));
    polled(&mut site, "h1", Some(TimeDelta::hours(23)), None);
    give(&mut site, "h1", "app", "9");
    assert_eq!(waits(&site, "h1"), Some(ConfigurationWait::Host { error: None }));
    let revision = publish(&mut site)[0];
    assert_eq!(status(&site, "h1"), HostStatus::Pending);
    says(&mut site, "h1", revision, &["app"]);
    assert_eq!(waits(&site, "h1"), None);
    site.input(Input::Tick);
    perform(&mut site, "deliver");
    assert_eq!(status(&site, "h1"), HostStatus::Preparing);
}

/// A key that changes, or a failure on the host, keeps it waiting, too.
#[test]
fn what_keeps_required_configuration_from_a_host_is_told() {
    let mut site = requiring(r#""h1""#);
    perform(&mut site, "trigger r1");
    polled(&mut site, "h1", Some(TimeDelta::zero()), None);
    give(&mut site, "h1", "app", "9");
    let revision = publish(&mut site)[0];
    says(&mut site, "h1", revision, &["app"]);
    let mut applied = Applied::clone(&site.view.applied[&host("h1")]);
    applied.items[0].error = Some("no such directory".to_owned());
    site.view.applied.insert(host("h1"), Arc::new(applied));
    let error = Some("no such directory".to_owned());
    assert_eq!(waits(&site, "h1"), Some(ConfigurationWait::Host { error }));
    restore(&mut site);
    request(&mut site, PauseOperation::Resume { reason: None }).unwrap();
    perform(&mut site, "trigger r2");
    site.fence();
    assert_eq!(waits(&site, "h1"), Some(ConfigurationWait::Resumption));
    site.view.hosts.get_mut(&host("h1")).unwrap().configures.as_mut().unwrap().key = HostKey::new([2; 32]);
    assert_eq!(waits(&site, "h1"), Some(ConfigurationWait::Key));
}

/// Nothing to have, as the provider has said, is as good as something that the host has.
#[test]
fn an_applied_revocation_meets_the_requirement() {
    let mut site = requiring(r#""h1""#);
    polled(&mut site, "h1", Some(TimeDelta::zero()), None);
    says(&mut site, "h1", Revision { epoch: 0, sequence: 0 }, &["app"]);
    perform(&mut site, "trigger r1");
    assert_eq!(waits(&site, "h1"), Some(ConfigurationWait::Host { error: None }), "it still has something");
    says(&mut site, "h1", Revision { epoch: 0, sequence: 0 }, &[]);
    assert_eq!(waits(&site, "h1"), None);
}

/// A provider that is away costs a run no more than `provider-wait` after everything else.
#[test]
fn a_run_waits_for_providers_for_a_bounded_time() {
    let mut site = requiring(r#""h1""#);
    perform(&mut site, "trigger r1");
    for line in ["deliver", "reply h2 prepare done", "deliver"] {
        perform(&mut site, line);
    }
    perform(&mut site, "wait 2h");
    site.input(Input::Tick);
    assert_eq!(status(&site, "h1"), HostStatus::Pending, "others are at work");
    perform(&mut site, "reply h2 upgrade done");
    perform(&mut site, "wait 14m");
    site.input(Input::Tick);
    assert_eq!(status(&site, "h1"), HostStatus::Pending);
    perform(&mut site, "wait 1m");
    site.input(Input::Tick);
    assert_eq!((status(&site, "h1"), status(&site, "h2")), (HostStatus::Skipped, HostStatus::Upgraded));
    assert!(site.state.run.is_none());
    let result = site.state.last_run.as_ref().unwrap().ended.unwrap().result;
    assert_eq!(result, RunResult::Completed);
}

/// A host's items to delete are bounded, whatever a provider gives while nothing can be published.
#[test]
fn replaced_items_are_bounded() {
    let mut site = site();
    for number in 0..600 {
        give(&mut site, "h1", "app", &number.to_string());
    }
    let replaced = &site.state.desired.hosts[&host("h1")].replaced;
    assert_eq!((replaced.len(), replaced.last()), (ITEMS_MAX, Some(&id("598"))));
    assert_eq!(
        site.state.desired.item(&host("h1"), &provider("app")).map(|item| item.id.clone()),
        Some(id("599"))
    );
    let fact = DesiredFact::ItemRevoked { host: host("h1"), provider: provider("none") };
    site.state.apply(site.now, &fact.into()).unwrap();
    assert_eq!(site.state.desired.changes, 600, "nothing changed");
}
