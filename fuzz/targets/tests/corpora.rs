//! Runs the targets with every file of every corpus; each finding of the fuzzer is added to a corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use os_upgrade_fuzz_targets::{TARGETS, follow};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_target_passes_its_corpus() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let corpus = fuzz().join("corpus").join(name);
        let files = names(&corpus);
        assert!(files.len() >= 3, "the corpus of {name} has {} files", files.len());
        let files = files.into_iter().map(|file| {
            let data = fs::read(corpus.join(&file)).unwrap();
            (file, data)
        });
        // Inputs for every target, so that no corpus needs them.
        let odd = [&b""[..], b"\0", b"\xff\xfe", &[b'['; 4096], &[b'\n'; 16]];
        let odd = odd.into_iter().map(|data| (format!("{data:.20?}"), data.to_vec()));
        for (file, data) in files.chain(odd) {
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                failed.push(format!("{name}/{file}"));
            }
        }
    }
    assert_eq!(failed, [""; 0]);
}

/// A corpus in an outdated format would be rejected at the first header, and fuzzing would get no further.
#[test]
fn corpus_journals_are_followed() {
    for (file, accepted) in [("run", 5), ("locks", 3), ("snapshot", 2), ("deflated", 1), ("far-times", 1)] {
        let data = fs::read(fuzz().join("corpus/journal").join(file)).unwrap();
        assert_eq!(follow(&data), accepted, "{file}");
    }
}

#[test]
fn every_target_has_a_corpus_and_a_program() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz().join("corpus")), targets);
    let programs: BTreeSet<String> = names(&fuzz().join("fuzz_targets"))
        .iter()
        .map(|file| file.strip_suffix(".rs").unwrap().to_owned())
        .collect();
    assert_eq!(programs, targets);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in targets {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} has no program");
    }
}
