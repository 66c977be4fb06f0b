//! What systemd says about its units.

use std::collections::BTreeSet;

/// The failed units of `systemctl list-units --state=failed --plain --no-legend`: the first word of each line.
pub fn failed_units(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(|line| line.trim_start_matches(['●', '*', ' ']));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The units that have failed since.
pub fn newly_failed(before: &BTreeSet<String>, now: &BTreeSet<String>) -> Vec<String> {
    now.difference(before).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_failed_since_counts() {
        let before = failed_units("a.service loaded failed failed A\nb.service loaded failed failed B\n");
        let now = failed_units("● b.service loaded failed failed B\nc.mount    loaded failed failed C\n\n");
        assert_eq!(newly_failed(&before, &now), ["c.mount"]);
        assert_eq!(newly_failed(&now, &now), [""; 0]);
    }
}
