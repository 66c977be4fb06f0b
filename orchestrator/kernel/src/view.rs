//! The view: what is currently seen of the site, passed with every input. It is not durable; anything concluded from it
//! becomes a fact.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use imbl::{OrdMap, OrdSet};
use os_upgrade_calendar::Zones;
use os_upgrade_protocol::{ApplicationName, Applied, GroupName, HostKey, HostName};
use os_upgrade_provider_rules::{Failure, ProviderName};

use crate::clock::Clock;
use crate::config::WorkerApplication;
use crate::node::NodeFence;
use crate::secrets::Sealed;
use crate::start::WindowBlocker;

/// The hosts, the state of the clocks, the rules of time zones, and whether secrets can be used. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// Hosts on which a worker has announced itself.
    pub hosts: OrdMap<HostName, SeenHost>,
    /// Hosts that have left the inventory: all their workers have withdrawn their announcements.
    pub left: OrdSet<HostName>,
    /// Whether the orchestrator's clock can be relied on.
    pub clock: Clock,
    /// Whether all messages that were in the control stream when this leadership began have been read.
    pub has_read_control: bool,
    /// Whether, in addition, workers that could not answer while the bus was away have had time to do so. Only then does
    /// a missing reply mean anything.
    pub has_awaited_replies: bool,
    /// Why slots cannot be requested here, if a secret that this requires cannot be used.
    pub sealed: Option<Sealed>,
    /// What hosts say that they have of what they are to have.
    pub applied: OrdMap<HostName, Arc<Applied>>,
    /// The agents of hosts that run units. Those of which nothing has been seen are absent: see [`Self::agent_silence`].
    pub agents: OrdMap<HostName, AgentSeen>,
    /// How long this leader, while connected, has listened to agents, rounded down as [`AgentSeen::silent_for`] is.
    pub agents_awaited_for: Duration,
    /// What each provider said last of each host; absent but on the leader, which alone asks.
    pub polls: Option<OrdMap<ProviderName, OrdMap<HostName, Poll>>>,
    /// The Kubernetes nodes of hosts, by host. `None` if they have not been seen of late, or there is no cluster.
    pub nodes: Option<OrdMap<HostName, SeenNode>>,
    /// The leader's answer whether a due run can start; absent on the leader itself, and until it is known. Only the
    /// leader judges clocks, secrets and heartbeats.
    pub leader_startable: Option<Result<(), WindowBlocker>>,
    /// The rules of time zones on this instance's machine. Instances may have different ones: the leader's decide.
    pub zones: Zones,
    /// When other rules were read than before; absent if these are the first.
    pub zones_changed: Option<DateTime<Utc>>,
}

/// A host as announced by its workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenHost {
    /// The applications announced on it.
    pub applications: OrdSet<ApplicationName>,
    /// Applications announced on it that do not count, because there are too many; the first ones.
    pub refused: OrdSet<ApplicationName>,
    /// The labels it announces; the first ones, if there are many.
    pub labels: OrdMap<String, String>,
    /// The group it announces, if any.
    pub group: Option<GroupName>,
    /// The machine id it announces, if any; a line of bounded length.
    pub machine_id: Option<String>,
    /// The digest of its labels and its machine id: providers of kind `hooks` are told when it changes.
    pub metadata_digest: u64,
    /// The boot id it announces, if any.
    pub boot_id: Option<String>,
    /// The first address at which it says that operators can reach it, if any; a line of bounded length.
    pub address: Option<String>,
    /// Whether a worker of it takes `reboot` of any time, with the boot to leave.
    pub reboots_on_request: bool,
    /// The application that runs units on it: its agent. The first one, if several say so.
    pub runs_units: Option<ApplicationName>,
    /// Other applications of it that say so, and are not heeded.
    pub runs_units_refused: OrdSet<ApplicationName>,
    /// The application that takes configuration for it, and the key to which that is to be sealed. The first one, if several say so.
    pub configures: Option<Configures>,
    /// Other applications of it that say so, and are not heeded.
    pub configures_refused: OrdSet<ApplicationName>,
    /// Why it needs a reboot, if it announces that it does; a line of bounded length.
    pub reboot_required: Option<String>,
    /// What a reboot of it did not bring, if it announces that; a line of bounded length. Nothing is decided by it.
    pub reboot_ineffective: Option<String>,
    /// Whether its heartbeats arrive.
    pub reachability: Reachability,
    /// Since when it is unreachable; absent if it is not. Nothing is decided by it.
    pub silence: Option<Silence>,
    /// The worker's clock minus the bus's at its last announcement, in seconds; absent if that contained no time.
    pub clock_skew_secs: Option<i64>,
    /// When the bus received the last announcement of the host.
    pub announced_at: Option<DateTime<Utc>>,
    /// The sequence of its last announcement.
    pub announced: u64,
}

/// What a provider said of what a host is to have, to this leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// When it last said something; absent if it has not yet.
    pub confirmed_at: Option<DateTime<Utc>>,
    /// How often in a row asking has failed since.
    pub failures: u32,
    /// How it failed last; absent if it has not since.
    pub failure: Option<Failure>,
}

/// That an application of a host takes configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configures {
    pub application: ApplicationName,
    pub key: HostKey,
}

/// What is heard of the agent of a host, which runs units there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentSeen {
    /// How long this leader, while connected, has heard nothing of the agent, rounded down to zero, 11 seconds, 30 seconds or whole minutes.
    /// While the bus is away silence proves nothing, and a leader that has just begun knows of none. It begins anew when the agent's grace
    /// becomes shorter.
    pub silent_for: Duration,
    /// Whether this leader has heard it since it began. One that it has not heard yet need not be there.
    pub is_heard: bool,
}

/// The Kubernetes node of a host, as its API server says.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, as the API server tells it")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenNode {
    pub name: String,
    /// The boot that its kubelet reports, if it does.
    pub boot_id: Option<String>,
    /// Whether its kubelet reports that it is ready.
    pub is_ready: bool,
    /// Whether it is an API server of the cluster, whether or not one runs there now.
    pub is_api_server: bool,
    /// Whether it takes no more pods.
    pub is_unschedulable: bool,
    /// Its mark of this site; absent if it has none.
    pub mark: Option<SeenMark>,
}

/// The mark of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenMark {
    pub fence: NodeFence,
    /// Whether it is known to be of another journal of the site. Older versions did not write which one it is.
    pub is_of_other_journal: bool,
}

/// The silence of a host that is unreachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// When it was found to be unreachable.
    pub since: DateTime<Utc>,
    /// When its last sign of life arrived here; absent if none has since this instance started.
    pub heard_at: Option<DateTime<Utc>>,
}

/// Whether a host's heartbeats arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Reachability {
    /// It sends no heartbeats, so their absence means nothing.
    #[default]
    Unknown,
    /// It sends heartbeats, and it is not known yet whether it still does. This lasts only briefly.
    Awaited,
    /// Its last heartbeat is recent.
    Reachable,
    /// It sends heartbeats, and none has arrived for too long.
    Unreachable,
}

impl Reachability {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Awaited, Self::Reachable, Self::Unreachable];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl View {
    /// How long this leader, while connected, has heard nothing of the agent of `host`. One of which nothing has been seen has been silent since
    /// the leader began.
    pub fn agent_silence(&self, host: &HostName) -> Duration {
        self.agents.get(host).map_or(self.agents_awaited_for, |agent| agent.silent_for)
    }

    /// Whether this leader hears the agent of `host`. Without silence it need not: it may just have begun to listen.
    pub fn hears_agent(&self, host: &HostName) -> bool {
        self.agents.get(host).is_some_and(|agent| agent.is_heard && agent.silent_for.is_zero())
    }

    /// Whether this leader has heard the agent of `host` since it began.
    pub fn has_heard_agent(&self, host: &HostName) -> bool {
        self.agents.get(host).is_some_and(|agent| agent.is_heard)
    }

    /// The digest of the metadata that `host` announces; 0 if it is not seen.
    pub fn metadata_digest(&self, host: &HostName) -> u64 {
        self.hosts.get(host).map_or(0, |seen| seen.metadata_digest)
    }

    /// Whether a missing reply means anything: the time is known, and hosts have had time to answer.
    pub fn may_time_out(&self) -> bool {
        self.has_awaited_replies && self.clock.is_trusted()
    }

    /// Whether a run that did not start in its window, or a host that is due in one, means anything.
    pub fn may_judge_windows(&self) -> bool {
        self.has_awaited_replies && self.clock.is_beyond_doubt()
    }

    /// The key that `host` announces, if any.
    pub fn announced_key(&self, host: &HostName) -> Option<&HostKey> {
        self.hosts.get(host)?.configures.as_ref().map(|configures| &configures.key)
    }

    /// What `host` says that it has of what it is to have.
    pub fn applied(&self, host: &HostName) -> Option<&Applied> {
        self.applied.get(host).map(Arc::as_ref)
    }

    /// Hosts that serve one of `applications`, each with the first application that it serves.
    pub fn serving<'a>(
        &'a self,
        applications: &'a [WorkerApplication],
    ) -> impl Iterator<Item = (&'a HostName, &'a SeenHost, &'a ApplicationName)> {
        self.hosts.iter().filter_map(|(name, host)| {
            let mut names = applications.iter().map(|application| &application.name);
            let application = names.find(|application| host.applications.contains(*application))?;
            Some((name, host, application))
        })
    }
}
