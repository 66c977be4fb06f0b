//! Carries out actions: saves of the state file immediately, everything else in tasks that report back.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt;
use os_upgrade_protocol::{Hint, HintCause, HostName, RunId, Versions, subject};
use os_upgrade_worker_rules::consumer::SavedState;
use os_upgrade_worker_rules::{
    Action, Activity, Call, Event, HandlerCall, HandlerResult, Level, LogMessage, Now, OutgoingReply,
    RebootCall, StateFile, WorkerConfig, WorkerLogic,
};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::field::display;
use tracing::{Instrument, Span, debug, error, info, info_span, warn};

use super::input::{Input, arrived};
use crate::bus::Bus;
use crate::output::{CommandOutput, OutputSender};
use crate::progress::ProgressReporter;
use crate::store::Store;
use crate::{Cause, Context, VersionsNotifier, Worker, worker};

/// How long handlers and replies under way have to finish during shutdown.
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// The rules of one host, and what is needed to carry out their actions.
pub(super) struct Executor<W> {
    started: Instant,
    logic: WorkerLogic,
    host: HostName,
    reboot_wait: Duration,
    worker: Arc<W>,
    store: Arc<Store>,
    bus: Bus,
    /// The last connection of which the rules know.
    connection: u64,
    inputs: mpsc::Sender<Input>,
    saved: watch::Sender<SavedState>,
    shutdown: CancellationToken,
    versions: VersionsNotifier,
    progress: ProgressReporter,
    output: OutputSender,
    tasks: JoinSet<()>,
    /// The run of the handler under way, and the sender that asks the handler to stop.
    under_way: (Option<RunId>, watch::Sender<Option<Cause>>),
    reboot: Option<AbortHandle>,
    /// During shutdown, a handler was not started, or failed; the next start resumes its work.
    interrupted: bool,
}

impl<W: Worker> Executor<W> {
    #[expect(clippy::too_many_arguments, reason = "called once, with the parts of a worker")]
    pub(super) fn new(
        config: WorkerConfig,
        worker: Arc<W>,
        store: Arc<Store>,
        bus: Bus,
        inputs: mpsc::Sender<Input>,
        saved: watch::Sender<SavedState>,
        shutdown: CancellationToken,
        versions: VersionsNotifier,
        progress: ProgressReporter,
    ) -> Self {
        Self {
            started: Instant::now(),
            host: config.host.clone(),
            reboot_wait: config.reboot_wait.to_std().unwrap_or_default(),
            logic: WorkerLogic::new(config),
            worker,
            store,
            bus,
            connection: 0,
            inputs,
            saved,
            shutdown,
            versions,
            progress,
            output: OutputSender::default(),
            tasks: JoinSet::new(),
            under_way: Default::default(),
            reboot: None,
            interrupted: false,
        }
    }

    /// Passes `event` to the rules and carries out their actions.
    pub(super) async fn feed(&mut self, event: Event) {
        // Remove finished tasks; each has already reported back.
        while self.tasks.try_join_next().is_some() {}
        // Checked here and not only in the loop: a handler that was asked to stop may return before the loop notices.
        if self.is_stopping() && !self.is_accepted_while_stopping(&event) {
            return;
        }
        let mut events = arrived(&mut self.connection, self.bus.connections(), event);
        while let Some(event) = events.pop_front() {
            for action in self.logic.handle(self.now(), event) {
                events.extend(self.carry_out(action).await);
            }
        }
        self.saved.send_replace(self.logic.state().into());
    }

    fn now(&self) -> Now {
        let monotonic = TimeDelta::from_std(self.started.elapsed()).unwrap_or(TimeDelta::MAX);
        Now { wall: Utc::now(), monotonic }
    }

    /// Begins one action; a save is carried out immediately and returns its outcome.
    async fn carry_out(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::SaveState(state) => return Some(self.save(*state).await),
            Action::Run(call) => self.run(call),
            Action::Reboot(call) => self.reboot(call),
            Action::Reply(reply) => self.reply(reply),
            Action::Ack { sequence, subject } => self.ack(sequence, subject),
            Action::InProgress { subject } => self.in_progress(subject),
            Action::ReadVersions => self.read_versions(),
            Action::PublishVersions { subject, payload } => self.publish_versions(subject, payload),
            Action::Log(message) => log(&message),
        }
        None
    }

    async fn save(&self, state: StateFile) -> Event {
        let store = Arc::clone(&self.store);
        let saved = tokio::task::spawn_blocking(move || store.save(&state)).await;
        match saved.map_err(std::io::Error::other).flatten() {
            Ok(()) => Event::StateSaved,
            Err(error) => Event::StateSaveFailed { error: error.to_string() },
        }
    }

    fn run(&mut self, call: HandlerCall) {
        if self.is_stopping() {
            self.interrupted = true;
            return;
        }
        let sequence = call.sequence;
        let span = self.span(call.call.as_str(), call.run.as_ref(), sequence);
        let context = self.context(call.run, call.not_after, call.resume, call.rebooted);
        let context = self.begin(sequence, context);
        let worker = Arc::clone(&self.worker);
        let work = async move {
            let result = match call.call {
                Call::Prepare => HandlerResult::Prepare(catch_panic(worker.prepare(&context)).await),
                Call::Upgrade => HandlerResult::Upgrade(catch_panic(worker.upgrade(&context)).await),
                Call::Health => HandlerResult::Health(catch_panic(worker.health(&context)).await),
            };
            Event::HandlerFinished { sequence, result }
        };
        self.report(work.instrument(span));
    }

    fn reboot(&mut self, call: RebootCall) {
        if self.is_stopping() {
            self.interrupted = true;
            return;
        }
        // The handler of an earlier attempt, whose time is over.
        if let Some(earlier) = self.reboot.take() {
            earlier.abort();
        }
        let sequence = call.sequence;
        let span = self.span("reboot", call.run.as_ref(), sequence);
        let context = self.context(call.run, call.not_after, call.resume, false);
        let context = self.begin(sequence, context);
        let worker = Arc::clone(&self.worker);
        let wait = self.reboot_wait;
        let work = async move {
            let result = tokio::time::timeout(wait, catch_panic(worker.reboot(&context))).await;
            let result = result
                .unwrap_or_else(|_| Err("starting the reboot took too long and was aborted".to_owned()));
            Event::RebootReturned { sequence, result }
        };
        self.reboot = Some(self.report(work.instrument(span)));
    }

    fn reply(&mut self, reply: OutgoingReply) {
        let bus = self.bus.clone();
        let mut headers = HeaderMap::new();
        for (name, value) in reply.headers {
            headers.insert(name, value);
        }
        let sequence = reply.sequence;
        // The command is no longer under way.
        self.progress.clear();
        let output = self.output.clone();
        self.report(async move {
            output.send(&bus, sequence, reply.command).await;
            let stored = bus.publish_stored(reply.subject, headers, reply.payload.into());
            match stored.await {
                Ok(()) => Event::ReplyStored { sequence },
                Err(error) => Event::ReplyFailed { sequence, error },
            }
        });
    }

    fn ack(&mut self, sequence: u64, subject: String) {
        let (bus, connection) = (self.bus.clone(), self.connection);
        self.report(async move {
            match bus.ack(b"+ACK", &subject, connection).await {
                Ok(()) => Event::Acked { sequence },
                Err(error) => Event::AckFailed { sequence, error },
            }
        });
    }

    fn in_progress(&mut self, subject: String) {
        let (bus, connection) = (self.bus.clone(), self.connection);
        self.tasks.spawn(async move {
            if let Err(error) = bus.ack(b"+WPI", &subject, connection).await {
                debug!("the stream may deliver the command again: {error}");
            }
        });
    }

    fn read_versions(&mut self) {
        if self.is_stopping() {
            return;
        }
        let bus = self.bus.clone();
        let worker = Arc::clone(&self.worker);
        let context = self.context(None, None, false, false);
        let last_subject = subject::versions(&self.host);
        self.report(async move {
            bus.await_stream(subject::VERSIONS_STREAM).await;
            let running = catch_panic(worker.versions(&context)).await;
            // That may have taken long, and the stream may have been created again in the meantime.
            let stream = bus.await_stream(subject::VERSIONS_STREAM).await;
            let published = bus.last_payload(&stream, &last_subject).await;
            // An invalid message counts as none, so the running versions are published.
            let published =
                published.map(|payload| payload.and_then(|payload| Versions::parse(&payload).ok()));
            Event::VersionsRead { running, published }
        });
    }

    fn publish_versions(&mut self, to: String, payload: Vec<u8>) {
        let bus = self.bus.clone();
        self.report(async move {
            let stream = bus.await_stream(subject::VERSIONS_STREAM).await;
            match bus.publish_remembered(&stream, to, payload.into()).await {
                Ok(()) => Event::VersionsPublished,
                Err(error) => Event::VersionsPublishFailed { error },
            }
        });
    }

    /// Runs `work` in a task that sends the resulting event to the loop.
    fn report(&mut self, work: impl Future<Output = Event> + Send + 'static) -> AbortHandle {
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            let event = work.await;
            // The loop may have ended; then the next start continues from the state file.
            let _ = inputs.send(Input::Event(event)).await;
        })
    }

    fn context(
        &self,
        run: Option<RunId>,
        not_after: Option<DateTime<Utc>>,
        resumed: bool,
        rebooted: bool,
    ) -> Context {
        Context {
            host: self.host.clone(),
            run,
            not_after,
            resumed,
            rebooted,
            late: not_after.is_some_and(|at| at <= Utc::now()),
            hinted: watch::Sender::default().subscribe(),
            shutdown: self.shutdown.clone(),
            versions: self.versions.clone(),
            progress: ProgressReporter::default(),
            output: CommandOutput::default(),
        }
    }

    /// Registers the handler of the command with this stream sequence, and connects its context to hints, progress
    /// and output.
    fn begin(&mut self, sequence: u64, context: Context) -> Context {
        let hints = watch::Sender::default();
        let hinted = hints.subscribe();
        self.under_way = (context.run.clone(), hints);
        let (progress, output) = (self.progress.for_command(sequence), self.output.of_command(sequence));
        Context { hinted, progress, output, ..context }
    }

    /// The span of all log lines of a command's handler.
    fn span(&self, action: &'static str, run: Option<&RunId>, sequence: u64) -> Span {
        let run = run.map(display);
        info_span!("command", host = %self.host, run, action, sequence)
    }

    /// Asks the handler under way to stop.
    pub(super) fn hint(&self, hint: &Hint) {
        let (run, hints) = &self.under_way;
        if let (Some(stopping), Some(run)) = (&hint.run, run)
            && stopping != run
        {
            debug!(%stopping, %run, "a hint about another run is ignored");
            return;
        }
        let cause = match hint.cause {
            HintCause::Cancelled => Cause::Cancelled,
            HintCause::Failed => Cause::RunFailed,
            HintCause::Unsaid => Cause::Hint,
        };
        // Only the first cause counts. Hints may come at any rate.
        let is_first = hints.send_if_modified(|hinted| {
            let first = hinted.is_none();
            hinted.get_or_insert(cause);
            first
        });
        if is_first {
            info!(?cause, "asked to stop what is under way, if that is possible");
        }
    }

    /// Whether the worker is shutting down, so that nothing new is begun.
    fn is_stopping(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    /// During shutdown: whether there is nothing left to wait for.
    pub(super) fn can_stop(&self) -> bool {
        self.interrupted
            || match self.logic.activity() {
                Activity::NotStarted
                | Activity::Idle
                | Activity::Rebooting { .. }
                | Activity::SaveRetry { .. }
                | Activity::ReplyRetry { .. }
                | Activity::AckRetry { .. } => true,
                Activity::Saving { .. }
                | Activity::Handling(_)
                | Activity::Replying { .. }
                | Activity::Acking => false,
            }
    }

    /// During shutdown, work under way may finish. A handler's failure counts as interruption and is not answered.
    fn is_accepted_while_stopping(&mut self, event: &Event) -> bool {
        match event {
            Event::HandlerFinished { result, .. } => {
                self.interrupted |= result.is_err();
                !result.is_err()
            }
            Event::StateSaved
            | Event::StateSaveFailed { .. }
            | Event::ReplyStored { .. }
            | Event::ReplyFailed { .. }
            | Event::Acked { .. }
            | Event::AckFailed { .. } => true,
            Event::Started { .. }
            | Event::CommandReceived(_)
            | Event::RebootReturned { .. }
            | Event::BootIdRead(_)
            | Event::VersionsRead { .. }
            | Event::VersionsPublished
            | Event::VersionsPublishFailed { .. }
            | Event::VersionsChanged
            | Event::Reconnected
            | Event::Tick => false,
        }
    }

    /// Aborts the tasks that still run.
    pub(super) async fn abort_tasks(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Awaits a handler; a panic is converted to an error.
pub(super) async fn catch_panic<T>(
    handler: impl Future<Output = worker::HandlerResult<T>>,
) -> Result<T, String> {
    match AssertUnwindSafe(handler).catch_unwind().await {
        Ok(result) => result.map_err(worker::HandlerError::into_message),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            Err(text.map_or_else(
                || "the handler panicked".to_owned(),
                |text| format!("the handler panicked: {text}"),
            ))
        }
    }
}

fn log(message: &LogMessage) {
    match message.level() {
        Level::Debug => debug!("{message}"),
        Level::Info => info!("{message}"),
        Level::Warn => warn!("{message}"),
        Level::Error => error!("{message}"),
    }
}
