//! Whether the hosts that have announced themselves take part in runs.

use std::collections::BTreeSet;

use os_upgrade_bus::Bus;
use os_upgrade_kernel::State;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{HostName, subject};

use super::check::Check;

const NAME: &str = "enrolment";
const ADVICE: &str = "list them with `os-upgrade hosts list --pending`, then `os-upgrade hosts approve NAME...`; or set \
                      [site] auto-approve = true";

/// Whether the hosts that have announced themselves on `bus` take part, according to `state`, folded from the journal.
pub(super) async fn examine(bus: &Bus, state: &State) -> Check {
    let mut hosts = BTreeSet::new();
    let scanned = bus
        .scan_last(subject::WORKERS_STREAM, &[subject::WORKERS], |message| {
            if let Ok((_, host)) = subject::worker_parts(message.subject())
                && !message.payload().is_empty()
            {
                hosts.insert(host);
            }
            Ok(())
        })
        .await;
    match scanned {
        Ok(()) => judge(&hosts, state),
        Err(error) => Check::problem(NAME, with_causes(&error), "check NATS"),
    }
}

fn judge(hosts: &BTreeSet<HostName>, state: &State) -> Check {
    let of = |word| hosts.iter().filter(|host| state.enrolled(host).as_str() == word).count();
    let (pending, withdrawn) = (of("pending"), of("withdrawn"));
    let taking_part = hosts.len() - pending - withdrawn;
    let found = format!("announced hosts: {taking_part} taking part, {withdrawn} withdrawn");
    if pending == 0 {
        return Check::ok(NAME, found);
    }
    Check::warning(NAME, format!("{found}, {pending} waiting for approval"), ADVICE)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use os_upgrade_kernel::{Fact, Settings};
    use os_upgrade_test_site::host;

    use super::*;
    use crate::admin::doctor::check::Verdict;

    #[test]
    fn pending_hosts_are_a_warning() {
        let hosts = ["h1", "h2", "h3"].map(host).into();
        let mut state = State::default();
        let apply = |state: &mut State, fact| state.apply(DateTime::UNIX_EPOCH, &fact).unwrap();
        apply(
            &mut state,
            Fact::HostsApproved { hosts: vec![host("h1"), host("h9")], actor: "eve".to_owned() },
        );
        let (actor, reason) = ("eve".to_owned(), "sold".to_owned());
        apply(&mut state, Fact::HostWithdrawn { host: host("h3"), actor, reason, forgotten: false });
        let check = judge(&hosts, &state);
        assert_eq!(check.verdict, Verdict::Warning);
        assert_eq!(check.found, "announced hosts: 1 taking part, 1 withdrawn, 1 waiting for approval");
        let settings = Settings { auto_approve: true, ..Settings::default() };
        apply(&mut state, Fact::SettingsAdopted { settings });
        assert_eq!(judge(&hosts, &state), Check::ok(NAME, "announced hosts: 2 taking part, 1 withdrawn"));
    }
}
