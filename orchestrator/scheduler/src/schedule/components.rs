//! The circles of a graph, and an order in which its arrows point forward elsewhere (Kosaraju's algorithm).

/// Numbers the nodes of a graph, given the nodes to which each has an arrow: two have the same number if they are in a circle, and arrows
/// between different numbers go from the lower to the higher. Unconnected nodes keep their order.
pub(super) fn components(arrows: &[Vec<usize>]) -> Vec<usize> {
    let mut backwards = vec![Vec::new(); arrows.len()];
    for (from, targets) in arrows.iter().enumerate() {
        for &to in targets {
            backwards[to].push(from);
        }
    }
    let mut seen = vec![false; arrows.len()];
    let mut finished = Vec::with_capacity(arrows.len());
    // From the last node to the first, because what finishes last is numbered first.
    for node in (0..arrows.len()).rev() {
        finished.extend(explore(node, arrows, &mut seen));
    }
    seen.fill(false);
    let mut numbers = vec![0; arrows.len()];
    for (number, node) in finished.into_iter().rev().enumerate() {
        for member in explore(node, &backwards, &mut seen) {
            numbers[member] = number;
        }
    }
    numbers
}

/// The nodes that can be reached from `start` and were not seen before, each after those that it leads to. Not recursive: a chain may be
/// as long as there are units.
fn explore(start: usize, arrows: &[Vec<usize>], seen: &mut [bool]) -> Vec<usize> {
    let mut finished = Vec::new();
    let mut path = Vec::new();
    if !seen[start] {
        seen[start] = true;
        path.push((start, 0));
    }
    while let Some((node, next)) = path.pop() {
        match arrows[node].get(next) {
            Some(&to) => {
                path.push((node, next + 1));
                if !seen[to] {
                    seen[to] = true;
                    path.push((to, 0));
                }
            }
            None => finished.push(node),
        }
    }
    finished
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes in the order of their numbers; those with the same number together.
    fn groups(arrows: &[&[usize]]) -> Vec<Vec<usize>> {
        let arrows: Vec<Vec<usize>> = arrows.iter().map(|targets| targets.to_vec()).collect();
        let mut groups = std::collections::BTreeMap::<usize, Vec<usize>>::new();
        for (node, number) in components(&arrows).into_iter().enumerate() {
            groups.entry(number).or_default().push(node);
        }
        groups.into_values().collect()
    }

    #[test]
    fn arrows_point_forward_and_circles_share_a_number() {
        type Nodes<'a> = &'a [&'a [usize]];
        let table: [(Nodes<'_>, Nodes<'_>); 7] = [
            (&[], &[]),
            (&[&[], &[], &[]], &[&[0], &[1], &[2]]),
            (&[&[0], &[]], &[&[0], &[1]]),
            (&[&[], &[0], &[1]], &[&[2], &[1], &[0]]),
            (&[&[1], &[0], &[]], &[&[0, 1], &[2]]),
            (&[&[1], &[2], &[0], &[0]], &[&[3], &[0, 1, 2]]),
            (&[&[1], &[0, 2], &[3], &[2]], &[&[0, 1], &[2, 3]]),
        ];
        for (arrows, expected) in table {
            let expected: Vec<Vec<usize>> = expected.iter().map(|group| group.to_vec()).collect();
            assert_eq!(groups(arrows), expected, "{arrows:?}");
        }
    }

    #[test]
    fn a_long_chain_is_numbered_backwards() {
        let arrows: Vec<Vec<usize>> =
            (0..100_000_usize).map(|node| node.checked_sub(1).into_iter().collect()).collect();
        let numbers = components(&arrows);
        assert!(numbers.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
