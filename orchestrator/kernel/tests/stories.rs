//! Stories: what a site is told, line by line, and everything the kernel makes of it.
//!
//! Each file in `stories/` is a script (see `common/script.rs`) together with its whole outcome: `+` facts in order,
//! `=` the answer, `!` all that should be under way, whenever that has changed. After a deliberate change of
//! behaviour, `UPDATE_STORIES=1 cargo test -p os-upgrade-kernel --test stories` writes the outcomes anew, for the
//! reader of the diff to judge.

mod common;

use std::path::PathBuf;

fn tell(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stories").join(format!("{name}.story"));
    let expected = std::fs::read_to_string(&path).unwrap();
    let actual = common::script::play(&expected);
    if std::env::var_os("UPDATE_STORIES").is_some() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    if actual != expected {
        let differs = actual.lines().zip(expected.lines()).position(|(actual, expected)| actual != expected);
        let line = differs.unwrap_or_else(|| actual.lines().count().min(expected.lines().count()));
        panic!("{name}.story differs from line {}; what came of it:\n\n{actual}", line + 1);
    }
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
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
            for entry in std::fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(told.contains(&name.as_str()), "{name} is not in the list above");
            }
        }
    };
}

stories! {
    cancel,
    clock_skew,
    explain,
    external,
    happy_path,
    held_then_unsent,
    late_command,
    late_done,
    leader,
    lowered,
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
}
