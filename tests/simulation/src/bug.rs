//! Bugs that are planted to see whether the checker finds them.
//!
//! None stands in what ships: each is done to it at its edge, where it meets the world, as a wrong adapter or a
//! missing line would. Each has the seed that finds it in the fewest steps; `sim --find-bugs` prints all of them anew.

use std::fmt;

use crate::fault::Fault;

macro_rules! bugs {
    ($($(#[doc = $doc:literal])* $name:ident: $text:literal, [$($fault:ident),*] => [$($rule:literal),+], seed $seed:literal;)+) => {
        /// A planted bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $doc])* $name,)+
        }

        impl Bug {
            /// Every bug.
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            /// What it is called.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// The rules by which it is found.
            pub const fn is_found_by(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($rule),+],)+
                }
            }

            /// The seed that finds it in the fewest steps, of those that were tried.
            pub const fn seed(self) -> u64 {
                match self {
                    $(Self::$name => $seed,)+
                }
            }

            /// The faults without which it does no harm.
            pub(crate) const fn shows_with(self) -> &'static [Fault] {
                match self {
                    $(Self::$name => &[$(Fault::$fault),*],)+
                }
            }
        }
    };
}

bugs! {
    /// The journal takes an append whatever its expectation.
    JournalUnfenced: "journal-unfenced", [PausedInTheAct] => ["journal"], seed 26;
    /// The control stream takes a command whatever its fence.
    CommandUnfenced: "command-unfenced", [PausedInTheAct, OrchestratorPause, MessageLate] => ["S4", "once"], seed 23;
    /// A request that changes nothing is answered without an append.
    NoBarrier: "no-barrier", [OrchestratorPause, PausedInTheAct] => ["S5", "semaphore"], seed 15;
    /// A command whose acknowledgement is lost counts as not stored, and is sent again as a new message.
    LostAckIsFailure: "lost-ack-is-failure", [AnswerLost] => ["once"], seed 59;
    /// An append that nobody has acknowledged counts as stored.
    LostAckIsSuccess: "lost-ack-is-success", [MessageLost, MessageLate] => ["S5"], seed 47;
    /// What the journal says of slots is forgotten at a restart.
    SlotForgotten: "slot-forgotten", [OrchestratorCrash] => ["S1", "journal"], seed 66;
    /// A client that is to be refused is granted a slot.
    GrantBeyondSlots: "grant-beyond-slots", [] => ["semaphore"], seed 46;
    /// A client is told that it holds a slot before that is in the journal.
    GrantBeforeCommit: "grant-before-commit", [] => ["semaphore"], seed 46;
    /// A client is refused a slot now and then that is free.
    RefusedThoughFree: "refused-though-free", [] => ["semaphore"], seed 46;
    /// A client that gives its slot back frees another's.
    UnlockFreesAnother: "unlock-frees-another", [] => ["semaphore"], seed 9;
    /// A client that gives its slot back ends what an operator wants held.
    UnlockEndsHold: "unlock-ends-hold", [] => ["semaphore"], seed 9;
    /// What the journal says of clients' slots is forgotten at a takeover.
    LockForgotten: "lock-forgotten", [OrchestratorCrash] => ["semaphore"], seed 32;
    /// A request that a follower passes on is carried out again some time later.
    CarriedOutTwice: "carried-out-twice", [] => ["semaphore"], seed 61;
    /// Who waits is forgotten at a takeover, so that hosts take no notice.
    WaitersForgotten: "waiters-forgotten", [OrchestratorCrash, OrchestratorStop] => ["fair"], seed 48;
    /// An operator takes back the slot of a host at work.
    TakenBackAtWork: "taken-back-at-work", [] => ["S6"], seed 12;
    /// Hosts that wait for approval, or are withdrawn, take part all the same.
    UnapprovedEnlisted: "unapproved-enlisted", [] => ["enrol"], seed 33;
    /// What the journal says of withdrawn hosts is forgotten at a takeover.
    WithdrawalForgotten: "withdrawal-forgotten", [OrchestratorCrash] => ["enrol"], seed 11;
    /// A new leader gives up whoever has not come back as far as it knows, before it has read what they have answered.
    GivenUpUnheard: "given-up-unheard", [OrchestratorCrash] => ["live"], seed 165;
    /// Commands are sent before what they follow from is in the journal.
    SentBeforeCommit: "sent-before-commit", [MessageLost, OrchestratorCrash] => ["S2", "S4"], seed 50;
    /// The orchestrator does not look at not-after once more when a command leaves it.
    NotAfterUncheckedByOrchestrator: "not-after-unchecked-by-orchestrator", [PausedInTheAct] => ["S2"], seed 201;
    /// The worker does not look at not-after.
    NotAfterUncheckedByWorker: "not-after-unchecked-by-worker", [WorkerCutOff, MessageLate] => ["S2"], seed 50;
    /// The worker acknowledges before it replies.
    AckBeforeReply: "ack-before-reply", [] => ["worker"], seed 48;
    /// A worker without a state file reboots when it is asked to.
    RebootWithoutStateFile: "reboot-without-state-file", [WorkerStateLost, PowerCut, WorkerCrash] => ["worker"], seed 7;
    /// A worker does not keep its state file.
    StateFileNotKept: "state-file-not-kept", [WorkerCrash, DeliveredTwice] => ["worker"], seed 58;
    /// 202 counts as a grant.
    GrantOn202: "grant-on-202", [LockOdd] => ["S4"], seed 17;
    /// The lock server is asked however long the process stood still before.
    LockWithoutLease: "lock-without-lease", [PausedInTheAct] => ["lease"], seed 59;
    /// The lock server is asked as often as there is something to ask.
    LockServerHurried: "lock-server-hurried", [] => ["rate"], seed 28;
    /// Nobody reads when the lock server wants to be asked again.
    RetryAfterIgnored: "retry-after-ignored", [LockLimited] => ["rate"], seed 10;
    /// A slot is given back as soon as a host fails, whatever the setting.
    SlotFreedOnFailure: "slot-freed-on-failure", [HandlerFails] => ["S6"], seed 6;
    /// The projection drops a record now and then.
    RecordNotProjected: "record-not-projected", [] => ["store"], seed 21;
    /// Somebody is told now and then that nothing was changed, when what they asked for was done.
    DoneCalledUnchanged: "done-called-unchanged", [] => ["S5", "semaphore"], seed 46;
    /// Readers are shown the present state only after somebody has been told of it, now and then.
    ShownLate: "shown-late", [] => ["shown"], seed 9;
    /// Readers are shown the present state before the store is given what led to it.
    ShownBeforeProjected: "shown-before-projected", [] => ["shown"], seed 21;
    /// Every instance logs what any has decided.
    LoggedByAll: "logged-by-all", [] => ["log"], seed 48;
    /// A secret that somebody has kept is not.
    SecretNotKept: "secret-not-kept", [] => ["S5"], seed 10;
    /// Workers are told that their run is stopping when they are sent a command.
    HintedForNothing: "hinted-for-nothing", [] => ["hint"], seed 47;
    /// A loss is believed at once, though a server of a cluster may only be behind.
    LossBelievedAtOnce: "loss-believed-at-once", [StaleLook, OrchestratorCutOff] => ["journal"], seed 11;
    /// A handler that was cut off is told that its command is new.
    ResumedAsNew: "resumed-as-new", [WorkerCrash, HandlerHangs] => ["S3"], seed 76;
    /// A worker's consumer is made anew from the beginning of the stream, again and again.
    ConsumerFromTheBeginning: "consumer-from-the-beginning", [WorkerStateLost, WorkerCrash] => ["S3"], seed 54;
}

impl Bug {
    /// The bug of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.as_str() == name)
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
