//! Answers to callers: each must have been true at some moment between question and answer, and be durable.

use std::collections::BTreeSet;

use os_upgrade_kernel::{
    Accepted, Answer, ConfigOperation, ConfigRefusal, Fact, Operation, Refusal, Request, Run, RunOperation,
    RunRefusal, StartBlocker, State,
};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::forward::{Answered, Outcome};

use super::runs::Runs;
use super::secrets::Secrets;
use super::violation::Violation;
use crate::time::Micros;

/// Who can rely on it that nothing was changed, and for whom something was. Each request has an actor of its own.
#[derive(Debug, Default)]
pub(super) struct Actors {
    /// Who was told that nothing was changed.
    unchanged: BTreeSet<String>,
    /// In whose name something has become true.
    acted: BTreeSet<String>,
}

impl Actors {
    /// A fact stands in the journal.
    pub(super) fn fact(&mut self, fact: &Fact) -> Result<(), Violation> {
        let Some(actor) = fact.subject().actor else { return Ok(()) };
        self.acted.insert(actor.to_owned());
        self.check(actor)
    }

    /// Somebody is told that nothing was changed.
    pub(super) fn told_unchanged(&mut self, actor: &str) -> Result<(), Violation> {
        self.unchanged.insert(actor.to_owned());
        self.check(actor)
    }

    fn check(&self, actor: &str) -> Result<(), Violation> {
        if self.unchanged.contains(actor) && self.acted.contains(actor) {
            let text = format!("what {actor} asked for was done, though they heard that nothing was changed");
            return Err(Violation::new("S5", text));
        }
        Ok(())
    }
}

/// The leader answers, and shows readers what is in the journal up to `shown`.
pub(super) fn check_shown(outcome: &Outcome, shown: u64) -> Result<(), Violation> {
    if let Ok(Answered { sequence, .. }) = outcome
        && *sequence > shown
    {
        let text = format!("a change of {sequence} is answered while the state of {shown} is shown");
        return Err(Violation::new("shown", text));
    }
    Ok(())
}

/// What an answer may say to one who asked at that time.
#[derive(Debug)]
pub(super) struct Truth<'a> {
    pub(super) asked: Micros,
    pub(super) now: Micros,
    pub(super) runs: &'a Runs,
    pub(super) secrets: &'a Secrets,
    /// What the journal says.
    pub(super) state: &'a State,
}

impl Truth<'_> {
    pub(super) fn check(&self, request: &Request, answer: &Answer) -> Result<(), Violation> {
        let is_true = match answer {
            Ok(Accepted::Valid) => true,
            Ok(Accepted::Created | Accepted::Done) => self.came_to_be(request),
            Err(refusal) => self.was_refusable(request, refusal),
        };
        if !is_true {
            let asked = self.asked;
            let text = format!("{request:?} of {asked} is answered {answer:?}, which was never true");
            return Err(Violation::new("S5", text));
        }
        Ok(())
    }

    fn came_to_be(&self, request: &Request) -> bool {
        match &request.operation {
            Operation::Config(ConfigOperation::Put { config, .. }) => {
                self.runs.was_configured(Some(config), self.asked)
            }
            Operation::Config(ConfigOperation::Delete { .. }) => self.runs.was_configured(None, self.asked),
            Operation::Run(RunOperation::Trigger { run, .. }) => self.runs.get(run).is_some(),
            Operation::Run(RunOperation::GiveUpHost { host, .. }) => self.was_through(host),
            Operation::Run(RunOperation::Cancel) => self.runs.was_stopping(self.asked),
            // Slots are looked at more closely in `semaphore`; of enrolment only what follows is.
            Operation::Enrolment(_) | Operation::Slot(_) | Operation::Lock(_) => true,
            Operation::Secret(secret) => self.secrets.came_to_be(secret, self.asked),
        }
    }

    /// Whether `host` was through in a run that was there since then.
    fn was_through(&self, host: &HostName) -> bool {
        let is_through = |run: &Run| run.host(host).is_some_and(|host| host.status.is_final());
        // Of runs before these it is not known any more.
        self.state.run.iter().chain(&self.state.last_run).any(is_through) || self.runs.has_ended(self.asked)
    }

    fn was_refusable(&self, request: &Request, refusal: &Refusal) -> bool {
        match refusal {
            Refusal::Run(RunRefusal::NotStartable(StartBlocker::RunActive { run })) => {
                self.runs.was_there(run, self.asked)
            }
            Refusal::Run(RunRefusal::NoRun) => self.runs.was_none(self.asked, self.now),
            Refusal::Run(RunRefusal::NotStartable(StartBlocker::NoConfiguration))
            | Refusal::Config(ConfigRefusal::NoConfiguration) => self.runs.was_configured(None, self.asked),
            Refusal::Run(
                RunRefusal::TimeoutTooShort
                | RunRefusal::NotStartable(
                    StartBlocker::NoHosts { .. }
                    | StartBlocker::NoneApproved { .. }
                    | StartBlocker::ClockSkew { .. }
                    | StartBlocker::StrongboxSealed { .. },
                )
                | RunRefusal::NotInRun { .. }
                | RunRefusal::HostThrough { .. }
                | RunRefusal::HostUncertain { .. },
            )
            | Refusal::Config(ConfigRefusal::InvalidConfig { .. } | ConfigRefusal::ConfigChanged { .. })
            | Refusal::Enrolment(_)
            | Refusal::Slot(_)
            | Refusal::Lock(_) => true,
            Refusal::Secret(refusal) => self.secrets.was_refusable(&request.operation, refusal, self.asked),
        }
    }
}
