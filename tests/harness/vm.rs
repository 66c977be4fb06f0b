//! Virtual machines with their own Debian, over the image that `make vm-guest` makes.

pub mod accelerator;
pub mod agent;
pub mod guest;

use std::path::{Path, PathBuf};

const QEMU: &str = "qemu-system-x86_64";
/// The address of this machine's loopback in a guest, with QEMU's user network.
pub const HOST: &str = "10.0.2.2";

/// The directory of the guests' files.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/vm")
}

/// The image that guests start from.
pub fn image() -> PathBuf {
    let image = directory().join("base.img");
    assert!(
        image.with_extension("img.made").is_file(),
        "there is no system for virtual machines: run `make test-vm` as root"
    );
    image
}
