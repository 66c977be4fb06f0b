//! Stories: what a site is told, line by line, and everything the kernel makes of it.
//!
//! Each file in `stories/` is a script (see `common/script.rs`) together with its whole outcome: `+` facts in order,
//! `=` the answer, `~` a hint to hosts at work, `!` all that should be under way, whenever that has changed. Of settings
//! and rollouts only what differs from the defaults is shown, so that a new setting changes no story. After a deliberate
//! change of behaviour, `UPDATE_EXPECTED=1 cargo test -p os-upgrade-kernel --test kernel stories` writes the outcomes anew, for
//! the reader of the diff to judge.

use std::path::PathBuf;

use crate::common;

fn tell(name: &str) {
    common::expect_file(&format!("stories/{name}.story"), common::script::play);
}

macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            tell(stringify!($name));
        })+

        #[test]
        fn every_story_is_told() {
            let told = [$(concat!(stringify!($name), ".story")),+];
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/stories");
            for entry in std::fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(told.contains(&name.as_str()), "{name} is not in the list above");
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
