//! Answers to callers: each must have been true at some moment between question and answer, and be durable.

use os_upgrade_kernel::{
    Accepted, ClientId, Config, ConfigOperation, ConfigRefusal, LockOperation, Operation, Refusal, Request,
    Run, RunOperation, RunRefusal, StartBlocker,
};
use os_upgrade_protocol::{Hint, HostName};
use os_upgrade_shell::forward::{Answered, Outcome};
use os_upgrade_shell::node::CallId;
use os_upgrade_shell::not_done::NotDone;

use super::{Checker, MAY_YET_COME};
use crate::time::Micros;

impl Checker {
    /// Somebody asks.
    pub(crate) fn asked(&mut self, call: CallId, request: &Request) {
        if let Operation::Lock(LockOperation::Unlock { group, id }) = &request.operation {
            self.clients.remove(&(group.clone(), id.clone()));
            let until = self.unlocks.entry(id.clone()).or_default();
            *until = self.now.max(*until);
        }
        self.semaphore_asked(call, request);
        self.calls.insert(call, (request.clone(), self.now));
    }

    /// Somebody is answered.
    pub(crate) fn answered(&mut self, call: CallId, outcome: &Outcome) {
        let Some((request, asked)) = self.calls.remove(&call) else {
            return self.violated("S5", format!("call {call} is answered twice"));
        };
        self.semaphore_answered(call, &request, outcome);
        if let Operation::Lock(LockOperation::Unlock { id, .. }) = &request.operation {
            // Until now it may have come after a lock that was asked for later.
            let until = self.unlocks.entry(id.clone()).or_default();
            *until = self.now.max(*until);
        }
        let answer = match outcome {
            Ok(answered) => &answered.answer,
            Err(not_done) => return self.not_done(&request, not_done),
        };
        let true_ = match answer {
            Ok(Accepted::Valid) => true,
            Ok(Accepted::Created | Accepted::Done) => self.came_to_be(&request, asked),
            Err(refusal) => self.was_refusable(&request, refusal, asked),
        };
        if !true_ {
            let text = format!("{request:?} of {asked} is answered {answer:?}, which was never true");
            self.violated("S5", text);
        }
        if let (Operation::Lock(LockOperation::Lock { group, id }), Ok(_)) = (request.operation, answer)
            && !self.has_unlocked(&id, asked)
        {
            self.clients.insert((group.clone(), id));
            self.check_slots(&group);
        }
    }

    /// The leader answers, and shows readers what is in the journal up to `shown`.
    pub(crate) fn answered_when_shown(&mut self, outcome: &Outcome, shown: u64) {
        if let Ok(Answered { sequence, .. }) = outcome
            && *sequence > shown
        {
            let text = format!("a change of {sequence} is answered while the state of {shown} is shown");
            self.violated("shown", text);
        }
    }

    /// Workers are told that a run is stopping.
    pub(crate) fn hinted(&mut self, hint: &Hint) {
        let run = hint.run.as_ref().and_then(|run| self.runs.get(run));
        if run.is_none_or(|run| run.stopped.is_none()) {
            self.violated("hint", format!("{hint:?} is sent, and no such run is stopping"));
        }
    }

    /// Somebody is told that there is no answer. Who is told that nothing was changed can rely on that.
    fn not_done(&mut self, request: &Request, not_done: &NotDone) {
        if let NotDone::Unknown { .. } = not_done {
            if let Operation::Lock(LockOperation::Unlock { id, .. }) = &request.operation {
                self.unlocks.insert(id.clone(), self.now + MAY_YET_COME);
            }
            return;
        }
        self.unchanged.insert(request.actor.clone());
        self.check_unchanged(&request.actor);
    }

    /// Something has become true in somebody's name, or somebody was told that nothing was changed. Each request has an
    /// actor of its own.
    pub(super) fn check_unchanged(&mut self, actor: &str) {
        if self.unchanged.contains(actor) && self.acted.contains(actor) {
            let text = format!("what {actor} asked for was done, though they heard that nothing was changed");
            self.violated("S5", text);
        }
    }

    fn came_to_be(&self, request: &Request, asked: Micros) -> bool {
        match &request.operation {
            Operation::Config(ConfigOperation::Put { config, .. }) => {
                self.was_configured(Some(config), asked)
            }
            Operation::Config(ConfigOperation::Delete { .. }) => self.was_configured(None, asked),
            Operation::Run(RunOperation::Trigger { run, .. }) => self.runs.contains_key(run),
            Operation::Run(RunOperation::GiveUpHost { host, .. }) => self.was_through(host, asked),
            Operation::Run(RunOperation::Cancel) => self
                .runs
                .values()
                .any(|run| run.stopped.is_some() && run.ended.is_none_or(|ended| ended >= asked)),
            // Slots are looked at more closely in `semaphore`; of enrolment only what follows is.
            Operation::Enrolment(_) | Operation::Slot(_) | Operation::Lock(_) => true,
            Operation::Secret(secret) => self.secret_came_to_be(secret, asked),
        }
    }

    /// Whether the client has asked to give its slot back since it asked for one, or not heard of that yet, or heard
    /// that it may still come to be: it cannot know that it holds one.
    fn has_unlocked(&self, client: &ClientId, since: Micros) -> bool {
        let of_client = |request: &Request| matches!(&request.operation, Operation::Lock(LockOperation::Unlock { id, .. }) if id == client);
        self.unlocks.get(client).is_some_and(|until| *until >= since)
            || self.calls.values().any(|(request, _)| of_client(request))
    }

    /// Whether `host` was through in a run that was there since `asked`.
    fn was_through(&self, host: &HostName, asked: Micros) -> bool {
        let state = &self.follower.state;
        let is_through = |run: &Run| run.host(host).is_some_and(|host| host.status.is_final());
        // Of runs before these it is not known any more.
        let ended_since = |run: &super::RunSeen| run.ended.is_some_and(|ended| ended >= asked);
        state.run.iter().chain(&state.last_run).any(is_through) || self.runs.values().any(ended_since)
    }

    /// Whether this was configured at some time since `since`.
    fn was_configured(&self, config: Option<&Config>, since: Micros) -> bool {
        self.configs.iter().enumerate().any(|(index, (_, configured))| {
            let until = self.configs.get(index + 1).map_or(Micros::MAX, |(from, _)| *from);
            configured.as_ref() == config && until >= since
        })
    }

    fn was_refusable(&self, request: &Request, refusal: &Refusal, asked: Micros) -> bool {
        match refusal {
            Refusal::Run(RunRefusal::NotStartable(StartBlocker::RunActive { run })) => {
                self.runs.get(run).is_some_and(|run| run.ended.is_none_or(|ended| ended >= asked))
            }
            Refusal::Run(RunRefusal::NoRun) => {
                let active = |at: Micros| {
                    let spans =
                        |run: &super::RunSeen| run.started < at && run.ended.is_none_or(|ended| ended > at);
                    self.runs.values().any(spans)
                };
                // It changes only where a run starts or ends.
                let ends = self.runs.values().filter_map(|run| run.ended).filter(|end| *end >= asked);
                let starts = self.runs.values().map(|run| run.started).filter(|start| *start >= asked);
                [asked, self.now].into_iter().chain(ends).chain(starts).any(|at| !active(at))
            }
            Refusal::Run(RunRefusal::NotStartable(StartBlocker::NoConfiguration))
            | Refusal::Config(ConfigRefusal::NoConfiguration) => self.was_configured(None, asked),
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
            Refusal::Secret(refusal) => self.secret_was_refusable(&request.operation, refusal, asked),
        }
    }
}
