//! What operators who steer runs do, at good moments and bad ones.

use chrono::TimeDelta;
use os_upgrade_kernel::{
    EnrolmentOperation, Operation, PauseOperation, Request, Retry, RunOperation, Targets,
};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::instance::Instance as Logic;

use super::World;
use crate::agenda::Item;

impl World {
    /// An operator pauses the site, often for a while only, or resumes it; or does so with a host.
    pub(super) fn steer(&mut self) {
        let Some(plan) = self.plan.steer.as_ref().filter(|_| self.faults_enabled) else { return };
        let every = 2 * plan.act_every * self.slowdown();
        self.after(every, Item::Steer);
        let (begins, is_of_host) = (self.rng.bool(), self.rng.bool());
        // An end that has passed is refused.
        let seconds = self.rng.i64(-5..90);
        let until = self.rng.bool().then(|| self.time() + TimeDelta::seconds(seconds));
        let reason = "the fair is on".to_owned();
        let host = self.hosts[self.rng.usize(..self.hosts.len())].name.clone();
        if self.rng.u32(..5) == 0 {
            let mut request = self.trigger();
            if let Operation::Run(RunOperation::Trigger { targets, timeout, .. }) = &mut request.operation {
                *targets = self.targets();
                *timeout = timeout.filter(|_| begins);
            }
            let index = self.rng.usize(..self.instances.len());
            return self.request(index, request);
        }
        let operation: Operation = match (is_of_host, begins) {
            (false, true) => PauseOperation::Pause { reason, until }.into(),
            (false, false) => PauseOperation::Resume { reason: None }.into(),
            (true, true) => EnrolmentOperation::Defer { host, reason, until }.into(),
            (true, false) => EnrolmentOperation::EndDeferral { host, reason: None }.into(),
        };
        let (actor, validate) = ("operator".to_owned(), self.rng.u32(..10) == 0);
        let index = self.rng.usize(..self.instances.len());
        self.request(index, Request { actor, validate, operation });
    }

    /// Some of the hosts, by name or by how they ended.
    fn targets(&mut self) -> Targets {
        let retry =
            *self.rng.choice(&[None, None, Some(Retry::Failed), Some(Retry::NotReached)]).expect("not empty");
        let rng = &mut self.rng;
        let hosts: Vec<HostName> =
            self.hosts.iter().filter(|_| rng.u32(..3) == 0).map(|host| host.name.clone()).collect();
        Targets { hosts, retry }
    }

    /// The site is resumed and no host deferred, if anybody could have paused or deferred it. Returns whether that succeeded.
    pub(super) fn is_resumed(&mut self) -> bool {
        let resume = |_: &mut Self| Request::new("operator", PauseOperation::Resume { reason: None }).into();
        let is_restored = self.is_rolled_back && self.plan.delivery.is_some();
        let may_be_paused = self.plan.steer.is_some() || is_restored;
        let is_resumed = !may_be_paused || self.until_granted("the site is resumed", resume);
        is_resumed
            && self.leader().map(deferred).unwrap_or_default().into_iter().all(|host| {
                let end = move |_: &mut Self| {
                    let operation = EnrolmentOperation::EndDeferral { host: host.clone(), reason: None };
                    Request::new("operator", operation).into()
                };
                self.until_granted("no host is deferred", end)
            })
    }
}

/// The hosts that are deferred.
fn deferred(leader: &Logic) -> Vec<HostName> {
    leader.state().enrolment.deferred.keys().cloned().collect()
}
