//! House style, as far as text shows it.

use std::path::{Path, PathBuf};

use crate::workspace;

/// Lines of a file, tests included. Files are read in one sitting.
const LINES_MAX: usize = 700;
/// Characters of a function's name. A test is named by its promise, not by a sentence.
const NAME_CHARS_MAX: usize = 55;
/// Documentation that says nothing.
const EMPTY_DOCS: [&str; 8] =
    ["Itself.", "Which.", "Which one.", "The same.", "What.", "Why.", "When.", "Everything."];

/// What `judge` finds wrong, a line for each, with the file and the line.
fn wrong(judge: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = |(path, text): &(PathBuf, String)| -> Vec<String> {
        let numbered = text.lines().enumerate().filter(|(_, line)| judge(line.trim()));
        numbered.map(|(index, line)| format!("{}:{}: {}", path.display(), index + 1, line.trim())).collect()
    };
    workspace::sources().iter().flat_map(lines).collect()
}

/// The name of the function that a line begins to define.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_definition = before
        .split(' ')
        .all(|word| ["", "async", "const", "pub", "pub(crate)", "pub(super)"].contains(&word));
    is_definition.then(|| after.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next()).flatten()
}

/// Whether a line is documentation that says nothing.
fn is_empty_doc(line: &str) -> bool {
    line.strip_prefix("///").is_some_and(|doc| EMPTY_DOCS.contains(&doc.trim()))
}

#[test]
fn files_are_short() {
    let long: Vec<(PathBuf, usize)> = workspace::sources()
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .collect();
    assert_eq!(long, []);
}

#[test]
fn function_names_are_short() {
    let wrong = wrong(|line| function(line).is_some_and(|name| name.chars().count() > NAME_CHARS_MAX));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documentation_says_something() {
    let wrong = wrong(is_empty_doc);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_say_what_lives_there() {
    let silent: Vec<PathBuf> = workspace::sources()
        .into_iter()
        // What cargo-fuzz builds is one line each.
        .filter(|(path, _)| !path.starts_with(Path::new("fuzz/fuzz_targets")))
        .filter(|(_, text)| !text.starts_with("//!") && !text.starts_with("#!["))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(silent, [""; 0].map(PathBuf::from));
}

#[test]
fn what_is_wrong_is_found() {
    assert_eq!(function("pub(crate) async fn run(self) {"), Some("run"));
    assert_eq!(function("//! what fn is"), None);
    assert!(is_empty_doc("/// Itself."));
    assert!(!is_empty_doc("/// The host itself."));
}
