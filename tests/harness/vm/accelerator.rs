//! How guests run: with KVM where it works, otherwise emulated.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use os_upgrade_platform::child::{Child, command};

use super::QEMU;

/// Timeout of a guest under KVM until its boot loader prints something; it takes a second.
const PROBE_WAIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How QEMU runs guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// With KVM.
    Kvm,
    /// Emulated.
    Emulation,
}

impl Accelerator {
    /// The fastest one with which `image` boots. A `/dev/kvm` alone does not prove that: guests have been seen to hang.
    pub async fn best(image: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let console = directory.path().join("console");
        let kvm = Self::Kvm;
        let mut qemu = command(QEMU);
        qemu.args(kvm.options()).args(["-m", "256", "-display", "none", "-snapshot"]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.arg("-drive").arg(format!("file={},format=raw,if=virtio", image.display()));
        let qemu = Child::start(qemu).unwrap();
        let start = Instant::now();
        while start.elapsed() < PROBE_WAIT && qemu.status().is_none() {
            // The kernel's first line: the boot loader has run, and the processor is in long mode.
            if fs::read(&console).is_ok_and(|text| String::from_utf8_lossy(&text).contains("Linux version")) {
                return kvm;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Self::Emulation
    }

    /// The options for QEMU.
    pub fn options(self) -> [&'static str; 2] {
        match self {
            Self::Kvm => ["-accel", "kvm"],
            Self::Emulation => ["-accel", "tcg,thread=multi"],
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kvm => "KVM",
            Self::Emulation => "emulation",
        })
    }
}
