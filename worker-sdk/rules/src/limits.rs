//! The bounds of every wait and retry of a worker.

use chrono::TimeDelta;

/// How long the stream waits for an acknowledgement or a progress report before it delivers a command again.
pub const ACK_WAIT: TimeDelta = TimeDelta::seconds(30);
/// The interval of progress reports for a command under way; a third of [`ACK_WAIT`].
pub const IN_PROGRESS_EVERY: TimeDelta = TimeDelta::seconds(10);
/// The longest interval between ticks from the executor.
pub const TICK_EVERY: TimeDelta = TimeDelta::seconds(1);
/// How often a handler is started for one command before the command is answered with an error. Otherwise an upgrade
/// that reboots the host each time it is resumed would never end.
pub const HANDLER_STARTS_MAX: u32 = 10;
/// How often a reboot is tried while the boot id stays the same.
pub const REBOOT_ATTEMPTS_MAX: u32 = 3;
/// How long a started reboot may take to end this process, unless configured otherwise.
pub const REBOOT_WAIT_DEFAULT: TimeDelta = TimeDelta::minutes(5);
/// How often saving the state file is tried before the worker continues without starting anything.
pub const SAVE_ATTEMPTS_MAX: u32 = 5;
/// How often an acknowledgement is tried; after that, the command is acknowledged when it is redelivered.
pub const ACK_ATTEMPTS_MAX: u32 = 5;
/// The longest pause between two attempts.
pub const BACKOFF_MAX: TimeDelta = TimeDelta::seconds(30);
/// The longest pause between two attempts to apply an item, which may take much work.
pub const APPLY_BACKOFF_MAX: TimeDelta = TimeDelta::minutes(5);

/// The first pause before a consumer that somebody else has deleted is created again; doubled each time.
pub const CONTENDED_PAUSE_FIRST: TimeDelta = TimeDelta::milliseconds(100);
/// The longest of these pauses. Two workers of one host then delete each other's consumer about once in it.
pub const CONTENDED_PAUSE_MAX: TimeDelta = TimeDelta::minutes(1);
/// A consumer that nobody has deleted for so long has no other worker.
pub const UNCONTENDED_AFTER: TimeDelta = TimeDelta::minutes(3);

/// The pause after attempt number `attempt`, counted from 1: 1 s, doubled each time, up to [`BACKOFF_MAX`].
pub fn backoff(attempt: u32) -> TimeDelta {
    doubled(attempt).min(BACKOFF_MAX)
}

/// The same between attempts to apply an item, up to [`APPLY_BACKOFF_MAX`].
pub fn apply_backoff(attempt: u32) -> TimeDelta {
    doubled(attempt).min(APPLY_BACKOFF_MAX)
}

fn doubled(attempt: u32) -> TimeDelta {
    TimeDelta::seconds(1 << attempt.saturating_sub(1).min(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_limit() {
        let seconds: Vec<i64> =
            [0, 1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|attempt| backoff(attempt).num_seconds()).to_vec();
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 30, 30, 30]);
        let seconds = [1, 5, 8, 9, 10, u32::MAX].map(|attempt| apply_backoff(attempt).num_seconds());
        assert_eq!(seconds, [1, 16, 128, 256, 300, 300]);
    }
}
