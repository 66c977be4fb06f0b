//! What is decided about a node's cordon, as tables.

use super::*;

const SITE: &str = "here";

/// Fences are compared by the restoration first: the sequences may have begun anew then.
fn fence(sequence: u64) -> NodeFence {
    NodeFence { restored: 1, sequence }
}

fn host() -> HostName {
    HostName::new("host-1").unwrap()
}

fn claim(sequence: u64) -> Claim {
    Claim { site: SITE.to_owned(), host: host(), fence: fence(sequence), journal: None, takes_over: None }
}

fn mark(owner: &str, sequence: u64, was_unschedulable: bool) -> Mark {
    Mark {
        site: SITE.to_owned(),
        owner: owner.to_owned(),
        host: host(),
        fence: fence(sequence),
        journal: None,
        was_unschedulable,
    }
}

/// The text of a mark without a note.
fn text(mark: &Mark) -> String {
    noted(mark, &Note::default())
}

fn at(secs: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(secs, 0).unwrap()
}

/// The mark of another site, for an owner of the same name.
fn foreign(owner: &str, sequence: u64) -> Mark {
    Mark { site: "there".to_owned(), ..mark(owner, sequence, false) }
}

fn cordon(is_unschedulable: bool, mark: Option<Mark>) -> Cordon {
    let annotation = mark.map(|mark| text(&mark));
    Cordon { is_unschedulable, marking: Marking::read(annotation.as_deref()) }
}

fn unreadable() -> Cordon {
    Cordon { is_unschedulable: true, marking: Marking::read(Some("nonsense")) }
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
        assert_eq!(written(&claim(5).cordon("a", &before, false, "7", at(1))), expected, "{name}");
    }
    let ours = cordon(true, Some(mark("a", 5, true)));
    assert_eq!(
        claim(5).cordon("a", &ours, false, "7", at(1)),
        Step::Done(Cordoned::Ours { was_unschedulable: true })
    );
    let later = mark("b", 6, false);
    let step = claim(5).cordon("a", &cordon(true, Some(later.clone())), false, "7", at(1));
    assert_eq!(step, Step::Done(Cordoned::Superseded(later)));
    let step = claim(5).cordon("a", &unreadable(), false, "7", at(1));
    assert!(matches!(step, Step::Done(Cordoned::Unreadable { .. })), "{step:?}");
}

/// People see since when, and for what, whichever leader has written last.
#[test]
fn mark_says_when_and_for_what() {
    let note = |step: &Step<Cordoned>| {
        let Step::Merge(patch) = step else { panic!("{step:?}") };
        let text = patch["metadata"]["annotations"][ANNOTATION].as_str().unwrap().to_owned();
        (Note::read(&text), Cordon { is_unschedulable: true, marking: Marking::read(Some(&text)) })
    };
    let (first, before) = note(&claim(4).cordon("r1", &cordon(false, None), false, "7", at(1)));
    assert_eq!(first.since.as_deref(), Some("1970-01-01T00:00:01Z"));
    assert_eq!(first.reason.as_deref(), Some("drained in run r1"));
    // The next leader goes on with the same drain, and a later one is another.
    assert_eq!(note(&claim(5).cordon("r1", &before, false, "7", at(2))).0, first);
    let later = note(&claim(5).cordon("rq-7-1728000000", &before, false, "7", at(3))).0;
    assert_eq!(later.since.as_deref(), Some("1970-01-01T00:00:03Z"));
    assert_eq!(later.reason.as_deref(), Some("drained for entry 7 of the reboot queue"));
    let Step::<Refenced>::Json(patch) = claim(5).refence(&before) else { panic!("no patch") };
    assert_eq!(Note::read(patch[1]["value"].as_str().unwrap()), first);
    assert_eq!(Note::read(&text(&mark("r1", 4, false))), Note::default());
}

/// After a restoration the sequences may begin anew.
#[test]
fn fence_of_a_later_restoration_is_later() {
    let restored = Claim { fence: NodeFence { restored: 2, sequence: 1 }, ..claim(1) };
    let before = cordon(true, Some(mark("a", 9, false)));
    assert_eq!(restored.standing(&before), Standing::Ours);
    let written = written(&restored.cordon("a", &before, false, "7", at(1)));
    assert_eq!(written.fence, restored.fence);
    let step = claim(9).cordon("a", &cordon(true, Some(written.clone())), false, "7", at(1));
    assert_eq!(step, Step::Done(Cordoned::Superseded(written)));
}

/// Fences of two journals cannot be compared, but for those of a site that was restored.
#[test]
fn mark_of_another_journal_is_known_whatever_its_fence() {
    let of = |journal, sequence| Claim { journal, ..claim(sequence) };
    let marked = |journal, sequence| Mark { journal, ..mark("a", sequence, false) };
    let (earlier, own) = (Some(at(1)), Some(at(2)));
    for (claim, before, is_superseded) in [
        (of(own, 5), marked(own, 4), false),
        (of(own, 5), marked(own, 6), true),
        (of(own, 5), marked(earlier, 4), true),
        (of(own, 5), marked(earlier, 5), true),
        (of(own, 5), marked(earlier, 6), true),
        // Older versions do not say which journal it is.
        (of(own, 5), marked(None, 4), false),
        (of(None, 5), marked(earlier, 4), false),
        // The restored site goes on from an earlier journal.
        (Claim { fence: NodeFence { restored: 2, sequence: 1 }, ..of(own, 1) }, marked(earlier, 9), false),
        (Claim { takes_over: Some(fence(4)), ..of(own, 5) }, marked(earlier, 4), false),
    ] {
        let expected = if is_superseded { Standing::Superseded(before.clone()) } else { Standing::Ours };
        let cordon = cordon(true, Some(before.clone()));
        assert_eq!(claim.standing(&cordon), expected, "{claim:?} {before:?}");
    }
    let cordoned = written(&of(own, 5).cordon("a", &cordon(false, None), false, "7", at(1)));
    assert_eq!(cordoned.journal, own);
    let Step::<Refenced>::Json(patch) = of(own, 5).refence(&cordon(true, Some(mark("a", 4, false)))) else {
        panic!("no patch")
    };
    let rewritten: Mark = serde_json::from_str(patch[1]["value"].as_str().unwrap()).unwrap();
    assert_eq!(rewritten, marked(own, 5));
}

/// Somebody has removed the mark of a node that is drained, and it is looked at once more.
#[test]
fn cordon_without_its_mark_is_still_the_sites() {
    for (is_unschedulable, is_ours, was_unschedulable) in
        [(true, true, false), (true, false, true), (false, true, false)]
    {
        let step = claim(5).cordon("a", &cordon(is_unschedulable, None), is_ours, "7", at(1));
        assert_eq!(written(&step).was_unschedulable, was_unschedulable);
    }
}

#[test]
fn kept_cordon_is_not_made_anew() {
    let key = "/metadata/annotations/os-upgrade~1cordon";
    let earlier = mark("b", 4, true);
    let expected = json!([
        { "op": "test", "path": key, "value": text(&earlier) },
        { "op": "test", "path": "/spec/unschedulable", "value": true },
        { "op": "replace", "path": key, "value": text(&mark("b", 5, true)) },
    ]);
    assert_eq!(claim(5).keep(&cordon(true, Some(earlier))), Step::Json(expected));
    for before in [
        cordon(true, Some(mark("b", 5, true))),
        cordon(false, Some(mark("b", 4, true))),
        cordon(true, Some(mark("b", 6, true))),
        cordon(true, Some(foreign("b", 4))),
        cordon(true, None),
        unreadable(),
    ] {
        assert_eq!(claim(5).keep(&before), Step::Done(claim(5).standing(&before)), "{before:?}");
    }
}

/// Neither the owner's name nor the fence says anything about another site.
#[test]
fn another_sites_mark_is_left_alone() {
    for other in [foreign("a", 1), foreign("a", 5), foreign("a", 9), foreign("b", 1)] {
        for is_unschedulable in [true, false] {
            let cordon = cordon(is_unschedulable, Some(other.clone()));
            let claim = claim(5);
            assert_eq!(
                claim.cordon("a", &cordon, false, "7", at(1)),
                Step::Done(Cordoned::OtherSite(other.clone()))
            );
            assert_eq!(claim.uncordon(&cordon, "7", true), Step::Done(Uncordoned::OtherSite(other.clone())));
            assert_eq!(claim.refence(&cordon), Step::Done(Refenced::OtherSite(other.clone())));
            assert_eq!(claim.standing(&cordon), Standing::OtherSite(other.clone()));
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
        // A host has one slot, so whatever the site has marked is the claim's.
        (true, mark("b", 5, false), true),
    ] {
        let mut expected = unmark(&mark);
        expected.extend(free.iter().filter(|_| frees).cloned());
        let step = claim(5).uncordon(&cordon(is_unschedulable, Some(mark.clone())), "7", true);
        assert_eq!(step, Step::Json(Value::Array(expected)), "{is_unschedulable} {mark:?}");
    }
    let later = mark("a", 6, false);
    let step = claim(5).uncordon(&cordon(true, Some(later.clone())), "7", true);
    assert_eq!(step, Step::Done(Uncordoned::Superseded(later)));
    let step = claim(5).uncordon(&cordon(true, None), "7", false);
    assert_eq!(step, Step::Done(Uncordoned::Unmarked { is_unschedulable: true }));
    let step = claim(5).uncordon(&unreadable(), "7", true);
    assert!(matches!(step, Step::Done(Uncordoned::Unreadable { .. })), "{step:?}");
}

/// Somebody has removed the mark alone.
#[test]
fn cordon_of_the_site_ends_without_its_mark() {
    let free = json!({ "metadata": { "resourceVersion": "7" }, "spec": { "unschedulable": null } });
    assert_eq!(claim(5).uncordon(&cordon(true, None), "7", true), Step::Merge(free));
    let done = Step::Done(Uncordoned::Unmarked { is_unschedulable: false });
    assert_eq!(claim(5).uncordon(&cordon(false, None), "7", true), done);
}

/// A mark of another journal has a fence that says nothing. Only the one that an operator has seen is taken over.
#[test]
fn mark_of_another_journal_is_taken_over() {
    let other = mark("a", 900, false);
    let taken_over = |sequence| Claim { takes_over: Some(fence(sequence)), ..claim(5) };
    let before = cordon(true, Some(other.clone()));
    assert_eq!(taken_over(900).standing(&before), Standing::Ours);
    assert!(matches!(taken_over(900).uncordon(&before, "7", false), Step::Json(_)));
    assert_eq!(taken_over(899).standing(&before), Standing::Superseded(other.clone()));
    assert_eq!(taken_over(899).uncordon(&before, "7", true), Step::Done(Uncordoned::Superseded(other)));
}

#[test]
fn standing_tells_whose_node_it_is() {
    for (before, expected) in [
        (cordon(true, Some(mark("a", 5, false))), Standing::Ours),
        (cordon(true, Some(mark("a", 4, false))), Standing::Ours),
        (cordon(false, Some(mark("a", 5, false))), Standing::ForeignUncordon),
        (cordon(true, None), Standing::Unmarked),
        (cordon(true, Some(mark("a", 6, false))), Standing::Superseded(mark("a", 6, false))),
        (cordon(true, Some(mark("b", 1, false))), Standing::Ours),
    ] {
        assert_eq!(claim(5).standing(&before), expected, "{before:?}");
    }
    assert!(matches!(claim(5).standing(&unreadable()), Standing::Unreadable { .. }));
}

#[test]
fn marks_keep_their_format() {
    let mark = mark("run-1", 42, true);
    let format = json!({
        "site": "here", "owner": "run-1", "host": "host-1", "fence": { "restored": 1, "sequence": 42 },
        "wasUnschedulable": true,
    });
    assert_eq!(json!(mark), format);
    let mut with_journal = format.clone();
    with_journal["journal"] = json!("1970-01-01T00:00:02Z");
    assert_eq!(json!(Mark { journal: Some(at(2)), ..mark.clone() }), with_journal);
    let mut later = format.clone();
    later["more"] = json!(1);
    assert_eq!(Marking::read(Some(&later.to_string())), Marking::Marked { mark, text: later.to_string() });
    // Without a site, nobody knows whose it is.
    let mut nobodys = format;
    nobodys.as_object_mut().unwrap().remove("site");
    assert!(matches!(Marking::read(Some(&nobodys.to_string())), Marking::Unreadable { .. }));
}
