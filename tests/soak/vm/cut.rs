//! What is taken away from a guest, and when.

use std::fmt;

use clap::ValueEnum;
use harness::random::Random;

/// A fault in the middle of an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cut {
    /// Nothing: the guest is left alone
    Nothing,
    /// Its power, while dpkg unpacks
    Unpacking,
    /// Its power, while dpkg configures
    Configuring,
    /// Its power, while it goes down for its reboot
    Rebooting,
    /// The bus, from the beginning of the upgrade until dpkg has long ended
    Bus,
}

impl Cut {
    /// What is tried unless asked for otherwise: of each run, for the first guest and for the second.
    pub(crate) const USUAL: [Self; 6] =
        [Self::Unpacking, Self::Nothing, Self::Configuring, Self::Rebooting, Self::Bus, Self::Nothing];

    /// Between which percents of the upgrade's progress it may happen. APT unpacks up to some 60 of them, and configures
    /// the kernel at 75: GRUB, which reads no journal, may find no menu if power is lost soon after that.
    const fn percents(self) -> (u64, u64) {
        match self {
            Self::Unpacking => (0, 40),
            Self::Configuring => (62, 74),
            Self::Bus => (0, 20),
            // Not by progress.
            Self::Nothing | Self::Rebooting => (0, 0),
        }
    }

    /// A percent at random of those at which it may happen.
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
