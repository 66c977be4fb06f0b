//! Attempts to reboot hosts of the reboot queue with the operator's command. Part of the rules `doubled` and `lost`:
//!
//! - an attempt is journaled before the command is run, and is run at most once;
//! - its outcome counts as unknown only if nobody knows it: the command was killed, or another leadership has begun since;
//! - it is repeated only then, and only once the command has ended for sure and a host that reboots would be back;
//! - a host reboots by command once for an entry, and once more for each outcome that is unknown;
//! - an entry that was cancelled is undone only then, too, or if nothing was ever run.
//!
//! After the machine of bus and orchestrators was put back, the account begins anew. Of two instances with copies of one data
//! directory both lead for a moment: the one may run an attempt whose outcome the other has just called unknown.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::{ConfigFact, QueueFact};
use os_upgrade_kernel::reason::Reason;
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{CommandJob, CommandOrder, CommandOutcome, Fact};
use os_upgrade_protocol::HostName;

use super::violation::Violation;
use crate::fault::Fault;
use crate::host::boot_id;
use crate::plan::Plan;

/// What is known of the attempts for an entry.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
struct Account {
    /// How many attempts were due, began, were run, and have an unknown outcome.
    due: u32,
    began: u32,
    ran: u32,
    unknown: u32,
    /// How often its host went down for it.
    reboots: u32,
    /// Whether the last attempt began and has no outcome yet.
    is_running: bool,
    /// The number of leaderships when the last attempt began.
    leadership: u64,
    /// Whether the run of the last attempt was killed.
    was_killed: bool,
    /// When the last attempt ended, and whether nothing was ever run.
    ended: Option<DateTime<Utc>>,
    is_unrun: bool,
    /// Since when the outcome of the last attempt is unknown.
    unknown_since: Option<DateTime<Utc>>,
    /// The boot of its host when the command was run last.
    boot: Option<u32>,
    /// The boot that its host is to leave, if one is known.
    leaves: Option<String>,
    /// Whether the boot check has said that its host has booted.
    is_checked: bool,
}

#[derive(Debug)]
pub(super) struct Attempts {
    /// By index and host: after a rollback an index may be another entry's.
    accounts: BTreeMap<(u64, HostName), Account>,
    leaderships: u64,
    within: TimeDelta,
    boot_timeout: TimeDelta,
    /// Whether all clocks are right.
    has_right_time: bool,
    is_rolled_back: bool,
    reboots: u64,
}

fn doubled(text: String) -> Violation {
    Violation::new("doubled", text)
}

impl Attempts {
    pub(super) fn new(plan: &Plan) -> Self {
        let is_right = |fault| plan.rate(fault) == 0;
        Self {
            accounts: BTreeMap::new(),
            leaderships: 0,
            within: TimeDelta::zero(),
            boot_timeout: Rollout::default().boot_timeout.to_delta(),
            has_right_time: is_right(Fault::ClockStep)
                && is_right(Fault::BusClockStep)
                && plan.outage.is_none(),
            is_rolled_back: false,
            reboots: 0,
        }
    }

    /// How often hosts went down for a command.
    pub(super) fn reboots(&self) -> u64 {
        self.reboots
    }

    /// An instance begins to lead.
    pub(super) fn leadership_began(&mut self) {
        self.leaderships += 1;
    }

    pub(super) fn rolled_back(&mut self) {
        self.accounts.clear();
        self.is_rolled_back = true;
    }

    fn account(&mut self, index: u64, host: &HostName) -> &mut Account {
        self.accounts.entry((index, host.clone())).or_default()
    }

    /// A fact of the time `at` was added to the journal.
    pub(super) fn fact(&mut self, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        if let Fact::Config(ConfigFact::SettingsAdopted { settings }) = fact {
            self.within = settings.reboot.command.map_or(self.within, |command| command.within.to_delta());
        } else if let Fact::Config(ConfigFact::Replaced { config, .. }) = fact {
            let rollout = config.as_ref().map_or_else(Rollout::default, |config| config.rollout.clone());
            self.boot_timeout = rollout.boot_timeout.to_delta();
        } else if let Fact::Queue(QueueFact::Reboot { index, host, event }) = fact {
            return self.event(at, *index, host, event);
        }
        Ok(())
    }

    fn event(
        &mut self,
        at: DateTime<Utc>,
        index: u64,
        host: &HostName,
        event: &EntryEvent,
    ) -> Result<(), Violation> {
        let (leaderships, pause) = (self.leaderships, self.within + self.boot_timeout);
        let has_right_time = self.has_right_time;
        let account = self.account(index, host);
        match event {
            EntryEvent::AttemptDue { boot_id: leaves, .. } => {
                account.due += 1;
                account.leaves.clone_from(leaves);
                let unknown_since = account.unknown_since.take();
                if unknown_since.is_some_and(|since| at - since < pause) && has_right_time {
                    let text = format!(
                        "entry {index} of {host} is tried again before its command has ended: {account:?}"
                    );
                    return Err(doubled(text));
                }
            }
            EntryEvent::AttemptBegan => {
                account.began += 1;
                (account.is_running, account.was_killed) = (true, false);
                account.leadership = leaderships;
            }
            EntryEvent::AttemptUnknown { .. } => {
                account.unknown += 1;
                (account.is_running, account.unknown_since, account.ended) = (false, Some(at), Some(at));
                if !account.was_killed && account.leadership == leaderships {
                    return Err(doubled(format!(
                        "the outcome of entry {index} of {host} is known: {account:?}"
                    )));
                }
            }
            EntryEvent::NotRebooted => {
                let is_early = account.ended.is_none_or(|ended| at - ended < pause);
                if is_early && !account.is_unrun && has_right_time {
                    let text =
                        format!("entry {index} of {host} is undone before its host is back: {account:?}");
                    return Err(Violation::new("queue", text));
                }
            }
            EntryEvent::AttemptSucceeded | EntryEvent::Failed { .. } => {
                let is_unrun =
                    matches!(event, EntryEvent::Failed { reason: Reason::RebootCommandNotStarted { .. } });
                account.is_unrun = is_unrun && account.due == 1;
                (account.is_running, account.ended) = (false, Some(at));
            }
            EntryEvent::Booted { .. } | EntryEvent::Rebooted | EntryEvent::GivenUp { .. } => {
                account.is_running = false;
            }
            EntryEvent::Waiting { .. }
            | EntryEvent::Started { .. }
            | EntryEvent::BackedOff { .. }
            | EntryEvent::RebootBegan { .. }
            | EntryEvent::CommandSent { .. }
            | EntryEvent::Cancelled { .. }
            | EntryEvent::Removed => {}
        }
        Ok(())
    }

    /// Whether the outcome of an attempt was called unknown before it is run, as only a leader beside the one that runs it can do.
    pub(super) fn is_disowned(&self, job: &CommandJob, attempt: u32) -> bool {
        let account = self.accounts.get(&(job.index, job.host.clone()));
        account.is_some_and(|account| account.unknown > 0 && (attempt < account.due || !account.is_running))
    }

    /// The command that reboots a host is run while that is in this boot.
    pub(super) fn runs(
        &mut self,
        job: &CommandJob,
        attempt: u32,
        boot: u32,
        is_disowned: bool,
    ) -> Result<(), Violation> {
        let CommandJob { host, index, .. } = job;
        let account = self.account(*index, host);
        account.ran += 1;
        account.boot = Some(boot);
        if account.ran > account.began {
            return Err(doubled(format!(
                "attempt {attempt} for entry {index} of {host} is run again: {account:?}"
            )));
        }
        if !is_disowned && (!account.is_running || attempt != account.due) {
            let text = format!(
                "attempt {attempt} for entry {index} of {host} is run, and is not journaled: {account:?}"
            );
            return Err(Violation::new("queue", text));
        }
        Ok(())
    }

    /// A run of a command ends by itself, or because its time is up.
    pub(super) fn ended(&mut self, job: &CommandJob, outcome: &CommandOutcome) {
        let account = self.account(job.index, &job.host);
        match (&job.order, outcome) {
            (CommandOrder::Reboot { .. }, CommandOutcome::Unknown { .. }) => account.was_killed = true,
            (CommandOrder::CheckBoot { .. }, CommandOutcome::Booted) => account.is_checked = true,
            (CommandOrder::Reboot { .. } | CommandOrder::CheckBoot { .. }, _) => {}
        }
    }

    /// Whether the boot check has said that the host of an entry has booted.
    pub(super) fn is_checked(&self, index: u64, host: &HostName) -> bool {
        self.accounts.get(&(index, host.clone())).is_some_and(|account| account.is_checked)
    }

    /// A host, which is in this boot, goes down for a command. `is_over`: its entry has ended, and nobody gave it up.
    pub(super) fn rebooted(&mut self, job: &CommandJob, boot: u32, is_over: bool) -> Result<(), Violation> {
        self.reboots += 1;
        let (has_right_time, again) = (self.has_right_time, u32::from(self.is_rolled_back));
        let CommandJob { host, index, .. } = job;
        let account = self.account(*index, host);
        account.reboots += 1;
        if account.reboots > 1 + account.unknown + again {
            return Err(doubled(format!("{host} reboots by command for entry {index} again: {account:?}")));
        }
        // Nobody can tell the boot after a loss of power from that of the command, nor an earlier one that was announced late or
        // is later by a wrong clock.
        let begun_in = account.boot.map(boot_id);
        let is_late = account.leaves.is_some() && account.leaves != begun_in;
        let is_mistaken = is_late || account.boot != Some(boot) || (account.is_checked && !has_right_time);
        if is_over && !is_mistaken {
            let text = format!("{host} reboots by command for entry {index}, which has ended: {account:?}");
            return Err(Violation::new("queue", text));
        }
        Ok(())
    }
}
