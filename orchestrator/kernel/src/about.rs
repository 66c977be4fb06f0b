//! What a fact says of itself, beside its content.

use os_upgrade_protocol::{Action, HostName, RunId};

use crate::owner::Owner;

/// What a fact is about, as far as the fact itself contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About<'a> {
    /// The run, or the entry of the reboot queue, to whose history it belongs.
    pub owner: OwnerRef<'a>,
    /// The host, if it is about one.
    pub host: Option<&'a HostName>,
    /// The operator or client that caused it, if any.
    pub actor: Option<&'a str>,
    /// The list in which it is found later, if operators look for it.
    pub list: Option<AuditList>,
    /// The command that was seen in the control stream, or was to be deleted from it.
    pub command: Option<AboutCommand>,
}

/// A command in the control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AboutCommand {
    /// Its sequence.
    pub sequence: u64,
    /// Its action if it was seen; absent if it was to be deleted.
    pub seen: Option<Action>,
}

/// A list of facts that can be read without the rest of the history. Its word is on disk, and stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum AuditList {
    /// Slots that operators held and released.
    Holds,
    /// Slots that FleetLock clients were granted and released.
    Locks,
    /// That FleetLock clients waited, and no longer do.
    Waits,
    /// The configuration replaced or deleted.
    Configuration,
    /// Secrets stored and removed, and new keys of the strongbox.
    Strongbox,
    /// Hosts approved, withdrawn and removed, and what was approved with them, nodes that operators had uncordoned, and what operators did
    /// about what hosts are to have.
    Enrolment,
    /// Runs that were due and did not start.
    MissedRuns,
    /// What operators did about the reboot queue, and what became of its entries.
    Reboots,
    /// Units submitted, stopped, started and destroyed.
    Units,
}

impl<'a> About<'a> {
    /// About `host`, for the owner that `owner` leads to.
    pub(crate) fn host(owner: OwnerRef<'a>, host: &'a HostName) -> Self {
        Self { owner, host: Some(host), ..Self::default() }
    }

    /// Caused by `actor`.
    pub(crate) fn by(actor: &'a str) -> Self {
        Self { actor: Some(actor), ..Self::default() }
    }

    /// In `list`.
    pub(crate) const fn in_list(self, list: AuditList) -> Self {
        Self { list: Some(list), ..self }
    }

    /// About the command at `sequence`, whose action is `seen` unless it was retracted.
    pub(crate) const fn of_command(self, sequence: u64, seen: Option<Action>) -> Self {
        Self { command: Some(AboutCommand { sequence, seen }), ..self }
    }

    /// About `run`.
    pub(crate) fn run(run: &'a RunId) -> Self {
        Self { owner: OwnerRef::Named(run), ..Self::default() }
    }
}

/// How to find the owner of a fact; see [`State::owner_of`](crate::State::owner_of).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnerRef<'a> {
    /// It has none.
    #[default]
    None,
    /// The fact names the run.
    Named(&'a RunId),
    /// The fact names whose slot it is about.
    Owner(&'a Owner),
    /// The owner of the host's slot.
    OfSlot,
    /// The run of the command at this sequence.
    OfCommand(u64),
    /// The owner of a late command, which the fact does not name: the owner of the host's slot, otherwise
    /// probably the host's latest run.
    OfLateCommand,
    /// The active run, otherwise the last one, if the host is in it.
    Latest,
}

/// Data derived from the state, which must be derived again when a fact affects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The run, without its hosts.
    Run,
    /// The list of the run's hosts.
    HostList,
    /// The host in its run.
    Host,
    /// The commands to send: there may be new ones.
    Commands,
}
