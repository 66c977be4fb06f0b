//! What happens on hosts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, CommandId, HostName, Outcome, Reply, RunId};
use os_upgrade_worker_rules::Call;
use os_upgrade_worker_rules::state_file::ANSWERS_MAX;

use super::commands::CommandSeen;
use super::violation::Violation;
use crate::host::boot_id;
use crate::plan::HostPlan;
use crate::time::{MINUTE, Micros, SECOND};

/// A host sends its time every ten seconds, once its worker runs.
const HEARD_AFTER: Micros = 20 * SECOND;

/// How long a host is down until every leader knows that, or that it does not know: a heartbeat counts for half a minute.
const SILENT_KNOWN_AFTER: Micros = 2 * MINUTE;

/// How long an instance must have listened until it knows which hosts are silent: what it did not hear while it was paused or cut off says
/// nothing.
const LISTENED_MIN: Micros = MINUTE;

/// A handler that has been started.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) sequence: u64,
    pub(crate) call: Call,
    /// Its run, if the command named one.
    pub(crate) run: Option<RunId>,
    pub(crate) resume: bool,
    /// The time by the worker's clock when it decided to start the handler.
    pub(crate) wall: DateTime<Utc>,
}

/// A host as an outsider sees it.
#[derive(Debug)]
struct HostSeen {
    name: HostName,
    /// Counts its boots.
    boot: u32,
    /// Since when it is up; `None` while it is down.
    up_since: Option<Micros>,
    /// Since when it is down; `None` while it is up.
    down_since: Option<Micros>,
    /// Whether its worker keeps the SDK's rules.
    sdk: bool,
    /// The runs in which it has executed `upgrade`, each with the last such command.
    upgraded: BTreeMap<RunId, CommandId>,
    /// The commands whose answers it keeps, oldest first.
    answered: VecDeque<CommandId>,
    /// Those whose answers it no longer keeps.
    forgotten: BTreeSet<CommandId>,
    /// The run whose upgrade answered `reboot-required`, until the host boots.
    reboot_due: Option<RunId>,
    /// Whether its state file was lost at some time.
    has_lost_state: bool,
    /// The sequence of the last `upgrade` that answered so.
    upgrade: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Workers {
    hosts: Vec<HostSeen>,
    /// When an instance that had been paused or cut off last went on.
    listens_since: Micros,
    /// Whether the bus has ever forgotten acknowledgements.
    acks_forgotten: bool,
    /// Whether the machine of bus and orchestrators has been rolled back.
    is_rolled_back: bool,
}

impl Workers {
    pub(super) fn new(hosts: &[HostPlan], names: &[HostName]) -> Self {
        let seen = |(name, host): (&HostName, &HostPlan)| HostSeen {
            name: name.clone(),
            boot: 0,
            up_since: Some(0),
            down_since: None,
            sdk: host.sdk,
            upgraded: BTreeMap::new(),
            answered: VecDeque::new(),
            forgotten: BTreeSet::new(),
            reboot_due: None,
            has_lost_state: false,
            upgrade: None,
        };
        Self {
            hosts: names.iter().zip(hosts).map(seen).collect(),
            listens_since: 0,
            acks_forgotten: false,
            is_rolled_back: false,
        }
    }

    /// The hosts that have been up long enough to have said what time it is.
    pub(super) fn witnesses(&self, now: Micros) -> impl Iterator<Item = &HostName> {
        let is_up = move |host: &&HostSeen| host.up_since.is_some_and(|since| now >= since + HEARD_AFTER);
        self.hosts.iter().filter(is_up).map(|host| &host.name)
    }

    /// The hosts that have been down for so long that no leader takes them for reachable. Other workers than the SDK's may send no
    /// heartbeats.
    pub(super) fn silent(&self, now: Micros) -> impl Iterator<Item = &HostName> {
        let has_listened = now >= self.listens_since + LISTENED_MIN;
        let is_silent = move |host: &&HostSeen| {
            has_listened && host.sdk && host.down_since.is_some_and(|since| now >= since + SILENT_KNOWN_AFTER)
        };
        self.hosts.iter().filter(is_silent).map(|host| &host.name)
    }

    /// An instance that was paused or cut off goes on.
    pub(super) fn listens(&mut self, now: Micros) {
        self.listens_since = now;
    }

    /// A host goes down.
    pub(super) fn went_down(&mut self, now: Micros, host: usize) {
        self.hosts[host].up_since = None;
        self.hosts[host].down_since = Some(now);
    }

    pub(super) fn name(&self, host: usize) -> &HostName {
        &self.hosts[host].name
    }

    /// The number of the present boot of a host.
    pub(super) fn boot(&self, host: usize) -> u32 {
        self.hosts[host].boot
    }

    /// The number of the present boot of the host of this name.
    pub(super) fn boot_of(&self, name: &HostName) -> u32 {
        self.hosts.iter().find(|host| host.name == *name).map_or(0, |host| host.boot)
    }

    /// For each host the number of runs in which it has executed `upgrade`, added up.
    pub(super) fn upgrades(&self) -> u64 {
        self.hosts.iter().map(|host| host.upgraded.len() as u64).sum()
    }

    /// A handler is begun on a host, for `command`.
    pub(super) fn handler_begun(
        &mut self,
        host: usize,
        begun: &Begun,
        command: &CommandSeen,
    ) -> Result<(), Violation> {
        let CommandSeen { id, not_after, .. } = command;
        let starts = match begun.call {
            Call::Prepare => true,
            Call::Upgrade => !begun.resume,
            Call::Health => false,
        };
        let executes = begun.call == Call::Upgrade && !begun.resume;
        let run = begun.run.as_ref().unwrap_or(&id.run);
        if executes && self.is_repeated(host, run, id) {
            return Err(Violation::new("S3", format!("{} executes upgrade twice in {run}", id.host)));
        }
        if let Some(not_after) = not_after.filter(|not_after| starts && begun.wall > *not_after) {
            let text = format!("{id} is begun at {}, after its not-after {not_after}", begun.wall);
            return Err(Violation::new("S2", text));
        }
        Ok(())
    }

    /// Whether a host that now executes the upgrade of `run` has done so before, and must know that.
    fn is_repeated(&mut self, host: usize, run: &RunId, command: &CommandId) -> bool {
        let HostSeen { upgraded, forgotten, .. } = &mut self.hosts[host];
        let Some(before) = upgraded.insert(run.clone(), command.clone()) else { return false };
        // A worker keeps its last answers only, and a rolled back site may repeat a command from long before.
        !(self.is_rolled_back && forgotten.contains(&before))
    }

    /// A reboot is begun on a host, for `command`.
    pub(super) fn check_reboot(
        &self,
        host: usize,
        wall: DateTime<Utc>,
        command: &CommandSeen,
    ) -> Result<(), Violation> {
        let CommandSeen { id, not_after, leave, .. } = command;
        if let Some(leave) = leave {
            if *leave == boot_id(self.boot(host)) {
                return Ok(());
            }
            let text = format!("{id} reboots a host that is in another boot than {leave}");
            return Err(Violation::new("worker", text));
        }
        if self.hosts[host].reboot_due.as_ref() != Some(&id.run) {
            let text = format!("{id} reboots a host for which no reboot is due");
            return Err(Violation::new("worker", text));
        }
        if let Some(not_after) = not_after.filter(|not_after| wall > *not_after) {
            let text = format!("{id} is begun at {wall}, after its not-after {not_after}");
            return Err(Violation::new("S2", text));
        }
        Ok(())
    }

    /// A reply to `command`, which is at `sequence`, is stored in the stream.
    pub(super) fn replied(&mut self, host: usize, reply: &Reply, sequence: u64, command: &CommandSeen) {
        let host = &mut self.hosts[host];
        if !host.answered.contains(&command.id) {
            host.forgotten.remove(&command.id);
            host.answered.push_back(command.id.clone());
            if host.answered.len() > ANSWERS_MAX {
                host.forgotten.extend(host.answered.pop_front());
            }
        }
        let newest = host.upgrade.is_none_or(|newest| sequence >= newest);
        if newest && reply.action == Action::Upgrade && reply.result == Outcome::RebootRequired {
            host.upgrade = Some(sequence);
            host.reboot_due = Some(command.id.run.clone());
        }
    }

    /// A host has booted.
    pub(super) fn booted(&mut self, now: Micros, host: usize) {
        self.hosts[host].up_since = Some(now);
        self.hosts[host].down_since = None;
        self.hosts[host].reboot_due = None;
        self.hosts[host].boot += 1;
    }

    /// A worker's state file is lost: without it no reboot is due.
    pub(super) fn state_lost(&mut self, host: usize) {
        self.hosts[host].reboot_due = None;
        self.hosts[host].has_lost_state = true;
        self.forgive_repetitions();
    }

    /// The bus has forgotten acknowledgements.
    pub(super) fn acks_forgotten(&mut self) {
        self.acks_forgotten = true;
        self.forgive_repetitions();
    }

    /// The machine of bus and orchestrators is rolled back.
    pub(super) fn rolled_back(&mut self) {
        self.is_rolled_back = true;
        self.acks_forgotten();
    }

    /// A host that has lost its state file, and whose `prepare` is delivered again because the bus has lost its
    /// acknowledgement, cannot know that it has been upgraded.
    fn forgive_repetitions(&mut self) {
        if self.acks_forgotten {
            for host in self.hosts.iter_mut().filter(|host| host.has_lost_state) {
                host.upgraded.clear();
            }
        }
    }

    /// A worker's acknowledgement of `command` has reached the bus.
    pub(super) fn check_ack(&self, host: usize, command: &CommandSeen) -> Result<(), Violation> {
        if self.hosts[host].sdk && command.executed && !command.replied {
            let text = format!("{} was executed and is acknowledged before its reply", command.id);
            return Err(Violation::new("worker", text));
        }
        Ok(())
    }
}
