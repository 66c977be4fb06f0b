//! The faults that the simulator injects.

use std::fmt;

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $name:ident: $text:literal, $kind:ident $rate:literal;)+) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[doc = $doc])* $name,)+
        }

        impl Fault {
            /// Every fault.
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            /// Its name in reports.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// Whether it happens from time to time; otherwise it happens on an occasion, such as sending a message.
            pub(crate) const fn is_spontaneous(self) -> bool {
                match self {
                    $(Self::$name => is_spontaneous!($kind),)+
                }
            }

            /// The largest rate that a seed may draw.
            pub(crate) const fn rate_max(self) -> u32 {
                match self {
                    $(Self::$name => $rate,)+
                }
            }
        }
    };
}

macro_rules! is_spontaneous {
    (spontaneous) => {
        true
    };
    (occasion) => {
        false
    };
}

faults! {
    /// An orchestrator is killed, and started again after a while.
    OrchestratorCrash: "orchestrator killed", spontaneous 100;
    /// An orchestrator is asked to stop, and does so gracefully.
    OrchestratorStop: "orchestrator stopped gracefully", spontaneous 60;
    /// An orchestrator is paused for a while, and goes on where it was.
    OrchestratorPause: "orchestrator paused", spontaneous 100;
    /// An orchestrator is paused just before it sends an append, a command or a job.
    PausedBeforeWrite: "orchestrator paused before a write", occasion 40;
    /// An orchestrator is killed just before it sends an append, a command or a job.
    KilledBeforeWrite: "orchestrator killed before a write", occasion 40;
    /// An orchestrator loses its connection to the bus, and gets it back.
    OrchestratorCutOff: "orchestrator cut off from the bus", spontaneous 100;
    /// At its next start an orchestrator finds no store.
    StoreLost: "store lost", occasion 300;
    /// At its next start an orchestrator finds an older store.
    StoreOlder: "store older", occasion 300;
    /// The bus is killed and comes back with everything it has acknowledged.
    BusCrash: "bus killed", spontaneous 60;
    /// The killed bus is away for an hour and more.
    BusAwayForHours: "bus away for hours", occasion 150;
    /// The killed bus comes back without the last messages that it had acknowledged. No further faults happen then.
    DataLost: "bus killed and its data lost", occasion 400;
    /// The streams are purged while everybody stays connected. No further faults happen then.
    StreamsPurged: "streams purged", spontaneous 10;
    /// The machine of bus and orchestrators is put back to an earlier moment, and the hosts are not. No further faults happen
    /// then.
    MachineRolledBack: "machine rolled back", spontaneous 10;
    /// Somebody stores a message in the journal, and an operator deletes it.
    StrayMessage: "stray message deleted from the journal", spontaneous 30;
    /// At its next start an orchestrator uses a copy of another's data directory.
    DirectoryCopied: "data directory copied", occasion 100;
    /// At its next start an orchestrator is of a version that does not know the newest format of the journal.
    OlderVersion: "older version started", occasion 100;
    /// For some time, a server of a cluster that is behind answers reads of the streams.
    StaleRead: "streams read from a stale server", spontaneous 60;
    /// The killed bus comes back without the last acknowledgements of consumers.
    AcksForgotten: "consumers' acknowledgements forgotten", occasion 500;
    /// A worker's process is killed, and started again after a while.
    WorkerCrash: "worker killed", spontaneous 100;
    /// A worker loses its connection to the bus, and gets it back.
    WorkerCutOff: "worker cut off from the bus", spontaneous 60;
    /// At its next start a worker finds no state file.
    WorkerStateLost: "worker's state file lost", occasion 100;
    /// A worker's state file cannot be saved.
    SaveFails: "worker's state file not saved", occasion 60;
    /// A host loses power and boots again.
    PowerCut: "host loses power", spontaneous 60;
    /// An upgrade reboots the host in the middle.
    UpgradeReboots: "upgrade reboots the host", occasion 150;
    /// A host takes very long to boot.
    SlowBoot: "host boots late", occasion 200;
    /// A requested reboot does not happen.
    RebootFails: "reboot does not happen", occasion 300;
    /// A handler fails.
    HandlerFails: "handler fails", occasion 120;
    /// A handler takes far longer than others.
    HandlerHangs: "handler hangs", occasion 80;
    /// A worker without the SDK answers twice.
    WorkerAnswersTwice: "worker answers twice", occasion 300;
    /// A worker without the SDK answers something wrong, or unreadable.
    WorkerLies: "worker lies", occasion 150;
    /// A message is lost on its way to the bus.
    MessageLost: "message lost", occasion 60;
    /// A message reaches the bus long after its sender has given up.
    MessageLate: "message late", occasion 60;
    /// A message is stored and its acknowledgement lost.
    AnswerLost: "acknowledgement lost", occasion 80;
    /// A message, or an acknowledgement, takes much longer than others.
    MessageSlow: "message slow", occasion 100;
    /// A command is delivered to its worker twice.
    DeliveredTwice: "command delivered twice", occasion 80;
    /// The client keeps a message that is sent while it is disconnected, and sends it once it has reconnected.
    SentOnReconnect: "message kept while disconnected", occasion 500;
    /// The lock server refuses though it has slots.
    LockDenied: "lock server denies", occasion 200;
    /// The lock server refuses connections for a while.
    LockServerDown: "lock server unreachable", spontaneous 40;
    /// The lock server carries out a request and answers too late.
    LockLate: "lock server answers late", occasion 150;
    /// The lock server carries out a request after its sender has given up.
    LockCarriedOutLate: "lock server carries out late", occasion 100;
    /// The lock server answers 202, neither a grant nor a refusal.
    LockAnswers202: "lock server answers 202", occasion 150;
    /// The lock server grants a slot and answers 500.
    LockAnswers500: "lock server grants and answers 500", occasion 50;
    /// The lock server is overloaded, and answers 429 with `Retry-After`.
    LockAnswers429: "lock server answers 429", occasion 100;
    /// A host's or an instance's clock is set forwards or backwards.
    ClockStep: "clock steps", spontaneous 30;
    /// The clock of the machine on which the bus runs is wrong for a while, and with it those of some instances.
    BusClockStep: "clock of the bus steps", spontaneous 30;
    /// The whole site loses its power, and with it the time: every clock is hours or days behind for a while.
    TimeLost: "site loses power and time", occasion 1000;
    /// The settings of an instance are changed, and it is restarted with them.
    Reconfigured: "settings changed", spontaneous 30;
    /// A host hangs in its boot, until somebody comes.
    BootHangs: "host hangs in its boot", occasion 150;
    /// A worker without the SDK neither reboots on request nor answers.
    RebootUnanswered: "reboot on request not answered", occasion 900;
    /// The API server of Kubernetes refuses connections for a while.
    KubernetesDown: "Kubernetes unreachable", occasion 1000;
    /// The API server carries out a request and does not answer.
    KubernetesUnanswered: "Kubernetes carries out and does not answer", occasion 150;
    /// The API server carries out a request and answers too late.
    KubernetesSlow: "Kubernetes answers late", occasion 150;
    /// The API server carries out a write after its sender has given up.
    KubernetesLate: "Kubernetes carries out late", occasion 150;
    /// The API server answers 429 to everything.
    KubernetesThrottles: "Kubernetes throttles", occasion 200;
    /// Others change a node again and again, so that it cannot be written.
    KubernetesConflict: "Kubernetes answers with conflicts", occasion 150;
    /// The API server does not show its nodes.
    KubernetesSilent: "Kubernetes does not show its nodes", occasion 300;
    /// An administrator cordons a node.
    CordonedByAdmin: "node cordoned by an administrator", occasion 1000;
    /// An administrator uncordons a node, whoever has cordoned it.
    UncordonedByAdmin: "node uncordoned by an administrator", occasion 1000;
    /// Somebody deletes a Node, which its kubelet makes again later.
    NodeDeleted: "Node deleted", occasion 1000;
    /// The operator's command fails, having done nothing.
    CommandFails: "reboot command fails", occasion 300;
    /// The operator's command fails, having rebooted the host all the same.
    CommandLies: "reboot command fails and reboots", occasion 400;
    /// The operator's command is ended by a signal, having rebooted the host or not.
    CommandKilled: "reboot command ended by a signal", occasion 300;
    /// The operator's command hangs until it is killed, having rebooted the host or not.
    CommandHangs: "reboot command hangs", occasion 300;
    /// The command that says whether a host has booted answers late.
    BootCheckLate: "boot check answers late", occasion 900;
    /// The command that says whether a host has booted fails.
    BootCheckFails: "boot check fails", occasion 900;
    /// The command that says whether a host has booted does not answer.
    BootCheckHangs: "boot check hangs", occasion 900;
    /// A configuration provider refuses connections.
    ProviderDown: "provider unreachable", occasion 300;
    /// A configuration provider answers late, perhaps after its answer is awaited any more.
    ProviderSlow: "provider answers late", occasion 300;
    /// A configuration provider answers something else than what it has: an error, or a login page.
    ProviderFails: "provider answers an error", occasion 300;
    /// A host is installed anew and has another key.
    KeyChanged: "host gets another key", occasion 1000;
    /// An agent hangs for a while, and with it its heartbeats. Units go on.
    AgentSilent: "agent silent", occasion 1000;
    /// More than half of all agents hang for a while, as if something kept their heartbeats from the leader.
    AgentsSilent: "most agents silent", occasion 1000;
    /// At its next start a worker finds no state of its configurations. Its key is still there, and so are the configurations.
    DesiredStateLost: "worker's state of configurations lost", occasion 300;
}

impl Fault {
    /// Whether only worlds with a reboot queue have it.
    pub(crate) const fn is_of_queue(self) -> bool {
        matches!(self, Self::BootHangs | Self::RebootUnanswered)
    }

    /// Whether only worlds with a Kubernetes cluster have it.
    pub(crate) const fn is_of_cluster(self) -> bool {
        matches!(
            self,
            Self::KubernetesDown
                | Self::KubernetesUnanswered
                | Self::KubernetesSlow
                | Self::KubernetesLate
                | Self::KubernetesThrottles
                | Self::KubernetesConflict
                | Self::KubernetesSilent
                | Self::CordonedByAdmin
                | Self::UncordonedByAdmin
                | Self::NodeDeleted
        )
    }

    /// Whether only worlds in which an operator's command reboots hosts have it.
    pub(crate) const fn is_of_command(self) -> bool {
        matches!(
            self,
            Self::CommandFails
                | Self::CommandLies
                | Self::CommandKilled
                | Self::CommandHangs
                | Self::BootCheckLate
                | Self::BootCheckFails
                | Self::BootCheckHangs
        )
    }

    /// Whether only worlds in which providers say what hosts are to have have it.
    pub(crate) const fn is_of_delivery(self) -> bool {
        matches!(self, Self::ProviderDown | Self::ProviderSlow | Self::ProviderFails | Self::KeyChanged)
    }

    /// Whether only worlds with units have it.
    pub(crate) const fn is_of_units(self) -> bool {
        matches!(self, Self::AgentSilent | Self::AgentsSilent)
    }

    /// Whether any world may have it.
    pub(crate) const fn is_of_every_world(self) -> bool {
        !self.is_of_queue()
            && !self.is_of_cluster()
            && !self.is_of_command()
            && !self.is_of_delivery()
            && !self.is_of_units()
            && !matches!(self, Self::TimeLost | Self::DesiredStateLost)
    }

    /// Whether no further faults happen then.
    pub(crate) const fn ends_the_world(self) -> bool {
        matches!(self, Self::DataLost | Self::StreamsPurged | Self::MachineRolledBack)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
