//! Decides about each delivered command: whether it is the one under way, was answered or dropped before, or is new.
//! [`crate::state_file`] says what identifies it.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{self as protocol, Command, CommandId, Outcome, RunId, limits, subject};

use super::{Activity, WorkerLogic, has_passed};
use crate::log_message::{DropReason, LogMessage};
use crate::state_file::{Answer, Current, Phase, Position, RebootDue};
use crate::{Action, Now, Received};

/// The answer to `reboot` after the state file was damaged.
const DISTRUSTED: &str =
    "the worker's state file could not be read, so it is unknown whether the host has rebooted";

/// Possible reasons why a worker without a matching `prepare` receives an `upgrade`.
const UNPREPARED: &str =
    "this worker has done nothing: its state was lost since, or another worker serves this host as well";

/// The decision about a command.
enum Verdict {
    /// Only acknowledge it.
    Drop(DropReason),
    /// Save this phase and `not-after`, then begin the phase.
    Begin(Phase, Option<DateTime<Utc>>),
    /// Answer immediately.
    Answer(Outcome),
}

impl WorkerLogic {
    pub(super) fn command_received(&mut self, now: Now, received: Received, out: &mut Vec<Action>) {
        let position = received.position();
        if let Some(current) = &mut self.file.current {
            if current.position == position {
                // A new consumer delivers it with another ack subject; the old subject may no longer work.
                current.ack_subject = received.ack_subject;
                // What was held is no longer at the server if the stream was rolled back; if it is, it is delivered again.
                self.held = None;
                out.push(Action::Log(LogMessage::Redelivered {
                    sequence: position.sequence,
                    delivered: received.delivered,
                }));
                let delivery = Some((position, received.connection));
                let on_this_connection = std::mem::replace(&mut self.last, delivery) == delivery;
                return self.redelivered(on_this_connection, out);
            }
            if !matches!(self.activity, Activity::Acking | Activity::AckRetry { .. }) {
                let behind = current.position.sequence;
                return self.hold(received, behind, out);
            }
            // The server no longer waits for that acknowledgement. If it has arrived, it may have counted for this
            // command, which is then not delivered again: the next save has to include it.
            self.settle();
            self.activity = Activity::Idle;
        }
        if self.activity != Activity::Idle {
            let behind = self.file.settled.map_or(0, |settled| settled.sequence);
            return self.hold(received, behind, out);
        }
        self.decide(now, &received, out);
    }

    /// The command under way was delivered again. If it only lacks its acknowledgement, the server has lost that, and if
    /// there is a new connection, possibly the reply too.
    fn redelivered(&mut self, on_this_connection: bool, out: &mut Vec<Action>) {
        match self.activity {
            Activity::Acking | Activity::AckRetry { .. } => {
                self.acks = 0;
                if on_this_connection {
                    self.ack(out);
                } else {
                    self.reply(1, out);
                }
            }
            Activity::NotStarted
            | Activity::Idle
            | Activity::Saving { .. }
            | Activity::SaveRetry { .. }
            | Activity::Handling(_)
            | Activity::Rebooting { .. }
            | Activity::Replying { .. }
            | Activity::ReplyRetry { .. } => {}
        }
    }

    fn hold(&mut self, received: Received, behind: u64, out: &mut Vec<Action>) {
        out.push(Action::Log(LogMessage::Held { sequence: received.sequence, behind }));
        self.held = Some(received);
    }

    fn decide(&mut self, now: Now, received: &Received, out: &mut Vec<Action>) {
        let position = received.position();
        let parsed = self.parse(received);
        let id = self.id(received, parsed.as_ref().ok());
        let answer = self.file.answer_to(id.as_ref(), position);
        let on_this_connection = self.last == Some((position, received.connection));
        if let Some(answer) = answer.filter(|_| !on_this_connection) {
            return self.answer_again(now, received, answer.clone(), out);
        }
        if answer.is_some() || self.file.settled == Some(position) {
            out.push(Action::Log(LogMessage::AlreadySettled { sequence: position.sequence }));
            out.extend(received.ack());
            return;
        }
        let command = match parsed {
            Ok(command) => command,
            Err(reason) => return self.drop_received(received, reason, out),
        };
        let run = received.run(out);
        let sequence = received.sequence;
        let (phase, not_after, outcome) = match self.judge(now, received, &command, run.as_ref(), out) {
            Verdict::Drop(reason) => return self.drop_received(received, reason, out),
            Verdict::Begin(phase, not_after) => (phase, not_after, None),
            // The phase is a placeholder; `answer` replaces it.
            Verdict::Answer(outcome) => (Phase::Checking, command.not_after(), Some(outcome)),
        };
        let action = command.action();
        self.begin(now, received, Current { not_after, ..received.current(id, action, run, phase) });
        if let Some(outcome) = outcome {
            return self.answer(outcome, out);
        }
        out.push(Action::Log(LogMessage::Begun { sequence, action }));
        self.save(out);
    }

    /// Sends an answer again, by way of the state file like any other.
    fn answer_again(&mut self, now: Now, received: &Received, answer: Answer, out: &mut Vec<Action>) {
        let Answer { id, action, outcome, .. } = answer;
        out.push(Action::Log(LogMessage::AnsweredAgain {
            sequence: received.sequence,
            action,
            result: outcome.as_str().to_owned(),
        }));
        let run = received.run(out);
        self.begin(now, received, received.current(id, action, run, Phase::Answered { outcome }));
        self.save(out);
    }

    fn begin(&mut self, now: Now, received: &Received, current: Current) {
        self.last = Some((current.position, received.connection));
        self.file.current = Some(current);
        self.in_progress_at = now.monotonic;
    }

    /// The command's id. One that names another host or action is of a controller that gives one id to several commands.
    fn id(&self, received: &Received, command: Option<&Command>) -> Option<CommandId> {
        let id: CommandId = received.id_header.as_deref()?.parse().ok()?;
        let action = command?.action();
        (id.host == self.config.host && id.action == action).then_some(id)
    }

    fn parse(&self, received: &Received) -> Result<Command, DropReason> {
        if received.subject != subject::command(&self.config.host) {
            return Err(DropReason::OtherSubject(limits::bounded_message(&received.subject)));
        }
        let command = Command::parse(&received.payload)
            .map_err(|error| DropReason::Malformed(limits::bounded_message(&with_causes(&error))))?;
        if command.is_for(&self.config.host) {
            Ok(command)
        } else {
            Err(DropReason::OtherHost(self.config.host.clone()))
        }
    }

    fn judge(
        &mut self,
        now: Now,
        received: &Received,
        command: &Command,
        run: Option<&RunId>,
        out: &mut Vec<Action>,
    ) -> Verdict {
        let not_after = command.not_after();
        if let Some(at) = not_after.filter(|_| has_passed(now, not_after)) {
            return Verdict::Drop(DropReason::Expired(at));
        }
        match command {
            Command::Prepare { .. } => {
                // From here on no upgrade builds on the earlier prepare, and no reboot on its upgrade.
                self.file.prepared = None;
                self.file.reboot_due = None;
                Verdict::Begin(Phase::Preparing, not_after)
            }
            Command::Upgrade { .. } => self.judge_upgrade(now, received, not_after, run),
            Command::Reboot { boot_id: Some(leave), .. } => {
                self.judge_requested_reboot(received.sequence, not_after, leave, out)
            }
            Command::Reboot { boot_id: None, .. } => {
                self.judge_reboot(now, received.sequence, not_after, run, out)
            }
        }
    }

    fn judge_upgrade(
        &mut self,
        now: Now,
        received: &Received,
        not_after: Option<DateTime<Utc>>,
        run: Option<&RunId>,
    ) -> Verdict {
        let unprepared = |reason: DropReason| {
            // A controller that names a run has sent a prepare for it; without an answer it would wait until the end of
            // the run. But if this command may have been begun already, an answer could contradict the work under way.
            if run.is_some() && received.is_first_delivery() && !self.file.distrusted {
                return Verdict::Answer(Outcome::error(&format!("{reason}; {UNPREPARED}")));
            }
            Verdict::Drop(reason)
        };
        let Some(prepared) = &self.file.prepared else { return unprepared(DropReason::NotPrepared) };
        if let Some(other) = other_run(prepared.run.as_ref(), run) {
            return unprepared(DropReason::PreparedForOtherRun(other));
        }
        let prepared_until = prepared.not_after;
        if let Some(at) = prepared_until.filter(|_| has_passed(now, prepared_until)) {
            return Verdict::Drop(DropReason::PrepareExpired(at));
        }
        let not_after = earlier(not_after, prepared_until);
        self.file.prepared = None;
        self.file.reboot_due = None;
        let boot_id = self.boot_id.clone();
        Verdict::Begin(Phase::Upgrading { boot_id }, not_after)
    }

    fn judge_reboot(
        &mut self,
        now: Now,
        sequence: u64,
        not_after: Option<DateTime<Utc>>,
        run: Option<&RunId>,
        out: &mut Vec<Action>,
    ) -> Verdict {
        if self.file.distrusted {
            return Verdict::Answer(Outcome::error(DISTRUSTED));
        }
        let boot_id = self.boot_id.clone();
        // A reboot is due if this run's upgrade required it and the host has not rebooted since.
        let due: Option<&RebootDue> = self
            .file
            .reboot_due
            .as_ref()
            .filter(|due| due.boot_id == boot_id && other_run(due.run.as_ref(), run).is_none());
        let Some(due) = due else {
            out.push(Action::Log(LogMessage::RebootNotDue { sequence }));
            return Verdict::Begin(Phase::Checking, not_after);
        };
        if let Some(at) = due.not_after.filter(|_| has_passed(now, due.not_after)) {
            return Verdict::Drop(DropReason::PrepareExpired(at));
        }
        let not_after = earlier(not_after, due.not_after);
        Verdict::Begin(Phase::Rebooting { boot_id }, not_after)
    }

    /// Judges a reboot that names the boot to `leave`. Whether it has been carried out shows in the boot id, whatever became
    /// of the state file.
    fn judge_requested_reboot(
        &self,
        sequence: u64,
        not_after: Option<DateTime<Utc>>,
        leave: &str,
        out: &mut Vec<Action>,
    ) -> Verdict {
        if self.boot_id.0 == leave {
            return Verdict::Begin(Phase::Rebooting { boot_id: self.boot_id.clone() }, not_after);
        }
        if leave.is_empty() {
            return Verdict::Answer(Outcome::error("the command names an empty boot id"));
        }
        out.push(Action::Log(LogMessage::RebootNotDue { sequence }));
        Verdict::Begin(Phase::Checking, not_after)
    }

    fn drop_received(&mut self, received: &Received, reason: DropReason, out: &mut Vec<Action>) {
        out.push(Action::Log(LogMessage::Dropped { sequence: received.sequence, reason }));
        // Not saved: after a crash the command is dropped again, unless a later save has included it.
        self.file.settled = Some(received.position());
        out.extend(received.ack());
    }
}

impl Received {
    /// Its position in the stream.
    pub const fn position(&self) -> Position {
        Position { sequence: self.sequence, published: self.published }
    }

    /// Whether it was certainly never delivered before.
    const fn is_first_delivery(&self) -> bool {
        self.delivered == 1 && self.sequence > self.last_sequence_at_open
    }

    /// Its acknowledgement, unless it was delivered over an earlier connection.
    fn ack(&self) -> Option<Action> {
        let subject = Some(self.ack_subject.clone()).filter(|subject| !subject.is_empty())?;
        Some(Action::Ack { sequence: self.sequence, subject })
    }

    /// What is known of it when it begins, in `phase`.
    fn current(
        &self,
        id: Option<CommandId>,
        action: protocol::Action,
        run: Option<RunId>,
        phase: Phase,
    ) -> Current {
        Current {
            position: self.position(),
            id,
            ack_subject: self.ack_subject.clone(),
            action,
            run,
            not_after: None,
            phase,
            attempts: 1,
        }
    }

    fn run(&self, out: &mut Vec<Action>) -> Option<RunId> {
        let text = self.run_header.as_deref()?;
        let run = RunId::new(text).ok();
        if run.is_none() {
            let sequence = self.sequence;
            out.push(Action::Log(LogMessage::RunHeaderIgnored { sequence }));
        }
        run
    }
}

/// The known run, if both runs are given and differ. Commands without a run header match any run.
fn other_run(known: Option<&RunId>, requested: Option<&RunId>) -> Option<RunId> {
    match (known, requested) {
        (Some(known), Some(requested)) if known != requested => Some(known.clone()),
        (Some(_) | None, Some(_) | None) => None,
    }
}

fn earlier(one: Option<DateTime<Utc>>, other: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    one.into_iter().chain(other).min()
}
