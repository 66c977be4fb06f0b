//! The diagram of the crates in ARCHITECTURE.md is that of their dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::graph::reached;
use crate::workspace;

/// For each node those that it uses.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The crate that a node of the diagram stands for.
fn package(node: &str) -> String {
    match node {
        "main" => "os-upgrade-orchestrator".to_owned(),
        "rules" => "os-upgrade-worker-rules".to_owned(),
        "worker" => "os-upgrade-worker-sdk".to_owned(),
        name => format!("os-upgrade-{name}"),
    }
}

/// The arrows of a Mermaid flowchart, each line of which is `a & b --> c & d`; a node may have a label in brackets. `name` tells
/// what a node stands for.
pub(crate) fn arrows(chart: &str, name: impl Fn(&str) -> String) -> Graph {
    let nodes = |side: &str| -> Vec<String> {
        let names = side.split('&').map(|node| node.split('[').next().unwrap_or(node).trim());
        names.map(&name).collect()
    };
    let mut graph = Graph::new();
    for (from, to) in chart.lines().filter_map(|line| line.split_once("-->")) {
        for from in nodes(from) {
            graph.entry(from).or_default().extend(nodes(to));
        }
    }
    graph
}

/// What is drawn and is not so, and what is so and is not drawn, be it over others.
pub(crate) fn differences(drawn: &Graph, real: &Graph) -> Vec<String> {
    let arrows = |graph: &Graph| -> Vec<(String, String)> {
        let of = |(from, used): (&String, &BTreeSet<String>)| -> Vec<_> {
            used.iter().map(|to| (from.clone(), to.clone())).collect()
        };
        graph.iter().flat_map(of).collect()
    };
    let untrue =
        arrows(drawn).into_iter().filter(|(from, to)| !real.get(from).is_some_and(|used| used.contains(to)));
    let untrue = untrue.map(|(from, to)| format!("{from} does not use {to}"));
    let missing = arrows(real)
        .into_iter()
        .filter(|(from, to)| !reached(from, |node| drawn.get(node).into_iter().flatten()).contains(to));
    untrue.chain(missing.map(|(from, to)| format!("{from} uses {to}, which is not drawn"))).collect()
}

#[test]
fn the_diagram_shows_the_dependencies() {
    let text = fs::read_to_string(workspace::directory().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("\n## Crates\n").nth(1).expect("a section about the crates");
    let chart = section.split("```").nth(1).expect("a diagram");
    let mut real = workspace::dependencies();
    // They are about tests.
    real.retain(|name, _| !workspace::is_for_tests(name));
    assert_eq!(differences(&arrows(chart, package), &real), [""; 0]);
}

#[test]
fn a_wrong_diagram_is_found() {
    let drawn = arrows("flowchart TD\n    main[\"x<br/>y\"] --> a & b\n    a --> c\n", package);
    let real = arrows("main --> a & c\nb --> c", package);
    let name = "os-upgrade-";
    assert_eq!(
        differences(&drawn, &real),
        [
            format!("{name}a does not use {name}c"),
            format!("{name}orchestrator does not use {name}b"),
            format!("{name}b uses {name}c, which is not drawn"),
        ]
    );
}
