//! Rule `clock`: while a clock is wrong, no run starts automatically or counts as missed, and nothing times out.

use chrono::TimeDelta;
use os_upgrade_kernel::reason::Reason;
use os_upgrade_kernel::{Fact, HostEvent, RunResult, Trigger};

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
        Fact::RunStarted { trigger, .. } => matches!(trigger, Trigger::Window { .. }),
        Fact::RunMissed(_) => true,
        Fact::RunEnded { result, .. } => *result == RunResult::TimedOut,
        Fact::Host { event, .. } => {
            matches!(event, HostEvent::TimedOut { reason: Reason::BootTimeout { .. } })
        }
        _ => false,
    };
    if depends_on_time && error.abs() > ERROR_MAX {
        let text = format!("by a clock that is wrong by {error}: {}", fact.summary().1);
        return Err(Violation::new("clock", text));
    }
    Ok(())
}
