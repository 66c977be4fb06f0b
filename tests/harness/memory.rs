//! The memory of a process.

use std::path::Path;
use std::{fs, io};

/// The resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// At present.
    pub now: u64,
    /// At its highest so far.
    pub highest: u64,
}

impl Memory {
    /// That of the process `pid`.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(pid: u32) -> io::Result<Self> {
        let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"))?;
        let bytes = |key: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_suffix(" kB"));
            let kibibytes: Option<u64> = value.and_then(|value| value.trim().parse().ok());
            kibibytes.map(|kibibytes| kibibytes * 1_024).ok_or_else(|| io::Error::other(format!("no {key}")))
        };
        Ok(Self { now: bytes("VmRSS:")?, highest: bytes("VmHWM:")? })
    }
}
