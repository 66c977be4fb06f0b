//! Jobs: work in systems outside of the bus. Jobs are effects of the state, so a crash loses none; their outcomes are
//! inputs.
//!
//! A system is a line of `systems!` and a type that implements [`SystemJob`], in the file `job.rs` of a folder: which jobs it
//! needs, and what follows from their outcomes.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::GroupName;

use crate::fact::Fact;
use crate::no_answer::NoAnswer;
use crate::node::{NodeJob, NodeOutcome};
use crate::reboot_queue::{CommandJob, CommandOutcome};
use crate::slot::{LockOutcome, SlotJob};
use crate::state::State;
use crate::system_job::{Subject, SystemJob};
use crate::view::View;

macro_rules! systems {
    ($(#[doc = $doc:literal] $system:ident($job:ty) -> $outcome:ty,)+) => {
        /// A system outside of the bus.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum System {
            $(#[doc = $doc] $system,)+
        }

        impl System {
            /// Every system.
            pub const ALL: [Self; [$(Self::$system),+].len()] = [$(Self::$system),+];
        }

        /// Something to do in a system outside of the bus. Repeating it does no harm; equal values are the same job.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Job {
            $(#[doc = $doc] $system($job),)+
        }

        /// The outcome of a job.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum JobDone {
            $(#[doc = $doc] $system($job, $outcome),)+
            /// The request was not made: the lease was about to expire, and another instance may lead by now.
            NotBegun(Job),
        }

        /// Every job that the state needs.
        pub(crate) fn wanted(state: &State) -> impl Iterator<Item = Job> + '_ {
            std::iter::empty()$(.chain(<$job>::wanted(state).map(Job::$system)))+
        }

        /// The facts that follow when a leadership begins: jobs of an earlier one may still be under way.
        pub(crate) fn leadership_began(state: &State) -> Vec<Fact> {
            std::iter::empty()$(.chain(<$job>::leadership_began(state)))+.collect()
        }

        impl Job {
            /// The system in which it is done.
            pub const fn system(&self) -> System {
                match self {
                    $(Self::$system(_) => System::$system,)+
                }
            }

            /// What it is about. A system has at most one job under way for a subject, whoever the job is for, and the next one
            /// waits until its outcome is committed.
            pub fn subject(&self) -> Subject {
                match self {
                    $(Self::$system(job) => job.subject(),)+
                }
            }

            /// Whether it releases what another job has taken. Such jobs go first.
            pub fn is_release(&self) -> bool {
                match self {
                    $(Self::$system(job) => job.is_release(),)+
                }
            }

            /// Whether a leader begins it only once it has read what its predecessors did.
            pub fn needs_fence(&self) -> bool {
                match self {
                    $(Self::$system(_) => <$job>::needs_fence(),)+
                }
            }

            /// The limited pool that it takes from or releases to, if any. A job that takes from a pool waits until a
            /// release that is due there has been tried.
            pub fn pool(&self) -> Option<&GroupName> {
                match self {
                    $(Self::$system(job) => job.pool(),)+
                }
            }

            /// The outcome of the job when there is no answer.
            pub fn unanswered(self, why: NoAnswer) -> JobDone {
                match self {
                    $(Self::$system(job) => JobDone::$system(job, <$job>::unanswered(why)),)+
                }
            }
        }

        $(impl $job {
            /// `job`, if it is one of this system.
            pub fn of(job: &Job) -> Option<&Self> {
                #[allow(irrefutable_let_patterns, reason = "there may be a single system")]
                if let Job::$system(job) = job { Some(job) } else { None }
            }
        })+

        impl JobDone {
            /// The job.
            pub fn job(&self) -> Job {
                match self {
                    $(Self::$system(job, _) => Job::$system(job.clone()),)+
                    Self::NotBegun(job) => job.clone(),
                }
            }

            /// Whether the system has granted or refused it; otherwise it is retried soon.
            pub fn is_answer(&self) -> bool {
                match self {
                    $(Self::$system(_, outcome) => <$job>::is_answer(outcome),)+
                    Self::NotBegun(_) => false,
                }
            }

            /// The facts that follow from the outcome.
            pub(crate) fn decide(&self, state: &State, view: &View, now: DateTime<Utc>) -> Vec<Fact> {
                match self {
                    $(Self::$system(job, outcome) => job.done(state, view, outcome, now),)+
                    Self::NotBegun(_) => Vec::new(),
                }
            }
        }
    };
}

systems! {
    /// A FleetLock server.
    LockServer(SlotJob) -> LockOutcome,
    /// A Kubernetes cluster.
    Cluster(NodeJob) -> NodeOutcome,
    /// The operator's commands that reboot hosts.
    RebootCommand(CommandJob) -> CommandOutcome,
}
