//! The state file, replies and acknowledgements: each is confirmed before the next and retried when it fails.

use os_upgrade_protocol::{Outcome, Reply, header, subject};

use super::{Activity, WorkerLogic, ignore};
use crate::limits::{ACK_ATTEMPTS_MAX, SAVE_ATTEMPTS_MAX, backoff};
use crate::log_message::{Ignored, LogMessage};
use crate::state_file::{Answer, Current, Phase};
use crate::{Action, Now, OutgoingReply};

const CURRENT: &str = "an answer belongs to a current command";

impl WorkerLogic {
    /// Saves the state; once it is saved, its phase begins.
    pub(super) fn save(&mut self, out: &mut Vec<Action>) {
        self.save_attempt(1, out);
    }

    pub(super) fn save_attempt(&mut self, attempt: u32, out: &mut Vec<Action>) {
        self.activity = Activity::Saving { attempt };
        out.push(Action::SaveState(Box::new(self.file.clone())));
    }

    pub(super) fn state_saved(&mut self, now: Now, out: &mut Vec<Action>) {
        match self.activity {
            Activity::Saving { .. } => self.proceed(now, out),
            Activity::NotStarted
            | Activity::Idle
            | Activity::SaveRetry { .. }
            | Activity::Handling(_)
            | Activity::Rebooting { .. }
            | Activity::Replying { .. }
            | Activity::ReplyRetry { .. }
            | Activity::Acking
            | Activity::AckRetry { .. } => ignore(Ignored::Unexpected("StateSaved"), out),
        }
    }

    pub(super) fn state_save_failed(&mut self, now: Now, error: &str, out: &mut Vec<Action>) {
        let Activity::Saving { attempt } = self.activity else {
            return ignore(Ignored::Unexpected("StateSaveFailed"), out);
        };
        let giving_up = attempt >= SAVE_ATTEMPTS_MAX;
        out.push(Action::Log(LogMessage::SaveFailed { attempt, error: error.to_owned(), giving_up }));
        if giving_up {
            self.proceed_unsaved(now, error, out);
        } else {
            let at = now.monotonic + backoff(attempt);
            self.activity = Activity::SaveRetry { attempt, at };
        }
    }

    /// Continues without a saved state: starts nothing, but replies with the error, so that the run learns of it.
    fn proceed_unsaved(&mut self, now: Now, error: &str, out: &mut Vec<Action>) {
        let Some(current) = &self.file.current else {
            return self.idle(now, out);
        };
        match current.phase {
            Phase::Preparing | Phase::Upgrading { .. } | Phase::Rebooting { .. } => {
                let message = format!("the worker cannot save its state file: {error}");
                self.record_outcome(Outcome::error(&message), out);
                self.reply(1, out);
            }
            Phase::Checking | Phase::Answered { .. } => self.proceed(now, out),
        }
    }

    pub(super) fn reply(&mut self, attempt: u32, out: &mut Vec<Action>) {
        if self.is_replaced() {
            // Its reply would count for the command that the stream has in its place.
            return self.settle_and_save(out);
        }
        let current = self.file.current.as_ref().expect(CURRENT);
        let Phase::Answered { outcome } = &current.phase else {
            unreachable!("only an answered command is replied to");
        };
        let sequence = current.position.sequence;
        let reply = Reply { action: current.action, result: outcome.clone() };
        let producer = header::worker_producer(&self.config.application, &self.config.host);
        let mut headers =
            vec![(header::PRODUCER_NAME, producer), (header::IN_REPLY_TO, sequence.to_string())];
        headers.extend(current.run.as_ref().map(|run| (header::RUN, run.to_string())));
        out.push(Action::Reply(OutgoingReply {
            sequence,
            command: current.id.clone(),
            subject: subject::reply(&self.config.host),
            payload: reply.to_payload(),
            headers,
        }));
        self.activity = Activity::Replying { attempt };
    }

    pub(super) fn reply_stored(&mut self, sequence: u64, out: &mut Vec<Action>) {
        match self.activity {
            Activity::Replying { .. } | Activity::ReplyRetry { .. } if self.is_current(sequence) => {
                if self.held.is_some() {
                    // The server no longer waits for it, and would take it for that of a command at the same sequence.
                    self.settle_and_save(out);
                } else {
                    self.ack(out);
                }
            }
            Activity::Replying { .. } | Activity::ReplyRetry { .. } => {
                ignore(Ignored::OtherCommand(sequence), out);
            }
            Activity::NotStarted
            | Activity::Idle
            | Activity::Saving { .. }
            | Activity::SaveRetry { .. }
            | Activity::Handling(_)
            | Activity::Rebooting { .. }
            | Activity::Acking
            | Activity::AckRetry { .. } => ignore(Ignored::Unexpected("ReplyStored"), out),
        }
    }

    pub(super) fn reply_failed(&mut self, now: Now, sequence: u64, error: String, out: &mut Vec<Action>) {
        let Activity::Replying { attempt } = self.activity else {
            return ignore(Ignored::Unexpected("ReplyFailed"), out);
        };
        if !self.is_current(sequence) {
            return ignore(Ignored::OtherCommand(sequence), out);
        }
        out.push(Action::Log(LogMessage::ReplyFailed { sequence, attempt, error }));
        // Attempts are not limited: without the reply the run would wait until its end.
        let at = now.monotonic + backoff(attempt);
        self.activity = Activity::ReplyRetry { attempt, at };
    }

    /// Acknowledges the current command. One that has not been delivered over this connection is only settled: if the server waits
    /// for its acknowledgement, it delivers it again.
    pub(super) fn ack(&mut self, out: &mut Vec<Action>) {
        let current = self.file.current.as_ref().expect(CURRENT);
        if current.ack_subject.is_empty() {
            return self.settle_and_save(out);
        }
        out.push(Action::Ack { sequence: current.position.sequence, subject: current.ack_subject.clone() });
        self.activity = Activity::Acking;
        self.acks += 1;
    }

    pub(super) fn acked(&mut self, sequence: u64, out: &mut Vec<Action>) {
        // The command was dropped or settled before; nothing waits for its acknowledgement.
        if !self.is_current(sequence) {
            return;
        }
        match self.activity {
            Activity::Acking | Activity::AckRetry { .. } => self.settle_and_save(out),
            Activity::NotStarted
            | Activity::Idle
            | Activity::Saving { .. }
            | Activity::SaveRetry { .. }
            | Activity::Handling(_)
            | Activity::Rebooting { .. }
            | Activity::Replying { .. }
            | Activity::ReplyRetry { .. } => ignore(Ignored::Unexpected("Acked"), out),
        }
    }

    pub(super) fn ack_failed(&mut self, now: Now, sequence: u64, error: String, out: &mut Vec<Action>) {
        let attempt = match self.activity {
            Activity::Acking if self.is_current(sequence) => self.acks,
            // The command was dropped or settled before: it is acknowledged again when it is redelivered.
            Activity::NotStarted
            | Activity::Idle
            | Activity::Saving { .. }
            | Activity::SaveRetry { .. }
            | Activity::Handling(_)
            | Activity::Rebooting { .. }
            | Activity::Replying { .. }
            | Activity::ReplyRetry { .. }
            | Activity::Acking
            | Activity::AckRetry { .. } => {
                out.push(Action::Log(LogMessage::AckFailed { sequence, attempt: 1, error, giving_up: true }));
                return;
            }
        };
        let giving_up = attempt >= ACK_ATTEMPTS_MAX;
        out.push(Action::Log(LogMessage::AckFailed { sequence, attempt, error, giving_up }));
        if giving_up {
            self.settle_and_save(out);
        } else {
            // Until then the stream may be rolled back to before the reply, which is therefore sent again first.
            let at = now.monotonic + backoff(attempt);
            self.activity = Activity::AckRetry { at };
        }
    }

    fn settle_and_save(&mut self, out: &mut Vec<Action>) {
        self.settle();
        self.save(out);
    }

    /// Settles the current command: it is answered, and acknowledged if the server still waits for that.
    pub(super) fn settle(&mut self) {
        let Current { position, id, action, phase, .. } = self.file.current.take().expect(CURRENT);
        if let Phase::Answered { outcome } = phase {
            self.file.remember(Answer { position, id, action, outcome });
        }
        self.file.settled = Some(position);
        self.acks = 0;
    }

    /// Whether the stream has another command at the sequence of the current one, which it has lost.
    fn is_replaced(&self) -> bool {
        self.held.as_ref().is_some_and(|held| self.is_current(held.sequence))
    }
}
