//! What is wrong with a clock.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::ClockDoubt;
use os_upgrade_protocol::time;

use crate::describe::Describe;
use crate::tense::Tense;

impl Describe for ClockDoubt {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&clause(self, Tense::Present))
    }
}

/// How far a clock is from another: `seconds` is the first minus the second.
pub(crate) fn skew(seconds: i64) -> String {
    let side = if seconds < 0 { "behind" } else { "ahead of" };
    format!("{} s {side}", seconds.unsigned_abs())
}

/// The clause for operators.
pub(crate) fn clause(doubt: &ClockDoubt, tense: Tense) -> String {
    match doubt {
        ClockDoubt::ClockUnmeasured => {
            let has = tense.has();
            format!("the orchestrator's clock {has} not been compared with that of NATS lately")
        }
        ClockDoubt::ClockSkew { seconds } => {
            format!("the orchestrator's clock {} {} NATS", tense.is(), skew(*seconds))
        }
        ClockDoubt::ClockDisputed { differ, hosts } => {
            let verb = tense.of("differ", "differed");
            format!("the clocks of {differ} of {hosts} hosts {verb} from those of the orchestrator and NATS")
        }
        ClockDoubt::ClockStepped => format!("the clock of NATS {} just stepped", tense.has()),
        ClockDoubt::ClockBehind { newest } => {
            format!(
                "the orchestrator's clock {} behind the newest record, of {}",
                tense.is(),
                time::format(*newest)
            )
        }
    }
}
