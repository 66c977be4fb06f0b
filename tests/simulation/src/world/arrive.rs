//! What happens when requests reach the bus or the lock server: they are answered.

use os_upgrade_kernel::{Job, JobDone, LockOutcome, NoAnswer, SlotJob, SlotOrder};
use os_upgrade_protocol::{GroupName, HostName};
use os_upgrade_shell::dispatch::PublishOutcome;
use os_upgrade_shell::fleet_lock::{HttpAnswer, read_answer, read_retry_after};
use os_upgrade_shell::instance::{Event, Trim};
use os_upgrade_shell::jobs::{JobId, JobReport, StartedJob};
use os_upgrade_shell::journal::append::{AppendOutcome, ReadBack};
use os_upgrade_shell::lease::LeaseOutcome;
use os_upgrade_worker_rules as rules;

use super::World;
use crate::agenda::{Item, Process, Worker};
use crate::bug::Bug;
use crate::describe;
use crate::fault::Fault;
use crate::outside;
use crate::peer::Peer;
use crate::request::{Answer, Request, RequestKind, WorkerRequest};
use crate::time::{MILLI, Micros, SECOND};

/// How much later than its sender gives up the lock server may carry out a request.
const LATE_MAX: Micros = 20 * SECOND;

impl World {
    pub(super) fn arrive(&mut self, request: Request) {
        self.trace.record_of(self.now, request.from, '~', || describe::request(&request.what));
        if !request.what.is_job() && !self.is_linked(request.from) {
            return;
        }
        let event = match &request.what {
            RequestKind::Inspect(known) => {
                let ago = self.staleness();
                let mut streams = self.bus.inspect(known, ago);
                if self.bug == Some(Bug::PurgeHidden) {
                    let both = [&mut streams.journal, &mut streams.control];
                    both.into_iter().flatten().for_each(|stream| stream.first_sequence = 1);
                }
                Event::Inspected { known: known.clone(), streams: Ok(streams) }
            }
            RequestKind::Lease(question) => {
                let time = match (self.bug, request.from) {
                    (Some(Bug::OwnTimeForBusTime), Peer::Instance(index)) => self.clock_of(index).wall,
                    _ => self.time(),
                };
                let mut outcome = self.bus.lease(&question.action, self.now, time);
                if let (Some(Bug::CopyHidden), LeaseOutcome::Taken { holder, .. }) = (self.bug, &mut outcome)
                {
                    holder.replaces = None;
                    holder.replaced_before.clear();
                }
                Event::Lease { number: question.number, outcome }
            }
            RequestKind::Append { expected, message } => {
                let expected = match self.bug {
                    Some(Bug::JournalUnfenced) => self.bus.journal_len(),
                    _ => *expected,
                };
                let ends = self.bus.ends();
                let time = self.time();
                let outcome = match self.bus.append(expected, message, time) {
                    Some(sequence) => {
                        self.checker.wrote(request.from, request.process, request.sent, ends);
                        self.checker.appended(sequence, message, time);
                        self.outside.record(self.now, || outside::journal(sequence, message));
                        AppendOutcome::Stored { sequence }
                    }
                    None => AppendOutcome::Unknown,
                };
                Event::Appended { append_id: message.append_id.clone(), outcome }
            }
            RequestKind::ReadJournal { sequence } => {
                let mut found = self.bus.read_back(*sequence);
                if let (Some(Bug::StrayHidden), ReadBack::Absent { last }) = (self.bug, &mut found) {
                    *last = sequence - 1;
                }
                Event::ReadBack { sequence: *sequence, found }
            }
            RequestKind::Trim(trim) => {
                self.trim(*trim);
                Event::Trimmed { trim: *trim, done: true }
            }
            RequestKind::Fence { epoch } => {
                let sequence = self.bus.publish_fence(self.time());
                self.control_stored(sequence);
                Event::FencePublished { epoch: *epoch, stored: Some(sequence) }
            }
            RequestKind::Command { .. } => self.command_arrives(&request),
            RequestKind::Purge(purge) => {
                self.outside.record(self.now, || format!("purged {} {}", purge.host, purge.announced));
                self.purge_items(&purge.host);
                Event::Purged { purge: purge.clone(), done: true }
            }
            RequestKind::Retract { host, sequence } => return self.retract(&request, host, *sequence),
            RequestKind::Delete { host, sequence } => {
                let deleted = self.bus.delete(host, *sequence);
                self.outside.record(self.now, || format!("control {sequence} deleted: {deleted}"));
                if deleted {
                    self.checker.command_deleted(*sequence);
                    self.wake(host);
                }
                Event::Retracted { host: host.clone(), sequence: *sequence, deleted: Some(deleted) }
            }
            RequestKind::Worker(worker_request) => {
                return self.worker_request_arrives(&request, worker_request);
            }
            RequestKind::Desired(desired) => return self.desired_arrives(&request, desired),
            RequestKind::Forward { .. } => return self.forward_arrives(request),
            RequestKind::Job(StartedJob { id, job, .. }) => {
                return match job {
                    Job::LockServer(job) => self.lock_request_arrives(&request, *id, job),
                    Job::Cluster(job) => self.node_request_arrives(&request, *id, job),
                    Job::RebootCommand(_) => unreachable!("a command runs on the machine of its instance"),
                };
            }
        };
        self.answer(&request, Answer::Instance(event));
    }

    /// A message has been stored in the control stream.
    fn control_stored(&mut self, sequence: u64) {
        if let Some(stored) = self.bus.control_at(sequence) {
            self.outside.record(self.now, || outside::control(sequence, stored));
        }
    }

    fn trim(&mut self, mut trim: Trim) {
        let Trim { journal_from, control_from } = trim;
        self.outside.record(self.now, || format!("trimmed to {journal_from} and {control_from}"));
        let heard = self.heard.get(&trim.journal_from).into_iter().flatten();
        let heard = heard.map(|index| &self.instances[*index]);
        let stored = heard.filter_map(|instance| instance.stored_once).min();
        match self.bug {
            Some(Bug::TrimmedWithoutSnapshot) => trim.journal_from = self.bus.journal_len(),
            Some(Bug::ControlPurgedUnread) => trim.control_from = self.bus.control_len() + 1,
            _ => {}
        }
        let length = self.bus.journal_len();
        let is_rooted = self.bus.trim(trim);
        self.checker.trimmed(trim, is_rooted, stored, length);
    }

    /// By how many messages a read of the streams is behind. Only in a cluster a server can be behind.
    fn staleness(&mut self) -> u64 {
        let is_cluster = self.plan.loss_confirmed_after > std::time::Duration::ZERO;
        if is_cluster && self.now < self.stale_until && self.rng.bool() { self.rng.u64(1..10) } else { 0 }
    }

    fn command_arrives(&mut self, request: &Request) -> Event {
        let RequestKind::Command { epoch, fence, order } = &request.what else {
            unreachable!("only commands come here");
        };
        let time = self.time();
        let fence = match self.bug {
            Some(Bug::CommandUnfenced) => self.bus.fence(),
            _ => *fence,
        };
        let ends = self.bus.ends();
        let outcome = match self.bus.publish_command(order, fence, time) {
            Some(sequence) => {
                self.checker.wrote(request.from, request.process, request.sent, ends);
                self.checker.command_stored(sequence, order, request.sent, fence, &self.locks);
                self.control_stored(sequence);
                self.wake(&order.id.host);
                PublishOutcome::Stored
            }
            None => PublishOutcome::Fenced,
        };
        Event::CommandPublished { epoch: *epoch, order: order.clone(), outcome }
    }

    /// Checks whether the command was delivered; if not, deletes it a little later, as the adapter does.
    fn retract(&mut self, request: &Request, host: &HostName, sequence: u64) {
        if self.bus.has_been_given(host, sequence) {
            let event = Event::Retracted { host: host.clone(), sequence, deleted: Some(false) };
            return self.answer(request, Answer::Instance(event));
        }
        let what = RequestKind::Delete { host: host.clone(), sequence };
        self.send(Request { what, ..request.clone() });
    }

    /// Lets the worker of `host` look for a command soon.
    fn wake(&mut self, host: &HostName) {
        let Some(host) = self.hosts.iter().position(|it| it.name == *host) else { return };
        let process = self.hosts[host].process_count;
        let latency = self.latency();
        self.at(latency, Item::Worker { host, process, what: Worker::Pull });
    }

    fn worker_request_arrives(&mut self, request: &Request, worker_request: &WorkerRequest) {
        let Peer::Host(host) = request.from else { return };
        let name = self.hosts[host].name.clone();
        match worker_request {
            WorkerRequest::Reply { sequence, payload, answers } => {
                let time = self.time();
                let stored = self.bus.publish_reply(&name, payload.clone(), answers.clone(), time);
                self.checker.reply_stored(host, stored, payload, answers.command.as_deref());
                self.control_stored(stored);
                let event = rules::Event::ReplyStored { sequence: *sequence };
                self.answer(request, Answer::Worker(event));
            }
            WorkerRequest::Ack { generation, sequence } => {
                self.bus.ack(&name, *generation, *sequence);
                self.checker.acked(host, *sequence);
                self.wake(&name);
                self.answer(request, Answer::Worker(rules::Event::Acked { sequence: *sequence }));
            }
            WorkerRequest::InProgress { generation } => {
                self.bus.in_progress(&name, *generation, self.now);
            }
        }
    }

    fn lock_request_arrives(&mut self, request: &Request, id: JobId, job: &SlotJob) {
        self.outside.record(self.now, || outside::lock(job));
        // Not those that were held back before.
        let is_in_time = self.now < request.sent + request.timeout;
        if !self.locks.is_up {
            if is_in_time {
                let why = NoAnswer::NotSent { detail: "connection refused".to_owned() };
                let report = Job::LockServer(job.clone()).unanswered(why).into();
                self.answer(request, Answer::Instance(Event::JobDone { id, report }));
            }
            return;
        }
        if is_in_time && self.occurs(Fault::LockCarriedOutLate) {
            let late = request.timeout + self.rng.u64(..LATE_MAX);
            return self.at(late, Item::Arrive(Box::new(request.clone())));
        }
        let SlotJob { order, host, group } = job;
        let report =
            |outcome, retry_after| JobReport { done: JobDone::LockServer(job.clone(), outcome), retry_after };
        if self.occurs(Fault::LockAnswers429) {
            let seconds = self.rng.u32(..1_000).to_string();
            let body = br#"{"kind":"too_many_requests","value":"later"}"#;
            let retry_after = Some(seconds.as_bytes());
            let answer = HttpAnswer { status: 429, retry_after, body, ..HttpAnswer::default() };
            let report = report(read_answer(&answer), read_retry_after(&answer, self.time()));
            return self.lock_answer(request, Event::JobDone { id, report });
        }
        let outcome = match order {
            SlotOrder::Lock => {
                let (status, body) = self.lock(group, host);
                let status = if self.bug == Some(Bug::GrantOn202) && status == 202 { 200 } else { status };
                read_answer(&HttpAnswer { status, body: &body, ..HttpAnswer::default() })
            }
            SlotOrder::Unlock => {
                self.checker.unlock_arrives(host);
                self.locks.unlock(group, host.as_str());
                LockOutcome::Granted
            }
        };
        self.lock_answer(request, Event::JobDone { id, report: report(outcome, None) });
    }

    /// The lock server's answer: status and body.
    fn lock(&mut self, group: &GroupName, host: &HostName) -> (u16, Vec<u8>) {
        let error = |kind: &str| serde_json::json!({"kind": kind, "value": "no"}).to_string().into_bytes();
        if self.occurs(Fault::LockDenied) {
            return (409, error("failed_lock_semaphore_full"));
        }
        if self.occurs(Fault::LockAnswers202) {
            return (202, Vec::new());
        }
        let granted = self.locks.lock(group, host.as_str());
        if granted && self.occurs(Fault::LockAnswers500) {
            return (500, error("internal"));
        }
        if granted { (200, Vec::new()) } else { (409, error("failed_lock_semaphore_full")) }
    }

    fn lock_answer(&mut self, request: &Request, event: Event) {
        if self.occurs(Fault::LockLate) {
            let Peer::Instance(instance) = request.from else { return };
            let late = request.timeout + self.rng.u64(..5_000 * MILLI);
            let what = Process::Return { request: request.id, event };
            return self.at(late, Item::Process { instance, boot: request.process, what });
        }
        self.answer(request, Answer::Instance(event));
    }
}
