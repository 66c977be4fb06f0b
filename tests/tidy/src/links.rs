//! Links between documents lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

/// The documents of the workspace.
fn documents() -> Vec<PathBuf> {
    let root = workspace::directory();
    let folders = [root.clone(), root.join("docs"), root.join("docs/decisions")];
    let entries = folders.into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let documents: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    assert!(documents.len() > 20, "{documents:?}");
    documents
}

/// Where the links of `text` lead, those to other sites left out.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(link, _)| link).filter(|link| !link.contains("://"))
}

/// The anchor of a heading: lower case, hyphens for spaces, and nothing else but letters and digits.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// The anchors of a document. Lines of code blocks are no headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let outside: String = text.split("\n```").step_by(2).collect();
    let headings = outside.lines().filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#')));
    headings.map(anchor).collect()
}

/// Why `link`, in a document of `folder` with `text`, leads nowhere.
fn why_broken(folder: &Path, text: &str, link: &str) -> Option<String> {
    let (path, wanted) = link.split_once('#').map_or((link, None), |(path, wanted)| (path, Some(wanted)));
    let target = folder.join(path);
    if !path.is_empty() && !target.exists() {
        return Some(format!("{} does not exist", target.display()));
    }
    let wanted = wanted?;
    let found = if path.is_empty() { anchors(text) } else { anchors(&fs::read_to_string(target).unwrap()) };
    (!found.contains(wanted)).then(|| format!("there is no heading #{wanted}"))
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let folder = document.parent().unwrap();
        for link in links(&text) {
            if let Some(why) = why_broken(folder, &text, link) {
                broken.push(format!("{}: {link}: {why}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_decision_is_listed() {
    let folder = workspace::directory().join("docs/decisions");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&index).map(|link| folder.join(link)).collect();
    let written: BTreeSet<PathBuf> = documents()
        .into_iter()
        .filter(|path| path.parent() == Some(&folder) && !path.ends_with("README.md"))
        .collect();
    assert_eq!(listed, written);
}

#[test]
fn a_broken_link_is_found() {
    let root = workspace::directory();
    let text = "# A `b` c?\n[x](README.md)";
    assert_eq!(links(text).collect::<Vec<_>>(), ["README.md"]);
    assert_eq!(why_broken(&root, text, "README.md"), None);
    assert_eq!(why_broken(&root, text, "#a-b-c"), None);
    assert!(why_broken(&root, text, "absent.md").is_some());
    assert!(why_broken(&root, text, "#d").is_some());
}
