//! Handlers and reboots: when they are started and restarted, and what their results mean.

use os_upgrade_protocol::{self as protocol, Outcome};

use super::{Activity, WorkerLogic, has_passed, ignore};
use crate::limits::REBOOT_ATTEMPTS_MAX;
use crate::log_message::{DropReason, Ignored, LogMessage};
use crate::state_file::{BootId, Current, Phase, Prepared, RebootDue};
use crate::{Action, Call, HandlerCall, HandlerResult, Now, RebootCall, Upgraded};

const CURRENT: &str = "work is done on a current command only";

impl WorkerLogic {
    /// Runs the handler of the saved phase.
    ///
    /// An upgrade or a health check that was begun is finished even after `not-after`: a half-upgraded host is worse
    /// than a late answer. A prepare changes nothing, so it is not resumed after `not-after`.
    pub(super) fn run(&mut self, now: Now, call: Call, out: &mut Vec<Action>) {
        let current = self.file.current.as_ref().expect(CURRENT);
        let resume = current.attempts > 1;
        let must_finish = match call {
            Call::Prepare => false,
            Call::Upgrade => resume,
            Call::Health => true,
        };
        if let Some(at) = current.not_after.filter(|_| has_passed(now, current.not_after))
            && !must_finish
        {
            return self.drop_current(DropReason::Expired(at), out);
        }
        let rebooted = match &current.phase {
            Phase::Upgrading { boot_id } => *boot_id != self.boot_id,
            Phase::Preparing | Phase::Checking | Phase::Rebooting { .. } | Phase::Answered { .. } => false,
        };
        out.push(Action::Run(HandlerCall {
            sequence: current.position.sequence,
            call,
            run: current.run.clone(),
            not_after: current.not_after,
            resume,
            rebooted,
        }));
        self.activity = Activity::Handling(call);
    }

    /// Starts the reboot of the saved phase.
    pub(super) fn reboot(&mut self, now: Now, out: &mut Vec<Action>) {
        let current = self.file.current.as_ref().expect(CURRENT);
        if let Phase::Rebooting { boot_id } = &current.phase
            && *boot_id != self.boot_id
        {
            // Somebody else has rebooted it while the state was being saved.
            return self.rebooted(out);
        }
        let resume = current.attempts > 1;
        if let Some(at) = current.not_after.filter(|_| has_passed(now, current.not_after)) {
            if resume {
                let message = "the host did not reboot before not-after";
                return self.answer(Outcome::error(message), out);
            }
            return self.drop_current(DropReason::Expired(at), out);
        }
        out.push(Action::Reboot(RebootCall {
            sequence: current.position.sequence,
            run: current.run.clone(),
            not_after: current.not_after,
            resume,
        }));
        self.activity = Activity::Rebooting { since: now.monotonic };
    }

    pub(super) fn handler_finished(&mut self, sequence: u64, result: HandlerResult, out: &mut Vec<Action>) {
        if self.activity != Activity::Handling(result.call()) {
            return ignore(Ignored::Unexpected("HandlerFinished"), out);
        }
        if !self.is_current(sequence) {
            return ignore(Ignored::OtherCommand(sequence), out);
        }
        let outcome = match result {
            HandlerResult::Prepare(Ok(()))
            | HandlerResult::Health(Ok(()))
            | HandlerResult::Upgrade(Ok(Upgraded::Done)) => Outcome::Done,
            HandlerResult::Upgrade(Ok(Upgraded::RebootRequired)) => Outcome::RebootRequired,
            HandlerResult::Prepare(Err(error)) => failed(Call::Prepare, error, out),
            HandlerResult::Upgrade(Err(error)) => failed(Call::Upgrade, error, out),
            HandlerResult::Health(Err(error)) => failed(Call::Health, error, out),
        };
        let action = self.file.current.as_ref().expect(CURRENT).action;
        self.answer(outcome, out);
        match action {
            protocol::Action::Prepare => {}
            // Also after a failure: the upgrade may have changed some packages.
            protocol::Action::Upgrade | protocol::Action::Reboot => self.versions.check(out),
        }
    }

    pub(super) fn reboot_returned(
        &mut self,
        sequence: u64,
        result: Result<(), String>,
        out: &mut Vec<Action>,
    ) {
        let Activity::Rebooting { .. } = self.activity else {
            return ignore(Ignored::Unexpected("RebootReturned"), out);
        };
        if !self.is_current(sequence) {
            return ignore(Ignored::OtherCommand(sequence), out);
        }
        match result {
            // Now the reboot should end this process; ticks limit the wait.
            Ok(()) => {}
            Err(error) => self.answer(Outcome::error(&error), out),
        }
    }

    /// Handles a boot id; it may have changed if the worker does not run on the host itself.
    pub(super) fn boot_id_read(&mut self, boot_id: BootId, out: &mut Vec<Action>) {
        self.boot_id = boot_id;
        let Activity::Rebooting { .. } = self.activity else {
            return;
        };
        let current = self.file.current.as_ref().expect(CURRENT);
        match &current.phase {
            Phase::Rebooting { boot_id } if *boot_id != self.boot_id => self.rebooted(out),
            Phase::Rebooting { .. }
            | Phase::Preparing
            | Phase::Upgrading { .. }
            | Phase::Checking
            | Phase::Answered { .. } => {}
        }
    }

    pub(super) fn rebooted(&mut self, out: &mut Vec<Action>) {
        let current = self.file.current.as_mut().expect(CURRENT);
        current.phase = Phase::Checking;
        current.attempts = 1;
        out.push(Action::Log(LogMessage::Rebooted { sequence: current.position.sequence }));
        self.file.reboot_due = None;
        self.save(out);
    }

    pub(super) fn not_rebooted(&mut self, out: &mut Vec<Action>) {
        let current = self.file.current.as_mut().expect(CURRENT);
        let attempt = current.attempts;
        out.push(Action::Log(LogMessage::NotRebooted { sequence: current.position.sequence, attempt }));
        if attempt >= REBOOT_ATTEMPTS_MAX {
            let message =
                format!("the host did not reboot: its boot id is unchanged after {attempt} attempts");
            return self.answer(Outcome::error(&message), out);
        }
        current.attempts += 1;
        self.save(out);
    }

    /// Answers the current command: records the outcome and its consequences and saves them; the reply follows.
    pub(super) fn answer(&mut self, outcome: Outcome, out: &mut Vec<Action>) {
        self.record_outcome(outcome, out);
        self.save(out);
    }

    /// Writes the outcome into the state, without saving it.
    pub(super) fn record_outcome(&mut self, outcome: Outcome, out: &mut Vec<Action>) {
        let file = &mut self.file;
        let current = file.current.as_mut().expect(CURRENT);
        out.push(Action::Log(LogMessage::Answered {
            sequence: current.position.sequence,
            action: current.action,
            result: outcome.as_str().to_owned(),
        }));
        match (current.action, &outcome) {
            (protocol::Action::Prepare, Outcome::Done) => {
                file.prepared = Some(prepared(current));
                file.distrusted = false;
            }
            (protocol::Action::Upgrade, Outcome::RebootRequired) => {
                file.reboot_due = Some(reboot_due(current, &self.boot_id));
            }
            (protocol::Action::Prepare, Outcome::RebootRequired | Outcome::Error(_))
            | (protocol::Action::Upgrade, Outcome::Done | Outcome::Error(_))
            | (protocol::Action::Reboot, Outcome::Done | Outcome::RebootRequired | Outcome::Error(_)) => {}
        }
        current.phase = Phase::Answered { outcome };
    }

    /// Drops the current command without an answer.
    fn drop_current(&mut self, reason: DropReason, out: &mut Vec<Action>) {
        let current = self.file.current.take().expect(CURRENT);
        let sequence = current.position.sequence;
        self.file.settled = Some(current.position);
        out.push(Action::Log(LogMessage::Dropped { sequence, reason }));
        if self.held.is_none() && !current.ack_subject.is_empty() {
            out.push(Action::Ack { sequence, subject: current.ack_subject });
        }
        self.save(out);
    }
}

fn failed(call: Call, error: String, out: &mut Vec<Action>) -> Outcome {
    let outcome = match call {
        Call::Health => Outcome::unhealthy(&error),
        Call::Prepare | Call::Upgrade => Outcome::error(&error),
    };
    out.push(Action::Log(LogMessage::HandlerFailed { call, error }));
    outcome
}

fn prepared(current: &Current) -> Prepared {
    Prepared { sequence: current.position.sequence, run: current.run.clone(), not_after: current.not_after }
}

fn reboot_due(current: &Current, boot_id: &BootId) -> RebootDue {
    RebootDue {
        sequence: current.position.sequence,
        run: current.run.clone(),
        not_after: current.not_after,
        boot_id: boot_id.clone(),
    }
}
