//! Delivery: under which fence, for which hosts, and what a repetition costs.

mod hooks;
mod leader;
mod regressions;

use os_upgrade_kernel::SecretName;
use os_upgrade_kernel::fact::EnrolmentFact;
use os_upgrade_protocol::{ItemId, ItemKind, UnitItem};

use self::leader::{APP, Leader, at, given, host, key, run_started, said};
use super::*;

#[test]
fn what_is_given_becomes_a_manifest() {
    let mut leader = Leader::new(APP);
    leader.fence(3);
    let asked = leader.asked(1);
    let [(epoch, question)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((&question.host, question.key, &question.validator), (&host("h1"), key(1), &None));
    let input = leader.answer(*epoch, question.ticket, given("1", question)).unwrap();
    assert_eq!(leader.decide(&input), ["item-stored"]);
    let (epoch, order, manifest) = leader.manifest();
    assert_eq!(manifest.items[0].id, ItemId::new("1").unwrap());
    assert!(leader.after(0).is_empty(), "it is on its way");
    let stored = DesiredStored::Stored(9);
    let input = leader.delivery.manifest_published(at(leader.now), epoch, order, stored).unwrap();
    assert_eq!(leader.decide(&input), ["manifest-stored"]);
    assert!(leader.after(60).is_empty(), "nothing is due");
    // An hour later it is asked again, and says the same: nothing follows.
    let asked = leader.asked(3_600);
    let [(epoch, question)] = &asked[..] else { panic!("{asked:?}") };
    let validator = question.validator.clone().unwrap();
    let unchanged = said(Outcome::Unchanged { validator });
    assert_eq!(leader.answer(*epoch, question.ticket, unchanged), None);
    let polls = &leader.delivery.polls()[&question.provider.name];
    assert_eq!(polls[&host("h1")].confirmed_at, Some(at(leader.now).wall));
}

/// After an outcome that is not known, nothing of the old fence counts, and everything is sent again under a new one.
#[test]
fn unknown_outcomes_need_another_fence() {
    let mut leader = Leader::new(APP);
    leader.fence(3);
    let (epoch, question) = leader.asked(1).remove(0);
    let input = leader.answer(epoch, question.ticket, given("1", &question)).unwrap();
    leader.decide(&input);
    let (epoch, order, _) = leader.manifest();
    let unknown = DesiredStored::Unknown;
    assert_eq!(leader.delivery.manifest_published(at(leader.now), epoch, order.clone(), unknown), None);
    assert!(leader.after(0).is_empty());
    leader.now += 1;
    leader.fence(4);
    let late = DesiredStored::Stored(9);
    assert_eq!(leader.delivery.manifest_published(at(leader.now), epoch, order.clone(), late), None);
    assert_eq!(leader.manifest().1, order);
    // An item that may be stored or not counts for nothing.
    let mut leader = Leader::new(APP);
    leader.fence(3);
    let (epoch, question) = leader.asked(1).remove(0);
    assert_eq!(leader.answer(epoch, question.ticket, Failure::NotStored.into()), None);
    leader.now += 1;
    leader.fence(4);
    let (again, question) = leader.asked(60).remove(0);
    assert!(again > epoch && question.validator.is_none());
}

#[test]
fn only_approved_keys_that_are_announced_get_something() {
    let all = APP.replace(r#","selector":{"names":["h1"]}"#, "");
    for (name, change) in [
        (
            "another key",
            (|leader: &mut Leader| {
                leader.view.hosts.get_mut(&host("h2")).unwrap().configures.as_mut().unwrap().key = key(2);
            }) as fn(&mut Leader),
        ),
        ("no key", |leader| leader.view.hosts.get_mut(&host("h2")).unwrap().configures = None),
        ("withdrawn", |leader| {
            let (actor, reason) = ("eve".to_owned(), "sold".to_owned());
            let host = host("h2");
            leader.commit(EnrolmentFact::HostWithdrawn { host, actor, reason, forgotten: false }.into());
        }),
    ] {
        let mut leader = Leader::new(&all);
        change(&mut leader);
        leader.fence(3);
        let mut asked = leader.asked(1);
        asked.extend(leader.asked(60));
        let hosts: Vec<_> = asked.into_iter().map(|(_, question)| question.host).collect();
        assert_eq!(hosts, [host("h1")], "{name}");
    }
}

/// A key that is approved is sealed to at once, whatever was said before.
#[test]
fn another_key_is_sealed_to_anew() {
    let mut leader = Leader::new(APP);
    leader.fence(3);
    let (epoch, question) = leader.asked(1).remove(0);
    let input = leader.answer(epoch, question.ticket, given("1", &question)).unwrap();
    leader.decide(&input);
    leader.view.hosts.get_mut(&host("h1")).unwrap().configures.as_mut().unwrap().key = key(2);
    leader.delivery.view_changed();
    assert_eq!(leader.asked(2), []);
    leader.commit(EnrolmentFact::KeyPinned { host: host("h1"), key: key(2), actor: None }.into());
    let (_, question) = leader.asked(2).remove(0);
    assert_eq!((question.key, question.validator), (key(2), None));
}

/// A change of what is asked makes what was said count for nothing; one of how often it is asked does not.
#[test]
fn changed_providers_are_asked_anew() {
    for (change, is_asked) in [
        (APP.to_owned(), false),
        (APP.replace(r#""kind""#, r#""poll-interval":"2h","kind""#), false),
        (APP.replace(r#""kind""#, r#""on-removal":"remove","kind""#), true),
        (APP.replace("files.example", "other.example"), true),
    ] {
        let mut leader = Leader::new(APP);
        leader.fence(3);
        let (epoch, question) = leader.asked(1).remove(0);
        leader.answer(epoch, question.ticket, given("1", &question));
        leader.configure(&change);
        // The token bucket begins empty.
        let asked = leader.asked(60).len() + leader.asked(1).len();
        assert_eq!(asked, usize::from(is_asked), "{change}");
    }
}

/// What a provider lacked is there now.
#[test]
fn providers_of_a_stored_secret_are_asked() {
    for (key, is_asked) in [("credentials", true), ("client-certificate", true), ("path", false)] {
        let mut leader = Leader::new(&APP.replace(r#""kind""#, &format!(r#""{key}":"files","kind""#)));
        leader.fence(3);
        let (epoch, question) = leader.asked(1).remove(0);
        leader.answer(epoch, question.ticket, given("1", &question));
        let (name, sealed) = (SecretName::new("files").unwrap(), "sealed".to_owned());
        leader.commit(Fact::Secret(SecretFact::Stored {
            name,
            sealed,
            origin: None,
            actor: "eve".to_owned(),
        }));
        assert_eq!(leader.asked(60).len(), usize::from(is_asked), "{key}");
    }
}

#[test]
fn a_run_hurries_required_providers() {
    let required = APP.replace(r#""kind""#, r#""required":true,"kind""#);
    let mut leader = Leader::new(&required);
    leader.fence(3);
    let (epoch, question) = leader.asked(1).remove(0);
    leader.answer(epoch, question.ticket, said(Outcome::Removed));
    assert!(leader.asked(60).is_empty());
    leader.commit(run_started("h1"));
    assert_eq!(leader.asked(0).len(), 1);
}

/// A unit is placed on h1.
fn place(leader: &mut Leader, unit: &str) {
    for fact in [
        format!(
            r#"{{"type":"unit-submitted","name":"{unit}","contents":"[Service]\n","desired":"launched","actor":"eve"}}"#
        ),
        format!(r#"{{"type":"unit-placed","unit":"{unit}","hosts":["h1"]}}"#),
    ] {
        leader.commit(serde_json::from_str(&fact).unwrap());
    }
}

/// Units are in the state, so they are stored with the manifest that names them first, and again if it is not known whether that is stored.
#[test]
fn units_go_with_the_first_manifest_that_names_them() {
    let mut leader = Leader::new("[]");
    let joined = r#"{"type":"machine-joined","host":"h1","machine":"00112233445566778899aabbccddeeff"}"#;
    leader.commit(serde_json::from_str(joined).unwrap());
    leader.fence(3);
    for (number, unit) in [(1, "a.service"), (2, "b.service")] {
        place(&mut leader, unit);
        let (epoch, order, first, units) = leader.manifest_with_units();
        let unknown = DesiredStored::Unknown;
        assert_eq!(leader.delivery.manifest_published(at(leader.now), epoch, order, unknown), None);
        leader.now += 1;
        leader.fence(3 + number);
        let (epoch, order, manifest, again) = leader.manifest_with_units();
        assert_eq!((&manifest, &again), (&first, &units));
        let [(id, content)] = &units[..] else { panic!("{units:?}") };
        assert_eq!(UnitItem::parse(content).unwrap().name, unit);
        let named = manifest.items.last().unwrap();
        assert_eq!((named.kind, named.name.as_str(), &named.id), (ItemKind::Unit, unit, id));
        assert_eq!(manifest.items.len() as u64, number, "it names the earlier ones, too");
        let stored = DesiredStored::Stored(9);
        let input = leader.delivery.manifest_published(at(leader.now), epoch, order, stored).unwrap();
        assert_eq!(leader.decide(&input), ["manifest-stored"]);
    }
}

/// A stream that another site uses is left alone, and looked at once a minute.
#[test]
fn another_sites_stream_is_left_alone() {
    let mut leader = Leader::new(APP);
    for seconds in [0, 60] {
        let begun = leader.after(seconds);
        let [Deliver::Fence { epoch, .. }] = begun[..] else { panic!("{begun:?}") };
        let crossed = DesiredFenced::CrossedSite { site: "hall-2".to_owned() };
        let told = leader.delivery.fenced(at(leader.now), epoch, crossed);
        assert_eq!(told.is_some(), seconds == 0, "it is told once");
        assert_eq!(leader.delivery.crossed_site(), Some("hall-2"));
        assert!(leader.after(59).is_empty());
        leader.now -= 59;
    }
}
