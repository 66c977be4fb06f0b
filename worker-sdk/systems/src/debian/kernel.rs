//! Whether a reboot would boot another kernel than the running one.

use super::version::compare;

/// The running kernel, as reported by `uname`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// `uname -r`, such as `6.1.0-37-amd64`.
    pub release: String,
    /// `uname -v`, such as `#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)`.
    pub build: String,
}

impl Running {
    /// The version of this kernel's package, which Debian's kernels include in their build.
    fn package_version(&self) -> Option<&str> {
        let mut words = self.build.split_whitespace();
        words.find(|word| *word == "Debian")?;
        words.next()
    }
}

/// Why a reboot would boot another kernel; `None` if it would not. `kernels` are the installed releases, and `package` is
/// the installed version of the running kernel's package, if known.
pub fn reboot_reason(running: &Running, kernels: &[String], package: Option<&str>) -> Option<String> {
    let flavour = flavour(&running.release);
    let newest = kernels
        .iter()
        .filter(|release| self::flavour(release) == flavour && compare(release, &running.release).is_gt())
        .max_by(|a, b| compare(a, b));
    if let Some(newest) = newest {
        return Some(format!("kernel {newest} is installed, and {} runs", running.release));
    }
    let (built, package) = (running.package_version()?, package?);
    (built != package)
        .then(|| format!("kernel {} is installed as {package}, and runs as {built}", running.release))
}

/// The parts after the last one that begins with a digit: `cloud-amd64` in `6.1.0-37-cloud-amd64`.
fn flavour(release: &str) -> Vec<&str> {
    let parts: Vec<&str> = release.split('-').collect();
    let last = parts.iter().rposition(|part| part.starts_with(|first: char| first.is_ascii_digit()));
    parts[last.map_or(0, |at| at + 1)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: &str = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)";

    #[test]
    fn newer_kernel_or_build_requires_reboot() {
        for (release, kernels, package, expected) in [
            ("6.1.0-37-amd64", &["6.1.0-37-amd64"] as &[&str], Some("6.1.140-1"), None),
            ("6.1.0-37-amd64", &["6.1.0-9-amd64", "6.1.0-37-amd64"], None, None),
            (
                "6.1.0-37-amd64",
                &["6.1.0-37-amd64", "6.1.0-100-amd64", "6.1.0-38-amd64"],
                None,
                Some("kernel 6.1.0-100-amd64 is installed, and 6.1.0-37-amd64 runs"),
            ),
            ("6.1.0-37-amd64", &["6.1.0-38-cloud-amd64", "6.1.0-38-rt-amd64"], Some("6.1.140-1"), None),
            (
                "6.1.0-37-amd64",
                &["6.1.0-37-amd64"],
                Some("6.1.147-1"),
                Some("kernel 6.1.0-37-amd64 is installed as 6.1.147-1, and runs as 6.1.140-1"),
            ),
            (
                "6.12.38+deb13-amd64",
                &["6.12.41+deb13-amd64"],
                None,
                Some("kernel 6.12.41+deb13-amd64 is installed, and 6.12.38+deb13-amd64 runs"),
            ),
            ("6.1.0-37-amd64", &[], None, None),
            ("", &["6.1.0-37-amd64"], None, None),
        ] {
            let running = Running { release: release.to_owned(), build: BUILD.to_owned() };
            let kernels: Vec<String> = kernels.iter().map(|&kernel| kernel.to_owned()).collect();
            let found = reboot_reason(&running, &kernels, package);
            assert_eq!(found.as_deref(), expected, "{release} {kernels:?} {package:?}");
        }
    }

    #[test]
    fn kernel_without_package_version_is_ignored() {
        let running = Running { release: "6.1.0-37-amd64".to_owned(), build: "#1 SMP".to_owned() };
        assert_eq!(reboot_reason(&running, &[], Some("6.1.147-1")), None);
    }
}
