//! Jobs: work in systems outside of the bus. What is to be done there is an effect of the state, so that a crash loses
//! none; what became of it comes back as an input.
//!
//! A system is a line of `systems!` and a module, which implements [`SystemJob`] for its jobs: what is to be done there,
//! and what follows from what was done.

mod lock_server;
mod system_job;

use os_upgrade_protocol::{GroupName, HostName};

pub use self::lock_server::{LockOutcome, SlotJob, SlotOrder};
use self::system_job::SystemJob;
use crate::fact::Fact;
use crate::reason::NoAnswer;
use crate::state::State;
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

        /// Something to do in a system outside of the bus. Doing it twice does no harm; what tells one from another is
        /// its whole value.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Job {
            $(#[doc = $doc] $system($job),)+
        }

        /// What became of a job.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum JobDone {
            $(#[doc = $doc] $system($job, $outcome),)+
            /// Its system was not asked: the lease was running out, and another may lead by now.
            NotBegun(Job),
        }

        /// Everything that is to be done outside of the bus.
        pub(crate) fn wanted(state: &State) -> impl Iterator<Item = Job> + '_ {
            std::iter::empty()$(.chain(<$job>::wanted(state).map(Job::$system)))+
        }

        impl Job {
            /// Where it is to be done.
            pub const fn system(&self) -> System {
                match self {
                    $(Self::$system(_) => System::$system,)+
                }
            }

            /// The host it is about. Of the jobs about one host only one is under way in a system, so that a contrary one
            /// waits for its return.
            pub fn host(&self) -> &HostName {
                match self {
                    $(Self::$system(job) => job.host(),)+
                }
            }

            /// Whether it gives back what another has taken. Such jobs go first.
            pub fn is_release(&self) -> bool {
                match self {
                    $(Self::$system(job) => job.is_release(),)+
                }
            }

            /// What it takes from, or gives back to, if that may have nothing left: who would take waits until a release
            /// that is due there has been tried.
            pub fn pool(&self) -> Option<&GroupName> {
                match self {
                    $(Self::$system(job) => job.pool(),)+
                }
            }

            /// The job without an answer.
            pub fn unanswered(self, why: NoAnswer) -> JobDone {
                match self {
                    $(Self::$system(job) => JobDone::$system(job, <$job>::unanswered(why)),)+
                }
            }
        }

        impl JobDone {
            /// What was to be done.
            pub fn job(&self) -> Job {
                match self {
                    $(Self::$system(job, _) => Job::$system(job.clone()),)+
                    Self::NotBegun(job) => job.clone(),
                }
            }

            /// Whether the system has said yes or no; otherwise it is asked again soon.
            pub fn is_answer(&self) -> bool {
                match self {
                    $(Self::$system(_, outcome) => <$job>::is_answer(outcome),)+
                    Self::NotBegun(_) => false,
                }
            }

            /// What follows from it.
            pub(crate) fn decide(&self, state: &State, view: &View) -> Vec<Fact> {
                match self {
                    $(Self::$system(job, outcome) => job.done(state, view, outcome),)+
                    Self::NotBegun(_) => Vec::new(),
                }
            }
        }
    };
}

systems! {
    /// A FleetLock server.
    LockServer(SlotJob) -> LockOutcome,
}
