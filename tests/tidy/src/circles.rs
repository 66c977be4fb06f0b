//! No files and no folders use each other in a circle, so that each can be read before the files that use it.
//!
//! A path counts as a use of the file that defines its item, whatever re-exports it passes; modules on the way to the item
//! do not count. Folders follow the modules: a module with all modules below it is one folder, beside the others of its
//! parent.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::reached;
use crate::modules::{self, Modules, Segments};
use crate::workspace::{self, LAYERED};

/// The maximum length of a chain of re-exports. Only a cyclic one is as long.
const ALIASES_MAX: usize = 16;

/// The target of a path.
enum Found {
    Module(Segments),
    /// An item that this module defines.
    Item(Segments),
}

/// Resolves `path`, written in the module `within`; `None` for items of other crates.
fn find(modules: &Modules, within: &[String], path: &[String], aliases: usize) -> Option<Found> {
    let (first, rest) = path.split_first()?;
    let parent = || within.split_last().map(|(_, parent)| parent.to_vec());
    let mut found = match first.as_str() {
        "crate" => Found::Module(Vec::new()),
        "self" => Found::Module(within.to_vec()),
        "super" => Found::Module(parent()?),
        name => member(modules, within, name, aliases)?,
    };
    for name in rest {
        found = match found {
            Found::Module(module) if name == "super" => {
                Found::Module(module.split_last().map(|(_, parent)| parent.to_vec())?)
            }
            Found::Module(module) => match member(modules, &module, name, aliases) {
                Some(found) => found,
                // A re-export of another crate.
                None if modules.get(&module)?.names.contains_key(name) => return None,
                None => Found::Item(module),
            },
            // A variant or associated item of a type.
            Found::Item(module) => Found::Item(module),
        };
    }
    Some(found)
}

/// Resolves `name` in `module`.
fn member(modules: &Modules, module: &[String], name: &str, aliases: usize) -> Option<Found> {
    let child = [module, &[name.to_owned()]].concat();
    if modules.contains_key(&child) {
        return Some(Found::Module(child));
    }
    let here = modules.get(module)?;
    if here.items.contains(name) {
        return Some(Found::Item(module.to_vec()));
    }
    let aliases = aliases.checked_sub(1)?;
    if let Some(path) = here.names.get(name) {
        return find(modules, module, path, aliases);
    }
    here.globs.iter().find_map(|glob| match find(modules, module, glob, aliases)? {
        Found::Module(of) if of != module => member(modules, &of, name, aliases),
        Found::Module(_) | Found::Item(_) => None,
    })
}

/// For each node the nodes that it uses, with the path of the use.
pub(crate) type Graph = BTreeMap<Segments, BTreeMap<Segments, String>>;

/// The uses between files, each with a path of the use. All modules of a file count as the one at its beginning.
pub(crate) fn files(modules: &Modules) -> Graph {
    let of_file = |module: &Segments| {
        let file = &modules[module].file;
        let first = (0..module.len()).map(|len| &module[..len]).find(|outer| modules[*outer].file == *file);
        first.map_or_else(|| module.clone(), <[String]>::to_vec)
    };
    let mut graph = Graph::new();
    for (module, content) in modules {
        let from = of_file(module);
        for path in &content.paths {
            let to = match find(modules, module, path, ALIASES_MAX) {
                Some(Found::Item(to)) => of_file(&to),
                // A glob import.
                Some(Found::Module(to)) if content.globs.contains(path) => of_file(&to),
                Some(Found::Module(_)) | None => continue,
            };
            if to != from {
                graph.entry(from.clone()).or_default().entry(to).or_insert_with(|| path.join("::"));
            }
        }
    }
    graph
}

/// The uses between the folders right below `parent`.
fn folders(files: &Graph, parent: &[String]) -> Graph {
    let mut graph = Graph::new();
    for (from, used) in files {
        for (to, path) in used {
            if let (Some(from), Some(to)) = (child(parent, from), child(parent, to))
                && from != to
            {
                let used = graph.entry(from.to_vec()).or_default();
                used.entry(to.to_vec()).or_insert_with(|| path.clone());
            }
        }
    }
    graph
}

/// The module right below `parent` that is or contains `module`.
fn child<'a>(parent: &[String], module: &'a [String]) -> Option<&'a [String]> {
    module.starts_with(parent).then(|| module.get(..=parent.len())).flatten()
}

/// The circles of `graph`: a line for each use that closes one.
fn circles(graph: &Graph) -> Vec<String> {
    let uses = |node| graph.get(node).into_iter().flat_map(BTreeMap::keys);
    let reached: BTreeMap<&Segments, BTreeSet<&Segments>> =
        graph.keys().map(|node| (node, reached(node, uses))).collect();
    let mut found = Vec::new();
    for (from, used) in graph {
        for (to, path) in used {
            if reached.get(to).is_some_and(|reached| reached.contains(from)) {
                let shown = |node: &Segments| [&["crate".to_owned()], node.as_slice()].concat().join("::");
                found.push(format!("{} uses {} as {path}", shown(from), shown(to)));
            }
        }
    }
    found
}

/// All circles of a target. The folders of a layered one may use each other in circles: `layers.rs` says how.
fn examine(modules: &Modules, is_layered: bool) -> Vec<String> {
    let files = files(modules);
    let mut found = circles(&files);
    for parent in modules.keys().filter(|parent| !is_layered || !parent.is_empty()) {
        let between = circles(&folders(&files, parent));
        found.extend(between.into_iter().map(|line| format!("folders: {line}")));
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn no_circles() {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).ok();
    let mut found = Vec::new();
    for target in workspace::targets() {
        let circles = examine(&modules::read(&target.root, &read), target.name == LAYERED);
        found.extend(circles.into_iter().map(|line| format!("{}: {line}", target.name)));
    }
    assert!(found.is_empty(), "{} uses close a circle:\n{}", found.len(), found.join("\n"));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The circles of a crate with these `files`: path and text.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        examine(&modules::read(Path::new("lib.rs"), &read), false)
    }

    #[test]
    fn planted_circles_are_found() {
        for (what, a, b) in [
            ("use", "use crate::b::B; pub struct A(B);", "use super::a::A; pub struct B(A);"),
            ("path in a body", "pub fn a() { crate::b::b() }", "pub fn b() { super::a::a() }"),
            (
                "module as a name",
                "use crate::b; pub fn a() { b::b() }",
                "use crate::a; pub fn b() { a::a() }",
            ),
            (
                "macro",
                "pub fn a() { println!(\"{}\", crate::b::B) }",
                "use crate::a::a; pub const B: u8 = 1; fn f() { a() }",
            ),
            ("glob", "pub use crate::b::*; pub struct A;", "use crate::a::A; pub struct B(A);"),
            (
                "attribute",
                "#[serde(with = \"crate::b::with\")] pub struct A;",
                "pub mod with { use crate::a::A; fn f(_: A) {} }",
            ),
        ] {
            let root = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)];
            assert!(!found(&root).is_empty(), "{what}");
        }
    }

    #[test]
    fn child_and_parent_form_circle() {
        let parent = "mod child; use child::Child; pub struct Parent(Child);";
        let child = "use super::Parent; pub struct Child; fn f(_: Parent) {}";
        let found = found(&[("lib.rs", "mod parent;"), ("parent.rs", parent), ("parent/child.rs", child)]);
        assert_eq!(
            found,
            [
                "crate::parent uses crate::parent::child as child::Child",
                "crate::parent::child uses crate::parent as super::Parent"
            ]
        );
    }

    #[test]
    fn folders_can_form_circle_alone() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod high; pub mod low;"),
            ("a/high.rs", "use crate::b::high::B; pub struct A(B);"),
            ("a/low.rs", "pub struct Low;"),
            ("b.rs", "pub mod high;"),
            ("b/high.rs", "use crate::a::low::Low; pub struct B(Low);"),
        ]);
        assert_eq!(
            found,
            [
                "folders: crate::a uses crate::b as crate::b::high::B",
                "folders: crate::b uses crate::a as crate::a::low::Low"
            ]
        );
    }

    #[test]
    fn reexports_count_at_definition() {
        let root = "mod a; mod b; pub use a::A; pub use b::B;";
        let b = "use crate::A; pub struct B(A); #[cfg(test)] mod tests { use crate::B; }";
        assert_eq!(found(&[("lib.rs", root), ("a.rs", "pub struct A;"), ("b.rs", b)]), Vec::<String>::new());
    }
}
