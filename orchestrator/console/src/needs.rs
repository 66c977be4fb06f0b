//! What does not go on at a site without a person.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::slots::SlotHolder;
use os_upgrade_api_types::routes::state::{
    AheadHosts, ContestedMachine, DeliveryTrouble, FailedConfiguration, FailedProvider, FailedUnits,
    HostState, LostMachines, MassSilence, Paused, UnitTrouble, UnplacedUnits, WaitingMachines,
};
use os_upgrade_api_types::word::{Behalf, WhyKind, Word};
use os_upgrade_kernel::KeyState;
use os_upgrade_kernel::config::LockProvider;
use os_upgrade_kernel::node::{NodeStageKind, NodeWaitKind};
use os_upgrade_kernel::run::HostStatus;

use crate::commands::{hosts_uncordon, lock_release_with_reason, shell_word};
use crate::rows::reboot_queue;
use crate::rows::runs::short;
use crate::status::{Status, goes_on, is, is_under_way};

/// What does not go on without a person.
#[derive(Debug, PartialEq, Eq)]
pub struct Need {
    /// Which matter it is, and why it does not go on.
    pub what: String,
    /// What a command does, and the command, which is to be copied: it is neither wrapped nor cut.
    pub commands: Vec<(&'static str, String)>,
}

impl From<String> for Need {
    fn from(what: String) -> Self {
        Self { what, commands: Vec::new() }
    }
}

/// Every matter that does not go on without a person.
pub fn needs(status: &Status, now: DateTime<Utc>) -> Vec<Need> {
    let mut needs = Vec::new();
    if let Some(Paused { actor, reason: None, .. }) = &status.state.paused {
        let what = format!("the site is paused since {actor} restored it: look after its hosts first");
        needs.push(Need { what, commands: vec![("go on", "os-upgrade resume".to_owned())] });
    }
    match status.state.pending_hosts.unwrap_or(0) {
        0 => {}
        1 => needs.push("1 host waits for approval: os-upgrade hosts list --pending".to_owned().into()),
        count => {
            needs.push(format!("{count} hosts wait for approval: os-upgrade hosts list --pending").into());
        }
    }
    let active = status.state.current_upgrade_info.as_ref().map(|current| &*current.id);
    for group in &status.slots.groups {
        for holder in &group.holders {
            let left_by = holder.run.as_deref().filter(|run| Some(*run) != active);
            let is_of_no_entry = holder.entry.is_some_and(|entry| !status.has_entry(entry));
            let is_tried_again = status.hosts().any(|host| host.hostname == holder.id && goes_on(host));
            let is_left_alone = left_by.is_some() && !is_tried_again;
            // Behind a host that works others get their turn.
            let behind = if holder.kept { group.waiters.len() } else { 0 };
            if active.is_some_and(|run| is_requested(status, holder, run)) {
                continue;
            }
            if holder.stuck || is_left_alone || behind > 0 || is_of_no_entry {
                let is_left = left_by.is_some() || is_of_no_entry;
                let mut need = slot(status, &group.group, holder, left_by, is_left);
                if behind > 0 {
                    need.what = format!("{}; {behind} waiting behind it", need.what);
                }
                needs.push(need);
            }
        }
    }
    needs.extend(blocked_run(status, now));
    needs.extend(silent(status));
    for entry in status.reboots.iter().flat_map(reboot_queue::for_person) {
        let give_up = format!("os-upgrade reboot-queue give-up {} --reason=TEXT", entry.index);
        needs.push(Need { what: reboot_queue::line(entry), commands: vec![("give up", give_up)] });
    }
    needs.extend(status.hosts().filter(|host| stays_cordoned(host)).map(cordon));
    needs.extend(status.hosts().filter_map(foreign_mark));
    needs.extend(status.hosts().filter_map(ineffective_reboot));
    needs.extend(key(status));
    needs.extend(status.state.delivery.iter().flat_map(delivery_needs));
    needs.extend(status.state.units.iter().flat_map(unit_needs));
    if status.cluster.leader.is_none() {
        needs.push("no instance leads: os-upgrade cluster status".to_owned().into());
    }
    needs.extend(status.cluster.warnings.iter().cloned().map(Need::from));
    needs.extend(status.state.config_warnings.iter().map(|warning| warning.message.clone().into()));
    needs
}

/// That a slot is not given back by itself. One that a run or an entry has left is given back once its host's node is uncordoned, if
/// that is under way; an operator can do without a node that is not ready.
fn slot(status: &Status, group: &str, holder: &SlotHolder<'_>, left_by: Option<&str>, is_left: bool) -> Need {
    let SlotHolder { id, reason, since, .. } = holder;
    let why = left_by.map(|run| ("why", format!("os-upgrade run show {} {}", short(run), shell_word(id))));
    let host = status.hosts().find(|host| host.hostname == *id && is_left);
    if let Some(host) = host.filter(|host| is_being_uncordoned(host)) {
        let waits = host.node.iter().find_map(|node| node.waits.as_ref());
        let uncordon = waits
            .filter(|waits| waits.kind.is(|kind| kind == NodeWaitKind::NotReady))
            .map(|_| uncordon(host));
        let waits = waits.map(|waits| format!(": {}", waits.text)).unwrap_or_default();
        let what = format!("{id} holds a slot of group {group} until its node is uncordoned{waits}");
        return Need { what, commands: why.into_iter().chain(uncordon).collect() };
    }
    let is = |kind| status.hosts().any(|host| host.hostname == *id && has(host, kind));
    let name = shell_word(id);
    let retry = left_by.map(|_| {
        // A run would skip it, and it would keep its slot.
        if is(WhyKind::HostWithdrawn) || is(WhyKind::AwaitsApproval) {
            ("let it take part again", format!("os-upgrade hosts approve {name}"))
        } else if is(WhyKind::HostDeferred) {
            ("let it begin again", format!("os-upgrade hosts defer --end {name}"))
        } else {
            ("retry it", format!("os-upgrade run start {name}"))
        }
    });
    let release = ("release", lock_release_with_reason(group, id));
    let commands = why.into_iter().chain(retry).chain([release]).collect();
    Need { what: format!("{id} holds a slot of group {group}: {reason}; since {since}"), commands }
}

/// Whether this is among what keeps the host.
fn has(host: &HostState<'_>, kind: WhyKind) -> bool {
    host.why.iter().chain(&host.also).any(|why| why.kind() == Some(kind))
}

/// After so long without a host at work, a run is one that cannot go on: a FleetLock client gives its slot back within minutes.
const BLOCKED_AFTER: TimeDelta = TimeDelta::minutes(15);

/// That nobody of the active run is at work, because its hosts wait for slots.
fn blocked_run(status: &Status, now: DateTime<Utc>) -> Option<Need> {
    let current = status.state.current_upgrade_info.as_ref()?;
    // The run goes on without one that is overdue, but its slot is held.
    if status.hosts().any(|host| is_under_way(host) && !has(host, WhyKind::UpgradeTimeout)) {
        return None;
    }
    by_holder(status, &current.id, now).or_else(|| by_lock_server(status, &current.id, now))
}

/// That others hold the slots. One that a host keeps is a matter of its own.
fn by_holder(status: &Status, run: &str, now: DateTime<Utc>) -> Option<Need> {
    let blocked = status.slots.groups.iter().find_map(|group| {
        let mut hosts = group.waiters.iter().filter(|waiter| waiter.kind == "host");
        let first = hosts.next().filter(|first| first.since.0 + BLOCKED_AFTER <= now)?;
        let holder = group.holders.iter().find(|holder| holds_up(status, holder))?;
        Some((group, first, hosts.count(), holder))
    });
    let (group, first, others, holder) = blocked?;
    let (group, id, since) = (&group.group, &holder.id, first.since);
    let waiting = if others == 0 { first.id.to_string() } else { format!("{} and {others} more", first.id) };
    let what = format!(
        "run {} cannot go on: {waiting} waiting since {since} for a slot of group {group}, which {id} has held since {}",
        short(run),
        holder.since
    );
    Some(Need { what, commands: vec![("release, if it has ended", lock_release_with_reason(group, id))] })
}

/// That an external lock server grants none. Whose slots it has granted instead is not known here.
fn by_lock_server(status: &Status, run: &str, now: DateTime<Utc>) -> Option<Need> {
    if !status.slots.provider.is(|provider| provider == LockProvider::External) {
        return None;
    }
    let mut slots = status.slots.groups.iter().flat_map(|group| &group.holders);
    let asked = slots.find(|slot| is_requested(status, slot, run) && slot.since.0 + BLOCKED_AFTER <= now)?;
    let why = status.hosts().find(|host| host.hostname == asked.id)?.why.as_ref()?;
    let what =
        format!("run {} cannot go on: {} waiting since {}: {}", short(run), asked.id, asked.since, why.text);
    Some(Need { what, commands: vec![("look", format!("os-upgrade hosts show {}", shell_word(&asked.id)))] })
}

/// Whether the slot is only requested, for a host of `run`, the active one. One of an earlier run is held already.
fn is_requested(status: &Status, slot: &SlotHolder<'_>, run: &str) -> bool {
    let mut hosts = status.hosts().filter(|host| host.hostname == slot.id);
    slot.run.as_deref() == Some(run) && hosts.any(|host| is(host, |it| it == HostStatus::Waiting))
}

/// Whether it may hold its slot for long without being a matter of its own: a FleetLock client, an operator, or a host that is overdue.
fn holds_up(status: &Status, holder: &SlotHolder<'_>) -> bool {
    let is_of_others =
        |behalf: &Word<Behalf>| behalf.is(|it| matches!(it, Behalf::Client | Behalf::Operator));
    let is_overdue = |host: &HostState<'_>| host.hostname == holder.id && has(host, WhyKind::UpgradeTimeout);
    holder.on_behalf_of.iter().any(is_of_others) || status.hosts().any(is_overdue)
}

/// Which hosts have been silent since before the last run of the site: it left them out, and so does the next.
fn silent(status: &Status) -> Option<Need> {
    let started = status.state.last_upgrade_info.as_ref()?.start_time;
    let since = |host: &HostState<'_>| {
        let silent = host.why.iter().chain(&host.also).find(|why| why.kind() == Some(WhyKind::Silent));
        silent.and_then(|why| why.since).filter(|since| since.0 < started.0).map(|since| since.0)
    };
    let mut silent: Vec<_> = status.hosts().filter_map(|host| Some((since(host)?, &host.hostname))).collect();
    silent.sort();
    let (since, first) = silent.first()?;
    let others = match silent.len() - 1 {
        0 => "has".to_owned(),
        1 => "and 1 other host have".to_owned(),
        others => format!("and {others} other hosts have"),
    };
    let since = Stamp(*since);
    let what = format!(
        "{first} {others} been silent since {since}: the last run left out {}",
        if silent.len() == 1 { "that host" } else { "all of them" }
    );
    let show = ("look", format!("os-upgrade hosts show {}", shell_word(first)));
    let name = shell_word(first);
    let withdraw = ("leave it out for good", format!("os-upgrade hosts withdraw {name} --reason=TEXT"));
    Some(Need { what, commands: vec![show, withdraw] })
}

fn stays_cordoned(host: &HostState<'_>) -> bool {
    host.node.as_ref().is_some_and(|node| node.kept)
}

fn ineffective_reboot(host: &HostState<'_>) -> Option<Need> {
    let missed = host.reboot_ineffective.as_ref()?;
    Some(format!("{}: {missed}", host.hostname).into())
}

/// Whose configuration cannot be sealed, because nobody has approved the key that its worker announces.
fn key(status: &Status) -> Option<Need> {
    let is_in = |host: &&HostState<'_>, state| host.key.as_ref().is_some_and(|key| key.is(|it| it == state));
    let of = |state| status.hosts().filter(move |host| is_in(host, state));
    let changed: Vec<_> = of(KeyState::Changed).map(|host| host.hostname.as_ref()).collect();
    let waiting: Vec<_> = of(KeyState::Waiting).map(|host| host.hostname.as_ref()).collect();
    let first = changed.first().or(waiting.first())?;
    let others = match changed.len() + waiting.len() - 1 {
        0 => String::new(),
        others => format!(", and so {} {others} more", if others == 1 { "does" } else { "do" }),
    };
    let what = if changed.is_empty() {
        format!("{first} announces a key that nobody has approved{others}: no configuration is sealed to it")
    } else {
        format!(
            "{first} announces another key than the approved one{others}: no configuration is sealed to it"
        )
    };
    let show = ("compare", format!("os-upgrade hosts show {}", shell_word(first)));
    let approve = ("approve it", format!("os-upgrade hosts approve {}", shell_word(first)));
    Some(Need { what, commands: vec![show, approve] })
}

/// What keeps configuration from hosts.
pub fn delivery_needs(trouble: &DeliveryTrouble<'_>) -> Vec<Need> {
    let DeliveryTrouble { failed_providers, failed_configurations, withheld, ahead, crossed_site } = trouble;
    let crossed = crossed_site.iter().map(|site| {
        let what = format!(
            "hosts get no configuration: the stream os-upgrade:desired of this NATS account is that of site {site}; give each site an account of its own"
        );
        Need::from(what)
    });
    let withheld = withheld.iter().map(|hosts| {
        let hosts = if *hosts == 1 { "1 host is".to_owned() } else { format!("{hosts} hosts are") };
        let what = format!("{hosts} not told what configuration to have, because the site was restored");
        let look = ("look", "os-upgrade desired list".to_owned());
        Need { what, commands: vec![look, ("tell them", "os-upgrade desired resume".to_owned())] }
    });
    let ahead = ahead.iter().map(|AheadHosts { hosts, first }| {
        let others = if *hosts > 1 { format!(" (as have {} more)", hosts - 1) } else { String::new() };
        let what =
            format!("{first} has newer configuration than the site knows of, and is left alone{others}");
        let look = ("look", "os-upgrade desired list".to_owned());
        let resume = format!("os-upgrade desired resume {}", shell_word(first));
        Need { what, commands: vec![look, ("tell it what this site knows", resume)] }
    });
    let failed = failed_providers.iter().map(|FailedProvider { name, host, failure, since }| {
        let what = format!("provider {name} fails for every host since {since}, as for {host}: {failure}");
        let test = format!("os-upgrade providers test {} --host={}", shell_word(name), shell_word(host));
        Need { what, commands: vec![("try it", test)] }
    });
    let on_hosts = failed_configurations.iter().map(failed_configuration);
    crossed.chain(withheld).chain(ahead).chain(failed).chain(on_hosts).collect()
}

/// That a host fails to apply or to revoke a configuration.
fn failed_configuration(failed: &FailedConfiguration<'_>) -> Need {
    let FailedConfiguration { provider, host, error, since, count } = failed;
    let others = if *count > 1 { format!(" (and {} more like this)", count - 1) } else { String::new() };
    let fails = match since {
        Some(since) => format!("cannot apply configuration {provider}, which it is to have since {since}"),
        None => format!("cannot revoke configuration {provider}"),
    };
    let what = format!("{host} {fails}{others}; its worker tries again, and says: {error}");
    Need { what, commands: vec![("look", format!("os-upgrade hosts show {}", shell_word(host)))] }
}

/// What keeps units from running.
pub fn unit_needs(trouble: &UnitTrouble<'_>) -> Vec<Need> {
    let UnitTrouble { unplaced, failed, lost, mass_silence, contested, more_contested, waiting } = trouble;
    let more = |count: usize| if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
    let unplaced = unplaced.iter().map(|UnplacedUnits { units, first, since, text }| {
        let what = format!("unit {first} runs nowhere{}, as is wanted since {since}: {text}", more(*units));
        Need { what, commands: vec![("look", format!("os-upgrade units show {}", shell_word(first)))] }
    });
    let failed = failed.iter().map(|FailedUnits { units, first, host }| {
        let what = format!("unit {first} has failed on {host}{}, as its systemd says", more(*units));
        Need { what, commands: vec![("look", format!("os-upgrade units status {}", shell_word(first)))] }
    });
    let lost = lost.iter().map(|LostMachines { machines, first, since }| {
        let what =
            format!("machine {first} is lost since {since}{}: its units went elsewhere", more(*machines));
        let withdraw = format!("os-upgrade hosts withdraw --reason=TEXT {}", shell_word(first));
        let show = format!("os-upgrade hosts show {}", shell_word(first));
        Need { what, commands: vec![("look", show), ("leave it out for good", withdraw)] }
    });
    let silence = mass_silence.iter().map(|MassSilence { silent, reachable }| {
        let what = format!(
            "the agents of {silent} of {reachable} machines fell silent together: no unit is moved away from them, as the network may \
             be at fault"
        );
        Need { what, commands: vec![("look", "os-upgrade machines list".to_owned())] }
    });
    let contested = contested.iter().map(|ContestedMachine { id, hosts, more }| {
        let others = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        let what = format!(
            "{}{others} announce the same machine id, {id}: only the one that was approved with it gets units",
            hosts.join(" and "),
        );
        Need { what, commands: vec![("look", "os-upgrade machines list".to_owned())] }
    });
    let more_contested = more_contested.iter().map(|more| Need {
        what: format!("{more} more machine ids are announced by several hosts each"),
        commands: vec![("look", "os-upgrade machines list".to_owned())],
    });
    let waiting = waiting.iter().map(|WaitingMachines { hosts, first }| {
        let what = format!(
            "{first} runs units{}, and nobody has approved the machine that it announces",
            more(*hosts)
        );
        let approve = format!("os-upgrade hosts approve {}", shell_word(first));
        Need {
            what,
            commands: vec![("compare", "os-upgrade machines list".to_owned()), ("approve it", approve)],
        }
    });
    let contested = contested.chain(more_contested);
    unplaced.chain(failed).chain(lost).chain(silence).chain(contested).chain(waiting).collect()
}

/// That the mark of its node is of another journal, and the command that takes it over.
fn foreign_mark(host: &HostState<'_>) -> Option<Need> {
    let is_foreign = |kind| kind == NodeWaitKind::ForeignMark;
    let waits = host.node.as_ref()?.waits.as_ref().filter(|waits| waits.kind.is(is_foreign))?;
    let what = format!("{}: {}", host.hostname, waits.text);
    Some(Need { what, commands: vec![("take over", hosts_uncordon(&host.hostname))] })
}

fn is_being_uncordoned(host: &HostState<'_>) -> bool {
    host.node.as_ref().is_some_and(|node| node.stage.is(|stage| stage == NodeStageKind::Uncordoning))
}

/// That its node stays cordoned, and the command that ends it.
fn cordon(host: &HostState<'_>) -> Need {
    let since = host.node.as_ref().map(|node| format!("; since {}", node.since)).unwrap_or_default();
    let what = format!(
        "the node of {} stays cordoned, because its host failed or was given up{since}",
        host.hostname
    );
    Need { what, commands: vec![uncordon(host)] }
}

fn uncordon(host: &HostState<'_>) -> (&'static str, String) {
    ("uncordon", hosts_uncordon(&host.hostname))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    /// The id of the run in which `h01` took its slot.
    const RUN: &str = "019aa000-0000-7000-8000-000000000001";

    /// The needs of a site whose host `h01` has kept its slot after a run, and is in this state now.
    fn needs_with(host: &Value) -> Vec<Need> {
        needs_of(&json!({ "status": "idle", "hosts": [host] }), true, &json!([]))
    }

    /// The needs of a site with this state, where `h01` holds a slot, or keeps it, and `waiters` wait for one.
    fn needs_of(state: &Value, is_kept: bool, waiters: &Value) -> Vec<Need> {
        let holder = json!({
            "id": "h01", "since": "2026-11-21T01:00:00Z", "on-behalf-of": ["run"], "reason": "it failed", "stuck": false,
            "run": RUN, "kept": is_kept,
        });
        let group =
            json!({ "group": "default", "held": 1, "excess": 0, "holders": [holder], "waiters": waiters });
        needs_at(state, "embedded", &group)
    }

    /// The needs of a site with this state and this group of slots, which `provider` grants.
    fn needs_at(state: &Value, provider: &str, group: &Value) -> Vec<Need> {
        let answers = json!({
            "state": state,
            "slots": { "provider": provider, "reclaim": "never", "groups": [group] },
            "cluster": { "leader": "a1", "instances": [], "streams": [] },
        });
        needs(&Status::deserialize(answers).unwrap(), "2026-11-21T01:30:00Z".parse().unwrap())
    }

    #[test]
    fn slot_of_a_failed_host_needs_a_person() {
        let why = ("why", "os-upgrade run show 019aa000-0000 h01".to_owned());
        let release =
            ("release", "os-upgrade lock release --group=default --id=h01 --reason=TEXT".to_owned());
        let need = |retry: (&'static str, &str)| Need {
            what: "h01 holds a slot of group default: it failed; since 2026-11-21T01:00:00Z".to_owned(),
            commands: vec![why.clone(), (retry.0, retry.1.to_owned()), release.clone()],
        };
        let idle = json!({ "hostname": "h01", "why": { "kind": "no-run", "text": "no run is active" } });
        assert_eq!(needs_with(&idle), [need(("retry it", "os-upgrade run start h01"))]);
        let withdrawn =
            json!({ "hostname": "h01", "why": { "kind": "host-withdrawn", "text": "withdrawn" } });
        assert_eq!(
            needs_with(&withdrawn),
            [need(("let it take part again", "os-upgrade hosts approve h01"))]
        );
        let at_work = json!({ "hostname": "h01", "status": "upgrading" });
        assert_eq!(needs_with(&at_work), []);
    }

    #[test]
    fn keys_that_nobody_approved_need_a_person() {
        let needs = |hosts: Value| {
            let state = json!({ "status": "idle", "hosts": hosts });
            needs_at(
                &state,
                "embedded",
                &json!({ "group": "default", "held": 0, "excess": 0, "holders": [], "waiters": [] }),
            )
        };
        let host = |name: &str, key: &str| json!({ "hostname": name, "key": key });
        let need = |what: &str, host: &str| Need {
            what: format!("{what}: no configuration is sealed to it"),
            commands: vec![
                ("compare", format!("os-upgrade hosts show {host}")),
                ("approve it", format!("os-upgrade hosts approve {host}")),
            ],
        };
        for (hosts, expected) in [
            (json!([host("h1", "of-a-newer-version"), { "hostname": "h2" }]), vec![]),
            (json!([host("h1", "waiting")]), vec![need("h1 announces a key that nobody has approved", "h1")]),
            (
                json!([host("h1", "waiting"), host("h2", "changed")]),
                vec![need("h2 announces another key than the approved one, and so does 1 more", "h2")],
            ),
        ] {
            assert_eq!(needs(hosts.clone()), expected, "{hosts}");
        }
    }

    /// Others that wait behind a host that keeps its slot need a person, during its run too; behind one that works they do not.
    #[test]
    fn waiting_behind_a_failed_host_needs_a_person() {
        let needs = |status: &str, is_kept: bool, waiters: usize| {
            let host = json!({ "hostname": "h01", "status": status });
            let state =
                json!({ "status": "upgrading", "hosts": [host], "current-upgrade-info": { "id": RUN } });
            let waiter = json!({ "id": "h02", "kind": "host", "since": "2026-11-21T01:00:05Z" });
            needs_of(&state, is_kept, &vec![waiter; waiters].into())
        };
        let release = "os-upgrade lock release --group=default --id=h01 --reason=TEXT";
        let expected = [Need {
            what: "h01 holds a slot of group default: it failed; since 2026-11-21T01:00:00Z; 2 waiting behind it"
                .to_owned(),
            commands: vec![("release", release.to_owned())],
        }];
        for (status, is_kept, waiters, expected) in [
            ("failed", true, 2, &expected[..]),
            ("timed-out", true, 2, &expected[..]),
            ("failed", true, 0, &[]),
            // It is being given back.
            ("failed", false, 2, &[]),
            ("upgrading", false, 2, &[]),
        ] {
            assert_eq!(needs(status, is_kept, waiters), expected, "{status} {is_kept} {waiters}");
        }
    }

    /// A client that holds the slot for minutes is none; nor is a run with somebody at work.
    #[test]
    fn run_behind_a_client_needs_a_person() {
        let needs_when = |waits_since: &str, status: &str| {
            let hosts = json!([
                { "hostname": "h02", "status": "waiting" }, { "hostname": "h03", "status": status },
            ]);
            let state =
                json!({ "status": "upgrading", "hosts": hosts, "current-upgrade-info": { "id": RUN } });
            let holder = json!({
                "id": "coreos-7", "since": "2026-11-21T00:50:00Z", "on-behalf-of": ["client"], "reason": "a client", "stuck": false,
            });
            let waiter = |id: &str, since: &str| json!({ "id": id, "kind": "host", "since": since });
            let waiters = json!([waiter("h02", waits_since), waiter("h04", waits_since)]);
            let group = json!({
                "group": "default", "held": 1, "excess": 0, "holders": [holder], "waiters": waiters,
            });
            needs_at(&state, "embedded", &group)
        };
        let expected = Need {
            what: "run 019aa000-0000 cannot go on: h02 and 1 more waiting since 2026-11-21T01:15:00Z for a slot of group default, \
                   which coreos-7 has held since 2026-11-21T00:50:00Z"
                .to_owned(),
            commands: vec![(
                "release, if it has ended",
                "os-upgrade lock release --group=default --id=coreos-7 --reason=TEXT".to_owned(),
            )],
        };
        assert_eq!(needs_when("2026-11-21T01:15:00Z", "prepared"), [expected]);
        assert_eq!(needs_when("2026-11-21T01:16:00Z", "prepared"), []);
        assert_eq!(needs_when("2026-11-21T01:15:00Z", "upgrading"), []);
    }

    /// A short wait needs nobody, nor does a slot that is held since an earlier run.
    #[test]
    fn run_that_its_lock_server_refuses_needs_a_person() {
        let needs_when = |asked: &str, run: &str| {
            let why =
                json!({ "kind": "slot-denied", "text": "the lock server refuses it: held by coreos-7" });
            let state = json!({
                "status": "upgrading", "current-upgrade-info": { "id": RUN },
                "hosts": [{ "hostname": "h02", "status": "waiting", "why": why }],
            });
            let requested = json!({
                "id": "h02", "since": asked, "on-behalf-of": ["run"], "reason": "being requested", "stuck": true, "run": run,
            });
            let group =
                json!({ "group": "default", "held": 1, "excess": 0, "holders": [requested], "waiters": [] });
            needs_at(&state, "external", &group)
        };
        let expected = Need {
            what: "run 019aa000-0000 cannot go on: h02 waiting since 2026-11-21T01:15:00Z: the lock server refuses it: held by coreos-7"
                .to_owned(),
            commands: vec![("look", "os-upgrade hosts show h02".to_owned())],
        };
        assert_eq!(needs_when("2026-11-21T01:15:00Z", RUN), [expected]);
        assert_eq!(needs_when("2026-11-21T01:16:00Z", RUN), []);
        let of_earlier = needs_when("2026-11-21T01:15:00Z", "019aa000-0000-7000-8000-000000000000");
        assert!(of_earlier.iter().all(|need| !need.what.contains("cannot go on")), "{of_earlier:?}");
    }

    #[test]
    fn what_keeps_configuration_from_hosts_needs_a_person() {
        let needs = |delivery: Value| {
            let needs =
                needs_of(&json!({ "status": "idle", "hosts": [], "delivery": delivery }), false, &json!([]));
            let lines = |Need { what, commands }: Need| {
                std::iter::once(what)
                    .chain(commands.into_iter().map(|(_, command)| command))
                    .collect::<Vec<_>>()
            };
            needs.into_iter().rev().take(1).flat_map(lines).collect::<Vec<_>>()
        };
        let failed =
            json!({ "name": "app", "host": "h01", "failure": "it refuses", "since": "2026-11-21T01:00:00Z" });
        let on_host = |count: usize| {
            json!({
                "provider": "app", "host": "h01", "error": "no such directory", "since": "2026-11-21T01:00:00Z", "count": count,
            })
        };
        let revoked = json!({ "provider": "net", "host": "h01", "error": "in use", "count": 1 });
        for (delivery, expected) in [
            (
                json!({ "failed-configurations": [on_host(1)] }),
                &[
                    "h01 cannot apply configuration app, which it is to have since 2026-11-21T01:00:00Z; its worker tries again, \
                     and says: no such directory",
                    "os-upgrade hosts show h01",
                ][..],
            ),
            (
                json!({ "failed-configurations": [on_host(3)] }),
                &[
                    "h01 cannot apply configuration app, which it is to have since 2026-11-21T01:00:00Z (and 2 more like this); \
                     its worker tries again, and says: no such directory",
                    "os-upgrade hosts show h01",
                ],
            ),
            (
                json!({ "failed-configurations": [revoked] }),
                &[
                    "h01 cannot revoke configuration net; its worker tries again, and says: in use",
                    "os-upgrade hosts show h01",
                ],
            ),
            (
                json!({ "failed-providers": [failed] }),
                &[
                    "provider app fails for every host since 2026-11-21T01:00:00Z, as for h01: it refuses",
                    "os-upgrade providers test app --host=h01",
                ],
            ),
            (
                json!({ "withheld": 2 }),
                &[
                    "2 hosts are not told what configuration to have, because the site was restored",
                    "os-upgrade desired list",
                    "os-upgrade desired resume",
                ],
            ),
            (
                json!({ "ahead": { "hosts": 3, "first": "h01" } }),
                &[
                    "h01 has newer configuration than the site knows of, and is left alone (as have 2 more)",
                    "os-upgrade desired list",
                    "os-upgrade desired resume h01",
                ],
            ),
            (
                json!({ "crossed-site": "hall-2" }),
                &[
                    "hosts get no configuration: the stream os-upgrade:desired of this NATS account is that of site hall-2; \
                   give each site an account of its own",
                ],
            ),
        ] {
            assert_eq!(needs(delivery), expected);
        }
    }

    #[test]
    fn units_that_do_not_run_need_a_person() {
        let since = "2026-11-21T01:00:00Z";
        for (trouble, what, command) in [
            (
                json!({ "unplaced": { "units": 2, "first": "a.service", "since": since, "text": "h01: it is lost" } }),
                "unit a.service runs nowhere (and 1 more), as is wanted since 2026-11-21T01:00:00Z: h01: it is lost",
                "os-upgrade units show a.service",
            ),
            (
                json!({ "failed": { "units": 1, "first": "a.service", "host": "h01" } }),
                "unit a.service has failed on h01, as its systemd says",
                "os-upgrade units status a.service",
            ),
            (
                json!({ "lost": { "machines": 1, "first": "h01", "since": since } }),
                "machine h01 is lost since 2026-11-21T01:00:00Z: its units went elsewhere",
                "os-upgrade hosts show h01",
            ),
            (
                json!({ "mass-silence": { "silent": 3, "reachable": 4 } }),
                "the agents of 3 of 4 machines fell silent together: no unit is moved away from them, as the network may be at fault",
                "os-upgrade machines list",
            ),
            (
                json!({ "contested": [{ "id": "0f", "hosts": ["h01", "h02"] }] }),
                "h01 and h02 announce the same machine id, 0f: only the one that was approved with it gets units",
                "os-upgrade machines list",
            ),
            (
                json!({ "contested": [{ "id": "0f", "hosts": ["h01", "h02"], "more": 3 }] }),
                "h01 and h02 and 3 more announce the same machine id, 0f: only the one that was approved with it gets units",
                "os-upgrade machines list",
            ),
            (
                json!({ "more-contested": 2 }),
                "2 more machine ids are announced by several hosts each",
                "os-upgrade machines list",
            ),
            (
                json!({ "waiting": { "hosts": 1, "first": "h01" } }),
                "h01 runs units, and nobody has approved the machine that it announces",
                "os-upgrade machines list",
            ),
        ] {
            let found = unit_needs(&UnitTrouble::deserialize(&trouble).unwrap());
            let found: Vec<_> = found.iter().map(|need| (&*need.what, &*need.commands[0].1)).collect();
            assert_eq!(found, [(what, command)]);
            let state = json!({ "status": "idle", "hosts": [], "units": trouble });
            assert!(needs_of(&state, false, &json!([])).iter().any(|need| need.what == what));
        }
    }

    #[test]
    fn silent_hosts_need_a_person() {
        let of_hosts = |hosts: Value| {
            let last = json!({ "id": RUN, "start-time": "2026-11-21T01:00:00Z", "result": "completed" });
            let state = json!({ "status": "idle", "hosts": hosts, "last-upgrade-info": last });
            needs_of(&state, false, &json!([])).into_iter().map(|need| need.what).collect::<Vec<_>>()
        };
        let silent = |name: &str, since: &str| json!({ "hostname": name, "why": { "kind": "silent", "text": "no heartbeat", "since": since } });
        let before = [silent("h09", "2026-11-20T22:00:00Z"), silent("h08", "2026-11-20T23:00:00Z")];
        let of =
            |needs: Vec<String>| needs.into_iter().filter(|need| need.contains("silent")).collect::<Vec<_>>();
        assert_eq!(
            of(of_hosts(json!(before))),
            [
                "h09 and 1 other host have been silent since 2026-11-20T22:00:00Z: the last run left out all of them"
            ]
        );
        assert_eq!(of(of_hosts(json!([silent("h09", "2026-11-21T01:10:00Z")]))), [""; 0]);
    }
}
