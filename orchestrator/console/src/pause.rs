//! The pause of a site.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::{PauseCause, PauseRefusal};
use os_upgrade_protocol::time;

use crate::describe::Describe;
use crate::tense::Tense;

impl Describe for PauseCause {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&clause(self, Tense::Present))
    }
}

/// The clause for operators.
pub(crate) fn clause(cause: &PauseCause, tense: Tense) -> String {
    let is = tense.is();
    match cause {
        PauseCause::Operator { actor, reason } => format!("the site {is} paused by {actor}: {reason}"),
        PauseCause::Restored { actor } => {
            format!(
                "the site {is} paused since {actor} restored it, until somebody has looked after its hosts"
            )
        }
    }
}

impl Describe for PauseRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::UntilPassed { until, now } => write!(
                f,
                "until: {} has passed, it is {}; give a later time, or none to pause until `os-upgrade resume`",
                time::format(*until),
                time::format(*now)
            ),
        }
    }
}
