//! What a worker does when it starts, after a crash or a reboot say: it goes on from its state file.

use os_upgrade_protocol::Outcome;

use super::{Activity, WorkerLogic, ignore};
use crate::action::Action;
use crate::event::{Loaded, Now};
use crate::limits::HANDLER_STARTS_MAX;
use crate::log_message::{Ignored, LogMessage};
use crate::state_file::{BootId, Phase};

/// The number of a process's first connection.
const FIRST_CONNECTION: u64 = 1;

impl WorkerLogic {
    pub(super) fn started(&mut self, now: Now, loaded: Loaded, boot_id: BootId, out: &mut Vec<Action>) {
        if self.activity != Activity::NotStarted {
            return ignore(Ignored::AlreadyStarted, out);
        }
        self.boot_id = boot_id;
        self.activity = Activity::Idle;
        self.in_progress_at = now.monotonic;
        match loaded {
            Loaded::Nothing => {}
            Loaded::File(file) => {
                self.file = *file;
                self.resume(out);
            }
            Loaded::Corrupt { error } => {
                out.push(Action::Log(LogMessage::StateFileCorrupt { error }));
                // Saved immediately, so that the next start does not mistake this host for a new one.
                self.file.distrusted = true;
                self.save(out);
            }
        }
        self.versions.check(out);
    }

    /// Resumes the command that was under way according to the file.
    fn resume(&mut self, out: &mut Vec<Action>) {
        let Some(current) = &mut self.file.current else {
            return;
        };
        // It is of an earlier process's consumer; a delivery to this one brings another.
        current.ack_subject.clear();
        // This process answers it over its first connection, or a later one.
        self.last = Some((current.position, FIRST_CONNECTION));
        match &current.phase {
            Phase::Answered { .. } => self.reply(1, out),
            Phase::Rebooting { boot_id } => {
                if *boot_id == self.boot_id {
                    self.not_rebooted(out);
                } else {
                    self.rebooted(out);
                }
            }
            Phase::Preparing | Phase::Upgrading { .. } | Phase::Checking => self.begin_again(out),
        }
    }

    /// Restarts the handler of a phase that was cut off: counts the new start and saves it.
    fn begin_again(&mut self, out: &mut Vec<Action>) {
        let current = self.file.current.as_mut().expect("a phase is of a current command");
        if current.attempts >= HANDLER_STARTS_MAX {
            let action = current.action;
            let message = format!("{action} was cut off {HANDLER_STARTS_MAX} times");
            return self.answer(Outcome::error(&message), out);
        }
        current.attempts += 1;
        out.push(Action::Log(LogMessage::Resumed {
            sequence: current.position.sequence,
            action: current.action,
            attempt: current.attempts,
        }));
        self.save(out);
    }
}
