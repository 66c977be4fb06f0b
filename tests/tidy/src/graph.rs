//! What is reached in a graph.

use std::collections::BTreeSet;

/// Every node that is reached from `from` over one use or more; `uses` gives the nodes that a node uses.
pub(crate) fn reached<'a, N, I>(from: &'a N, uses: impl Fn(&'a N) -> I) -> BTreeSet<&'a N>
where
    N: Ord + ?Sized,
    I: Iterator<Item = &'a N>,
{
    let mut reached = BTreeSet::new();
    let mut next: Vec<&N> = uses(from).collect();
    while let Some(node) = next.pop() {
        if reached.insert(node) {
            next.extend(uses(node));
        }
    }
    reached
}
