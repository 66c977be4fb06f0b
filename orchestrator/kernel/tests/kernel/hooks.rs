//! What providers of kind `hooks` are to be told of hosts: that they join, new specs and metadata. And tokens and call-backs.

use chrono::TimeDelta;
use imbl::OrdMap;
use os_upgrade_kernel::desired::{CALLBACK_TOKENS_MAX, HookDevice, ToldMetadata};
use os_upgrade_kernel::fact::DesiredFact;
use os_upgrade_kernel::{
    Accepted, Answer, ConfigOperation, Configures, DesiredOperation, DesiredRefusal, EnrolmentOperation,
    Expected, Fact, HostStatus, Input, Operation, Poll, Reachability, Refusal, Request, SeenHost, StoredItem,
};
use os_upgrade_protocol::{HostKey, ItemId};
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::{DeviceMetadata, HookEvent, metadata_digest};

use crate::common::script::perform;
use crate::common::{APPLICATION, Site, application, config, group, host, restore, start};

const KEY: HostKey = HostKey::new([1; 32]);
const OTHER_KEY: HostKey = HostKey::new([2; 32]);
const JOIN: HookEvent = HookEvent::FleetJoin;
const SPEC: HookEvent = HookEvent::DeviceSpecUpdate;
const METADATA: HookEvent = HookEvent::DeviceMetadataUpdate;

fn app() -> ProviderName {
    ProviderName::new("app").unwrap()
}

/// The provider `app` of kind `hooks`, with `more` keys.
fn hooks(more: &str) -> String {
    format!(r#"[{{"name":"app","kind":"hooks","url":"https://hooks.example/"{more}}}]"#)
}

/// The provider `app` of kind `http`.
fn http() -> String {
    hooks("").replace("hooks", "http")
}

fn configure(site: &mut Site, providers: &str) {
    let mut config = config();
    config.config_providers = serde_json::from_str(providers).unwrap();
    request(site, ConfigOperation::Put { config: config.into(), expected: Expected::Anything }).unwrap();
}

fn request(site: &mut Site, operation: impl Into<Operation>) -> Answer {
    let request: Request = Request { actor: "eve".to_owned(), validate: false, operation: operation.into() };
    site.input(Input::Request(request)).answer.unwrap()
}

/// The facts that follow from a granted operation.
fn granted(site: &mut Site, operation: DesiredOperation) -> Vec<Fact> {
    let outputs = site.input(Input::Request(Request::new("eve", operation).into()));
    assert_eq!(outputs.answer, Some(Ok(Accepted::Done)));
    outputs.facts
}

/// The host announces `key`. The first one of a host counts at the next tick.
fn announce(site: &mut Site, name: &str, key: HostKey) {
    let configures = Configures { application: application(APPLICATION), key };
    site.view.hosts.get_mut(&host(name)).unwrap().configures = Some(configures);
}

fn approve(site: &mut Site, name: &str, key: HostKey) {
    let (hosts, keys) = (vec![host(name)], [(host(name), key)].into());
    request(site, EnrolmentOperation::Approve { hosts, keys, machines: [].into() }).unwrap();
}

fn withdraw(site: &mut Site, name: &str) {
    request(site, EnrolmentOperation::Withdraw { host: host(name), reason: "stolen".to_owned() }).unwrap();
}

/// A site with h1 and h2, whose keys were approved before the `providers` were configured.
fn site(providers: &str) -> Site {
    let mut site = Site::ready(&["h1", "h2"]);
    for name in ["h1", "h2"] {
        announce(&mut site, name, KEY);
    }
    site.input(Input::Tick);
    configure(&mut site, providers);
    site
}

/// The same, and `app` has answered to all that it was to be told.
fn joined(more: &str) -> Site {
    let mut site = site(&hooks(more));
    answer_all(&mut site);
    site
}

fn device<'a>(site: &'a Site, name: &str) -> Option<&'a HookDevice> {
    site.state.hook_device(&app(), &host(name))
}

/// What `app` is to be told of a host, with causes; `None` if the host has not joined it.
fn pending(site: &Site, name: &str) -> Option<Vec<(HookEvent, u64)>> {
    let pending = &device(site, name)?.pending;
    Some(pending.iter().map(|(event, cause)| (*event, *cause)).collect())
}

/// What `app` is to be told of h1 and of h2.
fn told(site: &Site) -> [Option<Vec<HookEvent>>; 2] {
    let events = |name| Some(pending(site, name)?.into_iter().map(|(event, _)| event).collect());
    ["h1", "h2"].map(events)
}

fn digest(site: &Site, name: &str) -> u64 {
    site.view.metadata_digest(&host(name))
}

/// `app` answers to an event, and was told the metadata as they are.
fn answer(site: &mut Site, name: &str, (event, cause): (HookEvent, u64)) -> Vec<Fact> {
    let metadata = digest(site, name);
    answers(site, name, (event, cause), metadata, None)
}

fn answers(
    site: &mut Site,
    name: &str,
    (event, cause): (HookEvent, u64),
    metadata: u64,
    poll_interval: Option<u64>,
) -> Vec<Fact> {
    let (provider, host) = (app(), host(name));
    site.input(Input::HookAnswered { provider, host, event, cause, metadata, poll_interval }).facts
}

fn answer_all(site: &mut Site) {
    for name in ["h1", "h2"] {
        for due in pending(site, name).unwrap_or_default() {
            assert_eq!(answer(site, name, due).len(), 1, "{name}: {due:?}");
        }
        assert!(pending(site, name).unwrap_or_default().is_empty());
    }
}

/// `app` calls back about the hosts with these `names`.
fn call_back(names: &str) -> DesiredOperation {
    DesiredOperation::CallBack { provider: app(), hosts: names.split_whitespace().map(host).collect() }
}

fn draw(site: &mut Site, digest: &str) -> Vec<Fact> {
    site.input(Input::HookTokenDrawn { provider: app(), digest: digest.to_owned() }).facts
}

fn tokens(site: &Site) -> Vec<String> {
    site.state.desired.hooks.get(&app()).map(|known| known.tokens.clone()).unwrap_or_default()
}

fn label(site: &mut Site, name: &str, value: &str) {
    let labels = &mut site.view.hosts.get_mut(&host(name)).unwrap().labels;
    labels.insert("rack".to_owned(), value.to_owned());
    digested(site, name);
}

/// The digest of what a host announces is as the shell has it.
fn digested(site: &mut Site, name: &str) {
    let seen = site.view.hosts.get_mut(&host(name)).unwrap();
    seen.metadata_digest = metadata_digest(&seen.labels, seen.machine_id.as_deref());
}

/// What was found `minutes` later.
fn after(site: &mut Site, minutes: i64) -> Vec<Fact> {
    site.now += TimeDelta::minutes(minutes);
    site.input(Input::Tick).facts
}

fn metadata_changed(name: &str) -> Vec<Fact> {
    vec![DesiredFact::HookMetadataChanged { provider: app(), hosts: vec![host(name)] }.into()]
}

#[test]
fn hosts_join_once_for_each_approval() {
    // The provider was there before the hosts.
    let mut site = Site::ready(&["h1", "h2"]);
    configure(&mut site, &hooks(""));
    announce(&mut site, "h1", KEY);
    site.input(Input::Tick);
    assert_eq!(told(&site), [Some(vec![JOIN]), None]);
    answer_all(&mut site);
    assert_eq!(told(&site), [Some(vec![]), None]);
    // Another key of the host is another approval.
    announce(&mut site, "h1", OTHER_KEY);
    approve(&mut site, "h1", OTHER_KEY);
    let fresh = HookDevice { pending: [(JOIN, 2_u64)].into_iter().collect(), ..HookDevice::default() };
    assert_eq!(device(&site, "h1"), Some(&fresh), "what it was told before is forgotten");
    approve(&mut site, "h1", OTHER_KEY);
    assert_eq!(device(&site, "h1"), Some(&fresh), "nothing was approved anew");
    answer_all(&mut site);
    // A host that takes no part is nobody's.
    withdraw(&mut site, "h1");
    assert_eq!(told(&site), [None, None]);
    approve(&mut site, "h1", OTHER_KEY);
    assert_eq!(pending(&site, "h1"), Some(vec![(JOIN, 3)]));
}

#[test]
fn hosts_join_providers_that_come_later() {
    let join = || Some(vec![JOIN]);
    for (providers, expected) in [
        (hooks(""), [join(), join()]),
        (hooks(r#","selector":{"names":["h2"]}"#), [None, join()]),
        (hooks(r#","events":["ON_FLEET_JOIN"]"#), [join(), join()]),
        (hooks(r#","events":["ON_DEVICE_POLL"]"#), [Some(vec![]), Some(vec![])]),
        (http(), [None, None]),
    ] {
        assert_eq!(told(&site(&providers)), expected, "{providers}");
    }
}

#[test]
fn providers_that_go_know_nothing_when_they_return() {
    for other in ["[]".to_owned(), http()] {
        let mut site = joined("");
        draw(&mut site, "one");
        configure(&mut site, &other);
        assert!(site.state.desired.hooks.is_empty(), "{other}");
        configure(&mut site, &hooks(""));
        assert_eq!(told(&site), [Some(vec![JOIN]), Some(vec![JOIN])]);
        assert_eq!(tokens(&site), [""; 0]);
    }
}

/// A host that is selected again has joined already. What it is to have is said anew.
#[test]
fn hosts_that_are_selected_again_do_not_join_again() {
    let mut site = joined("");
    request(&mut site, call_back("h1")).unwrap();
    configure(&mut site, &hooks(r#","selector":{"names":["h2"]}"#));
    assert_eq!(told(&site), [Some(vec![]), Some(vec![])], "nothing is told of hosts that are not selected");
    configure(&mut site, &hooks(""));
    assert_eq!(told(&site), [Some(vec![SPEC]), Some(vec![])]);
}

#[test]
fn other_definitions_are_new_specs() {
    let spec = || Some(vec![SPEC]);
    let none = || Some(vec![]);
    for (more, expected) in [
        (r#","poll-interval":"10m","max-in-flight":1,"required":true"#, [none(), none()]),
        (r#","batch-size":10"#, [none(), none()]),
        (r#","events":["ON_DEVICE_POLL"]"#, [none(), none()]),
        (r#","path":"/etc/app""#, [spec(), spec()]),
        (r#","credentials":"files""#, [spec(), spec()]),
        (r#","path":"/etc/app","selector":{"names":["h2"]}"#, [none(), spec()]),
        (r#","path":"/etc/app","events":["ON_FLEET_JOIN"]"#, [none(), none()]),
    ] {
        let mut site = joined("");
        configure(&mut site, &hooks(more));
        assert_eq!(told(&site), expected, "{more}");
        answer_all(&mut site);
    }
}

/// What is no longer heard is not told, but a provider that has called back is asked.
#[test]
fn events_that_are_no_longer_heard_are_not_told() {
    let mut site = site(&hooks(""));
    request(&mut site, call_back("h1")).unwrap();
    assert_eq!(told(&site), [Some(vec![JOIN, SPEC]), Some(vec![JOIN])]);
    configure(&mut site, &hooks(r#","events":["ON_DEVICE_POLL"]"#));
    assert_eq!(told(&site), [Some(vec![SPEC]), Some(vec![])]);
}

#[test]
fn runs_are_new_specs_of_their_hosts() {
    for (more, is_told) in [("", true), (r#","events":["ON_FLEET_JOIN"]"#, false)] {
        let mut site = joined(more);
        site.view.hosts.get_mut(&host("h2")).unwrap().reachability = Reachability::Unreachable;
        perform(&mut site, "trigger r1");
        let expected = if is_told { vec![SPEC] } else { vec![] };
        assert_eq!(told(&site), [Some(expected), Some(vec![])], "h2 is skipped");
        let cause = pending(&site, "h1").unwrap().first().map_or(0, |(_, cause)| *cause);
        assert_eq!(device(&site, "h1").unwrap().spec, cause);
    }
}

#[test]
fn metadata_are_told_at_most_once_in_ten_minutes() {
    let mut site = joined("");
    assert_eq!(after(&mut site, 60), [], "they are as they were told");
    label(&mut site, "h1", "r1");
    assert_eq!(after(&mut site, 0), metadata_changed("h1"));
    assert_eq!(pending(&site, "h1"), Some(vec![(METADATA, 3)]));
    label(&mut site, "h1", "r2");
    assert_eq!(after(&mut site, 60), [], "that is still to be told");
    assert_eq!(answer(&mut site, "h1", (METADATA, 3)).len(), 1);
    assert_eq!(told(&site), [Some(vec![]), Some(vec![])]);
    assert_eq!(after(&mut site, 60), [], "it was told the newest");
    // Right after an answer to whatever event.
    request(&mut site, call_back("h1")).unwrap();
    answer_all(&mut site);
    label(&mut site, "h1", "r3");
    assert_eq!(after(&mut site, 9), []);
    assert_eq!(after(&mut site, 1), metadata_changed("h1"));
    // Of an answer about earlier metadata, ten minutes pass, too.
    let due = pending(&site, "h1").unwrap()[0];
    answers(&mut site, "h1", due, 7, None);
    assert_eq!(after(&mut site, 9), []);
    assert_eq!(after(&mut site, 1), metadata_changed("h1"));
}

#[test]
fn only_metadata_that_matter_are_told() {
    type Change = fn(&mut Site);
    fn seen(site: &mut Site) -> &mut SeenHost {
        site.view.hosts.get_mut(&host("h1")).unwrap()
    }
    let changes: [(&str, Change, bool); 6] = [
        ("labels", |site| label(site, "h1", "r1"), true),
        (
            "machine",
            |site| {
                seen(site).machine_id = Some("m".to_owned());
                digested(site, "h1");
            },
            true,
        ),
        ("boot", |site| seen(site).boot_id = Some("b".to_owned()), false),
        ("group", |site| seen(site).group = Some(group("edge")), false),
        (
            "key",
            |site| {
                label(site, "h1", "r1");
                announce(site, "h1", OTHER_KEY);
            },
            false,
        ),
        (
            "gone",
            |site| {
                site.view.hosts.remove(&host("h1"));
            },
            false,
        ),
    ];
    for (name, change, is_told) in changes {
        let mut site = joined("");
        change(&mut site);
        let expected = if is_told { metadata_changed("h1") } else { vec![] };
        assert_eq!(after(&mut site, 10), expected, "{name}");
    }
    let mut deaf = joined(r#","events":["ON_FLEET_JOIN"]"#);
    label(&mut deaf, "h1", "r1");
    assert_eq!(after(&mut deaf, 10), []);
    let mut untold = site(&hooks(""));
    label(&mut untold, "h1", "r1");
    assert_eq!(after(&mut untold, 10), [], "what it is told first has them");
}

#[test]
fn answers_count_for_what_was_asked() {
    let mut site = joined("");
    request(&mut site, call_back("h1")).unwrap();
    request(&mut site, call_back("h1")).unwrap();
    assert_eq!(pending(&site, "h1"), Some(vec![(SPEC, 4)]));
    for due in [(SPEC, 3), (JOIN, 4), (METADATA, 4), (HookEvent::EnrollmentRequest, 4)] {
        assert_eq!(answer(&mut site, "h1", due), [], "{due:?}");
    }
    assert_eq!(answer(&mut site, "h2", (SPEC, 4)), []);
    assert_eq!(pending(&site, "h1"), Some(vec![(SPEC, 4)]));
    let metadata = digest(&site, "h1");
    let (event, cause, poll_interval) = (SPEC, 4, None);
    let fact = DesiredFact::HookAnswered {
        provider: app(),
        host: host("h1"),
        event,
        cause,
        metadata,
        poll_interval,
    };
    assert_eq!(answer(&mut site, "h1", (SPEC, 4)), [Fact::from(fact)]);
    let told = Some(ToldMetadata { digest: metadata, since: site.now });
    let expected = HookDevice { spec: 4, told, ..HookDevice::default() };
    assert_eq!(device(&site, "h1"), Some(&expected));
    withdraw(&mut site, "h1");
    assert_eq!(answer(&mut site, "h1", (SPEC, 4)), [], "it takes no part");
}

#[test]
fn poll_intervals_are_journaled_when_they_change() {
    let mut site = joined("");
    let poll = HookEvent::DevicePoll;
    let metadata = digest(&site, "h1");
    let changed = |poll_interval| {
        let (provider, host) = (app(), host("h1"));
        let fact =
            DesiredFact::HookAnswered { provider, host, event: poll, cause: 0, metadata, poll_interval };
        vec![Fact::from(fact)]
    };
    for (interval, expected) in [
        (None, vec![]),
        (Some(60), changed(Some(60))),
        (Some(60), vec![]),
        (None, vec![]),
        (Some(120), changed(Some(120))),
    ] {
        assert_eq!(answers(&mut site, "h1", (poll, 1_764_489_600), metadata, interval), expected);
    }
    assert_eq!(device(&site, "h1").unwrap().poll_interval, Some(120));
    request(&mut site, call_back("h1")).unwrap();
    answer_all(&mut site);
    assert_eq!(device(&site, "h1").unwrap().poll_interval, Some(120), "it has named no other");
}

#[test]
fn callbacks_are_about_selected_hosts() {
    let called_back = |names: &str| {
        let hosts = names.split_whitespace().map(host).collect();
        vec![Fact::from(DesiredFact::CallbackReceived { provider: app(), hosts })]
    };
    let none = || Some(vec![]);
    let spec = || Some(vec![SPEC]);
    let only_h1 = r#","selector":{"names":["h1"]}"#;
    for (more, names, expected, told_then) in [
        ("", "h2 h1 h2", called_back("h1 h2"), [spec(), spec()]),
        ("", "h7 h2", called_back("h2"), [none(), spec()]),
        ("", "h7", vec![], [none(), none()]),
        ("", "", vec![], [none(), none()]),
        (r#","events":["ON_DEVICE_POLL"]"#, "h1", called_back("h1"), [spec(), none()]),
        (only_h1, "h2", vec![], [none(), None]),
    ] {
        let mut site = joined(more);
        assert_eq!(granted(&mut site, call_back(names)), expected, "{more} {names}");
        assert_eq!(told(&site), told_then, "{more} {names}");
    }
    // h2 has joined and is no longer selected.
    let mut site = joined("");
    configure(&mut site, &hooks(only_h1));
    assert_eq!(granted(&mut site, call_back("h2")), []);
}

#[test]
fn requests_about_hooks_are_refused() {
    let rotate = || DesiredOperation::RotateToken { provider: app() };
    let unknown = || DesiredRefusal::UnknownProvider { provider: app() };
    let not_hooks = || DesiredRefusal::NotHooks { provider: app() };
    for (providers, refusal) in [("[]".to_owned(), unknown()), (http(), not_hooks())] {
        let mut site = site(&providers);
        for operation in [rotate(), call_back("h1")] {
            let refused = request(&mut site, operation);
            assert_eq!(refused, Err(Refusal::Desired(refusal.clone())), "{providers}");
        }
        assert_eq!(draw(&mut site, "one"), [], "{providers}");
    }
}

#[test]
fn the_last_tokens_count() {
    let mut site = joined("");
    for number in 0..20 {
        let digest = format!("{number:02}");
        let drawn = DesiredFact::HookTokenDrawn { provider: app(), digest: digest.clone() };
        assert_eq!(draw(&mut site, &digest), [Fact::from(drawn)]);
    }
    let last: Vec<_> = (20 - CALLBACK_TOKENS_MAX..20).map(|number| format!("{number:02}")).collect();
    assert_eq!(tokens(&site), last);
    assert_eq!(draw(&mut site, "19"), [], "it is known");
    let provider = &site.state.desired.hooks[&app()];
    assert_eq!(["19", "04", "03"].map(|digest| provider.has_token(digest)), [true, true, false]);
    let rotate = || DesiredOperation::RotateToken { provider: app() };
    let revoked = DesiredFact::HookTokensRevoked { provider: app(), actor: "eve".to_owned() };
    assert_eq!(granted(&mut site, rotate()), [Fact::from(revoked)]);
    assert_eq!(tokens(&site), [""; 0]);
    assert_eq!(granted(&mut site, rotate()), [], "there is none");
    assert_eq!(told(&site), [Some(vec![]), Some(vec![])]);
}

/// A token that was revoked in what is lost must not count again. What is to be told stays.
#[test]
fn restorations_revoke_tokens() {
    let mut site = site(&hooks(""));
    draw(&mut site, "one");
    restore(&mut site);
    assert_eq!(tokens(&site), [""; 0]);
    assert_eq!(told(&site), [Some(vec![JOIN]), Some(vec![JOIN])]);
}

/// A `null` of the provider is its word. What becomes of hosts that are no longer selected is the operator's.
#[test]
fn what_hooks_revoke_is_revoked() {
    let mut site = joined("");
    let item = |site: &Site, id: &str| StoredItem {
        id: ItemId::new(id).unwrap(),
        bytes: 600,
        key: KEY,
        sealed: site.state.next_sealed(&host("h1")),
        fingerprint: None,
        hash: Some("aGFzaA==".to_owned()),
    };
    let (provider, h1) = (app(), host("h1"));
    let stored = item(&site, "1");
    site.input(Input::ItemStored { host: h1.clone(), provider: provider.clone(), item: stored });
    let hash = |site: &Site| site.state.desired.item(&host("h1"), &app()).map(|item| item.hash.clone());
    assert_eq!(hash(&site), Some(Some("aGFzaA==".to_owned())));
    let facts = site.input(Input::ItemRevoked { host: h1.clone(), provider: provider.clone() }).facts;
    let revoked = DesiredFact::ItemRevoked { host: h1.clone(), provider: provider.clone() };
    assert_eq!((facts, hash(&site)), (vec![Fact::from(revoked)], None));
    let stored = item(&site, "2");
    site.input(Input::ItemStored { host: h1, provider, item: stored });
    configure(&mut site, &hooks(r#","selector":{"names":["h2"]}"#));
    assert!(hash(&site).is_some());
}

/// What a required provider has said before a run does not count for it.
#[test]
fn required_hosts_wait_for_the_answer() {
    let mut site = joined(r#","required":true,"selector":{"names":["h1"]}"#);
    let confirmed = Poll { confirmed_at: Some(site.now), failures: 0, failure: None };
    let polls = OrdMap::unit(host("h1"), confirmed);
    site.view.polls = Some(OrdMap::unit(app(), polls));
    perform(&mut site, "trigger r1");
    perform(&mut site, "deliver");
    let statuses = |site: &Site| {
        let run = site.state.run.as_ref().unwrap();
        ["h1", "h2"].map(|name| run.host(&host(name)).unwrap().status)
    };
    assert_eq!(statuses(&site), [HostStatus::Pending, HostStatus::Preparing]);
    let [due] = pending(&site, "h1").unwrap()[..] else { panic!("{:?}", pending(&site, "h1")) };
    answer(&mut site, "h1", due);
    perform(&mut site, "deliver");
    assert_eq!(statuses(&site)[0], HostStatus::Preparing);
}

#[test]
fn operators_can_have_providers_told() {
    let mut site = joined("");
    let poll = |host| DesiredOperation::Poll { provider: app(), host };
    request(&mut site, poll(Some(host("h1")))).unwrap();
    assert_eq!(told(&site), [Some(vec![SPEC]), Some(vec![])]);
    request(&mut site, poll(None)).unwrap();
    assert_eq!(told(&site), [Some(vec![SPEC]), Some(vec![SPEC])]);
}

#[test]
fn tokens_do_not_outlive_their_server() {
    let mut site = joined("");
    draw(&mut site, "a");
    configure(&mut site, &hooks("").replace("hooks.example/", "hooks.example/v2"));
    assert_eq!(tokens(&site), ["a"]);
    configure(&mut site, &hooks("").replace("hooks.example", "other.example"));
    assert_eq!(tokens(&site), Vec::<String>::new());
}

#[test]
fn devices_have_the_metadata_of_their_hosts() {
    let mut site = joined("");
    let seen = site.view.hosts.get_mut(&host("h1")).unwrap();
    seen.labels.insert("rack".to_owned(), "r1".to_owned());
    seen.applications.insert(application("web"));
    (seen.machine_id, seen.boot_id) = (Some("m".to_owned()), Some("b".to_owned()));
    seen.group = Some(group("edge"));
    digested(&mut site, "h1");
    request(&mut site, call_back("h1")).unwrap();
    let texts = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let metadata = |name: &str| {
        let provider = site.state.hook_provider(&app()).unwrap();
        site.state.hook_device_metadata(&site.view, provider, &host(name))
    };
    let expected = DeviceMetadata {
        name: host("h1"),
        labels: texts(&[("rack", "r1")]),
        owner: "Fleet/app".to_owned(),
        annotations: texts(&[
            ("os-upgrade/machine-id", "m"),
            ("os-upgrade/boot-id", "b"),
            ("os-upgrade/applications", "debian,web"),
            ("os-upgrade/group", "edge"),
        ]),
        generation: 3,
        resource_version: format!("3-{:x}", digest(&site, "h1")),
        creation_timestamp: start(),
    };
    assert_eq!(metadata("h1"), expected);
    let expected = DeviceMetadata {
        name: host("h2"),
        labels: texts(&[]),
        owner: "Fleet/app".to_owned(),
        annotations: texts(&[("os-upgrade/applications", "debian")]),
        generation: 0,
        resource_version: format!("0-{:x}", digest(&site, "h2")),
        creation_timestamp: start(),
    };
    assert_eq!(metadata("h2"), expected);
}
