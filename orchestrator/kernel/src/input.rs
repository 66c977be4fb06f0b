//! What comes in: requests, what is read from the control stream, jobs that have come back.

use os_upgrade_protocol::{CommandId, GroupName, HostName, Reply, RunId};
use serde::{Deserialize, Serialize};

use crate::client_id::ClientId;
use crate::config::{Config, ConfigError, Expected, Settings};
use crate::duration::Duration;
use crate::job::JobDone;
use crate::run::HostStatus;
use crate::semaphore::{Denied, DeniedKind};
use crate::strongbox::{Sealed, SecretName};

/// Anything that may lead to facts.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Someone asks, and waits for an [`Answer`].
    Request(Request),
    /// A message of the control stream, in order.
    Control {
        /// Its sequence.
        sequence: u64,
        /// What it says.
        message: ControlMessage,
    },
    /// A job in a system outside of the bus has come back.
    JobDone(JobDone),
    /// A command of an ended run, or of a host that was given up, was looked at, and deleted if no worker had been given it.
    Withdrawn {
        /// The host it was sent to.
        host: HostName,
        /// Its sequence.
        sequence: u64,
        /// Whether it was deleted.
        deleted: bool,
    },
    /// This leader's fence has been stored.
    FenceStored {
        /// Its sequence in the control stream.
        sequence: u64,
        /// The leading instance.
        leader: String,
    },
    /// This leader's own settings.
    Settings(Settings),
    /// The time may have come at which a run starts by itself.
    Due {
        /// The id it will have.
        run: RunId,
    },
    /// Nothing but time has passed, or the view has changed.
    Tick,
}

/// What may be asked for, by operators and by FleetLock clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Request {
    /// Replace or create the configuration.
    PutConfig {
        /// The new one.
        config: Config,
        /// What must be configured now.
        #[serde(default)]
        expected: Expected,
        /// Who asks.
        actor: String,
        /// Check only.
        validate: bool,
    },
    /// Delete the configuration.
    DeleteConfig {
        /// What must be configured now.
        #[serde(default)]
        expected: Expected,
        /// Who asks.
        actor: String,
        /// Check only.
        validate: bool,
    },
    /// Start a run now.
    Trigger {
        /// The id it will have.
        run: RunId,
        /// How long it may take.
        timeout: Duration,
        /// Who asks.
        actor: String,
        /// Check only.
        validate: bool,
    },
    /// Start no further host.
    Cancel {
        /// Who asks.
        actor: String,
    },
    /// A slot for a FleetLock client from outside. One that holds a slot already is granted it again.
    Lock {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
        /// Who asks. None from an instance of a version that did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// That client's slot back. One that holds none is told that it is so.
    Unlock {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
        /// Who asks. None from an instance of a version that did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A slot that an operator wants held in the name of `id`, until it is released.
    Hold {
        /// The group.
        group: GroupName,
        /// In whose name.
        id: ClientId,
        /// Who asks.
        actor: String,
        /// Why.
        reason: String,
    },
    /// Takes a slot back, whoever holds it and for whatever, unless its host is at work. Who waits for one is forgotten.
    Release {
        /// The group.
        group: GroupName,
        /// Who holds it.
        id: ClientId,
        /// Who asks.
        actor: String,
        /// Why.
        reason: String,
    },
    /// The same for one that has left the inventory, where the settings let that be reason enough.
    Reclaim {
        /// The group.
        group: GroupName,
        /// Who holds it.
        id: ClientId,
        /// Who asks.
        actor: String,
    },
    /// Keep a secret in the strongbox.
    KeepSecret {
        /// What it is called.
        name: SecretName,
        /// Sealed.
        sealed: String,
        /// What tells the key that it is sealed with.
        check: String,
        /// Who asks.
        actor: String,
    },
    /// Keep a secret no longer.
    RemoveSecret {
        /// What it is called.
        name: SecretName,
        /// Who asks.
        actor: String,
    },
    /// Let hosts take part in runs from now on, all of them or none.
    ApproveHosts {
        /// Which, 1 to 1000; also such as have not announced themselves yet.
        hosts: Vec<HostName>,
        /// Who asks.
        actor: String,
        /// Check only.
        validate: bool,
    },
    /// Let a host take part no more.
    WithdrawHost {
        /// Which.
        host: HostName,
        /// Who asks.
        actor: String,
        /// Why.
        reason: String,
        /// Keep no note of it: should it announce itself again, it is one that nobody knows.
        forget: bool,
        /// Check only.
        validate: bool,
    },
    /// Go on in the active run without a host.
    GiveUpHost {
        /// Which.
        host: HostName,
        /// Who asks.
        actor: String,
        /// Why.
        reason: String,
        /// Check only.
        validate: bool,
    },
}

/// What becomes of a request.
pub type Answer = Result<Accepted, Refusal>;

/// A request that was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// There was nothing there before.
    Created,
    /// It is so.
    Done,
    /// It would be granted; nothing was done, as asked.
    Valid,
}

/// A request that was refused, and why. `Display` gives the sentence for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Refusal {
    /// The configuration cannot be meant.
    #[error("{message}")]
    InvalidConfig {
        /// What is wrong with it.
        message: String,
    },
    /// The configuration is not the one that the asker expects.
    #[error("{}", unexpected(tag.as_deref()))]
    ConfigChanged {
        /// The tag of the one that there is.
        tag: Option<String>,
    },
    /// The timeout is too short to do anything in.
    #[error("timeout: must be at least 1s")]
    TimeoutTooShort,
    /// Nothing is configured.
    #[error("there is no configuration: PUT /v1/config/os-upgrade first")]
    NoConfiguration,
    /// No worker of the configured applications has announced itself.
    #[error("no host has announced a worker of the configured applications ({applications})")]
    NoHosts {
        /// The applications' names, joined by commas.
        applications: String,
    },
    /// Nobody has approved any host that could be upgraded.
    #[error(
        "of {hosts} hosts of the configured applications none is approved: look at them with `os-upgrade hosts list`, then \
         `os-upgrade hosts approve NAME...` or `--all`, or set [site] auto-approve = true"
    )]
    NoneApproved {
        /// How many hosts there would be.
        hosts: usize,
    },
    /// A run is active.
    #[error("run {run} is active")]
    RunActive {
        /// That run.
        run: RunId,
    },
    /// No run is active.
    #[error("no run is active")]
    NoRun,
    /// The host takes no part in the active run.
    #[error("{host} is not in the active run {run}")]
    NotInRun {
        /// That run.
        run: RunId,
        /// The host.
        host: HostName,
    },
    /// The run does not wait for the host any more.
    #[error("{host} is {status}: the run does not wait for it")]
    HostThrough {
        /// The host.
        host: HostName,
        /// How it ended.
        status: HostStatus,
    },
    /// The host's command is on its way, or its answer may not have been read.
    #[error("what {host} was told last, or has answered, is not known yet: try again in a moment")]
    HostUncertain {
        /// The host.
        host: HostName,
    },
    /// The clocks differ too much.
    #[error("the clocks of orchestrator and bus differ by {seconds} s; nothing is started until they agree")]
    ClockSkew {
        /// By how much.
        seconds: i64,
    },
    /// Nobody of that name holds a slot there.
    #[error("{id} neither holds a slot of group {group} nor waits for one")]
    NoHolder {
        /// The group.
        group: GroupName,
        /// The name.
        id: ClientId,
    },
    /// The slot's host is being upgraded.
    #[error(
        "{id} is {status} in run {run}: its slot can be released when it has come to its end, or the run has"
    )]
    HolderAtWork {
        /// The host.
        id: ClientId,
        /// What it is at.
        status: HostStatus,
        /// The run.
        run: RunId,
    },
    /// A command of the slot's host may still appear.
    #[error("whether {id} has been sent a command is being looked up; try again in a moment")]
    HolderUncertain {
        /// The host.
        id: ClientId,
    },
    /// The settings do not let slots be taken back because their holders have left.
    #[error(
        "slots are not taken back from who has left the inventory: set [fleet-lock] reclaim = \"inventory\", or release it with a reason"
    )]
    ReclaimsNothing,
    /// An operator holds it already.
    #[error("{id} is held by {actor}: {reason}; release it first")]
    HeldAlready {
        /// In whose name.
        id: ClientId,
        /// Who holds it.
        actor: String,
        /// Why.
        reason: String,
    },
    /// The holder was never in the inventory, as far as is known, or is held by an operator.
    #[error(
        "{id} has not left the inventory, as it was never in it, or an operator holds its slot: release it with a reason"
    )]
    NotLeft {
        /// The holder.
        id: ClientId,
    },
    /// The holder has not left.
    #[error("{id} is in the inventory: its workers have announced themselves on {applications}")]
    InInventory {
        /// The holder.
        id: ClientId,
        /// What its workers announced, joined by commas.
        applications: String,
    },
    /// Slots could not be asked for, because of a secret that the leader cannot use.
    #[error("{}", of_leader(why))]
    Sealed {
        /// Why it cannot.
        why: Sealed,
    },
    /// The secrets there are were sealed with another key.
    #[error("the strongbox has another key: unseal it with that one, or remove every secret first")]
    OtherStrongboxKey,
    /// There is no place for it.
    #[error("the strongbox takes at most 100 secrets of 8 KiB each")]
    StrongboxFull,
    /// No secret of that name is kept.
    #[error("there is no secret {name}")]
    NoSecret {
        /// That name.
        name: SecretName,
    },
    /// Too few or too many hosts at once.
    #[error("hosts: 1 to 1000 are approved at once")]
    ApprovalSize,
    /// There is no place for a decision about another host.
    #[error(
        "decisions are kept of at most 20000 hosts: forget those that are gone, with `os-upgrade hosts withdraw NAME \
         --reason TEXT --forget`"
    )]
    EnrolmentFull,
    /// Nothing is known of a host of that name.
    #[error(
        "there is no host {host}: none of that name has announced itself, been approved or been withdrawn"
    )]
    UnknownHost {
        /// That name.
        host: HostName,
    },
    /// Without a note of its withdrawal the host would take part again.
    #[error(
        "{host} announces itself, and with [site] auto-approve = true it would take part again at once: withdraw it without \
         forgetting it"
    )]
    ForgottenIsApproved {
        /// The host.
        host: HostName,
    },
    /// A FleetLock client is not granted what it asks for.
    #[error("{value}")]
    LockDenied {
        /// FleetLock's `kind`.
        lock_kind: DeniedKind,
        /// FleetLock's `value`.
        value: String,
    },
}

fn unexpected(tag: Option<&str>) -> String {
    match tag {
        Some(tag) => {
            format!("the configuration is not the one you expect, it has become {tag:?}: read it again")
        }
        None => "the configuration is not the one you expect: there is none".to_owned(),
    }
}

/// Whoever asks may have asked another instance than the one that has to be given the key.
pub(crate) fn of_leader(sealed: &Sealed) -> String {
    match sealed {
        Sealed::NoKey | Sealed::NoKeyYet | Sealed::OtherKey => {
            format!("{sealed}; the instance that leads needs it, which `os-upgrade cluster status` shows")
        }
        Sealed::NoSecret { .. } | Sealed::Damaged { .. } => sealed.to_string(),
    }
}

impl From<Denied> for Refusal {
    fn from(Denied { kind, value }: Denied) -> Self {
        Self::LockDenied { lock_kind: kind, value }
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        Self::InvalidConfig { message: error.to_string() }
    }
}

/// A message of the control stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlMessage {
    /// A command, by whom ever.
    Command {
        /// Whom its subject names.
        host: HostName,
        /// Its id, when it carries one of ours.
        id: Option<CommandId>,
    },
    /// A reply.
    Reply {
        /// Whom its subject names.
        host: HostName,
        /// Its content, or what is wrong with it.
        reply: Result<Reply, String>,
        /// The command it says it answers.
        in_reply_to: Option<u64>,
    },
    /// A fence, this leader's or another's.
    Leader,
    /// A message that this protocol does not have.
    Unknown {
        /// Its subject.
        subject: String,
    },
}
