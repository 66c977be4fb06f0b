//! What is deleted from the streams.

use os_upgrade_kernel::{Run, RunHost, State};
use os_upgrade_shell::instance::Trim;

use super::violation::Violation;

/// Checks that the journal can be read from its new beginning, and that every store has had what was before: up to
/// `stored`.
pub(super) fn check_journal(
    trim: Trim,
    is_rooted: bool,
    stored: u64,
    is_too_long: bool,
) -> Result<(), Violation> {
    let from = trim.journal_from;
    if !is_rooted {
        return Err(Violation::new(
            "trim",
            format!("the journal is trimmed to {from}, where no snapshot starts"),
        ));
    }
    if stored + 1 < from && !is_too_long {
        let text = format!("the journal is trimmed to {from}, and a store has it up to {stored} only");
        return Err(Violation::new("trim", text));
    }
    Ok(())
}

/// Checks that everything deleted from the control stream has been read and answered, according to the journal.
pub(super) fn check_control(trim: Trim, state: &State) -> Result<(), Violation> {
    let from = trim.control_from;
    let hosts = state.run.iter().flat_map(Run::hosts);
    let mut unanswered = hosts.filter_map(|(_, host)| RunHost::unanswered(host)?.sequence);
    if from > state.control + 1 || unanswered.any(|sequence| sequence < from) {
        let text = format!("the control stream is purged up to {from}, where {} was read", state.control);
        return Err(Violation::new("trim", text));
    }
    Ok(())
}
