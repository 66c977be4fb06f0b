//! What delivery once did wrong.

use os_upgrade_kernel::fact::{ConfigFact, DesiredFact, EnrolmentFact};
use os_upgrade_kernel::{Config, Fact, Input, Record};
use os_upgrade_provider_rules::{Outcome, ProviderName, Validator};

use super::super::{Deliver, DesiredFenced, DesiredStored};
use super::leader::{APP, Leader, at, given, host, key, said};

fn approved() -> Fact {
    EnrolmentFact::HostsApproved { hosts: vec![host("h1")], actor: "eve".to_owned() }.into()
}

fn pinned() -> Fact {
    EnrolmentFact::KeyPinned { host: host("h1"), key: key(1), actor: None }.into()
}

fn withdrawn() -> Fact {
    let (actor, reason) = ("eve".to_owned(), "it is moved".to_owned());
    EnrolmentFact::HostWithdrawn { host: host("h1"), actor, reason, forgotten: false }.into()
}

/// `app`, which is asked each minute and revokes, or no provider.
fn configured(providers: Option<&str>) -> Fact {
    let config_providers =
        providers.map(|providers| serde_json::from_str(providers).unwrap()).unwrap_or_default();
    let config = Config { config_providers, ..Config::default() };
    let (actor, difference) = ("eve".to_owned(), Vec::new());
    Fact::Config(ConfigFact::Replaced { config: Some(config), actor, difference })
}

fn removing() -> String {
    APP.replace(r#""kind""#, r#""poll-interval":"60s","on-removal":"remove","kind""#)
}

/// Somebody has `app` asked.
fn polled() -> Record {
    let (provider, actor) = (ProviderName::new("app").unwrap(), "eve".to_owned());
    let fact = DesiredFact::PollRequested { provider, host: None, actor };
    Record { at: at(0).wall, control: 0, facts: vec![fact.into()] }
}

/// A leader with `app` of [`removing`], whose host has the item `a`.
fn leader() -> Leader {
    let mut leader = Leader::new(&removing());
    leader.fence(5);
    let (epoch, question) = leader.question();
    let input = leader.answer(epoch, question.ticket, given("a", &question)).unwrap();
    assert_eq!(leader.decide(&input), ["item-stored"]);
    leader
}

/// Within one record nobody sees a host leave, or a provider go, and the provider says nothing new: the host would never get its item back.
#[test]
fn what_was_revoked_for_a_moment_is_asked_for_anew() {
    for facts in
        [vec![withdrawn(), approved(), pinned()], vec![configured(None), configured(Some(&removing()))]]
    {
        let mut leader = leader();
        let (epoch, question) = leader.question();
        let validator = Validator::new(b"a", None, None, None);
        assert_eq!(
            (&question.validator, question.fingerprint.as_deref()),
            (&Some(validator.clone()), Some("a"))
        );
        let unchanged = || said(Outcome::Unchanged { validator: validator.clone() });
        leader.answer(epoch, question.ticket, unchanged());
        leader.commit_all(facts.clone());
        let (epoch, question) = leader.question();
        assert_eq!((&question.validator, &question.fingerprint), (&None, &None));
        // It may also happen while the provider is asked.
        let input = leader.answer(epoch, question.ticket, given("b", &question)).unwrap();
        leader.decide(&input);
        let (epoch, question) = leader.question();
        leader.commit_all(facts);
        leader.answer(epoch, question.ticket, unchanged());
        let provider = &question.provider.name;
        let is_confirmed =
            leader.delivery.polls().get(provider).is_some_and(|polls| polls.contains_key(&host("h1")));
        assert!(!is_confirmed, "it has nothing of what was confirmed");
        let (_, question) = leader.question();
        assert_eq!((question.validator, question.fingerprint), (None, None));
    }
}

/// Until the state has what a provider gave, that counts for nothing, and the provider is not asked again: there would be nothing to compare the
/// answer with, and the host might be prepared with what it had before.
#[test]
fn reply_counts_once_it_is_decided() {
    let mut leader = leader();
    let (epoch, question) = leader.question();
    let confirmed =
        |leader: &Leader| leader.delivery.polls()[&question.provider.name][&host("h1")].confirmed_at;
    let before = confirmed(&leader);
    let reply = (question.ticket, given("b", &question));
    let input = leader.delivery.answered(at(leader.now), epoch, reply, &leader.state).pop().unwrap();
    leader.delivery.committed(&polled(), at(leader.now));
    assert_eq!((confirmed(&leader), leader.asked(60)), (before, vec![]));
    assert_eq!(leader.decide(&input), ["item-stored"]);
    leader.delivery.replies_decided(at(leader.now), &[question.ticket]);
    assert_eq!(confirmed(&leader), Some(at(leader.now).wall));
    let (_, question) = leader.asked(1).remove(0);
    assert_eq!(question.fingerprint.as_deref(), Some("b"));
}

/// A new leadership knows nothing of what the last one had not decided, and asks anew.
#[test]
fn undecided_replies_end_with_the_leadership() {
    let mut leader = leader();
    let (epoch, question) = leader.question();
    let reply = (question.ticket, given("b", &question));
    let inputs = leader.delivery.answered(at(leader.now), epoch, reply, &leader.state);
    assert!(matches!(inputs[..], [Input::ItemStored { .. }]));
    leader.delivery.leadership_begins(at(leader.now));
    leader.fence(8);
    let (_, question) = leader.question();
    assert_eq!((question.validator, question.fingerprint.as_deref()), (None, Some("a")));
}

/// An item whose fact is on its way was stored under the first fence. The manifest under the second one must not delete it.
#[test]
fn items_of_this_leadership_outlive_another_fence() {
    let mut leader = leader();
    let begun = |leader: &mut Leader| {
        let mut begun = leader.after(0).into_iter();
        begun.find_map(|it| if let Deliver::Manifest { since, .. } = &it { Some((*since, it)) } else { None })
    };
    let publish = |leader: &mut Leader, outcome| {
        let (since, manifest) = begun(leader).unwrap();
        let Deliver::Manifest { epoch, order, .. } = manifest else { unreachable!("it is a manifest") };
        let input = leader.delivery.manifest_published(at(leader.now), epoch, order, outcome);
        assert_eq!(input.is_some(), matches!(outcome, DesiredStored::Stored(_)));
        since
    };
    assert_eq!(publish(&mut leader, DesiredStored::Unknown), 5);
    leader.now += 1;
    let second = leader.after(0);
    let [Deliver::Fence { epoch, .. }] = second[..] else { panic!("{second:?}") };
    leader.delivery.fenced(at(leader.now), epoch, DesiredFenced::Stored(8));
    assert_eq!(publish(&mut leader, DesiredStored::Stored(9)), 5);
    // It is not published again before the journal says that it is stored.
    assert_eq!(leader.after(0), []);
}
