//! A run of one of the operator's commands, in the process of an instance.

use os_upgrade_kernel::{CommandJob, CommandOutcome};
use os_upgrade_shell::jobs::JobId;

use crate::time::Micros;

/// A run of one of the operator's commands.
#[derive(Debug)]
pub(crate) struct CommandRun {
    pub(crate) instance: usize,
    /// The number of the instance's process.
    pub(crate) process: u32,
    pub(crate) id: JobId,
    pub(crate) job: CommandJob,
    /// Its outcome, once it ends by itself or is killed because its time is up.
    pub(crate) outcome: CommandOutcome,
}

/// How a run goes: how long it takes, when it has its effect, if ever, and what it says.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) takes: Micros,
    pub(crate) acts_after: Option<Micros>,
    pub(crate) outcome: CommandOutcome,
}
