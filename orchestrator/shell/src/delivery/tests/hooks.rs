//! Providers of kind `hooks`: what they are told, in which order, and how often.

use os_upgrade_kernel::fact::ConfigFact;
use os_upgrade_kernel::{Configures, HookDevice, SeenHost, Settings};
use os_upgrade_protocol::{ApplicationName, Applied, AppliedItem, ItemKind};
use os_upgrade_provider_rules::Validator;
use os_upgrade_provider_rules::hooks::{DeviceMetadata, HookEvent};

use super::*;

const HOOKS: &str =
    r#"[{"name":"app","kind":"hooks","url":"https://hooks.example/","selector":{"names":["h1"]}}]"#;

fn app() -> ProviderName {
    ProviderName::new("app").unwrap()
}

/// The provider of [`HOOKS`] with more keys.
fn with(more: &str) -> String {
    HOOKS.replace(r#""kind""#, &format!(r#"{more},"kind""#))
}

/// A token is drawn, and is in force from then on.
fn draw(leader: &mut Leader, digest: &str) {
    let begun = leader.after(0);
    assert_eq!(begun, [Deliver::DrawToken { provider: app() }]);
    let (provider, digest) = (app(), digest.to_owned());
    let input = leader.delivery.token_drawn(at(leader.now), &provider, digest.clone());
    assert_eq!(input, Some(Input::HookTokenDrawn { provider: provider.clone(), digest: digest.clone() }));
    leader.commit(DesiredFact::HookTokenDrawn { provider, digest }.into());
}

/// A leader that may call, whose provider has to be told of hosts that have joined it.
fn ready(providers: &str) -> Leader {
    let mut leader = Leader::new(providers);
    leader.fence(3);
    draw(&mut leader, "t1");
    leader
}

/// Another instance leads.
fn take_over(leader: &mut Leader) {
    leader.delivery = Delivery::new("a1");
    leader.delivery.leadership_begins(at(leader.now));
    leader.fence(8);
    draw(leader, "t2");
}

/// The calls that begin after so many seconds.
fn calls(leader: &mut Leader, seconds: u64) -> Vec<Vec<ProviderQuestion>> {
    let begun = leader.after(seconds).into_iter();
    let calls = begun.filter_map(|deliver| match deliver {
        Deliver::Call { questions, .. } => Some(questions),
        Deliver::Fence { .. }
        | Deliver::Manifest { .. }
        | Deliver::Ask { .. }
        | Deliver::DrawToken { .. } => None,
    });
    calls.collect()
}

/// The only question that begins after so many seconds.
fn call(leader: &mut Leader, seconds: u64) -> ProviderQuestion {
    let mut questions = calls(leader, seconds).concat();
    assert_eq!(questions.len(), 1, "{questions:?}");
    questions.remove(0)
}

/// The next question within two hours, and after how many seconds it begins.
fn next_call(leader: &mut Leader) -> (u64, ProviderQuestion) {
    let begin = leader.now;
    for _ in 0..7_200 {
        let mut questions = calls(leader, 1).concat();
        if let Some(question) = questions.pop() {
            assert_eq!(questions, []);
            return (leader.now - begin, question);
        }
    }
    panic!("nothing is asked");
}

fn hook(question: &ProviderQuestion) -> &HookQuestion {
    question.hook.as_ref().unwrap()
}

/// What a reply leads to, all of which is decided. Returns the names of the facts.
fn answer(leader: &mut Leader, question: &ProviderQuestion, reply: ProviderReply) -> Vec<&'static str> {
    let now = at(leader.now);
    let inputs = leader.delivery.answered(now, 0, (question.ticket, reply), &leader.state);
    let names = inputs.iter().flat_map(|input| leader.decide(input)).collect();
    leader.delivery.replies_decided(now, &[question.ticket]);
    names
}

fn unchanged() -> ProviderReply {
    said(Outcome::Unchanged { validator: Validator::new(b"", None, None, None) })
}

fn called_back(leader: &mut Leader) {
    leader.commit(DesiredFact::CallbackReceived { provider: app(), hosts: vec![host("h1")] }.into());
}

fn device(leader: &Leader) -> &HookDevice {
    leader.state.hook_device(&app(), &host("h1")).unwrap()
}

/// A leader whose provider has been told of h1, and has nothing for it.
fn joined(providers: &str) -> Leader {
    let mut leader = ready(providers);
    let question = call(&mut leader, 1);
    assert_eq!(hook(&question).event, HookEvent::FleetJoin);
    assert_eq!(answer(&mut leader, &question, unchanged()), ["hook-answered"]);
    leader
}

#[test]
fn tokens_are_drawn_before_the_first_call() {
    let mut leader = Leader::new(HOOKS);
    leader.fence(3);
    let drawing = || [Deliver::DrawToken { provider: app() }];
    assert_eq!(leader.after(0), drawing());
    assert_eq!(leader.after(9), [], "it is drawn once");
    assert_eq!(leader.after(1), drawing(), "unless that fails");
    let input = leader.delivery.token_drawn(at(leader.now), &app(), "t1".to_owned()).unwrap();
    assert_eq!(leader.delivery.token_drawn(at(leader.now), &app(), "t0".to_owned()), None);
    assert_eq!(leader.after(1), [], "the state does not have it yet");
    assert_eq!(leader.decide(&input), ["hook-token-drawn"]);
    let question = call(&mut leader, 1);
    assert_eq!((hook(&question).event, hook(&question).token.as_str()), (HookEvent::FleetJoin, "t1"));
    // A revoked one is replaced, and nobody is called meanwhile.
    let revoked = DesiredFact::HookTokensRevoked { provider: app(), actor: "eve".to_owned() };
    leader.commit(revoked.into());
    answer(&mut leader, &question, unchanged());
    called_back(&mut leader);
    assert_eq!(leader.after(1), drawing());
    let input = leader.delivery.token_drawn(at(leader.now), &app(), "t3".to_owned()).unwrap();
    assert_eq!(leader.after(1), []);
    leader.decide(&input);
    assert_eq!(hook(&call(&mut leader, 1)).token, "t3");
}

#[test]
fn calls_tell_of_the_host() {
    let mut leader = ready(HOOKS);
    let seen = leader.view.hosts.get_mut(&host("h1")).unwrap();
    seen.labels.insert("rack".to_owned(), "7".to_owned());
    let question = call(&mut leader, 1);
    assert_eq!((&question.provider.name, &question.host, question.key), (&app(), &host("h1"), key(1)));
    let HookQuestion { metadata, applied, .. } = hook(&question);
    assert_eq!((&metadata.name, metadata.owner.as_str()), (&host("h1"), "Fleet/app"));
    let DeviceMetadata { labels, .. } = metadata;
    assert_eq!((labels.get("rack").map(String::as_str), applied), (Some("7"), &None));
    // What it gives is stored, and it has been told.
    let facts = answer(&mut leader, &question, given("1", &question));
    assert_eq!(facts, ["item-stored", "hook-answered"]);
    let (_, order, _) = leader.manifest();
    called_back(&mut leader);
    let question = call(&mut leader, 1);
    assert_eq!((&hook(&question).applied, question.fingerprint.as_deref()), (&None, Some("1")));
    answer(&mut leader, &question, unchanged());
    // Once the host has it, the provider is told which it is.
    let id = Some(ItemId::new("1").unwrap());
    let (kind, name) = (ItemKind::Configuration, "app".to_owned());
    let item = AppliedItem { kind, name, id, error: None, unit: None };
    let applied =
        Applied { site: "hall-1".to_owned(), revision: order.revision, items: vec![item], refused: None };
    leader.view.applied.insert(host("h1"), applied.into());
    called_back(&mut leader);
    let expected = AppliedHash { item: ItemId::new("1").unwrap(), hash: None };
    let question = call(&mut leader, 1);
    assert_eq!(hook(&question).applied, Some(expected));
    answer(&mut leader, &question, unchanged());
    // If that is to become another file, it must not say that nothing is new.
    leader.configure(&with(r#""path":"/etc/app.conf""#));
    assert_eq!(hook(&next_call(&mut leader).1).applied, None);
}

#[test]
fn events_are_told_in_order_one_at_a_time() {
    let mut leader = ready(HOOKS);
    called_back(&mut leader);
    let changed = DesiredFact::HookMetadataChanged { provider: app(), hosts: vec![host("h1")] };
    leader.commit(changed.into());
    for event in [HookEvent::FleetJoin, HookEvent::DeviceMetadataUpdate, HookEvent::DeviceSpecUpdate] {
        let question = call(&mut leader, 1);
        let cause = device(&leader).pending[&event];
        assert_eq!((hook(&question).event, hook(&question).cause), (event, cause));
        assert_eq!(leader.after(30), [], "one at a time");
        // After a failure it is told of the same event again.
        assert_eq!(answer(&mut leader, &question, Failure::TimedOut.into()), [""; 0]);
        let again = call(&mut leader, 15);
        assert_eq!(hook(&again), hook(&question));
        assert_eq!(answer(&mut leader, &again, unchanged()), ["hook-answered"]);
    }
    assert_eq!(leader.after(60), []);
}

/// It is told at least once, and can tell that it is told the same.
#[test]
fn new_leaders_tell_what_is_not_answered() {
    let mut leader = ready(HOOKS);
    let first = call(&mut leader, 1);
    take_over(&mut leader);
    let again = call(&mut leader, 1);
    let HookQuestion { token, .. } = hook(&first).clone();
    assert_eq!((token.as_str(), hook(&again).token.as_str()), ("t1", "t2"));
    assert_eq!(HookQuestion { token, ..hook(&again).clone() }, *hook(&first));
    assert_eq!(answer(&mut leader, &again, unchanged()), ["hook-answered"]);
    take_over(&mut leader);
    assert_eq!(leader.after(1), [], "it has been answered");
}

#[test]
fn polls_are_not_repeated_by_new_leaders() {
    let mut leader = joined(HOOKS);
    let (_, poll) = next_call(&mut leader);
    let HookQuestion { event, cause, uuid, .. } = hook(&poll).clone();
    let polled = (event, cause);
    assert_eq!(polled, (HookEvent::DevicePoll, at(leader.now).wall.timestamp().cast_unsigned()));
    // One that was not answered is repeated as the same.
    assert_eq!(answer(&mut leader, &poll, Failure::TimedOut.into()), [""; 0]);
    let poll = call(&mut leader, 15);
    assert_eq!(hook(&poll).uuid, uuid);
    assert_eq!(answer(&mut leader, &poll, unchanged()), [""; 0], "a poll is not journaled");
    take_over(&mut leader);
    let (_, poll) = next_call(&mut leader);
    assert_eq!((hook(&poll).event, hook(&poll).cause), (event, cause + 3_600));
}

#[test]
fn providers_choose_how_often_they_are_asked() {
    let mut leader = ready(HOOKS);
    let question = call(&mut leader, 1);
    let often = || ProviderReply { poll_interval: Some(Duration::from_mins(2)), ..unchanged() };
    assert_eq!(answer(&mut leader, &question, often()), ["hook-answered"]);
    let (first, poll) = next_call(&mut leader);
    assert!(first <= 128, "{first}");
    assert_eq!(answer(&mut leader, &poll, often()), [""; 0], "it has said so before");
    take_over(&mut leader);
    let (next, poll) = next_call(&mut leader);
    assert_eq!((next, hook(&poll).event), (120, HookEvent::DevicePoll));
    let rarely = ProviderReply { poll_interval: Some(Duration::from_hours(2)), ..unchanged() };
    assert_eq!(answer(&mut leader, &poll, rarely), ["hook-answered"]);
    assert_eq!(device(&leader).poll_interval, Some(7_200));
}

#[test]
fn providers_that_hear_no_polls_are_not_polled() {
    let mut leader = joined(&with(r#""events":["ON_FLEET_JOIN"]"#));
    for _ in 0..100 {
        assert_eq!(leader.after(100), []);
    }
    // A call-back, or an operator, has it asked all the same.
    called_back(&mut leader);
    let question = call(&mut leader, 1);
    assert_eq!(hook(&question).event, HookEvent::DeviceSpecUpdate);
    answer(&mut leader, &question, unchanged());
    let polled = DesiredFact::PollRequested { provider: app(), host: None, actor: "eve".to_owned() };
    leader.commit(polled.into());
    let again = call(&mut leader, 1);
    assert_eq!(hook(&again).event, HookEvent::DeviceSpecUpdate);
    assert!(hook(&again).cause > hook(&question).cause, "the answer must not be the one before");
}

/// A provider that hears of no new specs gets none when it is redefined, so what is pending has to be told without one.
#[test]
fn redefined_providers_are_told_what_is_pending() {
    let joins = with(r#""events":["ON_FLEET_JOIN"]"#);
    for events in [r#""events":["ON_FLEET_JOIN"]"#, r#""events":["ON_FLEET_JOIN","ON_DEVICE_POLL"]"#] {
        let mut leader = ready(&joins);
        let question = call(&mut leader, 1);
        assert_eq!(answer(&mut leader, &question, Failure::Refused { status: 404 }.into()), [""; 0]);
        leader.configure(&with(events).replace("hooks.example/", "hooks.example/right"));
        assert_eq!(leader.after(1), [], "the token bucket begins empty");
        let again = call(&mut leader, 1);
        assert_eq!(hook(&again), hook(&question), "{events}");
        assert_eq!(answer(&mut leader, &again, unchanged()), ["hook-answered"]);
    }
    // The same happens while the provider is asked: that outcome does not count.
    let mut leader = ready(&joins);
    let question = call(&mut leader, 1);
    leader.configure(&joins.replace("hooks.example/", "hooks.example/right"));
    assert_eq!(leader.after(1), [], "never twice at once");
    answer(&mut leader, &question, Failure::TimedOut.into());
    assert_eq!(hook(&call(&mut leader, 1)), hook(&question));
}

/// What was pending when a call failed may no longer be heard when it is repeated.
#[test]
fn providers_are_not_polled_because_of_a_retry() {
    let mut leader = ready(&with(r#""events":["ON_FLEET_JOIN"]"#));
    let question = call(&mut leader, 1);
    answer(&mut leader, &question, Failure::TimedOut.into());
    leader.configure(&with(r#""events":["ON_ENROLLMENT_REQUEST"]"#));
    let again = call(&mut leader, 15);
    assert_eq!(hook(&again).event, HookEvent::DeviceSpecUpdate);
    answer(&mut leader, &again, unchanged());
    for _ in 0..100 {
        assert_eq!(leader.after(100), []);
    }
}

#[test]
fn hosts_that_are_due_together_share_requests() {
    for (size, expected) in [(1, vec![1, 1]), (2, vec![2]), (100, vec![2])] {
        let mut leader =
            ready(&with(&format!(r#""batch-size":{size}"#)).replace(r#"["h1"]"#, r#"["h1","h2"]"#));
        let calls = calls(&mut leader, 10);
        assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), expected, "{size}");
        let questions = calls.concat();
        assert_eq!(answer(&mut leader, &questions[0], unchanged()), ["hook-answered"]);
        assert_eq!(answer(&mut leader, &questions[1], Failure::NotAnswered.into()), [""; 0]);
        let again = call(&mut leader, 90);
        assert_eq!(again.host, questions[1].host, "each is answered on its own");
    }
}

/// Calls hold as many hosts as they may, and no more of them are open than the provider takes.
#[test]
fn batch_size_bounds_calls() {
    let all =
        r#"[{"name":"app","kind":"hooks","url":"https://hooks.example/","batch-size":50,"max-in-flight":2}]"#;
    let mut leader = Leader::new(all);
    let seen = leader.view.hosts[&host("h1")].clone();
    // With h1 and h2 there are 1 000 hosts.
    for number in 0..998 {
        let name = host(&format!("n{number:03}"));
        leader.view.hosts.insert(name.clone(), seen.clone());
        leader.commit(EnrolmentFact::KeyPinned { host: name, key: key(1), actor: None }.into());
    }
    leader.fence(3);
    draw(&mut leader, "t1");
    let mut open: Vec<Vec<ProviderQuestion>> = Vec::new();
    let mut told = 0;
    for second in 1..=20 {
        let begun = calls(&mut leader, 1);
        assert!(begun.iter().all(|call| call.len() == 50), "{second}");
        assert!(open.len() + begun.len() <= 2, "{second}");
        told += begun.concat().len();
        for question in std::mem::replace(&mut open, begun).concat() {
            assert_eq!(answer(&mut leader, &question, unchanged()), ["hook-answered"]);
        }
    }
    assert_eq!(told, 1_000);
}

#[test]
fn call_backs_during_a_call_lead_to_another() {
    let mut leader = joined(HOOKS);
    called_back(&mut leader);
    let first = call(&mut leader, 1);
    called_back(&mut leader);
    assert_eq!(leader.after(1), [], "never twice at once");
    assert_eq!(answer(&mut leader, &first, unchanged()), [""; 0], "it is still to be told");
    let second = call(&mut leader, 1);
    assert_eq!(hook(&second).event, HookEvent::DeviceSpecUpdate);
    assert!(hook(&second).cause > hook(&first).cause && hook(&second).uuid != hook(&first).uuid);
    assert_eq!(answer(&mut leader, &second, unchanged()), ["hook-answered"]);
    assert_eq!(leader.after(60), []);
}

/// It said that the host may keep what it had, but that was taken away while it was asked.
#[test]
fn what_was_lost_meanwhile_is_asked_for_again() {
    let mut leader = ready(HOOKS);
    let question = call(&mut leader, 1);
    answer(&mut leader, &question, given("1", &question));
    called_back(&mut leader);
    let question = call(&mut leader, 1);
    leader.commit(DesiredFact::ItemRevoked { host: host("h1"), provider: app() }.into());
    answer(&mut leader, &question, unchanged());
    let again = call(&mut leader, 1);
    assert_eq!(again.fingerprint, None);
    answer(&mut leader, &again, unchanged());
    assert_eq!(calls(&mut leader, 60).len(), 0, "it has nothing for the host");
}

/// The new leader knows nothing of what the provider has confirmed.
#[test]
fn new_leaders_ask_for_the_hosts_of_a_run() {
    for (required, is_asked) in [("true", true), ("false", false)] {
        let mut leader = joined(&with(&format!(r#""required":{required}"#)));
        leader.commit(run_started("h1"));
        let question = call(&mut leader, 1);
        let HookQuestion { event, cause, digest: metadata, .. } = hook(&question).clone();
        assert_eq!(event, HookEvent::DeviceSpecUpdate);
        let (provider, host) = (app(), host("h1"));
        let answered =
            DesiredFact::HookAnswered { provider, host, event, cause, metadata, poll_interval: None };
        leader.commit(answered.into());
        take_over(&mut leader);
        let questions = calls(&mut leader, 1).concat();
        let about: Vec<_> = questions.iter().map(|it| (hook(it).event, hook(it).cause)).collect();
        assert_eq!(about, if is_asked { vec![(event, cause)] } else { vec![] }, "{required}");
    }
}

/// A secret that was lacking has failed calls repeated, and no others.
#[test]
fn stored_secrets_have_failed_calls_repeated() {
    let mut leader = joined(&with(r#""credentials":"files""#));
    let stored = || {
        let (name, sealed) = (SecretName::new("files").unwrap(), "sealed".to_owned());
        Fact::Secret(SecretFact::Stored { name, sealed, origin: None, actor: "eve".to_owned() })
    };
    leader.commit(stored());
    assert_eq!(leader.after(1), []);
    called_back(&mut leader);
    let question = call(&mut leader, 1);
    answer(&mut leader, &question, Failure::Refused { status: 401 }.into());
    assert_eq!(leader.after(1), []);
    leader.commit(stored());
    assert_eq!(hook(&call(&mut leader, 1)), hook(&question));
}

/// A site whose hosts are not approved by themselves, where `hosts` more wait.
fn waiting(providers: &str, hosts: usize) -> Leader {
    let mut leader = Leader::new(providers);
    let settings = Settings { site: "hall-1".to_owned(), ..Settings::default() };
    leader.commit(ConfigFact::SettingsAdopted { settings }.into());
    leader.view.hosts.clear();
    for number in 0..hosts {
        let seen = SeenHost { announced: 7, ..SeenHost::default() };
        leader.view.hosts.insert(host(&format!("p{number:03}")), seen);
    }
    leader.fence(3);
    draw(&mut leader, "t1");
    leader
}

#[test]
fn few_hosts_that_wait_for_approval_are_told_of_once() {
    let all =
        r#"[{"name":"app","kind":"hooks","url":"https://hooks.example/","batch-size":60,"max-in-flight":1}]"#;
    let mut leader = waiting(all, 150);
    for expected in [60, 40] {
        let questions = calls(&mut leader, 1).concat();
        assert_eq!(questions.len(), expected);
        assert_eq!(leader.after(1), [], "as many calls as may be are under way");
        for question in &questions {
            let HookQuestion { event, cause, .. } = hook(question);
            assert_eq!((*event, *cause), (HookEvent::EnrollmentRequest, 7));
            // What it gives for them is not delivered.
            assert_eq!(answer(&mut leader, question, given("1", question)), [""; 0]);
        }
    }
    assert_eq!(leader.after(60), [], "those are enough");
    // Whoever is approved makes room, and the next leader tells anew.
    let approved: Vec<_> = (0..10).map(|number| host(&format!("p{number:03}"))).collect();
    leader.commit(EnrolmentFact::HostsApproved { hosts: approved, actor: "eve".to_owned() }.into());
    assert_eq!(calls(&mut leader, 1).concat().len(), 10);
    take_over(&mut leader);
    assert_eq!(calls(&mut leader, 1).concat().len(), 60);
}

/// Of a host that is approved meanwhile, the provider is told no sooner than it has answered.
#[test]
fn joins_wait_for_enrolment_requests() {
    let mut leader = waiting(r#"[{"name":"app","kind":"hooks","url":"https://hooks.example/"}]"#, 1);
    let request = call(&mut leader, 1);
    assert_eq!(hook(&request).event, HookEvent::EnrollmentRequest);
    let name = host("p000");
    let application = ApplicationName::new("app").unwrap();
    leader.view.hosts.get_mut(&name).unwrap().configures = Some(Configures { application, key: key(1) });
    leader.delivery.view_changed();
    leader.commit(EnrolmentFact::HostsApproved { hosts: vec![name.clone()], actor: "eve".to_owned() }.into());
    leader.commit(EnrolmentFact::KeyPinned { host: name, key: key(1), actor: None }.into());
    assert_eq!(leader.after(60), []);
    answer(&mut leader, &request, given("1", &request));
    let mut told = (0..60).flat_map(|_| calls(&mut leader, 1).concat());
    assert_eq!(hook(&told.next().unwrap()).event, HookEvent::FleetJoin);
}

#[test]
fn enrolment_requests_are_given_up() {
    let all = r#"[{"name":"app","kind":"hooks","url":"https://hooks.example/"}]"#;
    let mut leader = waiting(all, 1);
    let throttled =
        || ProviderReply { retry_after: Some(Duration::from_mins(5)), ..Failure::Throttled.into() };
    for pause in [1, 300, 300, 300] {
        let question = call(&mut leader, pause);
        answer(&mut leader, &question, throttled());
        assert_eq!(leader.after(0), []);
    }
    assert_eq!(leader.after(4_000), []);
    let mut leader = waiting(&all.replace(r#""kind""#, r#""events":["ON_FLEET_JOIN"],"kind""#), 1);
    assert_eq!(leader.after(60), [], "it does not hear of them");
}
