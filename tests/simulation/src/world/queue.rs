//! What operators do with the reboot queue, and how it becomes empty after the faults.

use std::collections::BTreeMap;

use os_upgrade_kernel::reboot_queue::{Entry, EntryStatus, NotReady, QueueBlocker};
use os_upgrade_kernel::{
    ClientId, EnrolmentOperation, EntryBlocker, RebootOperation, Request, SlotOperation, State,
    explain_entry, next_reboot,
};
use os_upgrade_protocol::HostName;

use super::World;
use crate::agenda::Item;
use crate::fault::Fault;
use crate::time::{MINUTE, Micros, SECOND};

/// How long after the faults the queue may take to become empty: hosts reboot one after the other, runs come first, and a
/// window opens every ten minutes.
const EMPTY_WITHIN: Micros = 5 * 60 * MINUTE;
/// How often an operator looks at the queue then.
const LOOKS_EVERY: Micros = 20 * SECOND;
/// How long a host may take to answer after it is back: a handler hangs for up to ten minutes, and a boot takes five.
const ANSWERS_WITHIN: Micros = 45 * MINUTE;

impl World {
    /// An operator does something with the queue.
    pub(super) fn act_on_queue(&mut self) {
        let Some(queue) = self.plan.queue.as_ref().filter(|_| self.faults_enabled) else { return };
        let every = 2 * queue.act_every * self.slowdown();
        self.after(every, Item::ActOnQueue);
        let reason = Some("a new kernel".to_owned());
        let operation = match self.rng.u32(..16) {
            0..=5 => RebootOperation::Add { hosts: self.hosts_to_reboot(), reason },
            6..=7 => RebootOperation::Cancel { index: self.index_of_entry(), reason },
            8 if self.rng.bool() => RebootOperation::CancelAll { reason },
            8..=9 => RebootOperation::GiveUp { index: self.index_of_entry(), reason: "it is off".to_owned() },
            10 => RebootOperation::Disable { reason },
            11..=13 => RebootOperation::Enable { reason },
            14 => RebootOperation::ResetBackoff,
            _ => return self.withdraw_one_of_queue(),
        };
        let (actor, validate) = ("operator".to_owned(), self.rng.u32(..10) == 0);
        let index = self.rng.usize(..self.instances.len());
        self.request(index, Request { actor, validate, operation }.into());
    }

    /// Usually one to three hosts; sometimes none, one twice, or one that nobody knows.
    fn hosts_to_reboot(&mut self) -> Vec<HostName> {
        let mut hosts: Vec<HostName> = self.hosts.iter().map(|host| host.name.clone()).collect();
        // Operators mostly know which hosts take it.
        if self.rng.u32(..8) > 0 {
            let by_command = self.plan.command.is_some();
            let takes_it = |host: &HostName| {
                self.hosts.iter().any(|it| it.name == *host && (by_command || it.reboots_on_request))
            };
            hosts.retain(takes_it);
        }
        self.rng.shuffle(&mut hosts);
        hosts.truncate(self.rng.usize(1..=3));
        match self.rng.u32(..40) {
            0 => hosts.clear(),
            1 => hosts.extend(hosts.first().cloned()),
            2 => hosts.push(HostName::new("nobody").expect("a valid name")),
            _ => {}
        }
        hosts
    }

    /// Usually the index of an entry that an operator has seen at some instance.
    fn index_of_entry(&mut self) -> u64 {
        let read = self.rng.usize(..self.instances.len());
        let Some(logic) = &self.instances[read].logic else { return self.rng.u64(..10) };
        let queue = &logic.state().reboot_queue;
        let seen: Vec<u64> = queue.entries.keys().copied().collect();
        if self.rng.u32(..6) == 0 {
            return self.rng.u64(..queue.next_index + 2);
        }
        self.rng.choice(seen).unwrap_or(0)
    }

    /// A host is withdrawn while it is queued, or under way.
    fn withdraw_one_of_queue(&mut self) {
        let read = self.rng.usize(..self.instances.len());
        let entries =
            self.instances[read].logic.as_ref().map(|logic| logic.state().reboot_queue.entries.clone());
        let hosts = entries.into_iter().flatten().map(|(_, entry)| entry.host);
        let Some(host) = self.rng.choice(hosts.collect::<Vec<_>>()) else { return };
        let operation = EnrolmentOperation::Withdraw { host, reason: "it is moved".to_owned() };
        self.request(read, Request::new("operator", operation).into());
    }

    /// Somebody goes to the hosts that hang in their boot.
    pub(super) fn free_hung_hosts(&mut self) {
        self.free_hung(|_| true);
    }

    /// Somebody goes to a host whose node does not get ready.
    pub(super) fn free_hung_host(&mut self, name: &HostName) {
        self.free_hung(|host| host == name);
    }

    fn free_hung(&mut self, is_meant: impl Fn(&HostName) -> bool) {
        for host in 0..self.hosts.len() {
            if self.hosts[host].hangs && is_meant(&self.hosts[host].name) {
                self.after(SECOND, Item::Booted { host });
            }
        }
    }

    /// After the faults: only what hangs for an entry of the queue goes on hanging, as long as its operators wait for it.
    pub(super) fn leave_hung_for_queue(&mut self) {
        let state = self.leader().map(|leader| leader.state().clone());
        let is_waited_for = |host: &HostName| {
            state.as_ref().is_some_and(|state: &State| state.entry_under_way(host).is_some())
        };
        self.free_hung(|host| !is_waited_for(host));
    }

    /// Lets the queue become empty: each entry ends by itself, or once an operator has removed what it names as its blocker.
    pub(super) fn queue_becomes_empty(&mut self) -> bool {
        if self.plan.queue.is_none() {
            return true;
        }
        let by = self.now + EMPTY_WITHIN;
        self.leave_cluster_down_for_queue();
        let mut silent_since = BTreeMap::new();
        let mut has_windows = false;
        while self.checker.is_clean() {
            let Some(state) = self.leader().map(|leader| leader.state().clone()) else {
                if !self.until("an instance leads", |world| world.leader().is_some()) {
                    return false;
                }
                continue;
            };
            if state.reboot_queue.entries.is_empty() {
                break;
            }
            for (index, entry) in &state.reboot_queue.entries {
                let Some(blocker) = self.blocker_of(*index, entry) else { continue };
                if !self.remove_blocker(*index, entry, &blocker, &mut silent_since, &mut has_windows) {
                    return false;
                }
            }
            let next_look = self.now + LOOKS_EVERY;
            while self.now < next_look && self.checker.is_clean() && self.step() {}
            if self.now > by {
                let entries = &state.reboot_queue.entries;
                let blockers: Vec<_> =
                    entries.iter().map(|(index, entry)| (entry, self.blocker_of(*index, entry))).collect();
                self.checker.never_happened("the reboot queue becomes empty", &format!("{blockers:#?}"));
            }
        }
        self.cluster_back();
        self.remove_stubborn_pods();
        self.free_hung_hosts();
        self.checker.is_clean()
            && (!has_windows || self.until_granted("no windows are accepted", Self::config_without_windows))
            && self.until("every host is back", World::sees_every_host)
            && self.until("the run beside the queue has ended", World::is_at_rest)
            // Some could not be released while an entry was under way.
            && self.release_foreign_slots()
            && self.until("nothing is left to do after the queue", World::is_at_rest)
    }

    fn blocker_of(&self, index: u64, entry: &Entry) -> Option<EntryBlocker> {
        let now = self.time();
        let leader = self.leader()?;
        let (state, view) = (leader.state(), leader.inventory().view());
        explain_entry(state, view, &next_reboot(state, view, now), (index, entry), now)
    }

    /// Does what an operator would about the blocker of an entry. Returns false if that is impossible.
    fn remove_blocker(
        &mut self,
        index: u64,
        entry: &Entry,
        blocker: &EntryBlocker,
        silent_since: &mut BTreeMap<u64, Micros>,
        has_windows: &mut bool,
    ) -> bool {
        match blocker {
            EntryBlocker::Failed { .. } => self.give_up_entry(index),
            EntryBlocker::ReplyAwaited { .. } => self.await_reply(index, entry, silent_since),
            EntryBlocker::NotReady(why) | EntryBlocker::Queue(QueueBlocker::NotReady { why, .. }) => {
                self.make_ready(&entry.host, why)
            }
            EntryBlocker::Queue(QueueBlocker::Disabled) => self.until_granted("the queue is enabled", |_| {
                Request::new("operator", RebootOperation::Enable { reason: None }).into()
            }),
            EntryBlocker::Queue(QueueBlocker::Paused(_)) => self.is_resumed(),
            EntryBlocker::Queue(QueueBlocker::Unreachable { .. }) => {
                self.free_hung_hosts();
                true
            }
            EntryBlocker::Queue(QueueBlocker::ClusterUnseen) => {
                self.cluster_back();
                true
            }
            EntryBlocker::Queue(QueueBlocker::NoWindow | QueueBlocker::NoTimeLeft { .. }) => {
                let is_new = !std::mem::replace(has_windows, true);
                !is_new || self.until_granted("windows are accepted", Self::config_with_windows)
            }
            // A run may be at work on that node, or have the slot; an API server that failed has left its slot held.
            EntryBlocker::Queue(
                QueueBlocker::ApiServerUnderWay { .. } | QueueBlocker::ApiServerWaits { .. },
            )
            | EntryBlocker::Slot(_) => {
                self.help_run();
                self.release_slots()
            }
            EntryBlocker::BackedOff { .. } | EntryBlocker::Queue(QueueBlocker::BackedOff { .. }) => {
                self.help_backed_off(entry);
                true
            }
            EntryBlocker::NodeUnderWay(node) => {
                self.help_node(&entry.host, node.waits.as_ref());
                true
            }
            EntryBlocker::Queue(
                QueueBlocker::NothingQueued
                | QueueBlocker::Full { .. }
                | QueueBlocker::Clock(_)
                | QueueBlocker::UnclearWindows { .. },
            )
            | EntryBlocker::Behind { .. }
            | EntryBlocker::CommandUnsent => true,
            EntryBlocker::CommandRuns { .. }
            | EntryBlocker::BootAwaited { .. }
            | EntryBlocker::AttemptUnknown { .. }
            | EntryBlocker::RetryAwaited { .. }
            | EntryBlocker::CancelAwaited { .. }
            | EntryBlocker::CheckAwaited { .. } => self.await_command(index, entry, silent_since),
            EntryBlocker::NoCommand => {
                self.restore_command();
                true
            }
        }
    }

    fn make_ready(&mut self, host: &HostName, why: &NotReady) -> bool {
        match why {
            NotReady::HostDeferred { .. } => self.is_resumed(),
            NotReady::TakesNoPart => self.until_granted("every host is approved", World::approval_of_all),
            NotReady::SlotHeld { .. } => self.release_slot_of(host),
            NotReady::SlotDenied { .. } => self.release_slots(),
            // Its hosts may wait for a slot that was left, and so does each run after it; or it waits for a host that hangs since an
            // entry that was given up.
            NotReady::InRun { .. } => {
                self.leave_hung_for_queue();
                self.help_run();
                self.release_slots()
            }
            NotReady::NoWorker => {
                self.restore_command();
                true
            }
            NotReady::NoNode => {
                self.node_made(host);
                true
            }
            NotReady::NoBoot => {
                self.announce_boot_of(host);
                true
            }
            // Each of these passes; marks of a time that nobody remembers are removed.
            NotReady::BootUnknown | NotReady::EarlierSlot | NotReady::ForeignMark { .. } => true,
        }
    }

    /// A host that hangs is given up, and so is one whose worker has dropped its command. Any other answers.
    fn await_reply(&mut self, index: u64, entry: &Entry, silent_since: &mut BTreeMap<u64, Micros>) -> bool {
        let host = self.hosts.iter().find(|host| host.name == entry.host).expect("every entry is of a host");
        let sequence = entry.command.and_then(|command| command.sequence);
        let sdk = host.sdk;
        let will_not_answer = host.hangs || (sequence.is_some() && host.unanswered == sequence);
        if will_not_answer {
            return self.give_up_entry(index);
        }
        let now = self.now;
        let since = *silent_since.entry(index).or_insert(now);
        if now - since > ANSWERS_WITHIN {
            // A worker without the SDK does not send its answer again if that is lost. One whose consumer does not agree with
            // its state file gets the last command only, not those before.
            let forgotten = self.faults.contains_key(&Fault::AcksForgotten) || self.is_rolled_back;
            if !sdk || forgotten {
                return self.give_up_entry(index);
            }
            let what = "a host that is back answers its reboot on request";
            self.checker.never_happened(what, &format!("{index}: {entry:#?}"));
        }
        true
    }

    /// An operator gives an entry up; a host that hangs comes back later.
    pub(super) fn give_up_entry(&mut self, index: u64) -> bool {
        let operation = RebootOperation::GiveUp { index, reason: "it will not be back".to_owned() };
        // It may have ended meanwhile.
        let leader = self.instances.iter().position(Self::leads);
        if let Some(leader) = leader {
            self.request(leader, Request::new("operator", operation).into());
        }
        true
    }

    /// An operator releases the slot of a host, which has failed before.
    fn release_slot_of(&mut self, host: &HostName) -> bool {
        let slot = self.leader().and_then(|leader| leader.state().slots.get(host).cloned());
        let leader = self.instances.iter().position(Self::leads);
        if let Some((slot, leader)) = slot.zip(leader) {
            let id = ClientId::new(host.as_str()).expect("a host's name is a valid id");
            let operation =
                SlotOperation::Release { group: slot.group, id, reason: "it was looked after".to_owned() };
            self.request(leader, Request::new("operator", operation).into());
        }
        true
    }

    /// Operators release every slot that nobody needs.
    fn release_slots(&mut self) -> bool {
        self.release_foreign_slots() && self.release_left_slots()
    }

    /// An operator releases the slots of hosts that are not at work, and of whose failure nobody has taken care.
    fn release_left_slots(&mut self) -> bool {
        let Some(state) = self.leader().map(|leader| leader.state().clone()) else { return true };
        let is_at_work = |host: &HostName| {
            let in_run = state
                .run
                .as_ref()
                .is_some_and(|run| run.host(host).is_some_and(|in_run| !in_run.status.is_final()));
            let entry = state.entry_of_slot(host);
            in_run || entry.is_some_and(|(_, entry)| entry.status != EntryStatus::Cancelled)
        };
        let left: Vec<HostName> = state.slots.keys().filter(|host| !is_at_work(host)).cloned().collect();
        left.iter().all(|host| self.release_slot_of(host))
    }
}
