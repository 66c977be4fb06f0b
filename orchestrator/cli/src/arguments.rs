//! Global options before the command: `os-upgrade --url URL status` is `os-upgrade status --url URL`.

use std::collections::VecDeque;
use std::ffi::OsString;

use clap::Command;

/// The global options that take a value, by their long and short names.
const WITH_VALUE: [&str; 6] = ["--url", "--token-file", "--ca", "--context", "--output", "-o"];
/// Those that take none.
const FLAGS: [&str; 2] = ["--utc", "--quiet"];

/// The arguments of `program`, its name included, with global options behind the words of the command, where it declares them.
pub fn with_globals_last(arguments: impl IntoIterator<Item = OsString>, program: &Command) -> Vec<OsString> {
    let mut rest: VecDeque<OsString> = arguments.into_iter().collect();
    let mut words: Vec<OsString> = rest.pop_front().into_iter().collect();
    let mut globals = Vec::new();
    let mut command = program;
    while let Some(next) = rest.front().and_then(|next| next.to_str()) {
        if let Some(below) = command.find_subcommand(next) {
            command = below;
            words.extend(rest.pop_front());
        } else if let Some(count) = global(next) {
            globals.extend(rest.drain(..count.min(rest.len())));
        } else {
            break;
        }
    }
    words.extend(globals);
    words.extend(rest);
    words
}

/// How many arguments the global option `argument` takes up; `None` if it is none.
fn global(argument: &str) -> Option<usize> {
    if FLAGS.contains(&argument) {
        return Some(1);
    }
    if WITH_VALUE.contains(&argument) {
        return Some(2);
    }
    let has_value_in_it = |option: &str| {
        let value = argument.strip_prefix(option);
        value.is_some_and(|value| !option.starts_with("--") || value.starts_with('='))
    };
    WITH_VALUE.into_iter().any(has_value_in_it).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globals_may_come_first() {
        let list = Command::new("list").visible_alias("ls");
        let program = Command::new("os-upgrade")
            .subcommand(Command::new("status"))
            .subcommand(Command::new("run").subcommand(list));
        for (typed, expected) in [
            ("--url http://h status", "status --url http://h"),
            ("--url=http://h -ojson --utc status --watch", "status --url=http://h -ojson --utc --watch"),
            (
                "--context prod run --quiet list -o name --limit 3",
                "run list --context prod --quiet -o name --limit 3",
            ),
            ("run ls --utc h01", "run ls --utc h01"),
            // What it does not know is clap's to judge.
            ("--verbose status --url x", "--verbose status --url x"),
            ("status -- --url x", "status -- --url x"),
            ("--url", "--url"),
            ("", ""),
        ] {
            let typed = ["os-upgrade"].into_iter().chain(typed.split_whitespace()).map(OsString::from);
            let expected: Vec<OsString> =
                ["os-upgrade"].into_iter().chain(expected.split_whitespace()).map(OsString::from).collect();
            assert_eq!(with_globals_last(typed, &program), expected);
        }
    }
}
