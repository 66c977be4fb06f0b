//! Image-based systems: bootc and rpm-ostree keep several deployments of an image. One is booted, and another may be
//! booted next.

pub mod bootc;
pub mod progress;
pub mod rpm_ostree;

use crate::text::one_line;

/// A deployment of an image on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Its unique id: the digest of a container image, or the checksum of a commit.
    pub id: String,
    /// The image reference or origin, if known.
    pub image: Option<String>,
    /// The version in the image's metadata, if any.
    pub version: Option<String>,
}

impl Deployment {
    /// Its name for the operator: the version and id, or only the id.
    pub fn name(&self) -> String {
        self.version.as_ref().map_or_else(|| self.id.clone(), |version| format!("{version} ({})", self.id))
    }
}

/// The deployments of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The booted deployment.
    pub booted: Deployment,
    /// The deployment to boot next; `None` if that is the booted one.
    pub next: Option<Deployment>,
    /// The next deployment is only downloaded: a reboot would not boot it yet.
    pub next_is_locked: bool,
    /// The ids of deployments that a rollback would boot.
    pub earlier: Vec<String>,
}

/// One line for the operator about the failure of `tool`, from its output.
pub fn describe_failure(tool: &str, output: &str) -> String {
    let errors: Vec<&str> = output
        .lines()
        .map(str::trim)
        .filter_map(|line| ["error: ", "Error: ", "ERROR "].iter().find_map(|start| line.strip_prefix(start)))
        .collect();
    let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
    let message = if errors.is_empty() { one_line(last) } else { errors.join("; ") };
    let full =
        if output.contains("No space left on device") { " because the disk is full; make room" } else { "" };
    format!("{tool} failed{full}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_described_in_one_line() {
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
            ("", "x failed: it printed nothing"),
        ] {
            assert_eq!(describe_failure("x", output), expected);
        }
    }
}
