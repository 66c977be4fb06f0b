//! Why a decision about hosts is refused.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::EnrolmentRefusal;
use os_upgrade_protocol::{LongToken, time};

use crate::describe::Describe;

impl Describe for EnrolmentRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApprovalSize => f.write_str("hosts: 1 to 1000 are approved at once"),
            Self::NameTooLong { bytes } => {
                write!(f, "the name of a host cannot be used: {}; none is approved", LongToken(*bytes))
            }
            Self::EnrolmentFull => f.write_str(
                "decisions are kept for at most 100000 hosts: remove hosts that no longer exist, with \
                 `os-upgrade hosts remove NAME --reason TEXT`",
            ),
            Self::KeyOfOther { host } => {
                write!(
                    f,
                    "keys: {host} is not among the hosts, and none is approved: name it in both, or in none"
                )
            }
            Self::KeyChanged { host, announced: Some(key) } => write!(
                f,
                "{host} announces another key by now, {key}, and none is approved: compare it with what the host itself says, and approve again"
            ),
            Self::KeyChanged { host, announced: None } => {
                write!(
                    f,
                    "{host} announces no key any more, and none is approved: approve it without a key, or wait for its worker"
                )
            }
            Self::MachineOfOther { host } => write!(
                f,
                "machines: {host} is not among the hosts, and none is approved: name it in both, or in none"
            ),
            Self::MachineChanged { host, announced: Some(machine) } => write!(
                f,
                "{host} announces machine {} by now, with labels or an id that were not shown, and none is approved: compare that with what \
                 the host itself says, and approve again",
                machine.id
            ),
            Self::MachineChanged { host, announced: None } => write!(
                f,
                "{host} announces no machine any more, and none is approved: approve it without one, or wait for its agent"
            ),
            Self::MachineTaken { host, machine, by } => write!(
                f,
                "{host} and {by} have the same machine id, {machine}, and none is approved: give one of them a /etc/machine-id of its own"
            ),
            Self::UnknownHost { host } => write!(
                f,
                "there is no host {host}: none of that name has announced itself, been approved or been \
                 withdrawn"
            ),
            Self::DeferralOver { until, now } => write!(
                f,
                "until: {} has passed, it is {}; give a later time, or none to defer until `os-upgrade hosts defer --end`",
                time::format(*until),
                time::format(*now)
            ),
            Self::HostRunning { host } => {
                write!(f, "{host} is running: stop its worker before it is removed, or withdraw it")
            }
            Self::HostAwaited { host } => write!(
                f,
                "it is not known yet whether {host} is running: ask again when it is shown as unreachable"
            ),
            Self::HostInRun { host, status } => write!(
                f,
                "{host} is {status} in the active run: cancel the run, or let it go on with `os-upgrade run \
                 give-up`"
            ),
            Self::HostCordoned { host } => {
                write!(f, "the node of {host} is cordoned: end that with `os-upgrade hosts uncordon` first")
            }
            Self::HostHoldsSlot { host, group } => write!(
                f,
                "{host} holds a slot of group {group}: release it with `os-upgrade lock release`, if it is \
                 certainly off"
            ),
        }
    }
}
