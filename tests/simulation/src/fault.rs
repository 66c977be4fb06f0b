//! Everything that can go wrong.

use std::fmt;

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $name:ident: $text:literal, $kind:ident $rate:literal;)+) => {
        /// Something that goes wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[doc = $doc])* $name,)+
        }

        impl Fault {
            /// Every fault.
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            /// What it is called in reports.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// Whether it happens by itself, from time to time; otherwise it has occasions.
            pub(crate) const fn happens_by_itself(self) -> bool {
                match self {
                    $(Self::$name => happens_by_itself!($kind),)+
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

macro_rules! happens_by_itself {
    (itself) => {
        true
    };
    (occasion) => {
        false
    };
}

faults! {
    /// An orchestrator is killed, and started again after a while.
    OrchestratorCrash: "orchestrator killed", itself 100;
    /// An orchestrator is asked to end, and does so in order.
    OrchestratorStop: "orchestrator ended in order", itself 60;
    /// An orchestrator stands still for any time, and goes on where it was.
    OrchestratorPause: "orchestrator paused", itself 100;
    /// An orchestrator stands still when it is about to write or to ask.
    PausedInTheAct: "orchestrator paused about to write", occasion 40;
    /// An orchestrator is killed when it is about to write or to ask.
    KilledInTheAct: "orchestrator killed about to write", occasion 40;
    /// An orchestrator loses its connection to the bus, and gets it back.
    OrchestratorCutOff: "orchestrator cut off from the bus", itself 100;
    /// At its next start an orchestrator finds no store.
    StoreLost: "store lost", occasion 300;
    /// At its next start an orchestrator finds an older store.
    StoreOlder: "store older", occasion 300;
    /// The bus is killed and comes back with everything it has acknowledged.
    BusCrash: "bus killed", itself 60;
    /// The bus, killed, is away for hours, with whatever was under way in the middle of it.
    BusAway: "bus away for hours", occasion 150;
    /// The bus, killed, comes back without the end of what it had acknowledged. It ends the world's rough time.
    DataLost: "bus killed and its data lost", occasion 400;
    /// A server of a cluster that stood still shows the streams as they were some time ago.
    StaleLook: "streams shown as they were", itself 60;
    /// The bus, killed, has forgotten the last acknowledgements of consumers.
    AcksForgotten: "consumers' acknowledgements forgotten", occasion 500;
    /// A worker's process is killed, and started again after a while.
    WorkerCrash: "worker killed", itself 100;
    /// A worker loses its connection to the bus, and gets it back.
    WorkerCutOff: "worker cut off from the bus", itself 60;
    /// At its next start a worker finds no state file.
    WorkerStateLost: "worker's state file lost", occasion 100;
    /// A worker's state file cannot be saved.
    SaveFails: "worker's state file not saved", occasion 60;
    /// A host loses power and boots again.
    PowerCut: "host without power", itself 60;
    /// An upgrade reboots the host by itself, in the middle.
    UpgradeReboots: "upgrade reboots the host itself", occasion 150;
    /// A host takes very long to boot.
    SlowBoot: "host boots late", occasion 200;
    /// A reboot that was asked for does not happen.
    NoReboot: "reboot does not happen", occasion 150;
    /// A handler fails.
    HandlerFails: "handler fails", occasion 120;
    /// A handler takes far longer than others.
    HandlerHangs: "handler hangs", occasion 80;
    /// A worker that only keeps the specification answers twice.
    AnswersTwice: "worker answers twice", occasion 300;
    /// A worker that only keeps the specification answers what is not so, or nothing that can be read.
    Lies: "worker lies", occasion 150;
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
    /// What was sent while the connection was away is kept by the client and sent when it is back.
    SentWhenBack: "message kept while disconnected", occasion 500;
    /// The lock server refuses though it has slots.
    LockDenied: "lock server denies", occasion 200;
    /// The lock server is away for a while.
    LockAway: "lock server away", itself 40;
    /// The lock server does what it was asked for and answers too late.
    LockLate: "lock server answers late", occasion 150;
    /// The lock server answers something that is neither yes nor no.
    LockOdd: "lock server answers 202", occasion 150;
    /// The lock server does what it was asked for and answers with an error.
    LockLies: "lock server grants and answers 500", occasion 100;
    /// The lock server has too much to do, and says when to come back.
    LockLimited: "lock server answers 429", occasion 100;
    /// A clock steps, forwards or backwards.
    ClockStep: "clock steps", itself 30;
    /// The settings are changed, and an orchestrator started anew with them.
    Reconfigured: "settings changed", itself 30;
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
