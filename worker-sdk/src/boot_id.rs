//! The boot id, by which a worker detects that its host has rebooted.

use std::io;
use std::path::{Path, PathBuf};

use os_upgrade_worker_rules::BootId;

use crate::Error;

const KERNEL: &str = "/proc/sys/kernel/random/boot_id";
/// The longest boot id, in bytes.
const BOOT_ID_BYTES_MAX: usize = 256;

/// Where the boot id comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BootIdSource {
    /// The kernel of this machine.
    #[default]
    Kernel,
    /// A file whose contents change at each boot of the host; for hosts other than this machine.
    File(PathBuf),
}

impl BootIdSource {
    /// Reads the boot id.
    ///
    /// # Errors
    /// The file cannot be read, is empty or is too long.
    pub fn read(&self) -> Result<BootId, Error> {
        let path = match self {
            Self::Kernel => Path::new(KERNEL),
            Self::File(path) => path,
        };
        read(path).map_err(|source| Error::BootId { path: path.to_owned(), source })
    }
}

fn read(path: &Path) -> io::Result<BootId> {
    let text = std::fs::read_to_string(path)?;
    let id = text.trim();
    if id.is_empty() || id.len() > BOOT_ID_BYTES_MAX {
        let message = "it should contain one short line";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(BootId(id.to_owned()))
}
