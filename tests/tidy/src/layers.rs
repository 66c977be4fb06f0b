//! The diagram of the kernel in ARCHITECTURE.md is that of its files.
//!
//! A subject's folder has files of several layers: the subject's part of the state is below the whole state, and what is decided
//! about the subject is above it. So folders use each other in circles, and the layers of the diagram say what may use what.
//! The last line of a node's label names its files: `name` beside `lib.rs`, `folder/name`, `*/name` in every folder,
//! `folder/*`, and `*/*` for all others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::circles;
use crate::diagram::{Graph, arrows, differences};
use crate::modules;
use crate::workspace::{self, LAYERED};

/// The layer of each pattern of files.
type Patterns = BTreeMap<String, String>;

/// The patterns in the labels of a Mermaid flowchart.
fn patterns(chart: &str) -> Patterns {
    let mut found = Patterns::new();
    for line in chart.lines() {
        let Some((before, label)) = line.split_once("[\"") else { continue };
        let label = label.split_once("\"]").expect("the end of a label").0;
        let files = label.rsplit("<br/>").next().expect("a line").split(' ');
        found.extend(files.map(|pattern| (pattern.to_owned(), before.trim().to_owned())));
    }
    found
}

/// The pattern that is meant for `file`, the most specific one.
fn pattern<'a>(patterns: &'a Patterns, file: &str) -> Option<&'a str> {
    let folder = file.split_once('/');
    let candidates =
        folder.map(|(folder, name)| [format!("*/{name}"), format!("{folder}/*"), "*/*".to_owned()]);
    let mut candidates = std::iter::once(file.to_owned()).chain(candidates.into_iter().flatten());
    candidates.find_map(|candidate| patterns.get_key_value(&candidate)).map(|(pattern, _)| pattern.as_str())
}

/// The uses between layers. `files` has what each file uses, files as `folder/name`.
fn between_layers(patterns: &Patterns, files: &Graph) -> Graph {
    let layer = |file: &str| {
        patterns[pattern(patterns, file).unwrap_or_else(|| panic!("{file} is not drawn"))].clone()
    };
    let mut graph = Graph::new();
    for (from, used) in files {
        let from = layer(from);
        graph
            .entry(from.clone())
            .or_default()
            .extend(used.iter().map(|to| layer(to)).filter(|to| *to != from));
    }
    graph
}

/// The files of the layered crate, but for those that only name the files of a folder, and what each uses.
fn files() -> Graph {
    let target = workspace::targets().into_iter().find(|target| target.name == LAYERED).expect("the kernel");
    let read = |path: &std::path::Path| fs::read_to_string(path).ok();
    let modules = modules::read(&target.root, &read);
    let used = circles::files(&modules);
    let has_files = |path: &Vec<String>| {
        modules.keys().any(|module| module.len() > path.len() && module.starts_with(path))
    };
    // One that only names the files of its folder defines nothing.
    let is_facade = |path: &Vec<String>| modules[path].items.is_empty() && has_files(path);
    let is_file = |path: &&Vec<String>| !path.is_empty() && !is_facade(path);
    // Deeper modules count as the one that contains them.
    let name = |path: &Vec<String>| path[..path.len().min(2)].join("/");
    let mut graph: Graph = modules.keys().filter(is_file).map(|path| (name(path), BTreeSet::new())).collect();
    for (from, used) in used.iter().filter(|(from, _)| is_file(from)) {
        let used = used.keys().filter(|to| !to.is_empty()).map(name);
        graph.entry(name(from)).or_default().extend(used);
    }
    graph
}

#[test]
fn the_diagram_shows_the_layers_of_the_kernel() {
    let text = fs::read_to_string(workspace::directory().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("\n### Inside the kernel\n").nth(1).expect("a section about the kernel");
    let chart = section.split("```").nth(1).expect("a diagram");
    let (patterns, files) = (patterns(chart), files());
    let meant: BTreeSet<&str> = files.keys().filter_map(|file| pattern(&patterns, file)).collect();
    let unused: Vec<&String> = patterns.keys().filter(|pattern| !meant.contains(pattern.as_str())).collect();
    assert!(unused.is_empty(), "no file is meant by {unused:?}");
    let drawn = arrows(chart, str::to_owned);
    assert_eq!(differences(&drawn, &between_layers(&patterns, &files)), [""; 0]);
}

#[test]
fn the_most_specific_pattern_counts() {
    let chart = "top[\"text<br/>decide */steps\"] --> low\nlow[\"text<br/>*/* start/* run/steps\"]";
    let patterns = patterns(chart);
    let layer = |file: &str| pattern(&patterns, file).map(|pattern| (pattern, patterns[pattern].as_str()));
    assert_eq!(layer("decide"), Some(("decide", "top")));
    assert_eq!(layer("slot/steps"), Some(("*/steps", "top")));
    assert_eq!(layer("run/steps"), Some(("run/steps", "low")));
    assert_eq!(layer("start/forecast"), Some(("start/*", "low")));
    assert_eq!(layer("slot/state"), Some(("*/*", "low")));
    assert_eq!(layer("state"), None);
    let files = Graph::from([("slot/steps".to_owned(), BTreeSet::from(["slot/state".to_owned()]))]);
    assert_eq!(
        between_layers(&patterns, &files),
        Graph::from([("top".to_owned(), BTreeSet::from(["low".to_owned()]))])
    );
}
