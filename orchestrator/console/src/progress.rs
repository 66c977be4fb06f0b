//! How far hosts and runs are.

use os_upgrade_api_types::body::{Counts, Progress};
use os_upgrade_api_types::word::Word;
use os_upgrade_kernel::HostStatus;

/// What a worker reports of its command.
pub fn progress_text(Progress { percent, text }: &Progress<'_>) -> String {
    percent.map_or_else(|| text.to_string(), |percent| format!("{percent} % {text}"))
}

/// Whether a host with this status is at work.
pub fn is_at_work(status: HostStatus) -> bool {
    status == HostStatus::Preparing || status.is_under_way()
}

/// Numbers of hosts by what they are counted as, those that did not succeed first, such as `1 failed, 1 deferred, 2 upgraded`.
pub fn counted(Counts(counts): &Counts) -> String {
    let bad = [HostStatus::Failed, HostStatus::TimedOut, HostStatus::NotReached].map(HostStatus::as_str);
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|(status, _)| !bad.contains(&status.as_str()));
    let counted: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    if counted.is_empty() { "none".to_owned() } else { counted.join(", ") }
}

/// The numbers of hosts after a result, such as `: 1 failed, 2 upgraded`; empty where they were not recorded.
pub fn with_counts(counts: &Counts) -> String {
    if counts.is_empty() { String::new() } else { format!(": {}", counted(counts)) }
}

/// Whether a host with this status is one of those that a run upgrades. One that was cancelled, or not reached, was not begun.
pub fn belongs_to_run(status: &str) -> bool {
    ![HostStatus::Cancelled, HostStatus::NotReached].map(HostStatus::as_str).contains(&status)
}

/// How much of a host's part in a run is done, in percent, by its status and by what its worker reports of the command under
/// way. Preparing changes nothing on the host, and nothing is complete before it has ended.
pub fn percent_done(status: &Word<HostStatus>, reported: Option<u8>) -> u64 {
    let Some(status) = status.known() else { return 0 };
    match status {
        HostStatus::Pending
        | HostStatus::Preparing
        | HostStatus::Prepared
        | HostStatus::Waiting
        | HostStatus::Draining => 0,
        HostStatus::Upgrading => u64::from(reported.unwrap_or(0)).min(99),
        HostStatus::Rebooting | HostStatus::Recovering => 99,
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled
        | HostStatus::NotReached => 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_succeed_is_counted_first() {
        let counts = [("cancelled", 1), ("failed", 1), ("timed-out", 3), ("upgraded", 2)];
        let counts = counts.map(|(status, count)| (status.to_owned(), count)).into();
        assert_eq!(counted(&Counts(counts)), "1 failed, 3 timed-out, 1 cancelled, 2 upgraded");
    }

    #[test]
    fn only_what_has_ended_is_complete() {
        for status in HostStatus::ALL {
            let done = [None, Some(40), Some(100)].map(|reported| percent_done(&status.into(), reported));
            let expected = if status == HostStatus::Upgrading {
                [0, 40, 99]
            } else if matches!(status, HostStatus::Rebooting | HostStatus::Recovering) {
                [99; 3]
            } else {
                [if status.is_final() { 100 } else { 0 }; 3]
            };
            assert_eq!(done, expected, "{status}");
        }
        assert_eq!(percent_done(&Word::read("of a newer version"), Some(40)), 0);
    }
}
