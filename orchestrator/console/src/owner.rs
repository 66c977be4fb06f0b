//! For whom a slot is held.

use os_upgrade_kernel::Owner;

/// For what a slot is requested or held: `in run ...`, or `for entry 4 of the reboot queue`.
pub fn purpose(owner: &Owner) -> String {
    match owner {
        Owner::Run(run) => format!("in run {run}"),
        Owner::Entry { index, .. } => format!("for entry {index} of the reboot queue"),
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::RunId;

    use super::*;

    #[test]
    fn runs_and_entries_are_told_apart() {
        let owner = |id| Owner::from(RunId::new(id).unwrap());
        assert_eq!(purpose(&owner("rq-4-7")), "for entry 4 of the reboot queue");
        assert_eq!(purpose(&owner("r1")), "in run r1");
    }
}
