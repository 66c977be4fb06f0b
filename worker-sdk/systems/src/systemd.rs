//! The state of systemd and its units.

use std::collections::BTreeSet;

/// The state of systemd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is not installed, or not the init system.
    Absent,
    /// It is still starting units.
    Starting,
    /// It has started its units, successfully or not.
    Started,
}

impl State {
    /// Parses the output of `systemctl is-system-running`.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "initializing" | "starting" => Self::Starting,
            "running" | "degraded" | "maintenance" | "stopping" => Self::Started,
            // `offline`, `unknown`, or an error that systemd cannot be reached.
            _ => Self::Absent,
        }
    }
}

/// The failed units in the output of `systemctl list-units --state=failed --plain --no-legend`: the first word of each
/// line.
pub fn failed_units(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(|line| line.trim_start_matches(['●', '*', ' ']));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The units in `now` that are not in `before`.
pub fn newly_failed(before: &BTreeSet<String>, now: &BTreeSet<String>) -> Vec<String> {
    now.difference(before).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_parsed() {
        for (text, state) in [
            ("running\n", State::Started),
            ("degraded\n", State::Started),
            ("starting\n", State::Starting),
            ("offline\n", State::Absent),
            ("", State::Absent),
        ] {
            assert_eq!(State::parse(text), state, "{text}");
        }
    }

    #[test]
    fn only_newly_failed_units_count() {
        let before = failed_units("a.service loaded failed failed A\nb.service loaded failed failed B\n");
        let now = failed_units("● b.service loaded failed failed B\nc.mount    loaded failed failed C\n\n");
        assert_eq!(newly_failed(&before, &now), ["c.mount"]);
        assert_eq!(newly_failed(&now, &now), [""; 0]);
    }
}
