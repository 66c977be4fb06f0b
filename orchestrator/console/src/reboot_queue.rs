//! Why entries of the reboot queue are not progressing, and why a request about them is refused.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::reboot_queue::{NotReady, QueueBlocker};
use os_upgrade_kernel::{EntryBlocker, Reason, RebootRefusal};
use os_upgrade_protocol::{HostName, time};

use crate::commands::hosts_uncordon;
use crate::describe::{Describe, describe};
use crate::owner::purpose;
use crate::reason::deferred;
use crate::tense::are;

impl Describe for EntryBlocker {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackedOff { until, reason } => write!(
                f,
                "{}; it is tried again from {} on",
                reason
                    .as_ref()
                    .map_or("it could not be told to reboot".to_owned(), |reason| describe(reason)
                        .to_string()),
                time::format(*until)
            ),
            Self::NotReady(it) => it.describe(f),
            Self::Queue(it) => it.describe(f),
            Self::Behind { index } => write!(f, "entry {index} comes first"),
            Self::Slot(it) => it.describe(f),
            Self::NodeUnderWay(it) => it.describe(f),
            Self::CommandUnsent => f.write_str("its reboot command is about to be sent"),
            Self::ReplyAwaited { since: it } => {
                write!(f, "its worker has not answered reboot since {}", time::format(*it))
            }
            Self::CommandRuns { since: it } => {
                write!(f, "the reboot command is being run since {}", time::format(*it))
            }
            Self::BootAwaited { since: it } => {
                write!(f, "the reboot command succeeded at {}, and the host is not back", time::format(*it))
            }
            Self::AttemptUnknown { reason, since } => write!(
                f,
                "{reason}; unknown since {}; once the host is looked after, `os-upgrade reboot-queue give-up` \
                 removes the entry",
                time::format(*since),
                reason = describe(reason)
            ),
            Self::RetryAwaited { reason, since, at } => write!(
                f,
                "{reason}; unknown since {}; it is run again from {} on if the host is ready in its old boot",
                time::format(*since),
                time::format(*at),
                reason = describe(reason)
            ),
            Self::CancelAwaited { until: it } => write!(
                f,
                "cancelled while its host was to reboot: what was begun is undone from {} on if the host is \
                 ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` \
                 removes the entry",
                time::format(*it)
            ),
            Self::CheckAwaited { reason } => write!(
                f,
                "{reason}; the host is in another boot, and boot-check-command has not confirmed it",
                reason = describe(reason)
            ),
            Self::NoCommand => f.write_str(
                "[reboot] reboot-command is not set any more; set it, or remove the entry with `os-upgrade \
                 reboot-queue cancel`",
            ),
            Self::Failed { reason } => write!(f, "{reason}; {}", ends_by(reason), reason = describe(reason)),
        }
    }
}

impl Describe for NotReady {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakesNoPart => f.write_str("it takes no part: it is not approved, or was withdrawn"),
            Self::HostDeferred { actor, reason, until } => {
                write!(f, "it is {}", deferred(actor, *until, reason))
            }
            Self::NoWorker => f.write_str("it has no worker, or one that does not reboot it on request"),
            Self::NoNode => f.write_str("the cluster shows no node for it"),
            Self::ForeignMark { host } => write!(
                f,
                "its node has a mark of a journal that this site does not have; `{}` takes it over",
                hosts_uncordon(host.as_str())
            ),
            Self::NoBoot => {
                f.write_str("nothing says which boot it runs, and [reboot] boot-check-command is not set")
            }
            Self::BootUnknown => f.write_str("its boot after the last reboot has not been seen yet"),
            Self::InRun { run } => write!(f, "run {run} is not through with it"),
            Self::SlotHeld { owner, since } => {
                write!(f, "its slot is held {} since {}", purpose(owner), time::format(*since))
            }
            Self::EarlierSlot => f.write_str("its earlier slot is being given back"),
            Self::SlotDenied { group, denied } => {
                write!(f, "it is denied a slot of group {group}: {denied}", denied = describe(denied))
            }
        }
    }
}

impl Describe for QueueBlocker {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingQueued => f.write_str("no further entry is queued"),
            Self::Disabled => f.write_str("the queue is disabled"),
            Self::ApiServerUnderWay { host: it } => {
                write!(f, "the API server {it} is under way, and nothing starts beside it")
            }
            Self::ApiServerWaits { host: it } => {
                write!(f, "the API server {it} is next, and starts once nothing else is under way")
            }
            Self::Full { under_way } => {
                write!(f, "{under_way} {} under way, as many as may be at once", are(*under_way))
            }
            Self::Unreachable { count, max, first } => write!(
                f,
                "too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: {count}, {first} for example; [reboot] maximum-unreachable-nodes-for-reboot allows {max}"
            ),
            Self::BackedOff { until: it } => {
                write!(f, "every entry that is queued has backed off, the first until {}", time::format(*it))
            }
            Self::NotReady { host, why } => write!(f, "{host} cannot reboot now: {why}", why = describe(why)),
            Self::Clock(it) => it.describe(f),
            Self::Paused(cause) => cause.describe(f),
            Self::ClusterUnseen => Reason::ClusterUnseen.describe(f),
            Self::NoWindow => f.write_str(
                "no maintenance window is open, and reboots are bound to them ([reboot] in-windows)",
            ),
            Self::NoTimeLeft { expected } => write!(
                f,
                "less is left of the maintenance window than the {expected} that a host takes (rollout.expected-duration), and reboots are bound to the windows ([reboot] in-windows)"
            ),
            Self::UnclearWindows { why: it } => {
                write!(f, "the maintenance windows cannot be worked out: {it}")
            }
        }
    }
}

impl Describe for RebootRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHosts => f.write_str("no host is named"),
            Self::NamedTwice { host } => write!(f, "{host} is named twice; nothing is queued"),
            Self::QueueFull { room, max } => {
                write!(f, "the reboot queue has room for {room} more entries of {max}; nothing is queued")
            }
            Self::UnknownHosts { hosts, count } => queues_nothing(
                f,
                hosts,
                *count,
                "has announced no worker at this site",
                "have announced no worker at this site",
            ),
            Self::NeitherNodeNorWorker { hosts, count } => queues_nothing(
                f,
                hosts,
                *count,
                "is no node of the cluster and has announced no worker",
                "are no nodes of the cluster and have announced no worker",
            ),
            Self::ClusterUnseen => f.write_str(
                "the nodes of the Kubernetes cluster have not been seen of late, so it is not known which of \
                 these hosts are nodes; nothing is queued: try again once they are",
            ),
            Self::NotApproved { hosts, count } => queues_nothing(
                f,
                hosts,
                *count,
                "is not approved, or was withdrawn",
                "are not approved, or were withdrawn",
            ),
            Self::NoRebootsOnRequest { hosts, count } => queues_nothing(
                f,
                hosts,
                *count,
                "has no worker, or one that does not reboot it on request",
                "have no worker, or one that does not reboot them on request",
            ),
            Self::Queued { host, index } => {
                write!(f, "{host} waits already, as entry {index}; nothing is queued")
            }
            Self::NoEntry { index } => write!(f, "the reboot queue has no entry {index}"),
            Self::NotBegun { index, status } => {
                write!(f, "entry {index} is {}: cancel it instead", status.as_str())
            }
            Self::CommandRuns { host } => {
                write!(f, "the reboot command is being run for {host}: try again once it has ended")
            }
            Self::EntryUncertain { host } => write!(
                f,
                "the command to {host}, or the reply to it, is not known yet: try again in a moment"
            ),
        }
    }
}

/// How an operator ends an entry that has failed.
const fn ends_by(reason: &Reason) -> &'static str {
    if matches!(reason, Reason::RebootCommandNotStarted { .. }) {
        "`os-upgrade reboot-queue cancel` undoes what was begun, and removes the entry"
    } else if matches!(reason, Reason::RebootCommandFailed { .. }) {
        "`os-upgrade reboot-queue cancel` undoes what was begun if the host stays in its boot; once the host is looked after, \
         `give-up` removes the entry"
    } else {
        "once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry"
    }
}

/// That nothing is queued, because of what is said of these hosts, the first of `count`.
fn queues_nothing(
    f: &mut Formatter<'_>,
    hosts: &[HostName],
    count: usize,
    one: &str,
    many: &str,
) -> fmt::Result {
    let names = hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", ");
    match count.saturating_sub(hosts.len()) {
        0 if count == 1 => write!(f, "{names} {one}; nothing is queued"),
        0 => write!(f, "{names} {many}; nothing is queued"),
        more => write!(f, "{names} and {more} more {many}; nothing is queued"),
    }
}
