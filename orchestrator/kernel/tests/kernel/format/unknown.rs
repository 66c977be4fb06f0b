//! What a newer program has written.

use os_upgrade_kernel::fact::ControlFact;
use os_upgrade_kernel::format::{ReadError, read};
use os_upgrade_kernel::{Fact, Record};

/// Fields and kinds that a newer program writes are not left out: what they say would be lost.
#[test]
fn unknown_fields_are_refused() {
    let fact = Fact::Control(ControlFact::FencePassed { sequence: 7 });
    for json in [
        r#"{"type":"fence-passed","sequence":7}"#,
        r#"{"sequence":7,"type":"fence-passed"}"#,
        // Nothing is lost where nothing is said.
        r#"{ "type": "fence-passed", "sequence": 7, "since": null }"#,
    ] {
        assert_eq!(read::<Fact>(json.as_bytes()).unwrap(), fact);
    }
    let newer = r#"{"type":"fence-passed","sequence":7,"since":"yesterday"}"#;
    let refused = read::<Fact>(newer.as_bytes()).unwrap_err();
    assert_eq!(refused.to_string(), "it has since, which this version does not know");
    let nested = r#"{"at":"2026-11-21T01:00:00Z","control":1,"facts":[{"type":"host","run":"r1","host":"h1","event":{"type":"turn-lost","to":"h2"}}]}"#;
    let refused = read::<Record>(nested.as_bytes()).unwrap_err();
    assert_eq!(refused.to_string(), "it has facts/event/to, which this version does not know");
    let unknown = read::<Fact>(br#"{"type":"moon-landed"}"#).unwrap_err();
    let ReadError::Invalid(source) = unknown else { panic!("{unknown}") };
    assert!(source.to_string().starts_with("unknown fact `moon-landed`"), "{source}");
}
