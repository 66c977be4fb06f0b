//! Slots and cordons that hosts keep because they failed or were given up: only an operator ends them.

use os_upgrade_console::commands::{hosts_uncordon, lock_release};
use os_upgrade_console::purpose;
use os_upgrade_kernel::{Node, State};
use os_upgrade_protocol::{HostName, time};

use super::check::Check;

/// How many of either are named.
const NAMED_MAX: usize = 3;

/// A warning for each of the first slots and cordons that hosts keep, according to `state`, folded from the journal.
pub(super) fn examine(state: &State) -> Vec<Check> {
    let slots = state.slots.keys().filter(|host| state.keeps_slot(host)).map(|host| slot(state, host));
    let cordons =
        state.nodes.keys().filter(|host| state.stays_cordoned(host)).map(|host| cordon(state, host));
    let marks = state.nodes.iter().map(|(host, node)| mark(host, node));
    [bounded("slots", slots), bounded("cordons", cordons), bounded("marks", marks)].concat()
}

fn bounded(name: &str, checks: impl Iterator<Item = Option<Check>>) -> Vec<Check> {
    let mut checks: Vec<Check> = checks.flatten().collect();
    if let Some(more) = checks.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        checks.truncate(NAMED_MAX);
        let found = format!("{more} more are kept like these");
        checks.push(Check::warning(name, found, "`os-upgrade status` and `os-upgrade hosts list` show all"));
    }
    checks
}

fn slot(state: &State, host: &HostName) -> Option<Check> {
    let slot = state.slots.get(host)?;
    let (group, since) = (slot.group.as_str(), time::format(slot.since));
    let found =
        format!("{host} keeps its slot of group {group} since {since}, taken {}", purpose(&slot.owner));
    let release = lock_release(group, host.as_str());
    Some(Check::warning(
        "slots",
        found,
        format!("once the host is looked after, `{release} --reason TEXT` releases it"),
    ))
}

fn cordon(state: &State, host: &HostName) -> Option<Check> {
    let since = time::format(state.nodes.get(host)?.since);
    let found = format!("the node of {host} stays cordoned since {since}");
    let uncordon = hosts_uncordon(host.as_str());
    Some(Check::warning("cordons", found, format!("once the host is looked after, `{uncordon}` ends that")))
}

fn mark(host: &HostName, node: &Node) -> Option<Check> {
    node.foreign_mark()?;
    let found = format!("the node of {host} has a mark of a journal that this site does not have");
    let uncordon = hosts_uncordon(host.as_str());
    let advice = format!("if no other site has this name, `{uncordon}` takes it over and uncordons the node");
    Some(Check::warning("marks", found, advice))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use os_upgrade_kernel::config::LockProvider;
    use os_upgrade_kernel::fact::{ConfigFact, NodeFact, QueueFact};
    use os_upgrade_kernel::reboot_queue::EntryEvent;
    use os_upgrade_kernel::{Fact, NodeFence, NodeStep, NodeWait, Settings};
    use os_upgrade_protocol::GroupName;
    use os_upgrade_test_site::host;

    use super::*;

    /// A site on which reboots of nodes by command have begun, which are given up then.
    fn rebooting(hosts: &[&str]) -> State {
        let mut state = State::default();
        let mut apply = |fact| state.apply(DateTime::UNIX_EPOCH, &fact).unwrap();
        let slots = hosts.len().try_into().unwrap();
        let group = GroupName::new("default").unwrap();
        let settings = Settings { groups: [(group.clone(), slots)].into(), ..Settings::default() };
        apply(Fact::Config(ConfigFact::SettingsAdopted { settings }));
        let (queued, actor) = (hosts.iter().map(|name| host(name)).collect(), "eve".to_owned());
        apply(Fact::Queue(QueueFact::RebootsQueued { hosts: queued, actor, reason: None, window: None }));
        for (index, name) in (0..).zip(hosts) {
            let mut event = |event| apply(Fact::of_entry(index, &host(name), event));
            event(EntryEvent::Started {
                group: group.clone(),
                provider: LockProvider::Embedded,
                drain: true,
            });
            event(EntryEvent::AttemptDue { node: (*name).to_owned(), boot_id: None });
        }
        state
    }

    #[test]
    fn what_was_given_up_is_a_warning() {
        let mut state = rebooting(&["n1", "n2", "n3", "n4"]);
        assert_eq!(examine(&state), []);
        let give_up = |state: &mut State, index, name| {
            let event = EntryEvent::GivenUp { actor: "eve".to_owned(), reason: "burnt".to_owned() };
            state.apply(DateTime::UNIX_EPOCH, &Fact::of_entry(index, &host(name), event)).unwrap();
        };
        give_up(&mut state, 0, "n1");
        let expected = [
            Check::warning(
                "slots",
                "n1 keeps its slot of group default since 1970-01-01T00:00:00Z, taken for entry 0 of the reboot queue",
                "once the host is looked after, `os-upgrade lock release --group=default --id=n1 --reason TEXT` releases it",
            ),
            Check::warning(
                "cordons",
                "the node of n1 stays cordoned since 1970-01-01T00:00:00Z",
                "once the host is looked after, `os-upgrade hosts uncordon --reason=TEXT n1` ends that",
            ),
        ];
        assert_eq!(examine(&state), expected);
        let waits = NodeWait::ForeignMark { fence: NodeFence { restored: 0, sequence: 900 } };
        let step = NodeStep::Waiting { waits };
        let mut marked = state.clone();
        marked.apply(DateTime::UNIX_EPOCH, &Fact::Node(NodeFact::Step { host: host("n1"), step })).unwrap();
        let expected = Check::warning(
            "marks",
            "the node of n1 has a mark of a journal that this site does not have",
            "if no other site has this name, `os-upgrade hosts uncordon --reason=TEXT n1` takes it over and uncordons the node",
        );
        assert_eq!(examine(&marked).last(), Some(&expected));
        for (index, name) in [(1, "n2"), (2, "n3"), (3, "n4")] {
            give_up(&mut state, index, name);
        }
        let found: Vec<String> = examine(&state).into_iter().map(|check| check.found).collect();
        assert_eq!((found.len(), found[3].as_str()), (8, "1 more are kept like these"));
    }
}
