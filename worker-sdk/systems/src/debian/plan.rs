//! The plan of an upgrade, as printed by `apt-get --simulate dist-upgrade`.

use crate::text::{count, names};

/// The changes of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The packages to install or upgrade, in APT's order.
    pub installs: Vec<Install>,
    /// The names of packages to remove.
    pub removals: Vec<String>,
    /// The names of packages that are not upgraded although a newer version exists.
    pub kept_back: Vec<String>,
}

/// A package to install or upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    pub name: String,
    /// The installed version; `None` if it is not installed.
    pub from: Option<String>,
    /// The version after the upgrade.
    pub to: String,
}

/// How the names of packages with a kernel begin, before its release: of Debian and its derivatives, and of Proxmox.
const KERNELS: [&str; 3] = ["linux-image-", "proxmox-kernel-", "pve-kernel-"];
/// The branches of Armbian, whose packages with a kernel are not named after its release.
const BRANCHES: [&str; 6] = ["bleedingedge-", "collabora-", "current-", "edge-", "legacy-", "vendor-"];
/// Packages that write into the firmware's partition of a Raspberry Pi.
const FIRMWARE: [&str; 2] = ["raspberrypi-kernel", "raspi-firmware"];
/// How the names of packages begin that write into the EFI system partition.
const EFI: [&str; 3] = ["grub-efi-", "shim-signed", "systemd-boot"];

impl Install {
    /// Whether it has a kernel, or what boots it, unlike a package that depends on the latest one.
    fn is_kernel(&self) -> bool {
        let releases = KERNELS.iter().filter_map(|start| self.name.strip_prefix(start));
        // `linux-image-unsigned-6.8.0-45-generic`.
        let mut releases = releases.map(|release| release.strip_prefix("unsigned-").unwrap_or(release));
        let is_release = |release: &str| {
            release.starts_with(|first: char| first.is_ascii_digit())
                || BRANCHES.iter().any(|branch| release.starts_with(branch))
        };
        FIRMWARE.contains(&self.name.as_str()) || releases.any(is_release)
    }
}

impl Plan {
    /// Parses APT's output.
    pub fn parse(text: &str) -> Self {
        let mut plan = Self::default();
        let mut in_kept_back = false;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("Inst ") {
                plan.installs.extend(install(rest));
            } else if let Some(rest) = line.strip_prefix("Remv ").or_else(|| line.strip_prefix("Purg ")) {
                plan.removals.extend(rest.split_whitespace().next().map(str::to_owned));
            } else if in_kept_back && line.starts_with(' ') {
                plan.kept_back.extend(line.split_whitespace().map(str::to_owned));
                continue;
            }
            in_kept_back = line.starts_with("The following packages have been kept back:");
        }
        plan
    }

    /// Whether the upgrade changes nothing.
    pub fn is_empty(&self) -> bool {
        self.installs.is_empty() && self.removals.is_empty()
    }

    /// The packages that are already installed in another version.
    pub fn upgrades(&self) -> impl Iterator<Item = &Install> {
        self.installs.iter().filter(|install| install.from.is_some())
    }

    /// The packages that are newly installed.
    pub fn additions(&self) -> impl Iterator<Item = &Install> {
        self.installs.iter().filter(|install| install.from.is_none())
    }

    /// How many kernels are newly installed.
    pub fn new_kernels(&self) -> u64 {
        self.additions().filter(|install| install.is_kernel()).map(|_| 1).sum()
    }

    /// The directories below the root in which dpkg writes for this plan.
    pub fn written_directories(&self) -> impl Iterator<Item = &'static str> {
        let always: &[&str] = if self.is_empty() { &[] } else { &["usr", "etc", "var/lib/dpkg"] };
        // Others may write there too, after a change to the initial RAM disk for example; a read-only /boot keeps nobody
        // from upgrading the rest.
        let any = |is: fn(&Install) -> bool| self.installs.iter().any(is);
        let kernel: &[&str] = if any(Install::is_kernel) { &["boot", "boot/firmware"] } else { &[] };
        let is_efi = |install: &Install| EFI.iter().any(|start| install.name.starts_with(start));
        let efi: &[&str] = if any(is_efi) { &["boot/efi"] } else { &[] };
        [always, kernel, efi].concat().into_iter()
    }

    /// A summary in one line.
    pub fn summary(&self) -> String {
        let upgrades = match self.upgrades().count() {
            0 if self.is_empty() => "nothing to upgrade".to_owned(),
            number => format!("{} to upgrade", count(number, "package")),
        };
        let mut parts = vec![upgrades];
        let additions = self.additions().map(|install| &install.name);
        for (what, list) in [
            ("new", names(additions)),
            ("to remove", names(&self.removals)),
            ("kept back", names(&self.kept_back)),
        ] {
            if !list.is_empty() {
                parts.push(format!("{what}: {list}"));
            }
        }
        parts.join("; ")
    }
}

/// Parses `name [from] (to origin [architecture]) [...]`.
fn install(text: &str) -> Option<Install> {
    let (name, rest) = text.split_once(' ')?;
    let from = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(from, _)| from.to_owned());
    let (_, after) = rest.split_once('(')?;
    let to = after.split([' ', ')']).next()?.to_owned();
    Some(Install { name: name.to_owned(), from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMULATION: &str = "\
NOTE: This is only a simulation!
      apt-get needs root privileges for real execution.
Reading package lists...
Building dependency tree...
Reading state information...
Calculating upgrade...
The following packages will be REMOVED:
  baz
The following NEW packages will be installed:
  linux-image-6.1.0-38-amd64 newdep
The following packages have been kept back:
  bar docker-ce
  docker-ce-cli
The following packages will be upgraded:
  foo libc6 linux-image-amd64
3 upgraded, 2 newly installed, 1 to remove and 3 not upgraded.
Remv baz [1.0]
Inst libc6 [2.36-9+deb12u9] (2.36-9+deb12u10 Debian:12.11/stable [amd64]) [libc6:amd64 ]
Conf libc6 (2.36-9+deb12u10 Debian:12.11/stable [amd64])
Inst foo [1.0] (2.0 test [all])
Inst newdep (1.0 test [all])
Inst linux-image-6.1.0-38-amd64 (6.1.147-1 Debian-Security:12/stable-security [amd64])
Inst linux-image-amd64 [6.1.140-1] (6.1.147-1 Debian-Security:12/stable-security [amd64])
Conf foo (2.0 test [all])
";

    #[test]
    fn simulation_is_parsed() {
        let plan = Plan::parse(SIMULATION);
        let installs: Vec<_> =
            plan.installs.iter().map(|i| (i.name.as_str(), i.from.as_deref(), i.to.as_str())).collect();
        assert_eq!(
            installs,
            [
                ("libc6", Some("2.36-9+deb12u9"), "2.36-9+deb12u10"),
                ("foo", Some("1.0"), "2.0"),
                ("newdep", None, "1.0"),
                ("linux-image-6.1.0-38-amd64", None, "6.1.147-1"),
                ("linux-image-amd64", Some("6.1.140-1"), "6.1.147-1"),
            ]
        );
        assert_eq!(plan.removals, ["baz"]);
        assert_eq!(plan.kept_back, ["bar", "docker-ce", "docker-ce-cli"]);
        assert_eq!(plan.new_kernels(), 1);
        assert_eq!(
            plan.summary(),
            "3 packages to upgrade; new: newdep, linux-image-6.1.0-38-amd64; to remove: baz; \
             kept back: bar, docker-ce, docker-ce-cli"
        );
    }

    #[test]
    fn plan_says_where_dpkg_writes() {
        const ALWAYS: [&str; 3] = ["usr", "etc", "var/lib/dpkg"];
        const KERNEL: [&str; 5] = ["usr", "etc", "var/lib/dpkg", "boot", "boot/firmware"];
        for (text, expected) in [
            ("", &[] as &[&str]),
            ("Inst foo [1.0] (2.0 test [all])", &ALWAYS),
            ("Remv foo [1.0]", &ALWAYS),
            ("Inst linux-image-amd64 [6.1.140-1] (6.1.147-1 x [amd64])", &ALWAYS),
            ("Inst linux-image-cloud-amd64 [6.1.140-1] (6.1.147-1 x [amd64])", &ALWAYS),
            ("Inst linux-image-6.1.0-37-amd64 [6.1.140-1] (6.1.147-1 x [amd64])", &KERNEL),
            ("Inst proxmox-kernel-6.8.12-4-pve-signed (6.8.12-4 x [amd64])", &KERNEL),
            ("Inst linux-image-current-rockchip64 [25.2.1] (25.5.1 x [arm64])", &KERNEL),
            ("Inst raspi-firmware [1:1.20240902-1] (1:1.20250430-1 x [all])", &KERNEL),
            (
                "Inst grub-efi-amd64-signed [1+2.06+13] (1+2.06+14 x [amd64])",
                &["usr", "etc", "var/lib/dpkg", "boot/efi"],
            ),
        ] {
            let written: Vec<_> = Plan::parse(text).written_directories().collect();
            assert_eq!(written, expected, "{text}");
        }
    }

    #[test]
    fn empty_plan_has_summary() {
        let text =
            "Reading package lists...\n0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n";
        let plan = Plan::parse(text);
        assert_eq!((plan.is_empty(), plan.summary().as_str()), (true, "nothing to upgrade"));
        let text = "The following packages have been kept back:\n  foo bar\n";
        assert_eq!(Plan::parse(text).summary(), "nothing to upgrade; kept back: foo, bar");
    }
}
