//! Stories: the inputs of a site, line by line, and everything that follows from each.
//!
//! Each file in `stories/`, in a folder for each subject, is a script (see `common/script.rs`) with its whole outcome: `+` facts in order, `=` the
//! answer, `~` a hint to hosts at work, `!` all effects, whenever they have changed. Settings and rollouts are shown
//! without their defaults, so that a new setting changes no story. After a deliberate change of behaviour,
//! `UPDATE_EXPECTED=1 cargo test -p os-upgrade-kernel --test kernel stories` rewrites the outcomes; review the diff.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::common;

#[test]
fn stories_have_their_outcomes() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel");
    let paths = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let stories = paths(root.join("stories")).flat_map(paths);
    let names: BTreeSet<PathBuf> = stories.map(|path| path.strip_prefix(&root).unwrap().to_owned()).collect();
    assert!(!names.is_empty());
    let is_wrong = |name: &&PathBuf| {
        let path = name.to_str().unwrap();
        std::panic::catch_unwind(|| common::expect_file(path, common::script::play)).is_err()
    };
    let wrong: Vec<_> = names.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?} differ, see above");
}
