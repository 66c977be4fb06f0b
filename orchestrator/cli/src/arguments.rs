//! Global options before the command: `os-upgrade --url URL status` is `os-upgrade status --url URL`.

use std::collections::VecDeque;
use std::ffi::OsString;

use clap::{Arg, Command};

/// The heading of global options in the help of each command: those that may come before the command.
pub(crate) const GLOBAL: &str = "Global options";

/// The arguments of `program`, its name included, with global options behind the words of the command, where it declares them.
pub fn with_globals_last(arguments: impl IntoIterator<Item = OsString>, program: &Command) -> Vec<OsString> {
    let mut rest: VecDeque<OsString> = arguments.into_iter().collect();
    let mut words: Vec<OsString> = rest.pop_front().into_iter().collect();
    let mut declared = Vec::new();
    declared_globals(program, &mut declared);
    let mut globals = Vec::new();
    let mut command = program;
    while let Some(next) = rest.front().and_then(|next| next.to_str()) {
        if let Some(below) = command.find_subcommand(next) {
            command = below;
            words.extend(rest.pop_front());
        } else if let Some(count) = declared.iter().find_map(|option| arguments_taken(next, option)) {
            globals.extend(rest.drain(..count.min(rest.len())));
        } else {
            break;
        }
    }
    words.extend(globals);
    words.extend(rest);
    words
}

/// Those of `words` that are options of `command`, with their values.
pub(crate) fn only_options_of(command: &Command, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut rest: VecDeque<OsString> = words.into_iter().collect();
    let mut found = Vec::new();
    while let Some(next) = rest.front() {
        let taken = |option: &Arg| arguments_taken(next.to_str()?, option);
        match command.get_arguments().find_map(taken) {
            Some(count) => found.extend(rest.drain(..count.min(rest.len()))),
            None => drop(rest.pop_front()),
        }
    }
    found
}

/// Adds the global options that `command` and the commands below it declare.
fn declared_globals<'a>(command: &'a Command, found: &mut Vec<&'a Arg>) {
    let globals = command.get_arguments().filter(|option| option.get_help_heading() == Some(GLOBAL));
    found.extend(globals);
    for below in command.get_subcommands() {
        declared_globals(below, found);
    }
}

/// How many arguments `option` takes up that begins with `argument`; `None` if that is another option.
fn arguments_taken(argument: &str, option: &Arg) -> Option<usize> {
    let takes_value = option.get_action().takes_values();
    let long = option.get_long().and_then(|long| argument.strip_prefix("--")?.strip_prefix(long));
    let short = option.get_short().and_then(|short| argument.strip_prefix('-')?.strip_prefix(short));
    match (long, short) {
        (Some(""), _) | (None, Some("")) => Some(if takes_value { 2 } else { 1 }),
        (Some(more), _) => (takes_value && more.starts_with('=')).then_some(1),
        (None, Some(_)) => takes_value.then_some(1),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    #[test]
    fn globals_may_come_first() {
        let global =
            |long: &'static str, action| Arg::new(long).long(long).action(action).help_heading(GLOBAL);
        let of_api = |command: Command| {
            let with_value = ["url", "context"].map(|long| global(long, ArgAction::Set));
            let flags = ["utc", "quiet"].map(|long| global(long, ArgAction::SetTrue));
            let own = Arg::new("verbose").long("verbose").action(ArgAction::SetTrue);
            let format = global("output", ArgAction::Set).short('o');
            command.args(with_value).args(flags).arg(format).arg(own)
        };
        let list = of_api(Command::new("list").visible_alias("ls"));
        let program = Command::new("os-upgrade")
            .subcommand(of_api(Command::new("status")))
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
            ("--utc=x status", "--utc=x status"),
            ("--urls x status", "--urls x status"),
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
