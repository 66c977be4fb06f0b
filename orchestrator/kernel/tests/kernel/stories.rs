//! Stories: the inputs of a site, line by line, and everything that follows from each.
//!
//! Each file in `stories/` is a script (see `common/script.rs`) with its whole outcome: `+` facts in order, `=` the
//! answer, `~` a hint to hosts at work, `!` all effects, whenever they have changed. Settings and rollouts are shown
//! without their defaults, so that a new setting changes no story. After a deliberate change of behaviour,
//! `UPDATE_EXPECTED=1 cargo test -p os-upgrade-kernel --test kernel stories` rewrites the outcomes; review the diff.

use std::path::PathBuf;

use crate::common;

fn play(name: &str) {
    common::expect_file(&format!("stories/{name}.story"), common::script::play);
}

macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            play(stringify!($name));
        })+

        #[test]
        fn every_story_is_listed() {
            let listed = [$(concat!(stringify!($name), ".story")),+];
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/stories");
            for entry in std::fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(listed.contains(&name.as_str()), "{name} is not in the list above");
            }
        }
    };
}

stories! {
    another_run,
    cancel,
    clock_skew,
    configuration,
    enrolment,
    enrolment_in_a_run,
    explain,
    external,
    fairness,
    given_up,
    happy_path,
    hints,
    hung_boot,
    held_then_unsent,
    late_command,
    late_done,
    leader,
    lock_clients,
    lowered,
    operators,
    prepare_fails,
    provider_switched,
    reboot_unsent,
    release_on_failure,
    replies,
    requests,
    rollout,
    surplus,
    timeout,
    unsent_at_the_end,
    upgrade_fails,
    windows,
}
