//! The documentation covers what operators look up there.

use os_upgrade_kernel::Cause;

#[test]
fn every_blocker_is_documented() {
    let document = include_str!("../../../../docs/operations.md");
    let (_, section) = document.split_once("\n## Blockers\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = || section.lines().filter(|line| line.starts_with("| `"));
    for kind in Cause::kinds() {
        let kind = format!("`{kind}`");
        let named = rows().filter(|row| row.split('|').nth(1).is_some_and(|kinds| kinds.contains(&kind)));
        assert_eq!(named.count(), 1, "{kind}");
    }
}
