//! Systems that are replaced as a whole: bootc and rpm-ostree keep several deployments of an image, of which one is
//! booted and another may be booted next.

pub mod bootc;
pub mod progress;
pub mod rpm_ostree;

use crate::text::one_line;

/// An image as it is laid out on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// What tells it from any other: the digest of a container image, or the checksum of a commit.
    pub id: String,
    /// Where it came from.
    pub image: Option<String>,
    /// The version that its maker gave it.
    pub version: Option<String>,
}

impl Deployment {
    /// It, for the operator.
    pub fn name(&self) -> String {
        self.version.as_ref().map_or_else(|| self.id.clone(), |version| format!("{version} ({})", self.id))
    }
}

/// What a host runs, and what it would after a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What runs.
    pub booted: Deployment,
    /// What is laid out to run next, if that is another.
    pub next: Option<Deployment>,
    /// It is downloaded only: a reboot would not take it yet.
    pub next_is_locked: bool,
}

/// One line for the operator about `tool` that failed, from everything that it printed.
pub fn trouble(tool: &str, output: &str) -> String {
    let errors: Vec<&str> = output
        .lines()
        .map(str::trim)
        .filter_map(|line| ["error: ", "Error: ", "ERROR "].iter().find_map(|start| line.strip_prefix(start)))
        .collect();
    let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    let said = if errors.is_empty() { one_line(last) } else { errors.join("; ") };
    let full =
        if output.contains("No space left on device") { " because the disk is full; make room" } else { "" };
    format!("{tool} failed{full}: {said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_in_one_line() {
        for (output, expected) in [
            (
                "layers already present: 60; layers needed: 5\nerror: Upgrading: Pulling: unauthorized\n",
                "x failed: Upgrading: Pulling: unauthorized",
            ),
            ("ERROR Fetching: timed out\nhint: try\n", "x failed: Fetching: timed out"),
            (
                "error: Writing content object: No space left on device",
                "x failed because the disk is full; make room: Writing content object: No space left on device",
            ),
            ("one\ntwo\n\n", "x failed: two"),
            ("", "x failed: it said nothing"),
        ] {
            assert_eq!(trouble("x", output), expected);
        }
    }
}
