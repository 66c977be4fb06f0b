//! The faults of a guest, and when they are injected.

use std::fmt;

use clap::ValueEnum;
use harness::random::Random;

/// A fault during an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cut {
    /// No fault
    Nothing,
    /// Power loss while dpkg unpacks
    Unpacking,
    /// Power loss while dpkg configures
    Configuring,
    /// Power loss while the guest shuts down for its reboot
    Rebooting,
    /// No bus, from the beginning of the upgrade until dpkg has long ended
    Bus,
}

impl Cut {
    /// The default faults of each run, for the first and the second guest.
    pub(crate) const USUAL: [Self; 6] =
        [Self::Unpacking, Self::Nothing, Self::Configuring, Self::Rebooting, Self::Bus, Self::Nothing];

    /// The range of the upgrade's progress, in percent, in which it is injected. APT unpacks until about 60 %, and
    /// configures the kernel at 75 %: GRUB, which reads no journal, may find no menu if power is lost soon after that.
    const fn percents(self) -> (u64, u64) {
        match self {
            Self::Unpacking => (0, 40),
            Self::Configuring => (62, 74),
            Self::Bus => (0, 20),
            // Does not depend on progress.
            Self::Nothing | Self::Rebooting => (0, 0),
        }
    }

    /// A random percentage in this range.
    pub(crate) fn moment(self, random: &mut Random) -> u64 {
        let (from, to) = self.percents();
        from + random.below(to - from + 1)
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "nothing",
            Self::Unpacking => "power lost while dpkg unpacks",
            Self::Configuring => "power lost while dpkg configures",
            Self::Rebooting => "power lost while the host goes down for its reboot",
            Self::Bus => "no bus from the middle of the upgrade until dpkg has ended",
        })
    }
}
