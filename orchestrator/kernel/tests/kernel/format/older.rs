//! What other versions have written, older ones and newer ones, is read.

use super::*;

/// As the last version wrote it that knew neither maintenance windows nor revisions of the configuration nor secrets, of
/// the very site of which the present one writes `state.json`.
#[test]
fn a_snapshot_from_before_windows() {
    let before = include_str!("state-before-windows.json");
    let absent = [
        "config-revision",
        "spent-at",
        "strongbox",
        "timezone",
        "maintenance-windows",
        "auto-approve",
        "enrolment",
        "\"sent-at",
    ];
    for absent in absent {
        assert!(!before.contains(absent), "{absent}");
    }
    let read: State = serde_json::from_str(before).unwrap();
    let known = |line: &&str| !line.contains("\"sent-at");
    let present: String = include_str!("state.json").lines().filter(known).collect();
    let present: State = serde_json::from_str(&present).unwrap();
    let settings = Settings { auto_approve: false, ..(*present.settings).clone() };
    let (enrolment, settings) = (Enrolment::default(), settings.into());
    let expected = State { config_revision: 0, spent: Spent::default(), enrolment, settings, ..present };
    assert_eq!(read, expected);

    // The configuration in it has a tag, and whoever has seen that may change it.
    let tag = read.config_tag().unwrap();
    let ask = |state: &State| {
        let put = ConfigOperation::Put { config: config(), expected: Expected::Tags(vec![tag.clone()]) };
        let request = Request::new("admin", put).into();
        decide(state, &View::default(), &Input::Request(request), start())
    };
    let decided = ask(&read);
    assert_eq!(decided.answer, Some(Ok(Accepted::Done)));
    let mut changed = read;
    for fact in &decided.facts {
        changed.apply(start(), fact).unwrap();
    }
    assert_eq!(changed.config_revision, 1);
    assert!(matches!(ask(&changed).answer, Some(Err(Refusal::Config(ConfigRefusal::ConfigChanged { .. })))));
}

/// Facts written before a field was there, and by a newer program that knows more of them.
#[test]
fn unknown_and_absent_fields_are_read() {
    let newer = r#"{"type":"fence-passed","sequence":7,"since":"yesterday"}"#;
    assert_eq!(serde_json::from_str::<Fact>(newer).unwrap(), Fact::FencePassed { sequence: 7 });
    let unknown = serde_json::from_str::<Fact>(r#"{"type":"moon-landed"}"#).unwrap_err();
    assert!(unknown.to_string().starts_with("unknown variant `moon-landed`"), "{unknown}");
}
