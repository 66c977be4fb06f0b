//! What systemd says about its units.

use std::collections::BTreeSet;

/// How systemd is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is not there, or does not run the system.
    Absent,
    /// It still starts units.
    ComingUp,
    /// It has started what it was to start, whether that works or not.
    Up,
}

impl State {
    /// Reads what `systemctl is-system-running` prints.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "initializing" | "starting" => Self::ComingUp,
            "running" | "degraded" | "maintenance" | "stopping" => Self::Up,
            // `offline`, `unknown`, or that it cannot be reached.
            _ => Self::Absent,
        }
    }
}

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
    fn states_are_read() {
        for (text, state) in [
            ("running\n", State::Up),
            ("degraded\n", State::Up),
            ("starting\n", State::ComingUp),
            ("offline\n", State::Absent),
            ("", State::Absent),
        ] {
            assert_eq!(State::parse(text), state, "{text}");
        }
    }

    #[test]
    fn only_what_has_failed_since_counts() {
        let before = failed_units("a.service loaded failed failed A\nb.service loaded failed failed B\n");
        let now = failed_units("● b.service loaded failed failed B\nc.mount    loaded failed failed C\n\n");
        assert_eq!(newly_failed(&before, &now), ["c.mount"]);
        assert_eq!(newly_failed(&now, &now), [""; 0]);
    }
}
