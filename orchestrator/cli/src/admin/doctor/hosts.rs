//! Whether the hosts that have announced themselves take part in runs, and whether the configuration fits them.

use os_upgrade_bus::Bus;
use os_upgrade_console::describe;
use os_upgrade_kernel::{Enrolled, State, View, lasting_warnings};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{Announcement, subject};

use super::check::Check;

const NAME: &str = "enrolment";
const ADVICE: &str = "list them with `os-upgrade hosts list --pending`, then `os-upgrade hosts approve NAME...`; or set \
                      [site] auto-approve = true";

/// Whether the hosts that have announced themselves on `bus` take part, according to `state`, folded from the journal, and
/// what to know of its configuration.
pub(super) async fn examine(bus: &Bus, state: &State) -> Vec<Check> {
    let mut view = View::default();
    let scanned = bus
        .scan_last(subject::WORKERS_STREAM, &[subject::WORKERS], |message| {
            if let Ok((application, host)) = subject::worker_parts(message.subject())
                && let Ok(announcement) = Announcement::parse(message.payload())
            {
                let seen = view.hosts.entry(host).or_default();
                seen.applications.insert(application);
                seen.group = seen.group.take().or(announcement.group);
            }
            Ok(())
        })
        .await;
    match scanned {
        Ok(()) => [enrolment(&view, state)].into_iter().chain(configuration(&view, state)).collect(),
        Err(error) => vec![Check::problem(NAME, with_causes(&error), "check NATS")],
    }
}

/// The lasting warnings about the configuration.
fn configuration(view: &View, state: &State) -> impl Iterator<Item = Check> {
    const ADVICE: &str =
        "change it with `os-upgrade config edit`, or the slots in [fleet-lock] of the settings";
    let found = lasting_warnings(state, view).into_iter();
    found.map(|warning| Check::warning("upgrade configuration", describe(&warning).to_string(), ADVICE))
}

fn enrolment(view: &View, state: &State) -> Check {
    let count = |is_meant: fn(Enrolled<'_>) -> bool| {
        view.hosts.keys().filter(|host| is_meant(state.enrolled(host))).count()
    };
    let pending = count(|enrolled| enrolled == Enrolled::Pending);
    let withdrawn = count(|enrolled| matches!(enrolled, Enrolled::Withdrawn(_)));
    let taking_part = view.hosts.len() - pending - withdrawn;
    let found = format!("announced hosts: {taking_part} taking part, {withdrawn} withdrawn");
    if pending == 0 {
        return Check::ok(NAME, found);
    }
    Check::warning(NAME, format!("{found}, {pending} waiting for approval"), ADVICE)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use os_upgrade_kernel::fact::{ConfigFact, EnrolmentFact};
    use os_upgrade_kernel::{Config, Fact, SeenHost, Settings};
    use os_upgrade_test_site::{TestSite, host};

    use super::*;
    use crate::admin::doctor::check::Verdict;

    #[test]
    fn pending_hosts_are_a_warning() {
        let hosts = ["h1", "h2", "h3"].map(|name| (host(name), SeenHost::default())).into_iter().collect();
        let view = View { hosts, ..View::default() };
        let mut state = State::default();
        let apply = |state: &mut State, fact| state.apply(DateTime::UNIX_EPOCH, &fact).unwrap();
        apply(
            &mut state,
            Fact::Enrolment(EnrolmentFact::HostsApproved {
                hosts: vec![host("h1"), host("h9")],
                actor: "eve".to_owned(),
            }),
        );
        let (actor, reason) = ("eve".to_owned(), "sold".to_owned());
        apply(
            &mut state,
            Fact::Enrolment(EnrolmentFact::HostWithdrawn {
                host: host("h3"),
                actor,
                reason,
                forgotten: false,
            }),
        );
        let check = enrolment(&view, &state);
        assert_eq!(check.verdict, Verdict::Warning);
        assert_eq!(check.found, "announced hosts: 1 taking part, 1 withdrawn, 1 waiting for approval");
        let settings = Settings { auto_approve: true, ..Settings::default() };
        apply(&mut state, Fact::Config(ConfigFact::SettingsAdopted { settings }));
        assert_eq!(enrolment(&view, &state), Check::ok(NAME, "announced hosts: 2 taking part, 1 withdrawn"));
    }

    #[test]
    fn configuration_that_does_not_fit_is_a_warning() {
        let site = TestSite::new(["h1", "h2"]);
        let mut state = site.state.clone();
        let mut config = os_upgrade_test_site::config();
        let mut found = |config: &Config| {
            let (config, actor) = (Some(config.clone()), "eve".to_owned());
            let fact = Fact::Config(ConfigFact::Replaced { config, actor, difference: Vec::new() });
            state.apply(DateTime::UNIX_EPOCH, &fact).unwrap();
            configuration(&site.view, &state).map(|check| check.found).collect::<Vec<_>>()
        };
        assert_eq!(found(&config), [""; 0]);
        config.rollout.max_concurrent = 2;
        let slots = "rollout/max-concurrent: 2 is more than the slots of the hosts' groups (default: 1), so that at most 1 is \
                     upgraded at once";
        assert_eq!(found(&config), [slots]);
    }
}
