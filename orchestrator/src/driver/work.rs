//! Actions that take time: each is a task of its own, whose outcome comes back as an event.

use std::time::Duration;

use os_upgrade_adapters::Adapters;
use os_upgrade_adapters::providers::{Made, Providers, SealedItem};
use os_upgrade_bus::Bus;
use os_upgrade_bus::latest::Latest;
use os_upgrade_bus::worker_reports::WorkerConnection;
use os_upgrade_kernel::{Job, NoAnswer, State, StoredItem};
use os_upgrade_protocol::{Hint, HostName};
use os_upgrade_provider_rules::{Failure, Outcome, Reply, Ticket};
use os_upgrade_recovery::loss;
use os_upgrade_shell::delivery::{Deliver, Delivered, DesiredStored, ProviderQuestion, ProviderReply};
use os_upgrade_shell::dispatch::Dispatch;
use os_upgrade_shell::forward::Forwarded;
use os_upgrade_shell::instance::{Acknowledged, CallId, Event, Halt, InstanceSettings, Trim};
use os_upgrade_shell::inventory::WorkerMessage;
use os_upgrade_shell::jobs::{JobReport, StartedJob};
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::lease::{LeaseHolder, LeaseRequest};
use os_upgrade_site::call::Call;
use os_upgrade_store::History;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::leadership::Lease;
use super::nodes;

/// The most outcomes that wait for the driver.
const OUTCOMES_MAX: usize = 8192;
/// The most messages of streams that wait for the driver; readers wait while there are so many.
const READ_MAX: usize = 4096;
/// The most subjects of announcements and versions with a message that waits for the driver; readers wait while there are
/// so many.
const STORED_MAX: usize = 4096;
/// The most subjects of heartbeats and progress with a message that waits for the driver; others are lost.
const REPORTS_MAX: usize = 65_536;
/// How long a job may take: longer than its adapter's own timeout.
const JOB_WITHIN: Duration = Duration::from_mins(1);
/// How long to wait before connecting anew to a server that takes only small messages.
const SMALL_MESSAGES_PAUSE: Duration = Duration::from_secs(1);
/// How long the last answers to followers may take to be sent.
const FLUSH_WITHIN: Duration = Duration::from_millis(200);

/// What tasks send to the driver.
#[derive(Debug)]
pub(super) enum Incoming {
    /// An outcome.
    Event(Event),
    /// A call passed on by a follower.
    Call(Call),
}

/// A message of the journal or the control stream, for the reading that began with this number.
#[derive(Debug)]
pub(super) struct ReadEvent {
    pub(super) reading: u64,
    pub(super) event: Event,
}

/// What arrives for the driver. Each kind has a queue of its own, so that none keeps the others waiting.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Outcomes, and calls that followers pass on.
    pub(super) outcomes: mpsc::Receiver<Incoming>,
    /// Messages of journal and control stream.
    pub(super) read: mpsc::Receiver<ReadEvent>,
    /// Announcements and versions.
    pub(super) stored: Latest<WorkerMessage>,
    /// Heartbeats and progress.
    pub(super) reports: Latest<WorkerMessage>,
}

/// Carries out actions as tasks.
#[derive(Debug)]
pub(super) struct Work {
    bus: Bus,
    adapters: Adapters,
    history: History,
    me: LeaseHolder,
    started: Instant,
    lease: Lease,
    sender: mpsc::Sender<Incoming>,
    read: mpsc::Sender<ReadEvent>,
    journal: Option<Reading>,
    control: Option<Reading>,
    readings: u64,
    /// Answers to followers that are being sent.
    answers: TaskTracker,
    /// Ends the readers.
    ended: CancellationToken,
}

/// A stream that is being read. Events of earlier readings are dropped.
#[derive(Debug)]
struct Reading {
    number: u64,
    _stop: DropGuard,
}

impl Work {
    /// Returns it with everything that its tasks send.
    pub(super) fn new(
        bus: Bus,
        adapters: Adapters,
        history: History,
        settings: &InstanceSettings,
        started: Instant,
    ) -> (Self, Arrivals) {
        let (sender, outcomes) = mpsc::channel(OUTCOMES_MAX);
        let (read_sender, read) = mpsc::channel(READ_MAX);
        let (stored, reports) = (Latest::new(STORED_MAX), Latest::new(REPORTS_MAX));
        let me = LeaseHolder::new(&settings.name, &settings.nonce);
        let work = Self {
            bus,
            adapters,
            history,
            me,
            started,
            lease: Lease::none(started),
            sender,
            read: read_sender,
            journal: None,
            control: None,
            readings: 0,
            answers: TaskTracker::new(),
            ended: CancellationToken::new(),
        };
        (work, Arrivals { outcomes, read, stored, reports })
    }

    /// This instance leads until `until`, on the monotonic clock, or it does not lead.
    pub(super) fn leads_until(&mut self, until: Option<Duration>) {
        self.lease.set(until);
    }

    /// Ends all readers when it is dropped.
    pub(super) fn end_readers(&self) -> DropGuard {
        self.ended.clone().drop_guard()
    }

    /// Waits until the last answers to followers are sent, for a bounded time.
    pub(super) async fn flush(&self) {
        self.answers.close();
        let written = tokio::time::timeout(FLUSH_WITHIN, self.answers.wait()).await;
        let flushed = tokio::time::timeout(FLUSH_WITHIN, self.bus.flush()).await;
        if written.is_err() || flushed.is_err() {
            tracing::debug!("the bus did not take the last answers");
        }
    }

    /// Whether `reading` is the current one of its stream.
    pub(super) fn is_current(&self, reading: u64) -> bool {
        [&self.journal, &self.control].into_iter().flatten().any(|current| current.number == reading)
    }

    /// Runs `work` as a task; what it returns comes back as an event.
    fn spawn<F: Future<Output = Event> + Send + 'static>(&self, work: impl FnOnce(Bus) -> F) {
        self.spawn_all(|bus| {
            let work = work(bus);
            async move { vec![work.await] }
        });
    }

    /// Runs `work` as a task; what it returns comes back as events.
    fn spawn_all<F: Future<Output = Vec<Event>> + Send + 'static>(&self, work: impl FnOnce(Bus) -> F) {
        let (work, sender) = (work(self.bus.clone()), self.sender.clone());
        tokio::spawn(async move {
            for event in work.await {
                // This only fails after the driver has stopped.
                drop(sender.send(Incoming::Event(event)).await);
            }
        });
    }

    pub(super) fn inspect(&self, known: Box<Acknowledged>) {
        self.spawn(|bus| async move {
            let streams = match bus.check_server_messages() {
                Ok(()) => bus.inspect(&known).await.map_err(|error| error.to_string()),
                Err(small) => {
                    // Another server may be right, or this one be configured since.
                    tokio::time::sleep(SMALL_MESSAGES_PAUSE).await;
                    bus.reconnect().await;
                    Err(small.to_string())
                }
            };
            Event::Inspected { known, streams }
        });
    }

    /// Determines from the store what exactly the bus has lost.
    pub(super) fn describe_loss(&self, halt: Halt) {
        let Halt::Lost(losses) = halt else { return };
        let history = self.history.clone();
        self.spawn(|bus| async move {
            Event::LossDescribed(loss::describe_with_advice(&bus, &history, &losses).await)
        });
    }

    pub(super) fn lease(&self, LeaseRequest { number, action }: LeaseRequest) {
        self.spawn(|bus| async move { Event::Lease { number, outcome: bus.lease(&action).await } });
    }

    pub(super) fn append(&self, expected: u64, message: Message) {
        self.spawn(|bus| async move {
            let outcome = bus.append(expected, &message).await;
            Event::Appended { append_id: message.append_id, outcome }
        });
    }

    pub(super) fn read_journal(&self, sequence: u64) {
        self.spawn(|bus| async move { Event::ReadBack { sequence, found: bus.read_back(sequence).await } });
    }

    pub(super) fn forward(&self, call: CallId, to: LeaseHolder, forwarded: Forwarded) {
        self.spawn(|bus| async move {
            Event::ForwardAnswered { call, outcome: bus.forward(&to, &forwarded).await }
        });
    }

    /// Nothing depends on the outcome, so there is no event.
    pub(super) fn hint(&self, hint: Hint, hosts: Vec<HostName>) {
        let bus = self.bus.clone();
        tokio::spawn(async move { bus.hint(&hint, hosts).await });
    }

    pub(super) fn delete_announcements(&self, sequences: Vec<u64>) {
        self.spawn(|bus| async move {
            Event::AnnouncementsDeleted { count: bus.delete_announcements(&sequences).await }
        });
    }

    pub(super) fn trim(&self, trim: Trim) {
        self.spawn(|bus| async move { Event::Trimmed { trim, done: bus.trim(trim).await } });
    }

    pub(super) fn dispatch(&self, dispatch: Dispatch) {
        match dispatch {
            Dispatch::Fence { epoch } => {
                let me = self.me.clone();
                self.spawn(|bus| async move {
                    let stored = bus.publish_fence(&me.instance, &me.nonce).await;
                    Event::FencePublished { epoch, stored }
                });
            }
            Dispatch::Command { epoch, fence, order } => self.spawn(|bus| async move {
                let outcome = bus.publish_command(&order, fence).await;
                Event::CommandPublished { epoch, order, outcome }
            }),
            Dispatch::Job(StartedJob { id, job }) => {
                let (adapters, leadership) = (self.adapters.clone(), self.lease.leadership());
                let deposed = leadership.clone().ended();
                self.spawn(move |_| async move {
                    let job_again = job.clone();
                    let within = adapters.within(&job).unwrap_or(JOB_WITHIN);
                    let ends_with_leadership = job.needs_fence();
                    let work = async move { adapters.carry_out(job, || leadership.may_write()).await };
                    let report = report_of(job_again.clone(), within, work);
                    let report = tokio::select! {
                        report = report => report,
                        () = deposed, if ends_with_leadership => {
                            let detail = "this instance does not lead any more".to_owned();
                            job_again.unanswered(NoAnswer::Failed { detail }).into()
                        }
                    };
                    Event::JobDone { id, report }
                });
            }
            Dispatch::Deliver(deliver) => self.deliver(deliver),
            Dispatch::Purge(purge) => self.spawn(|bus| async move {
                let done = bus.purge_host(&purge).await;
                Event::Purged { purge, done }
            }),
            Dispatch::Retract { host, sequence } => self.spawn(|bus| async move {
                let deleted = bus.retract(&host, sequence).await;
                Event::Retracted { host, sequence, deleted }
            }),
        }
    }

    fn deliver(&self, deliver: Deliver) {
        match deliver {
            Deliver::Fence { epoch, fence } => self.spawn(|bus| async move {
                let outcome = bus.fence_desired(&fence).await;
                Event::Delivered(Delivered::Fenced { epoch, outcome })
            }),
            Deliver::Manifest { epoch, fence, since, order, manifest, units } => {
                self.spawn(|bus| async move {
                    let (host, replaced) = (&order.host, &order.replaced);
                    let outcome =
                        bus.publish_manifest(host, &manifest, &units, replaced, (fence, since)).await;
                    Event::Delivered(Delivered::ManifestPublished { epoch, order, outcome })
                });
            }
            Deliver::Ask { epoch, fence, question } => {
                let providers = self.adapters.providers.clone();
                self.spawn(|bus| async move {
                    let ticket = question.ticket;
                    // If asking panics, the schedule would wait for ever.
                    let task = tokio::spawn(async move { ask(&bus, &providers, *question, fence).await });
                    let failed = |_| Failure::NotSealed.into();
                    let reply = AbortOnDropHandle::new(task).await.unwrap_or_else(failed);
                    Event::Delivered(Delivered::ProviderAnswered { epoch, ticket, reply })
                });
            }
            Deliver::DrawToken { provider } => match self.adapters.providers.draw_token(&provider) {
                Ok(digest) => {
                    let drawn = Event::Delivered(Delivered::TokenDrawn { provider, digest });
                    self.spawn(|_| async move { drawn });
                }
                // It is tried again.
                Err(error) => tracing::warn!(%provider, %error, "cannot draw a token for call-backs"),
            },
            Deliver::Call { epoch, fence, questions } => {
                let providers = self.adapters.providers.clone();
                self.spawn_all(|bus| async move {
                    let tickets: Vec<Ticket> = questions.iter().map(|question| question.ticket).collect();
                    // As above: each question is answered, whatever happens.
                    let task = tokio::spawn(async move { call(&bus, &providers, &questions, fence).await });
                    let replies = AbortOnDropHandle::new(task).await.unwrap_or_default();
                    let missing = std::iter::repeat_with(|| ProviderReply::from(Failure::NotSealed));
                    let answered = |(ticket, reply)| {
                        Event::Delivered(Delivered::ProviderAnswered { epoch, ticket, reply })
                    };
                    let replies = replies.into_iter().chain(missing);
                    tickets.into_iter().zip(replies).map(answered).collect()
                });
            }
        }
    }

    fn begin_reading(&mut self) -> (Reading, CancellationToken) {
        self.readings += 1;
        let stop = self.ended.child_token();
        (Reading { number: self.readings, _stop: stop.clone().drop_guard() }, stop)
    }

    pub(super) fn follow_journal(&mut self, from: u64) {
        let (reading, stop) = self.begin_reading();
        let map = tag_with(&reading);
        self.journal = Some(reading);
        let (bus, sender) = (self.bus.clone(), self.read.clone());
        tokio::spawn(async move { bus.follow_journal(from, stop, sender, map).await });
    }

    pub(super) fn stop_journal(&mut self) {
        self.journal = None;
    }

    pub(super) fn read_control(&mut self, from: u64) {
        let (reading, stop) = self.begin_reading();
        let map = tag_with(&reading);
        self.control = Some(reading);
        let (bus, sender) = (self.bus.clone(), self.read.clone());
        let map = move |raw| map(Event::Control(raw));
        tokio::spawn(async move { bus.read_control(from, stop, sender, map).await });
    }

    pub(super) fn stop_control(&mut self) {
        self.control = None;
    }

    /// Looks at the nodes of the Kubernetes cluster, if there is one, until the readers end.
    pub(super) fn watch_nodes(&self) {
        let Some(cluster) = self.adapters.cluster.clone() else { return };
        let (started, sender, stop) = (self.started, self.sender.clone(), self.ended.clone());
        tokio::spawn(async move {
            nodes::watch(|| cluster.nodes(), started, sender, Incoming::Event, stop).await;
        });
    }

    /// The state was `before` and is `state` now: keeps nothing of providers that are no longer configured.
    pub(super) fn follow_providers(&self, before: &State, state: &State) {
        self.adapters.providers.follow(before, state);
    }

    /// Reads workers' messages, and calls that followers pass on, until the readers end.
    pub(super) fn read_workers_and_followers(&self, workers: WorkerConnection, arrivals: &Arrivals) {
        let parts = || (self.bus.clone(), self.ended.clone(), arrivals.stored.clone());
        let (bus, stop, stored) = parts();
        tokio::spawn(async move { bus.read_announcements(stop, stored).await });
        let (bus, stop, stored) = parts();
        tokio::spawn(async move { bus.read_versions(stop, stored).await });
        let (bus, stop, stored) = parts();
        tokio::spawn(async move { bus.read_applied(stop, stored).await });
        let (stop, reports) = (self.ended.clone(), arrivals.reports.clone());
        tokio::spawn(async move { workers.read_reports(stop, reports).await });
        let (bus, stop, sink) = (self.bus.clone(), self.ended.clone(), self.sender.clone());
        let (me, answers) = (self.me.clone(), self.answers.clone());
        tokio::spawn(async move { bus.read_forwarded(&me, stop, sink, Incoming::Call, answers).await });
    }
}

/// The report of `work` on `job`. If the adapter hangs or panics, it is that the job got no answer: the instance would wait
/// forever without a report.
async fn report_of(
    job: Job,
    within: Duration,
    work: impl Future<Output = JobReport> + Send + 'static,
) -> JobReport {
    let task = AbortOnDropHandle::new(tokio::spawn(work));
    match tokio::time::timeout(within, task).await {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => job.unanswered(NoAnswer::Failed { detail: error.to_string() }).into(),
        Err(_) => job.unanswered(NoAnswer::TimedOut).into(),
    }
}

/// Asks a provider, and stores what it gives, sealed, under the fence at this sequence.
async fn ask(bus: &Bus, providers: &Providers, question: ProviderQuestion, fence: u64) -> ProviderReply {
    let reply = providers.ask(&question).await;
    store(bus, &question, reply, fence).await
}

/// Tells a provider of the events of `questions`, and stores what it gives, sealed, under the fence at this sequence. There is a reply to each
/// question, in this order.
async fn call(
    bus: &Bus,
    providers: &Providers,
    questions: &[ProviderQuestion],
    fence: u64,
) -> Vec<ProviderReply> {
    let mut replies = Vec::with_capacity(questions.len());
    for (question, reply) in questions.iter().zip(providers.call(questions).await) {
        replies.push(store(bus, question, reply, fence).await);
    }
    replies
}

/// Stores what is sealed in the reply to `question` under the fence at this sequence.
async fn store(
    bus: &Bus,
    question: &ProviderQuestion,
    Reply { outcome, retry_after, poll_interval }: Reply<Option<Made>>,
    fence: u64,
) -> ProviderReply {
    let outcome = match outcome {
        Outcome::Content {
            content: Some(Made { item: SealedItem { id, bytes }, fingerprint, hash }),
            validator,
        } => {
            let size = bytes.len() as u64;
            match bus.publish_item(&question.host, &id, bytes.into(), fence).await {
                DesiredStored::Stored(_) => {
                    let (key, sealed) = (question.key, question.sealed);
                    let content = Some(StoredItem { id, bytes: size, key, sealed, fingerprint, hash });
                    Outcome::Content { content, validator }
                }
                DesiredStored::Fenced | DesiredStored::Unknown => Outcome::Failed(Failure::NotStored),
            }
        }
        Outcome::Content { content: None, validator } => Outcome::Content { content: None, validator },
        Outcome::Unchanged { validator } => Outcome::Unchanged { validator },
        Outcome::Removed => Outcome::Removed,
        Outcome::Failed(failure) => Outcome::Failed(failure),
    };
    Reply { outcome, retry_after, poll_interval }
}

/// A function that marks events as read by `reading`.
fn tag_with(reading: &Reading) -> impl Fn(Event) -> ReadEvent + Send + Sync + 'static {
    let reading = reading.number;
    move |event| ReadEvent { reading, event }
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::{JobDone, LockOutcome, SlotJob, SlotOrder};
    use os_upgrade_protocol::GroupName;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_job_is_reported() {
        let (host, group) = (HostName::new("h01").unwrap(), GroupName::new("default").unwrap());
        let job = SlotJob { order: SlotOrder::Lock, host, group };
        let done = |outcome| JobReport::from(JobDone::LockServer(job.clone(), outcome));
        let report = |work| report_of(Job::LockServer(job.clone()), JOB_WITHIN, work);
        let granted = done(LockOutcome::Granted);
        let given = granted.clone();
        assert_eq!(report(Box::pin(async { given }) as Work).await, granted);
        let too_long = LockOutcome::Unreachable { why: NoAnswer::TimedOut };
        assert_eq!(report(Box::pin(std::future::pending())).await, done(too_long));
        let done = report(Box::pin(async { panic!("a fault") })).await.done;
        let JobDone::LockServer(of, LockOutcome::Unreachable { .. }) = &done else { panic!("{done:?}") };
        assert_eq!(of, &job);
    }

    type Work = std::pin::Pin<Box<dyn Future<Output = JobReport> + Send>>;
}
