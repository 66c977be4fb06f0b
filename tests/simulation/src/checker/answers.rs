//! Answers to callers: each must have been true at some moment between call and answer, and be durable.

use std::collections::BTreeSet;

use os_upgrade_kernel::{
    Accepted, Answer, ConfigOperation, ConfigRefusal, Fact, Operation, PauseRefusal, Refusal, Request, Run,
    RunOperation, RunRefusal, StartBlocker, State,
};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::forward::{Answered, Outcome};

use super::pause::Pauses;
use super::queue::Queue;
use super::runs::Runs;
use super::secrets::Secrets;
use super::units::Units;
use super::violation::Violation;
use crate::time::Micros;

/// The actors that were told that nothing was changed, and those for whom something was. Each request has its own
/// actor.
#[derive(Debug, Default)]
pub(super) struct Actors {
    /// Actors that were told that nothing was changed.
    unchanged: BTreeSet<String>,
    /// Actors of facts.
    acted: BTreeSet<String>,
}

impl Actors {
    /// A fact was added to the journal.
    pub(super) fn fact(&mut self, fact: &Fact) -> Result<(), Violation> {
        let Some(actor) = fact.about().actor else { return Ok(()) };
        self.acted.insert(actor.to_owned());
        self.check(actor)
    }

    /// An actor is told that nothing was changed.
    pub(super) fn answered_unchanged(&mut self, actor: &str) -> Result<(), Violation> {
        self.unchanged.insert(actor.to_owned());
        self.check(actor)
    }

    fn check(&self, actor: &str) -> Result<(), Violation> {
        if self.unchanged.contains(actor) && self.acted.contains(actor) {
            let text = format!("a request of {actor} was carried out, but answered as not changing anything");
            return Err(Violation::new("S5", text));
        }
        Ok(())
    }
}

/// The leader answers while it shows readers the journal up to `shown`.
pub(super) fn check_shown(outcome: &Outcome, shown: u64) -> Result<(), Violation> {
    if let Ok(Answered { sequence, .. }) = outcome
        && *sequence > shown
    {
        let text = format!("a change at {sequence} is answered while the state of {shown} is shown");
        return Err(Violation::new("shown", text));
    }
    Ok(())
}

/// What an answer is judged by.
#[derive(Debug)]
pub(super) struct AnswerContext<'a> {
    pub(super) called: Micros,
    pub(super) now: Micros,
    pub(super) runs: &'a Runs,
    pub(super) secrets: &'a Secrets,
    pub(super) queue: &'a Queue,
    pub(super) pauses: &'a Pauses,
    pub(super) units: &'a Units,
    /// The state that the journal folds to.
    pub(super) state: &'a State,
}

impl AnswerContext<'_> {
    pub(super) fn check(&self, request: &Request, answer: &Answer) -> Result<(), Violation> {
        let is_true = match answer {
            Ok(Accepted::Valid) => true,
            Ok(Accepted::Created | Accepted::Done) => self.took_effect(request),
            Err(refusal) => self.was_refusable(request, refusal),
        };
        if !is_true {
            let called = self.called;
            let text = format!("{request:?} of {called} is answered {answer:?}, which was never true");
            return Err(Violation::new("S5", text));
        }
        Ok(())
    }

    fn took_effect(&self, request: &Request) -> bool {
        match &request.operation {
            Operation::Config(ConfigOperation::Put { config, .. }) => {
                self.runs.was_configured(Some(config), self.called)
            }
            Operation::Config(ConfigOperation::Delete { .. }) => self.runs.was_configured(None, self.called),
            Operation::Run(RunOperation::Trigger { run, .. }) => self.runs.get(run).is_some(),
            Operation::Run(RunOperation::GiveUpHost { host, .. }) => self.was_final(host),
            Operation::Run(RunOperation::Cancel { .. }) => self.runs.was_stopping(self.called),
            Operation::Pause(operation) => self.pauses.took_effect(operation, self.called),
            // Slots are checked more closely in `semaphore`; of enrolment only its consequences are.
            Operation::Enrolment(_)
            | Operation::Slot(_)
            | Operation::Lock(_)
            | Operation::Node(_)
            | Operation::Desired(_) => true,
            Operation::Unit(operation) => self.units.took_effect(operation, self.called),
            Operation::Reboot(operation) => self.queue.took_effect(operation, &request.actor, self.called),
            Operation::Secret(secret) => self.secrets.took_effect(secret, self.called),
        }
    }

    /// Whether the status of `host` was final in a run that was active since the call.
    fn was_final(&self, host: &HostName) -> bool {
        let is_final_in = |run: &Run| run.host(host).is_some_and(|host| host.status.is_final());
        // Runs before these are not known any more.
        self.state.run.iter().chain(&self.state.last_run).any(is_final_in) || self.runs.has_ended(self.called)
    }

    fn was_refusable(&self, request: &Request, refusal: &Refusal) -> bool {
        match refusal {
            Refusal::Run(RunRefusal::NotStartable(StartBlocker::RunActive { run })) => {
                self.runs.was_active(run, self.called)
            }
            Refusal::Run(RunRefusal::NotStartable(StartBlocker::Paused(_))) => {
                self.pauses.was_paused(self.called)
            }
            Refusal::Run(RunRefusal::NoRun) => self.runs.was_idle(self.called, self.now),
            Refusal::Run(RunRefusal::NotStartable(StartBlocker::NoConfiguration))
            | Refusal::Config(ConfigRefusal::NoConfiguration) => self.runs.was_configured(None, self.called),
            Refusal::Run(
                RunRefusal::TimeoutTooShort
                | RunRefusal::NothingFits { .. }
                | RunRefusal::NoTargets { .. }
                | RunRefusal::TooManyTargets
                | RunRefusal::NobodyToRetry { .. }
                | RunRefusal::NotStartable(
                    StartBlocker::NoHosts { .. }
                    | StartBlocker::NoneApproved { .. }
                    | StartBlocker::AllDeferred { .. }
                    | StartBlocker::Clock(_)
                    | StartBlocker::StrongboxSealed { .. },
                )
                | RunRefusal::NotInRun { .. }
                | RunRefusal::HostFinished { .. }
                | RunRefusal::HostUncertain { .. },
            )
            | Refusal::Config(ConfigRefusal::InvalidConfig { .. } | ConfigRefusal::ConfigChanged { .. })
            | Refusal::Pause(PauseRefusal::UntilPassed { .. })
            | Refusal::Enrolment(_)
            | Refusal::Slot(_)
            | Refusal::Lock(_)
            | Refusal::Node(_)
            | Refusal::Desired(_)
            | Refusal::Unit(_) => true,
            Refusal::Reboot(refusal) => match &request.operation {
                Operation::Reboot(operation) => self.queue.was_refusable(operation, refusal, self.called),
                Operation::Config(_)
                | Operation::Run(_)
                | Operation::Pause(_)
                | Operation::Enrolment(_)
                | Operation::Slot(_)
                | Operation::Lock(_)
                | Operation::Node(_)
                | Operation::Desired(_)
                | Operation::Secret(_)
                | Operation::Unit(_) => false,
            },
            Refusal::Secret(refusal) => self.secrets.was_refusable(&request.operation, refusal, self.called),
        }
    }
}
