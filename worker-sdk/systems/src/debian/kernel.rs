//! Whether a reboot would boot another kernel than the running one, and whether one has failed to.

use std::collections::BTreeMap;
use std::fmt;

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

/// A kernel that is installed and does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Its release, with the version of its package if only that differs from the running kernel's.
    pub kernel: String,
    /// Why a reboot would boot it, for the operator.
    pub reason: String,
}

/// The kernels that a reboot may boot in place of the running one: installed releases that are newer, the newest first, then
/// another build of the running release. A boot loader that is set to the running release boots the latter. `kernels` are
/// the installed releases, and `package` is the installed version of the running kernel's package, if known.
pub fn pending(running: &Running, kernels: &[String], package: Option<&str>) -> Vec<Pending> {
    newer(running, kernels).into_iter().chain(rebuilt(running, package)).collect()
}

fn newer(running: &Running, kernels: &[String]) -> Vec<Pending> {
    let runs = Release::parse(&running.release);
    let releases = kernels.iter().map(|kernel| (kernel, Release::parse(kernel)));
    let newer =
        releases.filter(|(_, release)| release.flavour == runs.flavour && release.is_newer_than(&runs));
    let mut newer: Vec<_> = newer.collect();
    newer.sort_by(|(_, a), (_, b)| compare(&b.version, &a.version));
    let pending = newer.into_iter().map(|(kernel, _)| Pending {
        kernel: kernel.clone(),
        reason: format!("kernel {kernel} is installed, and {} runs", running.release),
    });
    pending.collect()
}

fn rebuilt(running: &Running, package: Option<&str>) -> Option<Pending> {
    let (built, package) = (running.package_version()?, package?);
    (built != package).then(|| Pending {
        kernel: format!("{} {package}", running.release),
        reason: format!("kernel {} is installed as {package}, and runs as {built}", running.release),
    })
}

/// Names in a release that are followed by a number of patches, which is part of its version: `6.6.30-rt30-v8`,
/// `5.10.168-ti-r71`, `6.6.32-bone20`, `6.10.6-x64v3-xanmod1`, `6.1.77-cip16`. Other names with numbers are kinds of machines:
/// `v8`, `rockchip64`.
const COUNTED: [&str; 6] = ["rt", "r", "bone", "xanmod", "zen", "cip"];

/// The longest count of builds after a name, in digits: `surface-1`, `cl-1-amd64`. Longer numbers are kinds of machines:
/// `rpi-2712`.
const BUILD_DIGITS_MAX: usize = 2;

/// Names of machines that end with a short number.
const NUMBERED_MACHINES: [&str; 1] = ["loongson"];

/// A kernel's release, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Release<'a> {
    /// The whole release in the form in which [`compare`] orders it.
    version: String,
    /// Its parts that releases for the same use have in common: `cloud`, `amd64`.
    flavour: Vec<&'a str>,
}

impl<'a> Release<'a> {
    fn parse(release: &'a str) -> Self {
        // A plus at the end says only that the source was changed.
        let release = release.trim_end_matches('+');
        let (number, rest) = release.split_once('-').unwrap_or((release, ""));
        let number_end = number.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(number.len());
        let suffix = &number[number_end..];
        let mut flavour = Vec::new();
        // `+deb13`, `+rpt` and `~rc1` belong to the version, and `.old` does not.
        let has_suffix = suffix.starts_with(['+', '~']);
        if !has_suffix && !suffix.is_empty() {
            flavour.push(suffix);
        }
        // Distributions count their builds once: `6.1.0-37-686-pae`, `6.8.0-1010-raspi`; a suffix takes the place of that.
        let mut is_counted = has_suffix;
        let parts: Vec<&str> = rest.split('-').filter(|part| !part.is_empty()).collect();
        for (at, part) in parts.iter().enumerate() {
            let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
            let next = parts.get(at + 1).copied().unwrap_or_default();
            let is_numbered = name.len() < part.len();
            if is_commit(part) || *part == "dirty" || (name.is_empty() && is_commit(next)) {
                continue;
            }
            // A release candidate, or a build for another release of Debian: `6.14.8-2-bpo12-pve`.
            if is_numbered && matches!(name, "rc" | "bpo") {
                continue;
            }
            // `6.10.10-surface-1`.
            let is_build = name.is_empty() && part.len() <= BUILD_DIGITS_MAX;
            if is_build && flavour.last().is_some_and(|last| !NUMBERED_MACHINES.contains(last)) {
                continue;
            }
            let is_patched = is_numbered && COUNTED.contains(&name);
            // `6.1.0-rpi7-rpi-v8`, `6.1.0-kali9-amd64`.
            let is_named_build = is_numbered && !is_patched && !next.is_empty() && !is_architecture(part);
            if !is_counted && (part.starts_with(|c: char| c.is_ascii_digit()) || is_named_build) {
                is_counted = true;
                continue;
            }
            is_counted = true;
            flavour.push(if is_patched { name } else { part });
        }
        Self { version: release.replace("-rc", "~rc").replace("-bpo", "~bpo"), flavour }
    }

    fn is_newer_than(&self, other: &Self) -> bool {
        compare(&self.version, &other.version).is_gt()
    }
}

/// Whether this is an architecture, or a family of processors, whose name ends with a number: `amd64`, `x64v3`, `v8`.
fn is_architecture(part: &str) -> bool {
    part.ends_with("64")
        || ["i", "v", "armv", "x64v"].contains(&part.trim_end_matches(|c: char| c.is_ascii_digit()))
}

/// Whether this is the commit that a kernel was built from, as `git describe` names it: `g1234abc`.
fn is_commit(part: &str) -> bool {
    let hash = part.strip_prefix('g').unwrap_or_default();
    hash.len() >= 7 && hash.chars().all(|c| c.is_ascii_hexdigit())
}

/// How many kernels are remembered.
const AWAITED_MAX: usize = 64;

/// The kernels that the next reboot should bring, each with the boot in which it was found to be installed. Its text has a
/// line for each: the boot, a tab, the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Awaited(BTreeMap<String, String>);

impl Awaited {
    /// Parses the text; invalid lines are skipped.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let pairs = lines.map(|(boot, kernel)| (kernel.trim().to_owned(), boot.trim().to_owned()));
        Self(pairs.take(AWAITED_MAX).collect())
    }

    /// The kernels that no reboot has failed to bring; `boot` is the present one.
    pub fn attainable<'a>(&self, pending: &'a [Pending], boot: &str) -> impl Iterator<Item = &'a Pending> {
        pending.iter().filter(move |pending| !self.has_missed(&pending.kernel, boot))
    }

    /// Whether the host has rebooted since `kernel` was awaited.
    fn has_missed(&self, kernel: &str, boot: &str) -> bool {
        self.0.get(kernel).is_some_and(|since| since != boot)
    }

    /// Awaits `kernels`, unless they are awaited already, and forgets those that are not among the releases that are
    /// `installed` any more.
    pub fn add<'a>(&mut self, kernels: impl IntoIterator<Item = &'a str>, boot: &str, installed: &[String]) {
        self.0.retain(|known, _| installed.iter().any(|release| known.split(' ').next() == Some(release)));
        for kernel in kernels.into_iter().take(AWAITED_MAX.saturating_sub(self.0.len())) {
            self.0.entry(kernel.to_owned()).or_insert_with(|| boot.to_owned());
        }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(kernel, boot)| writeln!(formatter, "{boot}\t{kernel}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: &str = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)";

    fn newest(release: &str, kernels: &[&str]) -> Option<String> {
        let running = Running { release: release.to_owned(), build: BUILD.to_owned() };
        let kernels: Vec<String> = kernels.iter().map(|&kernel| kernel.to_owned()).collect();
        newer(&running, &kernels).into_iter().next().map(|pending| pending.kernel)
    }

    #[test]
    fn newer_kernel_and_build_are_pending() {
        let release = ("6.1.0-100-amd64", "kernel 6.1.0-100-amd64 is installed, and 6.1.0-37-amd64 runs");
        let older = ("6.1.0-38-amd64", "kernel 6.1.0-38-amd64 is installed, and 6.1.0-37-amd64 runs");
        let build = (
            "6.1.0-37-amd64 6.1.147-1",
            "kernel 6.1.0-37-amd64 is installed as 6.1.147-1, and runs as 6.1.140-1",
        );
        let installed: &[&str] = &["6.1.0-37-amd64", "6.1.0-100-amd64", "6.1.0-38-amd64"];
        for (runs, kernels, package, expected) in [
            ("6.1.0-37-amd64", &["6.1.0-37-amd64"] as &[&str], Some("6.1.140-1"), &[] as &[_]),
            ("6.1.0-37-amd64", &["6.1.0-9-amd64", "6.1.0-37-amd64"], None, &[]),
            ("6.1.0-37-amd64", installed, None, &[release, older]),
            ("6.1.0-37-amd64", &["6.1.0-37-amd64"], Some("6.1.147-1"), &[build]),
            ("6.1.0-37-amd64", installed, Some("6.1.147-1"), &[release, older, build]),
            ("6.1.0-37-amd64", &[], None, &[]),
            ("", &["6.1.0-37-amd64"], None, &[]),
        ] {
            let running = Running { release: runs.to_owned(), build: BUILD.to_owned() };
            let kernels: Vec<String> = kernels.iter().map(|&kernel| kernel.to_owned()).collect();
            let found = pending(&running, &kernels, package);
            let found: Vec<(&str, &str)> =
                found.iter().map(|pending| (pending.kernel.as_str(), pending.reason.as_str())).collect();
            assert_eq!(found, expected, "{runs} {kernels:?} {package:?}");
        }
    }

    #[test]
    fn missed_kernel_hides_no_other() {
        let running = Running { release: "6.1.0-37-amd64".to_owned(), build: BUILD.to_owned() };
        let installed = ["6.1.0-37-amd64", "6.1.0-38-amd64"].map(str::to_owned);
        let mut awaited = Awaited::default();
        let attainable = |awaited: &Awaited, installed: &[String], package: &str, boot: &str| {
            let pending = pending(&running, installed, Some(package));
            awaited.attainable(&pending, boot).map(|pending| pending.kernel.clone()).collect::<Vec<_>>()
        };
        // The boot loader is set to the older kernel.
        assert_eq!(attainable(&awaited, &installed, "6.1.140-1", "boot-1"), ["6.1.0-38-amd64"]);
        awaited.add(["6.1.0-38-amd64"], "boot-1", &installed);
        assert_eq!(attainable(&awaited, &installed, "6.1.140-1", "boot-2"), [""; 0]);
        // That one gets a new build.
        let build = "6.1.0-37-amd64 6.1.147-1";
        assert_eq!(attainable(&awaited, &installed, "6.1.147-1", "boot-2"), [build]);
        awaited.add([build], "boot-2", &installed);
        assert_eq!(attainable(&awaited, &installed, "6.1.147-1", "boot-3"), [""; 0]);
        let build = "6.1.0-37-amd64 6.1.148-1";
        assert_eq!(attainable(&awaited, &installed, "6.1.148-1", "boot-3"), [build]);
        // One that is older than what was missed, and newer than what runs.
        awaited.add([build], "boot-3", &installed);
        let installed = ["6.1.0-37-amd64", "6.1.0-37.1-amd64", "6.1.0-38-amd64"].map(str::to_owned);
        assert_eq!(attainable(&awaited, &installed, "6.1.148-1", "boot-4"), ["6.1.0-37.1-amd64"]);
    }

    /// One reboot is enough for all that it may bring.
    #[test]
    fn all_pending_kernels_are_awaited_at_once() {
        let running = Running { release: "6.1.0-37-amd64".to_owned(), build: BUILD.to_owned() };
        let installed = ["6.1.0-37-amd64", "6.1.0-38-amd64", "6.1.0-39-amd64"].map(str::to_owned);
        let pending = pending(&running, &installed, Some("6.1.147-1"));
        let mut awaited = Awaited::default();
        let kernels: Vec<_> = awaited.attainable(&pending, "boot-1").map(|one| one.kernel.as_str()).collect();
        assert_eq!(kernels, ["6.1.0-39-amd64", "6.1.0-38-amd64", "6.1.0-37-amd64 6.1.147-1"]);
        awaited.add(kernels, "boot-1", &installed);
        assert_eq!(awaited.attainable(&pending, "boot-1").count(), 3);
        assert_eq!(awaited.attainable(&pending, "boot-2").count(), 0);
    }

    #[test]
    fn newest_kernel_of_running_flavour_counts() {
        for (running, newer) in [
            ("6.1.0-37-amd64", "6.9.7+bpo-amd64"),
            ("5.10.0-34-amd64", "6.1.0-0.deb11.21-amd64"),
            ("6.12.38+deb13-amd64", "6.12.41+deb13-amd64"),
            ("6.1.0-9-cloud-amd64", "6.1.0-37-cloud-amd64"),
            ("6.1.0-9-rt-amd64", "6.1.0-37-rt-amd64"),
            ("6.1.0-9-686-pae", "6.1.0-37-686-pae"),
            ("6.12.38+deb13-686-pae", "6.12.41+deb13-686-pae"),
            ("6.1.0-9-4kc-malta", "6.1.0-37-4kc-malta"),
            ("6.12.38+deb13-arm64-16k", "6.12.41+deb13-arm64-16k"),
            ("6.1.0-9-loongson-3", "6.1.0-37-loongson-3"),
            ("6.13-rc7-amd64", "6.13-amd64"),
            ("6.13-rc7-amd64", "6.13-rc12-amd64"),
            // Raspberry Pi OS, and its earlier names.
            ("6.1.0-rpi7-rpi-v8", "6.1.0-rpi8-rpi-v8"),
            ("6.1.0-rpi9-rpi-2712", "6.1.0-rpi10-rpi-2712"),
            ("6.1.0-rpi7-rpi-v8", "6.6.31+rpt-rpi-v8"),
            ("6.6.9+rpt-rpi-2712", "6.6.31+rpt-rpi-2712"),
            ("6.1.9-v8+", "6.1.21-v8+"),
            // Kali, Univention, CIP, antiX, Cumulus, Asahi.
            ("6.1.0-kali5-amd64", "6.1.0-kali9-amd64"),
            ("6.5.0-kali3-amd64", "6.6.9-amd64"),
            ("6.1.0-kali9-cloud-amd64", "6.1.0-kali10-cloud-amd64"),
            ("4.9.0-ucs104-amd64", "4.9.0-ucs105-amd64"),
            ("6.1.77-cip16", "6.1.90-cip20"),
            ("6.1.77-cip16-rt9", "6.1.90-cip20-rt11"),
            ("5.10.224-antix.1-amd64-smp", "5.10.230-antix.2-amd64-smp"),
            ("5.10.0-cl-1-amd64", "5.10.0-cl-2-amd64"),
            ("6.14.2-asahi-1-arm64", "6.14.2-asahi-2-arm64"),
            // Ubuntu, Proxmox, Armbian, Kali, Parrot, Pop!_OS, BeagleBone, Liquorix, XanMod, Zabbly, linux-surface.
            ("6.8.0-45-generic", "6.8.0-101-generic"),
            ("6.8.0-45-generic", "6.11.0-19-generic"),
            ("6.8.0-999-raspi", "6.8.0-1010-raspi"),
            ("6.8.0-45-generic-64k", "6.8.0-47-generic-64k"),
            ("6.8.12-4-pve", "6.8.12-10-pve"),
            ("6.8.12-10-pve", "6.14.8-2-bpo12-pve"),
            ("6.14.8-2-bpo12-pve", "6.14.11-1-bpo12-pve"),
            ("6.14.8-2-bpo12-pve", "6.14.8-2-pve"),
            ("6.14.8-2-bpo12-pve", "6.14.11-1-pve"),
            ("6.6.9-current-rockchip64", "6.6.44-current-rockchip64"),
            ("6.6.9-amd64", "6.8.11-amd64"),
            ("6.5.0-9parrot1-amd64", "6.5.0-13parrot1-amd64"),
            ("6.9.3-76060903-generic", "6.9.3-76060904-generic"),
            ("5.10.168-ti-r71", "5.10.168-ti-r107"),
            ("6.6.32-bone9", "6.6.32-bone20"),
            ("6.10.6-1-liquorix-amd64", "6.10.6-2-liquorix-amd64"),
            ("6.10.6-x64v3-xanmod1", "6.10.6-x64v3-xanmod2"),
            ("6.10.6-zabbly+", "6.10.12-zabbly+"),
            ("6.10.10-surface-1", "6.11.3-surface-2"),
            ("6.10.10-surface-9", "6.10.10-surface-10"),
            // Built by hand.
            ("6.1.55", "6.1.100"),
            ("6.1.55-custom", "6.1.100-custom"),
            ("6.1.46-rt13", "6.1.54-rt15"),
            ("6.6.30-rt9-v8+", "6.6.30-rt30-v8+"),
            ("6.1.55-00009-g1234abc", "6.1.55-00012-gabcd123"),
            ("6.1.55-mine-00009-g1234abc-dirty", "6.1.55-mine-00012-gabcd123"),
        ] {
            let pending = newest(running, &[running, newer]);
            assert_eq!(pending.as_deref(), Some(newer), "{running}");
            assert_eq!(newest(newer, &[running, newer]), None, "{newer}");
        }
    }

    #[test]
    fn kernels_of_other_flavours_do_not_count() {
        for (running, other) in [
            ("6.1.0-37-amd64", "6.1.0-38-cloud-amd64"),
            ("6.1.0-37-amd64", "6.1.0-38-rt-amd64"),
            ("6.1.0-37-686", "6.1.0-38-686-pae"),
            ("6.12.38+deb13-arm64", "6.12.41+deb13-arm64-16k"),
            ("6.1.0-rpi7-rpi-v8", "6.1.0-rpi8-rpi-2712"),
            ("6.1.0-rpi7-rpi-v8", "6.6.31+rpt-rpi-v7l"),
            ("6.6.9+rpt-rpi-2712", "6.6.31+rpt-rpi-v8"),
            ("6.1.9-v7+", "6.1.21-v8+"),
            ("6.1.0-kali9-amd64", "6.1.0-kali10-cloud-amd64"),
            ("6.6.9-arm64-16k", "6.6.10-arm64"),
            ("5.10.0-cl-1-amd64", "5.10.0-cl-2-arm64"),
            ("6.8.0-45-generic", "6.8.0-1010-raspi"),
            ("6.8.0-45-generic", "6.8.0-47-lowlatency"),
            ("6.8.12-4-pve", "6.9.7+bpo-amd64"),
            ("6.14.8-2-bpo12-pve", "6.14.11-1-bpo12-generic"),
            ("6.10.10-surface-1", "6.11.3-2"),
            ("6.1.0-9-loongson-2", "6.1.0-37-loongson-3"),
            ("6.1.0-9-rpi", "6.1.0-37-rpi-2712"),
            ("6.6.9-current-rockchip64", "6.6.44-edge-rockchip64"),
            ("6.6.9-current-rockchip64", "6.6.44-current-meson64"),
            ("6.10.6-x64v2-xanmod1", "6.10.7-x64v3-xanmod1"),
            ("6.1.55", "6.1.100-custom"),
            ("6.1.55", "6.1.100.old"),
            ("6.1.46", "6.1.54-rt15"),
            ("6.1.0-37-amd64", "6.1.0-38-amd64.dpkg-bak"),
            ("6.1.0-37-amd64", "0-rescue-0123456789abcdef"),
        ] {
            assert_eq!(newest(running, &[running, other]), None, "{running} {other}");
        }
    }

    #[test]
    fn kernel_without_package_version_is_ignored() {
        let running = Running { release: "6.1.0-37-amd64".to_owned(), build: "#1 SMP".to_owned() };
        assert_eq!(pending(&running, &[], Some("6.1.147-1")), []);
    }

    #[test]
    fn each_kernel_is_awaited_for_one_reboot() {
        let installed = ["6.1.0-38-amd64", "6.1.0-39-amd64"].map(str::to_owned);
        let mut awaited = Awaited::default();
        awaited.add(["6.1.0-38-amd64"], "boot-1", &installed);
        awaited.add(["6.1.0-38-amd64"], "boot-2", &installed);
        assert!(!awaited.has_missed("6.1.0-38-amd64", "boot-1"));
        assert!(awaited.has_missed("6.1.0-38-amd64", "boot-2"));
        assert!(!awaited.has_missed("6.1.0-39-amd64", "boot-2"));

        awaited.add(["6.1.0-39-amd64"], "boot-2", &installed);
        awaited.add(["6.1.0-39-amd64 6.1.147-1"], "boot-2", &installed);
        let text = awaited.to_string();
        assert_eq!(
            text,
            "boot-1\t6.1.0-38-amd64\nboot-2\t6.1.0-39-amd64\nboot-2\t6.1.0-39-amd64 6.1.147-1\n"
        );
        assert_eq!(Awaited::parse(&format!("{text}garbage\n")), awaited);

        // One is removed from the host.
        awaited.add(["6.1.0-39-amd64"], "boot-3", &installed[1..]);
        assert_eq!(awaited.to_string(), "boot-2\t6.1.0-39-amd64\nboot-2\t6.1.0-39-amd64 6.1.147-1\n");
    }
}
