//! Why a host is not progressing.

use std::fmt::{self, Formatter};

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body;
use os_upgrade_api_types::word::Word;
use os_upgrade_kernel::reason::LockRefusal;
use os_upgrade_kernel::{Cause, HostBlocker, HostStatus, LateAnswer, LateResult, Reason, Why};
use os_upgrade_protocol::{GroupName, HostName, time};

use crate::clock::skew;
use crate::commands::{hosts_uncordon, lock_release};
use crate::describe::{Describe, describe};
use crate::reason::deferred;

impl Describe for HostBlocker {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandUnsent { action } => write!(f, "its {action} command is about to be sent"),
            Self::ReplyAwaited { action } => write!(f, "its worker has not answered {action} yet"),
            Self::HostsPreparing { hosts } => {
                let others =
                    if *hosts == 1 { "1 other is".to_owned() } else { format!("{hosts} others are") };
                write!(f, "waiting to be prepared: {others} prepared first (max-preparing)")
            }
            Self::HostsUnprepared { hosts } => write!(f, "waiting until {} prepared", more_hosts(*hosts)),
            Self::TurnAwaited => f.write_str("waiting for its turn"),
            Self::HostUnderWay { host } => write!(f, "waiting for its turn: {host} is under way"),
            Self::HostFirst { host, by } => {
                write!(f, "waiting for its turn: {host} is first: {by}", by = describe(by))
            }
            Self::SlotStuck { host, reason } => write!(f, "{host}: {reason}", reason = describe(reason)),
            Self::EarlierCommand => {
                f.write_str("waiting until it is certain that its earlier command can no longer appear")
            }
            Self::EarlierSlot { refusal, again_at } => write!(
                f,
                "waiting until its earlier slot has been given back{}",
                so_far(refusal.as_ref(), *again_at)
            ),
            Self::RebootUnderWay { index, status, reason } => write!(
                f,
                "entry {index} of the reboot queue is {}{}",
                status.as_str(),
                because(reason.as_ref())
            ),
            Self::NodeUnderWay { node } => node.describe(f),
            Self::NodeCordoned { host } => write!(
                f,
                "its node stays cordoned, because its host failed or was given up; `{}` ends that",
                hosts_uncordon(host.as_str())
            ),
            Self::ApprovedLate => f.write_str("it was approved after the run had started"),
            Self::AppearedLate => f.write_str("it appeared after the run had started"),
            Self::LeavesAfterRun => f.write_str("it takes no part in runs after this one"),
            Self::Silent => f.write_str("it is unreachable: no heartbeat arrives from it"),
            Self::HeartbeatAwaited => f.write_str("its heartbeat is awaited"),
            Self::WorkerClockSkew { seconds } => write!(f, "its clock is {} NATS", skew(*seconds)),
            Self::NotAnnounced => f.write_str("no worker has announced itself on it"),
            Self::NotServed => f.write_str("its worker's application is not among the configured ones"),
            Self::ApplicationRefused { application } => write!(
                f,
                "its application {application} does not count, because too many others are announced on it"
            ),
            Self::NoRun => f.write_str("no run is active"),
            Self::WindowUsed(it) => it.describe(f),
            Self::SlotHeld { group, entry, since, reason, late_answer, kept_by } => write!(
                f,
                "it has held a slot of group {group}{} since {since}{}{}{}",
                for_entry(*entry),
                because(reason.as_ref()),
                answered(late_answer.as_ref()),
                released_by(group, kept_by.as_ref()),
                since = time::format(*since)
            ),
            Self::SlotReleasing { group, refusal, again_at } => write!(
                f,
                "its slot of group {group} is being given back{}",
                so_far(refusal.as_ref(), *again_at)
            ),
        }
    }
}

fn more_hosts(count: usize) -> String {
    if count == 1 { "1 more host is".to_owned() } else { format!("{count} more hosts are") }
}

fn because(reason: Option<&Reason>) -> String {
    reason.map(|reason| format!(": {}", describe(reason))).unwrap_or_default()
}

fn answered(late: Option<&LateAnswer>) -> String {
    late.map(|late| format!("; {}", describe(late))).unwrap_or_default()
}

fn for_entry(entry: Option<u64>) -> String {
    entry.map(|index| format!(" for entry {index} of the reboot queue")).unwrap_or_default()
}

fn released_by(group: &GroupName, host: Option<&HostName>) -> String {
    let released = |host| format!("; `{} --reason TEXT` releases it", lock_release(group.as_str(), host));
    host.map(|host| released(host.as_str())).unwrap_or_default()
}

fn so_far(refusal: Option<&LockRefusal>, again_at: Option<DateTime<Utc>>) -> String {
    let refusal = refusal.map(|refusal| format!(": {}", describe(refusal)));
    let again = again_at.map(|at| {
        let at = time::format(at);
        format!(": once more at {at}, as the lock server may still carry out an earlier request")
    });
    refusal.or(again).unwrap_or_default()
}

impl Describe for Cause {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(cause) => cause.describe(f),
            Self::Recorded(cause) => cause.describe(f),
            Self::Entry(cause) => cause.describe(f),
            Self::Queue(cause) => cause.describe(f),
            Self::Window(cause) => cause.describe(f),
            Self::Missed(cause) => cause.describe(f),
            Self::Node(cause) => cause.describe(f),
            Self::Lock(cause) => cause.describe(f),
            Self::OpenWindow { by, open_until } => {
                write!(
                    f,
                    "a maintenance window is open until {}, but {}",
                    time::format(*open_until),
                    describe(by)
                )
            }
        }
    }
}

impl Describe for Why {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { cause, until, since: _ } = self;
        match (cause, until.map(time::format)) {
            (Cause::Host(HostBlocker::NoRun), Some(until)) => {
                write!(f, "{}; the next starts automatically at {until}", describe(cause))
            }
            (Cause::Recorded(reason), Some(until)) if reason.is_of_drain() => {
                write!(f, "{}; not drained again before {until}", describe(cause))
            }
            (Cause::Recorded(Reason::HostDeferred { actor, reason }), Some(_)) => {
                f.write_str(&deferred(actor, *until, reason))
            }
            _ => cause.describe(f),
        }
    }
}

/// Why a host is not moving, in one sentence; what its status says if nothing keeps it.
pub(crate) fn in_one_sentence(
    status: Option<&Word<HostStatus>>,
    why: Option<&body::Why>,
    also: &[body::Why],
) -> String {
    let texts: Vec<&str> = why.into_iter().chain(also).map(|why| why.text.as_str()).collect();
    match status {
        Some(Word::Known(HostStatus::Upgraded)) if texts.is_empty() => "upgraded in this run".to_owned(),
        Some(status) if texts.is_empty() => status.to_string(),
        _ => texts.join("; "),
    }
}

impl Describe for LateAnswer {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        answered_at(f, self.result, self.at)
    }
}

impl Describe for body::LateAnswer {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.result.known() {
            Some(result) => answered_at(f, result, self.time.0),
            None => write!(f, "{}, {}", self.result, self.time),
        }
    }
}

fn answered_at(f: &mut Formatter<'_>, result: LateResult, at: DateTime<Utc>) -> fmt::Result {
    let answered = match result {
        LateResult::Done | LateResult::RebootRequired => result.as_str(),
        LateResult::Error => "with an error",
    };
    write!(f, "it answered {answered} at {}", time::format(at))
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::body::Stamp;

    use super::*;

    #[test]
    fn late_answers_are_described() {
        let time = DateTime::parse_from_rfc3339("2026-11-21T01:42:10Z").unwrap().to_utc();
        let late = |result| body::LateAnswer { time: Stamp(time), action: "reboot".into(), result };
        for result in [LateResult::Done, LateResult::RebootRequired, LateResult::Error] {
            let expected = describe(&LateAnswer { at: time, result }).to_string();
            assert_eq!(describe(&late(result.into())).to_string(), expected);
        }
        let newer = late(Word::Other("of a newer version".to_owned()));
        assert_eq!(describe(&newer).to_string(), "of a newer version, 2026-11-21T01:42:10Z");
    }
}
