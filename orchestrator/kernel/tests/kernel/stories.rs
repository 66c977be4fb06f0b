//! Stories: the inputs of a site, line by line, and everything that follows from each.
//!
//! Each file in `stories/` is a script (see `common/script.rs`) with its whole outcome: `+` facts in order, `=` the
//! answer, `~` a hint to hosts at work, `!` all effects, whenever they have changed. Settings and rollouts are shown
//! without their defaults, so that a new setting changes no story. After a deliberate change of behaviour,
//! `UPDATE_EXPECTED=1 cargo test -p os-upgrade-kernel --test kernel stories` rewrites the outcomes; review the diff.

use std::path::PathBuf;

use crate::common;

#[test]
fn stories_have_their_outcomes() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/stories");
    let entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(entries.len() > 30, "{entries:?}");
    for entry in entries {
        let name = entry.to_str().unwrap();
        common::expect_file(&format!("stories/{name}"), common::script::play);
    }
}
