//! What is decided about a node's cordon, as tables.

use super::*;

const SITE: &str = "here";

fn claim(owner: &str, fence: u64) -> Claim {
    Claim { site: SITE.to_owned(), owner: owner.to_owned(), fence }
}

fn mark(owner: &str, fence: u64, was_unschedulable: bool) -> Mark {
    Mark { site: SITE.to_owned(), owner: owner.to_owned(), fence, was_unschedulable }
}

/// The mark of another site, for an owner of the same name.
fn foreign(owner: &str, fence: u64) -> Mark {
    Mark { site: "there".to_owned(), ..mark(owner, fence, false) }
}

fn cordon(is_unschedulable: bool, mark: Option<Mark>) -> Cordon {
    let annotations = mark.map(|mark| BTreeMap::from([(ANNOTATION.to_owned(), text(&mark))]));
    Cordon { is_unschedulable, marking: Marking::read(annotations.as_ref()) }
}

fn unreadable() -> Cordon {
    let annotations = BTreeMap::from([(ANNOTATION.to_owned(), "nonsense".to_owned())]);
    Cordon { is_unschedulable: true, marking: Marking::read(Some(&annotations)) }
}

/// The mark that a merge patch writes.
fn written<T: std::fmt::Debug>(step: &Step<T>) -> Mark {
    let Step::Merge(patch) = step else { panic!("{step:?}") };
    assert_eq!(
        (&patch["spec"]["unschedulable"], &patch["metadata"]["resourceVersion"]),
        (&json!(true), &json!("7"))
    );
    serde_json::from_str(patch["metadata"]["annotations"][ANNOTATION].as_str().unwrap()).unwrap()
}

#[test]
fn cordon_remembers_what_was_before() {
    for (name, before, expected) in [
        ("free", cordon(false, None), mark("a", 5, false)),
        ("cordoned by an administrator", cordon(true, None), mark("a", 5, true)),
        ("ours of an earlier leader", cordon(true, Some(mark("a", 4, true))), mark("a", 5, true)),
        ("left over", cordon(true, Some(mark("b", 4, false))), mark("a", 5, false)),
        ("uncordoned by somebody", cordon(false, Some(mark("a", 5, true))), mark("a", 5, false)),
    ] {
        assert_eq!(written(&claim("a", 5).cordon(&before, "7")), expected, "{name}");
    }
    let ours = cordon(true, Some(mark("a", 5, true)));
    assert_eq!(claim("a", 5).cordon(&ours, "7"), Step::Done(Cordoned::Ours { was_unschedulable: true }));
    let later = mark("b", 6, false);
    let step = claim("a", 5).cordon(&cordon(true, Some(later.clone())), "7");
    assert_eq!(step, Step::Done(Cordoned::Superseded(later)));
    let step = claim("a", 5).cordon(&unreadable(), "7");
    assert!(matches!(step, Step::Done(Cordoned::Unreadable { .. })), "{step:?}");
}

/// Neither the owner's name nor the fence says anything about another site.
#[test]
fn another_sites_mark_is_left_alone() {
    for other in [foreign("a", 1), foreign("a", 5), foreign("a", 9), foreign("b", 1)] {
        for is_unschedulable in [true, false] {
            let cordon = cordon(is_unschedulable, Some(other.clone()));
            let claim = claim("a", 5);
            assert_eq!(claim.cordon(&cordon, "7"), Step::Done(Cordoned::OtherSite(other.clone())));
            assert_eq!(claim.uncordon(&cordon), Step::Done(Uncordoned::Other(other.clone())));
            assert_eq!(claim.refence(&cordon), Step::Done(Refenced::Other(other.clone())));
            assert_eq!(claim.standing(&cordon), Standing::Other(other.clone()));
        }
    }
}

#[test]
fn uncordon_tests_the_mark_it_has_read() {
    let key = "/metadata/annotations/os-upgrade~1cordon";
    let unmark = |mark: &Mark| {
        vec![
            json!({ "op": "test", "path": key, "value": text(mark) }),
            json!({ "op": "remove", "path": key }),
        ]
    };
    let free = [
        json!({ "op": "test", "path": "/spec/unschedulable", "value": true }),
        json!({ "op": "remove", "path": "/spec/unschedulable" }),
    ];
    for (is_unschedulable, mark, frees) in [
        (true, mark("a", 5, false), true),
        (true, mark("a", 4, false), true),
        (true, mark("a", 5, true), false),
        (false, mark("a", 5, false), false),
    ] {
        let mut expected = unmark(&mark);
        expected.extend(free.iter().filter(|_| frees).cloned());
        let step = claim("a", 5).uncordon(&cordon(is_unschedulable, Some(mark.clone())));
        assert_eq!(step, Step::Json(Value::Array(expected)), "{is_unschedulable} {mark:?}");
    }
    for other in [mark("a", 6, false), mark("b", 5, false)] {
        let step = claim("a", 5).uncordon(&cordon(true, Some(other.clone())));
        assert_eq!(step, Step::Done(Uncordoned::Other(other)));
    }
    let step = claim("a", 5).uncordon(&cordon(true, None));
    assert_eq!(step, Step::Done(Uncordoned::Unmarked { is_unschedulable: true }));
    let step = claim("a", 5).uncordon(&unreadable());
    assert!(matches!(step, Step::Done(Uncordoned::Unreadable { .. })), "{step:?}");
}

#[test]
fn standing_tells_whose_node_it_is() {
    for (before, expected) in [
        (cordon(true, Some(mark("a", 5, false))), Standing::Ours),
        (cordon(true, Some(mark("a", 4, false))), Standing::Ours),
        (cordon(false, Some(mark("a", 5, false))), Standing::ForeignUncordon),
        (cordon(true, None), Standing::Unmarked),
        (cordon(true, Some(mark("a", 6, false))), Standing::Other(mark("a", 6, false))),
        (cordon(true, Some(mark("b", 1, false))), Standing::Other(mark("b", 1, false))),
    ] {
        assert_eq!(claim("a", 5).standing(&before), expected, "{before:?}");
    }
    assert!(matches!(claim("a", 5).standing(&unreadable()), Standing::Unreadable { .. }));
}

#[test]
fn marks_keep_their_format() {
    let mark = mark("run-1/host-1", 42, true);
    let format = json!({ "site": "here", "owner": "run-1/host-1", "fence": 42, "wasUnschedulable": true });
    assert_eq!(json!(mark), format);
    let later = r#"{"site":"here","owner":"run-1/host-1","fence":42,"wasUnschedulable":true,"more":1}"#;
    let annotations = BTreeMap::from([(ANNOTATION.to_owned(), later.to_owned())]);
    assert_eq!(Marking::read(Some(&annotations)), Marking::Marked { mark, text: later.to_owned() });
    // Without a site, nobody knows whose it is.
    let text = r#"{"owner":"run-1/host-1","fence":42,"wasUnschedulable":true}"#;
    let annotations = BTreeMap::from([(ANNOTATION.to_owned(), text.to_owned())]);
    assert!(matches!(Marking::read(Some(&annotations)), Marking::Unreadable { .. }));
}
