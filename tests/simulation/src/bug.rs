//! Bugs that are planted to see whether the checker finds them.
//!
//! None is in the code that ships: each is planted at its edge, where it meets the world, as a wrong adapter or a
//! missing line would be. Each has the seed that finds it in the fewest steps; `sim --find-bugs` prints all of them
//! anew.

use std::fmt;

use os_upgrade_kernel::Owner;

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

            /// Its name on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// The rules that find it.
            pub const fn found_by(self) -> &'static [&'static str] {
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

            /// The faults without which it has no effect.
            pub(crate) const fn needed_faults(self) -> &'static [Fault] {
                match self {
                    $(Self::$name => &[$(Fault::$fault),*],)+
                }
            }
        }
    };
}

bugs! {
    /// The journal accepts an append whatever sequence it expects.
    JournalUnfenced: "journal-unfenced", [PausedBeforeWrite] => ["journal"], seed 29;
    /// The control stream accepts a command whatever its fence.
    CommandUnfenced: "command-unfenced", [PausedBeforeWrite, OrchestratorPause, MessageLate] => ["S4", "once"], seed 11;
    /// A request that changes nothing is answered without an append.
    NoBarrier: "no-barrier", [OrchestratorPause, PausedBeforeWrite] => ["S5", "semaphore"], seed 4;
    /// A command whose acknowledgement is lost counts as not stored, and is sent again as a new message.
    LostAckIsFailure: "lost-ack-is-failure", [AnswerLost] => ["once"], seed 36;
    /// An append without an acknowledgement counts as stored.
    LostAckIsSuccess: "lost-ack-is-success", [MessageLost, MessageLate] => ["S5"], seed 22;
    /// Grants of slots to hosts are forgotten at a restart.
    SlotForgotten: "slot-forgotten", [OrchestratorCrash] => ["S1", "journal"], seed 44;
    /// A client that should be refused is granted a slot.
    GrantBeyondSlots: "grant-beyond-slots", [] => ["semaphore"], seed 29;
    /// A client is told that it holds a slot before that is in the journal.
    GrantBeforeCommit: "grant-before-commit", [] => ["semaphore"], seed 29;
    /// A client is sometimes refused a slot although one is free.
    RefusedThoughFree: "refused-though-free", [] => ["semaphore"], seed 29;
    /// A client that gives its slot back frees another's.
    UnlockFreesAnother: "unlock-frees-another", [] => ["semaphore"], seed 31;
    /// A client that gives its slot back ends an operator's hold.
    UnlockEndsHold: "unlock-ends-hold", [] => ["semaphore"], seed 29;
    /// Grants of slots to clients are forgotten at a takeover.
    LockForgotten: "lock-forgotten", [OrchestratorCrash] => ["semaphore"], seed 29;
    /// A request that a follower passes on is carried out again some time later.
    CarriedOutTwice: "carried-out-twice", [] => ["semaphore"], seed 38;
    /// Waiters are forgotten at a takeover, so that hosts ignore them.
    WaitersForgotten: "waiters-forgotten", [OrchestratorCrash, OrchestratorStop] => ["fair"], seed 53;
    /// Hosts have their turns by name.
    TurnsByName: "turns-by-name", [] => ["turn"], seed 1;
    /// Hosts leave free slots to clients that do not come back, as long as these are remembered.
    LeftForTooLong: "left-for-too-long", [] => ["fair"], seed 22;
    /// An operator releases the slot of a host at work.
    TakenBackAtWork: "taken-back-at-work", [] => ["S6"], seed 40;
    /// Hosts that wait for approval, or are withdrawn, take part.
    UnapprovedEnlisted: "unapproved-enlisted", [] => ["enrol"], seed 22;
    /// Withdrawals are forgotten at a takeover.
    WithdrawalForgotten: "withdrawal-forgotten", [OrchestratorCrash] => ["enrol"], seed 29;
    /// Removals are forgotten at a takeover, so that removed hosts are approved automatically.
    RemovalForgotten: "removal-forgotten", [OrchestratorCrash] => ["enrol"], seed 74;
    /// Pauses are forgotten at a takeover.
    PauseForgotten: "pause-forgotten", [OrchestratorCrash] => ["paused"], seed 35;
    /// How long a host takes is forgotten at a takeover.
    ExpectedForgotten: "expected-forgotten", [OrchestratorCrash] => ["fits"], seed 9;
    /// Deferrals are forgotten at a takeover.
    DeferralForgotten: "deferral-forgotten", [OrchestratorCrash] => ["deferred"], seed 27;
    /// A deferral that has an end is over at once.
    DeferralEndsEarly: "deferral-ends-early", [] => ["deferred"], seed 53;
    /// Hosts are prepared again without end.
    RetriesUnbounded: "retries-unbounded", [HandlerFails] => ["retries"], seed 720;
    /// All hosts are prepared at once.
    PreparingUnbounded: "preparing-unbounded", [] => ["preparing"], seed 23;
    /// Hosts are prepared by name.
    PreparedByName: "prepared-by-name", [] => ["turn"], seed 12;
    /// Hosts have a second to answer.
    TimeoutsShortened: "timeouts-shortened", [] => ["early"], seed 68;
    /// A run of chosen hosts leaves one out.
    TargetLeftOut: "target-left-out", [] => ["target"], seed 95;
    /// A run that did not reach everybody is called completed.
    ResultGlossed: "result-glossed", [] => ["result"], seed 27;
    /// Slots of failed hosts count, whatever the settings.
    FailedCounted: "failed-counted", [] => ["starved"], seed 10;
    /// Slots of many failed hosts do not count.
    FailedUncounted: "failed-uncounted", [HandlerFails] => ["S1", "semaphore"], seed 424;
    /// A new leader gives up hosts that have not come back, before it has read their answers.
    GivenUpUnheard: "given-up-unheard", [OrchestratorCrash] => ["live"], seed 36;
    /// Commands are sent before the facts that they follow from are in the journal.
    SentBeforeCommit: "sent-before-commit", [MessageLost, OrchestratorCrash] => ["S2", "S4"], seed 36;
    /// Jobs begin before the facts that they follow from are in the journal.
    JobBeforeCommit: "job-before-commit", [MessageLost, OrchestratorCrash] => ["S4", "S6", "live"], seed 248;
    /// The orchestrator does not check `not-after` again when a command leaves it.
    NotAfterUncheckedByOrchestrator: "not-after-unchecked-by-orchestrator", [PausedBeforeWrite] => ["S2"], seed 32;
    /// The worker does not check `not-after`.
    NotAfterUncheckedByWorker: "not-after-unchecked-by-worker", [WorkerCutOff, MessageLate] => ["S2"], seed 65;
    /// The worker acknowledges before it replies.
    AckBeforeReply: "ack-before-reply", [] => ["worker"], seed 40;
    /// A worker without a state file carries out a `reboot`.
    RebootWithoutStateFile: "reboot-without-state-file", [WorkerStateLost, PowerCut, WorkerCrash] => ["worker"], seed 36;
    /// A worker does not save its state file.
    StateFileNotKept: "state-file-not-kept", [WorkerCrash, DeliveredTwice] => ["worker"], seed 39;
    /// 202 counts as a grant.
    GrantOn202: "grant-on-202", [LockAnswers202] => ["S4"], seed 8;
    /// The lock server is asked even though the process was paused for longer than its lease.
    LockWithoutLease: "lock-without-lease", [PausedBeforeWrite] => ["lease"], seed 90;
    /// A request to the lock server that times out counts as not made.
    LateRequestForgotten: "late-request-forgotten", [LockCarriedOutLate] => ["S4", "S6", "live"], seed 255;
    /// Requests to the lock server are not paced.
    LockServerHurried: "lock-server-hurried", [] => ["rate"], seed 44;
    /// The lock server's `Retry-After` is ignored.
    RetryAfterIgnored: "retry-after-ignored", [LockAnswers429] => ["rate"], seed 44;
    /// A slot is given back when its host fails, whatever the setting.
    SlotFreedOnFailure: "slot-freed-on-failure", [HandlerFails] => ["S6"], seed 32;
    /// What a store lacks before the records that it is given is not read from the journal.
    StoreNotFilled: "store-not-filled", [StoreLost, StoreOlder, OrchestratorCrash] => ["store"], seed 39;
    /// A caller whose request was carried out is sometimes told that nothing was changed.
    DoneCalledUnchanged: "done-called-unchanged", [] => ["S5", "semaphore"], seed 33;
    /// Readers are sometimes shown a state that is older than an answer already given.
    ShownLate: "shown-late", [] => ["shown"], seed 31;
    /// Readers are shown a state before the store has received the records that led to it.
    ShownBeforeProjected: "shown-before-projected", [] => ["shown"], seed 15;
    /// Every instance logs the decisions of all.
    LoggedByAll: "logged-by-all", [] => ["log"], seed 28;
    /// A secret that was accepted is not stored.
    SecretNotKept: "secret-not-kept", [] => ["S5"], seed 22;
    /// Workers are told that their run is stopping when they are sent a command.
    HintedForNothing: "hinted-for-nothing", [] => ["hint"], seed 27;
    /// A loss is believed at once, although a server of a cluster may only be behind.
    LossBelievedAtOnce: "loss-believed-at-once", [StaleRead, OrchestratorCutOff] => ["journal"], seed 13;
    /// The journal is trimmed to its end, where no snapshot is.
    TrimmedWithoutSnapshot: "trimmed-without-snapshot", [] => ["trim"], seed 30;
    /// The journal is trimmed before every store has what is deleted.
    TrimmedUnstored: "trimmed-unstored", [OrchestratorCutOff, OrchestratorCrash] => ["trim"], seed 30;
    /// Messages are purged from the control stream that no orchestrator has read.
    ControlPurgedUnread: "control-purged-unread", [] => ["trim"], seed 33;
    /// The streams are not looked at again by an instance that leads.
    LossSoughtOnce: "loss-sought-once", [StreamsPurged] => ["loss"], seed 22;
    /// Of a stream only its last sequence and last message are looked at.
    PurgeHidden: "purge-hidden", [StreamsPurged] => ["loss"], seed 40;
    /// A leader does not see that messages after the journal's end were deleted.
    StrayHidden: "stray-hidden", [StrayMessage] => ["live"], seed 39;
    /// A process is not told that another one of its instance has taken the lease from it.
    CopyHidden: "copy-hidden", [DirectoryCopied] => ["copy"], seed 53;
    /// An older version leaves out the facts that it does not know.
    UnknownFactsDropped: "unknown-facts-dropped", [OlderVersion] => ["journal"], seed 53;
    /// A handler that was interrupted is told that its command is new.
    ResumedAsNew: "resumed-as-new", [WorkerCrash, HandlerHangs] => ["S3"], seed 76;
    /// A worker's consumer is created again from the beginning of the stream each time it is opened.
    ConsumerFromTheBeginning: "consumer-from-the-beginning", [WorkerStateLost, WorkerCrash] => ["S3"], seed 39;
    /// A worker does not answer again what it has answered.
    AnsweredOnce: "answered-once", [MachineRolledBack] => ["live"], seed 90;
    /// A worker does not see that a command is one that it has carried out.
    IdsUnread: "ids-unread", [MachineRolledBack] => ["S3"], seed 1460;
    /// Heartbeats are read without the times that they contain.
    HostTimesUnread: "host-times-unread", [BusClockStep] => ["clock"], seed 6;
    /// The times of records are not read.
    RecordTimesUnread: "record-times-unread", [TimeLost] => ["clock"], seed 99;
    /// That a run was missed is not recorded.
    MissedUnrecorded: "missed-unrecorded", [BusCrash, BusAwayForHours] => ["missed", "live"], seed 52;
    /// A run is recorded as missed although it has started.
    MissedThoughStarted: "missed-though-started", [] => ["missed"], seed 30;
    /// The bus's time of a renewal of the lease is taken from the instance's own clock.
    OwnTimeForBusTime: "own-time-for-bus-time", [ClockStep] => ["clock"], seed 266;
    /// A host that is to be told to reboot on request counts as told after a crash.
    RebootCommandLost: "reboot-command-lost", [OrchestratorCrash, KilledBeforeWrite] => ["live", "journal"], seed 28;
    /// An entry of the reboot queue that is cancelled while its host reboots ends at once, and frees its slot.
    CancelEndsReboot: "cancel-ends-reboot", [] => ["S6"], seed 47;
    /// The slots of hosts that reboot on request are freed when the reboot queue is disabled.
    DisableUndoes: "disable-undoes", [] => ["queue", "S6"], seed 29;
    /// That the reboot queue is disabled is forgotten at a takeover.
    DisabledForgotten: "disabled-forgotten", [OrchestratorCrash] => ["queue", "S5"], seed 10;
    /// The reboot queue starts one more entry than it may.
    QueueUnlimited: "queue-unlimited", [] => ["queue"], seed 14;
    /// An entry of the reboot queue starts on a host that is at work in a run.
    QueueBesideRun: "queue-beside-run", [] => ["queue"], seed 45;
    /// Any `done` of a host ends its reboot on request.
    AnyDoneEndsReboot: "any-done-ends-reboot", [] => ["lost", "S6"], seed 121;
    /// A `reboot` that is not answered soon is sent again, for the boot in which the host is by then.
    RebootTriedAgain: "reboot-tried-again", [] => ["queue", "doubled"], seed 22;
    /// A worker does not look at which boot it is told to leave.
    BootIdIgnored: "boot-id-ignored", [WorkerCrash, WorkerStateLost] => ["doubled"], seed 53;
    /// The slot of a host is released before its node is known to be uncordoned.
    ReleasedBeforeUncordon: "released-before-uncordon", [] => ["cordon"], seed 36;
    /// Pods whose eviction was accepted count as gone, so that hosts are told to upgrade before their nodes are drained.
    SentBeforeDrained: "sent-before-drained", [] => ["drain"], seed 0;
    /// A list of pods is answered from what was seen before, so that nobody looks at a node again before its host reboots.
    RebootUnchecked: "reboot-unchecked", [] => ["drain"], seed 21;
    /// Two nodes start together, and one of them is an API server.
    TwoServersAtOnce: "two-servers-at-once", [] => ["servers"], seed 36;
    /// The node of a host that reboots is uncordoned when its entry is cancelled.
    CancelUncordons: "cancel-uncordons", [] => ["cordon"], seed 49;
    /// Nodes that are under way are swept as if nothing needed their cordons.
    SweptUnderWay: "swept-under-way", [] => ["cordon"], seed 0;
    /// The fence in the mark of a node is not looked at, so that a deposed leader's requests are carried out.
    MarkUnfenced: "mark-unfenced", [KubernetesLate, OrchestratorCrash] => ["fence"], seed 38;
    /// That a node was cordoned before is not written into its mark.
    AdminCordonForgotten: "admin-cordon-forgotten", [CordonedByAdmin] => ["admin"], seed 0;
    /// The pause after a drain that was given up is none.
    BackoffOverflows: "backoff-overflows", [] => ["backoff"], seed 9;
    /// The limit of unreachable nodes is another than the one that is configured.
    UnreachableUnlimited: "unreachable-unlimited", [BootHangs] => ["unreachable"], seed 93;
    /// An attempt to reboot a host by command whose outcome is unknown is repeated at once.
    UnknownRepeated: "unknown-repeated", [CommandKilled] => ["doubled"], seed 29;
    /// An entry whose reboot command was run is undone as soon as it is cancelled.
    CancelUndoesAttempt: "cancel-undoes-attempt", [] => ["queue"], seed 19;
    /// A leader runs the reboot command again for an attempt that its predecessor began.
    AttemptRunAgain: "attempt-run-again", [OrchestratorCrash, KilledBeforeWrite] => ["doubled"], seed 27;
    /// A host counts as rebooted although its reboot command has failed, or nobody knows what it did.
    FailedCountsAsBooted: "failed-counts-as-booted", [CommandFails, CommandKilled] => ["lost"], seed 26;
    /// What a boot check does not know counts as a boot.
    NotBootedCountsAsBooted: "not-booted-counts-as-booted", [BootCheckFails] => ["lost"], seed 38;
    /// A list of pods is answered from what was seen before, so that nobody looks at a node again before its reboot command is
    /// repeated.
    RepeatedUndrained: "repeated-undrained", [CommandKilled] => ["drain"], seed 52;
    /// The nodes of entries that are under way are uncordoned when the reboot queue is disabled, as CKE's were.
    DisableUncordons: "disable-uncordons", [] => ["cordon"], seed 22;
    /// Pods of the site itself are evicted.
    OwnPodsEvicted: "own-pods-evicted", [] => ["evict"], seed 0;
    /// Items and manifests are stored whatever their fence.
    DesiredUnfenced: "desired-unfenced", [PausedBeforeWrite, OrchestratorPause, MessageLate] => ["succession"], seed 2;
    /// A manifest is stored once more later, whatever its fence and whatever is stored by then.
    ManifestRepeated: "manifest-repeated", [] => ["older", "succession"], seed 2;
    /// What a provider has for one host is sealed to another.
    GivenToAnother: "given-to-another", [] => ["given"], seed 0;
    /// An item that was not stored, or perhaps not, counts as stored.
    LostItemIsStored: "lost-item-is-stored", [MessageLost] => ["named"], seed 39;
    /// What a provider gives is sealed to the first key of a host, whichever is approved.
    SealedToFirstKey: "sealed-to-first-key", [KeyChanged] => ["sealed"], seed 0;
    /// A provider that has nothing for a host any more counts as one that has failed.
    RevocationForgotten: "revocation-forgotten", [] => ["delivered"], seed 26;
    /// Items that are older than the fence are deleted although the manifest names them.
    NamedSwept: "named-swept", [OrchestratorCrash] => ["named"], seed 0;
    /// After a restoration hosts are told what they are to have before an operator says so.
    ResumedByItself: "resumed-by-itself", [MachineRolledBack] => ["resumed"], seed 0;
    /// With the items of a removed host, its manifest is deleted, which says that it is to have nothing.
    EmptyManifestPurged: "empty-manifest-purged", [] => ["delivered"], seed 10;
    /// A worker that finds no manifest does not report what it has.
    AbsenceUnreported: "absence-unreported", [MachineRolledBack] => ["delivered"], seed 16;
    /// Call-backs of providers are forgotten at a takeover.
    CallBackForgotten: "call-back-forgotten", [OrchestratorCrash, ProviderDown] => ["delivered"], seed 19;
    /// A leader tells a provider once that a host joins it, and not again for another approval of the host.
    JoinOncePerLeadership: "join-once-per-leadership", [] => ["told"], seed 0;
    /// The members of a provider's answer are taken in the order of the call, whatever device they name.
    MembersByPosition: "members-by-position", [] => ["given"], seed 0;
    /// A new leader repeats the last poll of its predecessor.
    PollRepeated: "poll-repeated", [OrchestratorCrash] => ["asked"], seed 50;
    /// Instead of being polled, a provider is told again of the last spec of a host, to which it has answered.
    SpecToldAgain: "spec-told-again", [] => ["asked"], seed 0;
    /// A unit that is taken away from a machine counts as stopped at once.
    StopNotAwaited: "stop-not-awaited", [] => ["apart"], seed 29;
    /// The heartbeats of an agent are read as those of its host.
    AgentUnheard: "agent-unheard", [] => ["silent"], seed 0;
    /// However many agents are silent, each of their machines counts as lost.
    MassBelieved: "mass-believed", [AgentsSilent] => ["mass"], seed 22;
    /// Whichever item a host reports of a unit, it counts as the one that it is to have.
    ReportedIdsUnread: "reported-ids-unread", [] => ["launched"], seed 0;
    /// Units are placed on the first machine, whatever they ask for.
    PlacedAnywhere: "placed-anywhere", [] => ["placed"], seed 47;
    /// A manifest is stored without the units that it names.
    UnitsUnstored: "units-unstored", [] => ["named"], seed 0;
}

impl Bug {
    /// Whether it is about operators who steer runs.
    pub(crate) const fn is_of_steering(self) -> bool {
        matches!(
            self,
            Self::PauseForgotten
                | Self::DeferralForgotten
                | Self::DeferralEndsEarly
                | Self::RetriesUnbounded
                | Self::PreparingUnbounded
                | Self::PreparedByName
                | Self::TimeoutsShortened
                | Self::TargetLeftOut
                | Self::ResultGlossed
                | Self::FailedCounted
                | Self::FailedUncounted
                | Self::ExpectedForgotten
        )
    }

    /// Whether it is one of the reboot queue.
    pub(crate) const fn is_of_queue(self) -> bool {
        matches!(
            self,
            Self::RebootCommandLost
                | Self::CancelEndsReboot
                | Self::DisableUndoes
                | Self::DisabledForgotten
                | Self::QueueUnlimited
                | Self::QueueBesideRun
                | Self::AnyDoneEndsReboot
                | Self::RebootTriedAgain
                | Self::BootIdIgnored
        ) || self.is_of_command()
    }

    /// Whether it is one of the work on Kubernetes nodes.
    pub(crate) const fn is_of_cluster(self) -> bool {
        matches!(
            self,
            Self::ReleasedBeforeUncordon
                | Self::SentBeforeDrained
                | Self::RebootUnchecked
                | Self::TwoServersAtOnce
                | Self::CancelUncordons
                | Self::DisableUncordons
                | Self::SweptUnderWay
                | Self::MarkUnfenced
                | Self::AdminCordonForgotten
                | Self::BackoffOverflows
                | Self::OwnPodsEvicted
                | Self::UnreachableUnlimited
                | Self::RepeatedUndrained
        )
    }

    /// Whether it is one of the operator's command that reboots hosts.
    pub(crate) const fn is_of_command(self) -> bool {
        matches!(
            self,
            Self::UnknownRepeated
                | Self::CancelUndoesAttempt
                | Self::AttemptRunAgain
                | Self::FailedCountsAsBooted
                | Self::NotBootedCountsAsBooted
                | Self::RepeatedUndrained
        )
    }

    /// Whether it is one of the delivery of what hosts are to have.
    pub(crate) const fn is_of_delivery(self) -> bool {
        matches!(
            self,
            Self::DesiredUnfenced
                | Self::ManifestRepeated
                | Self::GivenToAnother
                | Self::LostItemIsStored
                | Self::SealedToFirstKey
                | Self::RevocationForgotten
                | Self::NamedSwept
                | Self::ResumedByItself
                | Self::EmptyManifestPurged
                | Self::AbsenceUnreported
        ) || self.is_of_hooks()
    }

    /// Whether it is one of providers that are told of events and call back.
    pub(crate) const fn is_of_hooks(self) -> bool {
        matches!(
            self,
            Self::CallBackForgotten
                | Self::JoinOncePerLeadership
                | Self::MembersByPosition
                | Self::PollRepeated
                | Self::SpecToldAgain
        )
    }

    /// Whether it is one of units.
    pub(crate) const fn is_of_units(self) -> bool {
        matches!(
            self,
            Self::StopNotAwaited
                | Self::AgentUnheard
                | Self::MassBelieved
                | Self::ReportedIdsUnread
                | Self::PlacedAnywhere
                | Self::UnitsUnstored
        )
    }

    /// Whether a list of the pods of a node that was empty for this run or entry is answered from memory.
    pub(crate) fn remembers(self, owner: &Owner) -> bool {
        let is_entry = || owner.entry().is_some();
        self == Self::RebootUnchecked || (self == Self::RepeatedUndrained && is_entry())
    }

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
