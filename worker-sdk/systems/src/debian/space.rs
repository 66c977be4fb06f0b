//! Whether the disks have enough free space.

use crate::text::bytes;

/// A directory that an upgrade writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory, for the operator.
    pub name: String,
    /// The id of its filesystem.
    pub filesystem: u64,
    /// The free space there, in bytes.
    pub free: u64,
    /// How much the upgrade writes there, in bytes.
    pub needed: u64,
}

/// A message for the operator about the first filesystem that has too little space to keep `reserve` bytes free; `None`
/// if all have enough. Places on one filesystem share its space; a filesystem that nothing is written to is ignored.
pub fn shortage(places: &[Place], reserve: u64) -> Option<String> {
    for place in places {
        let shared =
            || places.iter().filter(|other| other.filesystem == place.filesystem && other.needed > 0);
        let needed = shared().fold(0_u64, |sum, other| sum.saturating_add(other.needed));
        if needed == 0 || needed.saturating_add(reserve) <= place.free {
            continue;
        }
        let names: Vec<&str> = shared().map(|other| other.name.as_str()).collect();
        return Some(format!(
            "the disk is too full: the upgrade needs {} in {}, --free-space requires {} free afterwards, and {} are \
             free; make room",
            bytes(needed),
            names.join(" and "),
            bytes(reserve),
            bytes(place.free)
        ));
    }
    None
}

/// The space needed in /boot, in bytes: room for each new kernel with its files, and for rewriting the largest initial
/// RAM disk. `files` are the names and sizes of the existing files.
pub fn boot_needed(files: &[(String, u64)], new_kernels: u64) -> u64 {
    /// Assumed if no kernel exists. A Debian 12 kernel with a generic initial RAM disk takes some 60 MB.
    const UNKNOWN_KERNEL: u64 = 100_000_000;
    let largest = |prefix: &str| {
        files.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, size)| *size).max().unwrap_or(0)
    };
    let initrd = largest("initrd.img-");
    let one = ["vmlinuz-", "config-", "System.map-"]
        .map(largest)
        .iter()
        .fold(initrd, |sum, size| sum.saturating_add(*size));
    let one = if one == 0 { UNKNOWN_KERNEL } else { one };
    one.saturating_mul(new_kernels).saturating_add(initrd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, filesystem: u64, free: u64, needed: u64) -> Place {
        Place { name: name.to_owned(), filesystem, free, needed }
    }

    #[test]
    fn places_on_one_filesystem_share_its_space() {
        let full = "the disk is too full: the upgrade needs 1.2 kB in /var/cache and /, --free-space requires 100 B free \
                    afterwards, and 1.2 kB are free; make room";
        for (places, reserve, expected) in [
            (vec![place("/var/cache", 1, 1300, 600), place("/", 1, 1300, 600)], 100, None),
            (vec![place("/var/cache", 1, 1299, 600), place("/", 1, 1299, 600)], 100, Some(full)),
            (vec![place("/var/cache", 2, 700, 600), place("/", 1, 700, 600)], 100, None),
            (vec![place("/var/cache", 2, 0, 0), place("/", 1, 700, 600)], 100, None),
            (vec![place("/", 1, u64::MAX, u64::MAX)], u64::MAX, None),
            (vec![], 100, None),
        ] {
            assert_eq!(shortage(&places, reserve).as_deref(), expected, "{places:?}");
        }
    }

    #[test]
    fn new_kernel_needs_the_largest_existing_size() {
        let files = [
            ("vmlinuz-6.1.0-37-amd64".to_owned(), 8),
            ("initrd.img-6.1.0-37-amd64".to_owned(), 40),
            ("initrd.img-6.1.0-30-amd64".to_owned(), 30),
            ("System.map-6.1.0-37-amd64".to_owned(), 1),
            ("grub".to_owned(), 1000),
        ];
        assert_eq!(boot_needed(&files, 0), 40);
        assert_eq!(boot_needed(&files, 2), 2 * 49 + 40);
        assert_eq!((boot_needed(&[], 0), boot_needed(&[], 1)), (0, 100_000_000));
    }
}
