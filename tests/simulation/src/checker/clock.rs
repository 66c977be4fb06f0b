//! Rule `clock`: while a clock is wrong, no run starts automatically or counts as missed, and nothing times out.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_console::summary;
use os_upgrade_kernel::fact::RunFact;
use os_upgrade_kernel::reason::Reason;
use os_upgrade_kernel::{Fact, HostEvent, Record, Trigger};

use super::violation::Violation;

/// How wrong a clock may be: the bus may be wrong by as much as hosts may differ from it, and the orchestrator differ
/// from the bus.
pub(super) const ERROR_MAX: TimeDelta = TimeDelta::seconds(60 + 30 + 5);

/// The clock of an instance when it decides something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionClock {
    /// What it shows minus the right time.
    pub(crate) error: TimeDelta,
    /// Whether the instance relies on it, and hosts have had time to contradict it.
    pub(crate) is_reliable: bool,
}

/// An instance whose clock is wrong by `error` has decided `fact`.
#[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
pub(super) fn check(fact: &Fact, error: TimeDelta) -> Result<(), Violation> {
    let depends_on_time = match fact {
        Fact::Run(RunFact::Started { trigger, .. }) => matches!(trigger, Trigger::Window { .. }),
        Fact::Run(RunFact::Missed(_)) => true,
        Fact::Run(RunFact::Host { event, .. }) => {
            matches!(
                event,
                // A run whose time is over has a host that is not through.
                HostEvent::TimedOut {
                    reason: Reason::PrepareTimeout { .. }
                        | Reason::UpgradeTimeout { .. }
                        | Reason::BootTimeout { .. }
                        | Reason::NoReply { .. }
                        | Reason::NotSent { .. }
                } | HostEvent::Overdue { .. }
                    | HostEvent::NotReached {
                        reason: Reason::NoTimeLeft { .. } | Reason::RunTimedOut { .. }
                    }
            )
        }
        _ => false,
    };
    if depends_on_time && error.abs() > ERROR_MAX {
        let text = format!("by a clock that is wrong by {error}: {}", summary(fact).1);
        return Err(Violation::new("clock", text));
    }
    Ok(())
}

/// The times of the records since the last snapshot, which every leader has read. An operator who starts a run says that the clock
/// is right, and that earlier ones do not count.
#[derive(Debug, Default)]
pub(super) struct RecordTimes {
    newest: Option<DateTime<Utc>>,
}

impl RecordTimes {
    /// An instance has appended `record`, by a clock that `is_reliable` or not. An operator is believed either way.
    pub(super) fn appended(&mut self, record: &Record, stored_at: DateTime<Utc>, is_reliable: bool) {
        let starts = |fact: &Fact| {
            matches!(fact, Fact::Run(RunFact::Started { trigger: Trigger::Operator { .. }, .. }))
        };
        if record.facts.iter().any(starts) {
            self.newest = None;
        }
        // A leader does not count what it recorded while its clock was in doubt.
        if is_reliable {
            self.newest = self.newest.max(Some(record.at.min(stored_at)));
        }
    }

    /// A leader is about to append `record`.
    pub(super) fn check(&self, record: &Record) -> Result<(), Violation> {
        let starts =
            |fact: &Fact| matches!(fact, Fact::Run(RunFact::Started { trigger: Trigger::Window { .. }, .. }));
        match self.newest {
            Some(newest) if newest - record.at > ERROR_MAX && record.facts.iter().any(starts) => {
                let text =
                    format!("a run starts automatically at {}, and a record is of {newest}", record.at);
                Err(Violation::new("clock", text))
            }
            Some(_) | None => Ok(()),
        }
    }
}
