//! Whether an upgrade plan may be carried out.

use std::path::Path;

use super::package::Package;
use super::plan::Plan;
use crate::text::{count, names};

/// The operator's limits for an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// The largest number of packages that may be removed.
    pub removals: usize,
    /// Whether essential packages may be removed.
    pub essential_removals: bool,
    /// Whether packages may be on hold.
    pub held: bool,
}

/// Why a plan must not be carried out, for the operator; `None` if it may.
pub fn refusal(plan: &Plan, packages: &[Package], allowed: Allowed) -> Option<String> {
    let known =
        |name: &str| packages.iter().find(|package| package.name == name || package.plain_name() == name);
    let essential: Vec<&str> = plan
        .removals
        .iter()
        .map(String::as_str)
        .filter(|name| known(name).is_some_and(|package| package.essential))
        .collect();
    if !essential.is_empty() && !allowed.essential_removals {
        return Some(format!(
            "the upgrade would remove essential packages: {}; see why with apt-get --simulate dist-upgrade, or allow \
             it with --allow-essential-removals",
            names(essential)
        ));
    }
    if plan.removals.len() > allowed.removals {
        return Some(format!(
            "the upgrade would remove {}, and {} may be removed: {}; see why with apt-get --simulate dist-upgrade, \
             or allow it with --removals-max {}",
            count(plan.removals.len(), "package"),
            allowed.removals,
            names(&plan.removals),
            plan.removals.len()
        ));
    }
    let held: Vec<&str> = held(packages).collect();
    if !held.is_empty() && !allowed.held {
        return Some(format!(
            "packages are on hold: {}; release them with apt-mark unhold, or leave out --refuse-held",
            names(held)
        ));
    }
    None
}

/// Programs that Debian's packages run before dpkg, and that make nothing writable.
const KNOWN_HOOKS: [&str; 9] = [
    "apt-btrfs-snapshot",
    "apt-listbugs",
    "apt-listchanges",
    "apt-listdifferences",
    "dpkg-preconfigure",
    "etckeeper",
    "needrestart",
    "snapper",
    "timeshift",
];

/// Why nothing can be installed if dpkg cannot write in `place`, where writing fails with `error`; `None` if APT's
/// `configuration` may make it writable first, as Debian's security manual shows: `DPkg::Pre-Invoke:: "mount -o remount,rw
/// /usr";`. A program that is not known may, too.
pub fn unwritable(place: &str, error: &str, configuration: &str) -> Option<String> {
    let hooks =
        configuration.lines().filter_map(|setting| setting.split_once(' ')).filter_map(|(name, hook)| {
            let is_before = name.to_ascii_lowercase().starts_with("dpkg::pre-");
            is_before.then_some(hook)
        });
    if hooks.into_iter().any(|hook| may_make_writable(hook, place)) {
        return None;
    }
    Some(format!(
        "{place} cannot be written to: {error}; dpkg must write there, so mount it writable, or let APT do that with \
         DPkg::Pre-Invoke in /etc/apt/apt.conf.d"
    ))
}

fn may_make_writable(hook: &str, place: &str) -> bool {
    if hook.contains("mount") {
        return hook.split([';', '&', '|']).any(|command| may_mount(command, place));
    }
    let is_any = hook.contains(|c: char| c.is_alphanumeric());
    is_any && !KNOWN_HOOKS.iter().any(|known| hook.contains(known))
}

/// Whether a command may mount what `place` is on. A script with a name such as `remount-rw` is trusted, unless its
/// arguments are other places.
fn may_mount(command: &str, place: &str) -> bool {
    let mut words = command.split(|c: char| c.is_whitespace() || "\"'`()".contains(c));
    let program = words.find(|word| word.rsplit('/').next().is_some_and(|name| name.contains("mount")));
    let is_other = |program: &str| program.ends_with("umount") || program.ends_with("mountpoint");
    if program.is_none_or(is_other) {
        return false;
    }
    let mut targets = words.filter(|word| word.starts_with('/') && !word.starts_with("/dev/")).peekable();
    targets.peek().is_none() || targets.any(|target| Path::new(place).starts_with(target))
}

/// The packages that are on hold.
pub fn held(packages: &[Package]) -> impl Iterator<Item = &str> {
    packages.iter().filter(|package| package.held).map(|package| package.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::package::State;
    use super::*;

    const USUAL: Allowed = Allowed { removals: 2, essential_removals: false, held: true };

    fn package(name: &str, held: bool, essential: bool) -> Package {
        Package { name: name.to_owned(), version: "1".to_owned(), state: State::Installed, held, essential }
    }

    #[test]
    fn hook_that_mounts_makes_place_writable() {
        for (configuration, refused) in [
            ("", true),
            ("DPkg::Pre-Install-Pkgs:: \"/usr/sbin/dpkg-preconfigure --apt || true\";", true),
            ("DPkg::Pre-Invoke:: \"/usr/local/sbin/rw\";", false),
            ("DPkg::Pre-Invoke:: \"zfs set readonly=off rpool/usr\";", false),
            ("DPkg::Pre-Invoke:: \"systemctl start rw.target\";", false),
            ("DPkg::Pre-Invoke \"\";\nDPkg::Pre-Invoke:: \"etckeeper pre-install\";", true),
            ("DPkg::Post-Invoke:: \"mount -o remount,ro /usr\";", true),
            ("DPkg::Pre-Invoke:: \"mount -o remount,rw /usr\";", false),
            ("DPkg::Pre-Invoke:: \"mount -o remount,rw /dev/sda2 /usr/ 2>/dev/null\";", false),
            ("DPkg::Pre-Invoke:: \"mount -o remount,rw /boot; mount -o remount,rw /\";", false),
            ("DPkg::Pre-Invoke:: \"mount -o remount,rw /boot\";", true),
            ("DPkg::Pre-Invoke:: \"mount -o remount,rw /usr/local && umount /usr\";", true),
            ("DPkg::Pre-Invoke:: \"mountpoint -q /x\";", true),
            ("DPkg::Pre-Invoke:: \"mountpoint -q /usr && sh -c 'mount -o remount,rw /usr'\";", false),
            ("DPkg::Pre-Invoke:: \"for i in /usr /boot; do mount -o remount,rw $i; done\";", false),
            ("Dpkg::Pre-Install-Pkgs:: \"/usr/local/sbin/remount-usr\";", false),
            ("DPkg::Pre-Invoke:: \"[ -x /sbin/remount-rw ] && /sbin/remount-rw > /dev/null\";", false),
        ] {
            let refusal = unwritable("/usr", "Read-only file system", configuration);
            let expected = "/usr cannot be written to: Read-only file system; ";
            assert_eq!(refusal.is_some_and(|text| text.starts_with(expected)), refused, "{configuration}");
        }
    }

    #[test]
    fn refusals_name_the_option_that_allows() {
        let packages = [
            package("bash:amd64", false, true),
            package("foo", true, false),
            package("a", false, false),
            package("b", false, false),
        ];
        for (removals, allowed, expected) in [
            (&[] as &[&str], USUAL, None),
            (&["a", "b"], USUAL, None),
            (&["a", "b", "c"], USUAL, Some("would remove 3 packages, and 2 may be removed: a, b, c; ")),
            (&["a", "b", "c"], USUAL, Some("--removals-max 3")),
            (&["bash"], USUAL, Some("would remove essential packages: bash; ")),
            (&["bash"], Allowed { essential_removals: true, ..USUAL }, None),
            (
                &["a"],
                Allowed { removals: 0, ..USUAL },
                Some("would remove 1 package, and 0 may be removed: a; "),
            ),
            (&[], Allowed { held: false, ..USUAL }, Some("packages are on hold: foo; ")),
        ] {
            let removals = removals.iter().map(|&name| name.to_owned()).collect();
            let plan = Plan { removals, ..Plan::default() };
            let refused = refusal(&plan, &packages, allowed);
            match expected {
                None => assert_eq!(refused, None, "{plan:?}"),
                Some(part) => {
                    assert!(refused.as_ref().is_some_and(|text| text.contains(part)), "{refused:?}");
                }
            }
        }
    }
}
