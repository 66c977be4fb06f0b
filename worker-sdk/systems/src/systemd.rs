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
    /// It is stopping them, as the machine goes down.
    Stopping,
    /// It does not answer.
    Unknown,
}

impl State {
    /// Parses the output of `systemctl is-system-running`.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "initializing" | "starting" => Self::Starting,
            "running" | "degraded" | "maintenance" => Self::Started,
            "stopping" => Self::Stopping,
            "offline" => Self::Absent,
            // `unknown`, or nothing but an error.
            _ => Self::Unknown,
        }
    }
}

/// The failed units in the output of `systemctl list-units --state=failed --plain --no-legend`: the first word of each
/// line.
pub fn failed_units(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(|line| line.trim_start_matches(['●', '*', ' ']));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
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
            ("stopping\n", State::Stopping),
            ("offline\n", State::Absent),
            ("unknown\n", State::Unknown),
            ("", State::Unknown),
        ] {
            assert_eq!(State::parse(text), state, "{text}");
        }
    }

    #[test]
    fn failed_units_are_listed() {
        let listed = "● b.service loaded failed failed B\nc.mount    loaded failed failed C\n\n";
        assert_eq!(failed_units(listed), ["b.service", "c.mount"].map(str::to_owned).into());
        assert_eq!(failed_units(""), BTreeSet::new());
    }
}
