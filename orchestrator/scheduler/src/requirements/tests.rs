//! What sections `[X-Fleet]` mean, and which are refused.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::pattern::PatternError;
use crate::unit::{UnitKind, UnitNameError};

const ID: &str = "933fbdff1bdc4be0a7b64a9b58c3189d";

fn unit(text: &str) -> UnitName {
    UnitName::new(text).unwrap()
}

/// The requirements of a unit whose file has `section` after its line 3.
fn read(name: &str, section: &str) -> Result<Requirements, RequirementsError> {
    let file = UnitFile::parse(&format!("[Service]\nMachineOf=a\n[X-Fleet]\n{section}\n")).unwrap();
    Requirements::read(&unit(name), &file)
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text).unwrap()).collect()
}

fn metadata(pairs: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
    let values =
        |values: &[&str]| -> BTreeSet<String> { values.iter().map(|value| (*value).to_owned()).collect() };
    pairs.iter().map(|(key, of_key)| ((*key).to_owned(), values(of_key))).collect()
}

#[test]
fn every_option_is_read_under_both_names() {
    let none = Requirements::default();
    let pinned = Requirements { machine_id: MachineId::new(ID).ok(), ..none.clone() };
    let peers = Requirements { machine_of: vec![unit("b.service"), unit("c.socket")], ..none.clone() };
    let of_key = metadata(&[("disk", &["ssd"]), ("region", &["east", "us west"])]);
    let labelled = Requirements { machine_metadata: of_key, ..none.clone() };
    let conflicting = Requirements { conflicts: patterns(&["b*", "c.[a-z]*"]), ..none.clone() };
    let replacing = Requirements { replaces: patterns(&["b.service", "c*"]), ..none.clone() };
    let global = Requirements { is_global: true, ..none.clone() };
    let evacuating = Requirements { evacuates: true, ..none.clone() };
    for (section, expected) in [
        ("", &none),
        (&*format!("MachineID={ID}"), &pinned),
        (&*format!("X-ConditionMachineID=\"{}\"", ID.to_uppercase()), &pinned),
        (&*format!("MachineID={ID}\nX-ConditionMachineID={ID}"), &pinned),
        ("MachineOf=b.service c.socket", &peers),
        ("X-ConditionMachineOf=b.service\nMachineOf=c.socket", &peers),
        ("MachineMetadata=\"disk=ssd\" \"region=east\"\nMachineMetadata=region=us west", &labelled),
        ("X-ConditionMachineMetadata=disk=ssd\nMachineMetadata=\"region=us west\" region=east", &labelled),
        ("Conflicts=b* c.[a-z]*", &conflicting),
        ("X-Conflicts=b*\nConflicts=\"c.[a-z]*\"", &conflicting),
        ("Replaces=b.service\nReplaces=c*", &replacing),
        ("Global=no\nGlobal=Yes", &global),
        ("Evacuate=on", &evacuating),
        ("Global=false\nEvacuate=0", &none),
        // An empty value drops those before it, under either name.
        ("X-Conflicts=x*\nConflicts=\nConflicts=b* \\\n  c.[a-z]*", &conflicting),
        ("Global=true\nGlobal=", &none),
    ] {
        assert_eq!(read("a.service", section).as_ref(), Ok(expected), "{section}");
    }
}

#[test]
fn booleans_are_those_of_systemd() {
    for (value, expected) in [("1 yes Y true T on", true), ("0 no N false F off", false)] {
        for word in value.split(' ') {
            let read = read("a.service", &format!("Global={word}\nEvacuate={word}")).unwrap();
            assert_eq!((read.is_global, read.evacuates), (expected, expected), "{word}");
        }
    }
}

#[test]
fn instances_fill_in_their_names() {
    let section = "MachineMetadata=\"host=%i\" \"app=%p\"\nConflicts=%p@*\nConflicts=x-%i.*\nGlobal=%i";
    let read_as = |name| read(name, section).unwrap();
    let instance = read_as("web@1.service");
    assert_eq!(instance.machine_metadata, metadata(&[("app", &["web"]), ("host", &["1"])]));
    assert_eq!(instance.conflicts, patterns(&["web@*", "x-1.*"]));
    assert!(instance.is_global);
    // Of a template, what needs the instance is left out.
    let template = read_as("web@.service");
    assert_eq!(template.machine_metadata, metadata(&[("app", &["web"])]));
    assert_eq!(template.conflicts, patterns(&["web@*"]));
    assert!(!template.is_global);
    assert_eq!(read("pin@.service", "MachineID=%i"), Ok(Requirements::default()));
    let pinned = read(&format!("pin@{ID}.service"), "MachineID=%i").unwrap();
    assert_eq!(pinned.machine_id, MachineId::new(ID).ok());
    assert_eq!(read("a.service", "MachineOf=%p.socket").unwrap().machine_of, [unit("a.socket")]);
}

#[test]
fn wrong_values_are_refused() {
    use RequirementsProblem as P;
    let many = format!("Conflicts={}", "b* ".repeat(VALUES_MAX));
    assert_eq!(read("a.service", &many).unwrap().conflicts.len(), VALUES_MAX);
    for (section, line, problem) in [
        ("Evacuate=yes\nConflicts=\"b", 5, P::Quote),
        (&*format!("{many}\nX-Conflicts=b*"), 5, P::TooMany),
        ("MachineID=933fbdff", 4, P::MachineId),
        ("MachineID=\"\"", 4, P::MachineId),
        ("MachineID=%i", 4, P::MachineId),
        (&*format!("MachineID={ID}\n# other\nMachineID={}", "0".repeat(32)), 6, P::TwoMachineIds),
        ("X-ConditionMachineBootID=1", 4, P::MachineBootId),
        ("MachineOf=b", 4, P::Peer(UnitNameError::Kind)),
        ("MachineOf=b@1.mount", 4, P::Peer(UnitNameError::Template(UnitKind::Mount))),
        ("MachineOf=b.service %n", 4, P::PeerItself),
        ("MachineMetadata=region", 4, P::Metadata),
        ("MachineMetadata=region=", 4, P::Metadata),
        ("MachineMetadata==east", 4, P::Metadata),
        ("MachineMetadata=region=east disk=ssd", 4, P::Metadata),
        ("MachineMetadata=host=%i", 4, P::Metadata),
        ("Conflicts=b* [", 4, P::Pattern(PatternError::Class)),
        ("Replaces=\"\"", 4, P::Pattern(PatternError::Empty)),
        ("Global=maybe", 4, P::Boolean),
        ("Evacuate=2", 4, P::Boolean),
        ("Conflicts=b.service a.service", 4, P::ConflictsWithItself),
        ("Replaces=%n", 4, P::ReplacesItself),
        ("Conflicts=b*\nMachineOf=b.service", 4, P::PeerConflicts { peer: unit("b.service") }),
        ("MachineOf=c.timer\nReplaces=x* *.timer", 5, P::PeerReplaced { peer: unit("c.timer") }),
    ] {
        assert_eq!(read("a.service", section), Err(RequirementsError { line, problem }), "{section:.60}");
    }
}

/// Every refusal names the option, in words that are shown to those who wrote the file.
#[test]
fn refusals_have_sentences() {
    for (section, sentence) in [
        ("Evacuate=yes\nConflicts=\"b", "line 5: a quotation mark is not closed"),
        (
            "MachineID=933fbdff",
            "line 4: MachineID is the whole id of a machine, which has 32 hexadecimal digits",
        ),
        ("X-ConditionMachineBootID=1", "line 4: X-ConditionMachineBootID matches no machine: use MachineID"),
        (
            "MachineOf=b",
            "line 4: MachineOf names a unit: the name of a unit ends in its kind, such as .service, .socket or .timer",
        ),
        ("MachineOf=%n", "line 4: MachineOf names the unit itself"),
        (
            "MachineMetadata=region",
            "line 4: MachineMetadata is key=value, and several such pairs on a line are each in quotation marks",
        ),
        ("Replaces=\"\"", "line 4: Conflicts and Replaces are patterns of names: a pattern is not empty"),
        ("Global=maybe", "line 4: Global and Evacuate are yes or no"),
        ("Conflicts=a.service", "line 4: Conflicts names the unit itself"),
        ("Replaces=%n", "line 4: Replaces names the unit itself"),
        ("Conflicts=b*\nMachineOf=b.service", "line 4: Conflicts matches b.service, which MachineOf names"),
        ("MachineOf=c.timer\nReplaces=*.timer", "line 5: Replaces matches c.timer, which MachineOf names"),
        ("Global=true\nMachineOf=b.service", "line 5: Global excludes MachineOf"),
        ("Conflicts=b*\nReplaces=c*", "line 5: Conflicts excludes Replaces"),
    ] {
        let error = read("a.service", section).unwrap_err();
        assert!(error.to_string().starts_with(sentence), "{section}: {error}");
    }
}

#[test]
fn contradictions_are_refused() {
    use RequirementsProblem as P;
    let id = format!("MachineID={ID}");
    let id = id.as_str();
    for (one, other, problem) in [
        (id, "MachineOf=b.service", P::MachineIdWithMachineOf),
        (id, "Conflicts=b*", P::MachineIdWithConflicts),
        (id, "Global=true", P::MachineIdWithGlobal),
        (id, "Replaces=b*", P::MachineIdWithReplaces),
        ("Global=true", "MachineOf=b.service", P::GlobalWithMachineOf),
        ("Global=true", "Replaces=b*", P::GlobalWithReplaces),
        ("Conflicts=b*", "Replaces=c*", P::ConflictsWithReplaces),
    ] {
        for section in [format!("{one}\n{other}"), format!("{other}\n{one}")] {
            let error = RequirementsError { line: 5, problem: problem.clone() };
            assert_eq!(read("a.service", &section), Err(error), "{section}");
        }
        // A template contradicts itself whatever its instances are.
        let of_instances = format!("{}\n{}", one.replace("=b", "=%i"), other.replace("=b", "=%i"));
        let error = RequirementsError { line: 5, problem };
        assert_eq!(read("a@.service", &of_instances), Err(error), "{of_instances}");
    }
    for section in [
        "Global=true\nConflicts=b*\nMachineMetadata=a=b",
        "Global=false\nMachineOf=b.service\nConflicts=c*",
        "Global=no\nReplaces=b*\nMachineOf=c.service",
        "MachineOf=b.service\nConflicts=b\nMachineMetadata=a=b",
    ] {
        assert!(read("a.service", section).is_ok(), "{section}");
    }
}

/// Units that keep away from each other share a pattern, which matches each of them.
#[test]
fn a_glob_may_match_the_unit_itself() {
    for section in ["Conflicts=a.*.service", "Replaces=*"] {
        let read = read("a.0.service", section).unwrap();
        let mut opposed = read.conflicts.iter().chain(&read.replaces);
        assert!(opposed.any(|pattern| pattern.matches(&unit("a.0.service"))), "{section}");
    }
}

#[test]
fn unknown_options_are_listed_and_ignored() {
    let text = "[X-Fleet]\nConflict=b*\nGlobal=true\nX-Global=true\nmachineid=\n[Service]\nUser=a\n";
    let file = UnitFile::parse(text).unwrap();
    let unknown = |line, name: &str| UnknownOption { line, name: name.to_owned() };
    assert_eq!(
        unknown_options(&file),
        [unknown(2, "Conflict"), unknown(4, "X-Global"), unknown(5, "machineid")]
    );
    let expected = Requirements { is_global: true, ..Requirements::default() };
    assert_eq!(Requirements::read(&unit("a.service"), &file), Ok(expected));
}

proptest! {
    #[test]
    fn no_section_panics(
        options in vec(
            (
                select(&["MachineID", "MachineOf", "MachineMetadata", "Conflicts", "Replaces", "Global"][..]),
                "([a-c*\\[\\]=\" ]|%[nNpi%]|\\.service| yes ){0,6}",
            ),
            0..5,
        ),
        name in "[ab](@[ab]?)?\\.service",
    ) {
        let lines: Vec<String> = options.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        match read(&name, &lines.join("\n")) {
            Ok(found) => {
                let opposed = || found.conflicts.iter().chain(&found.replaces);
                prop_assert!(!found.machine_of.iter().any(|peer| opposed().any(|it| it.matches(peer))));
                let is_free = found.machine_of.is_empty() && found.replaces.is_empty();
                prop_assert!(is_free || !found.is_global);
            }
            Err(error) => prop_assert!((4..4 + lines.len()).contains(&usize::try_from(error.line).unwrap())),
        }
    }
}
