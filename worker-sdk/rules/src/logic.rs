//! The logic of a worker: events in, actions out. This module holds the state and passes each event to one of its
//! parts: `receive` decides about commands, `work` about handlers and reboots, `delivery` about the state file,
//! replies and acknowledgements.
//!
//! The work under way is derived from the state file: after each successful save `WorkerLogic::proceed` begins the
//! saved phase. A restart does the same with the existing file.

mod delivery;
mod receive;
mod resume;
mod work;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{ApplicationName, HostName};

use crate::limits::IN_PROGRESS_EVERY;
use crate::log_message::{Ignored, LogMessage};
use crate::state_file::{BootId, Phase, Position, StateFile};
use crate::versions::VersionsLogic;
use crate::{Action, Call, Event, Now, Received};

/// The configuration of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The host it serves.
    pub host: HostName,
    /// The application it is an instance of.
    pub application: ApplicationName,
    /// How long a started reboot may take to end this process.
    pub reboot_wait: TimeDelta,
}

/// What the logic waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    NotStarted,
    /// A command.
    Idle,
    /// The state file to be saved.
    Saving {
        /// Number of this attempt, counted from 1.
        attempt: u32,
    },
    /// The time to try again to save the state file.
    SaveRetry {
        /// How many attempts failed.
        attempt: u32,
        /// When to try again, in monotonic time.
        at: TimeDelta,
    },
    /// A handler to return.
    Handling(Call),
    /// The host to reboot.
    Rebooting {
        /// When the reboot was started, in monotonic time.
        since: TimeDelta,
    },
    /// The stream to store the reply.
    Replying {
        /// Number of this attempt, counted from 1.
        attempt: u32,
    },
    /// The time to publish the reply again.
    ReplyRetry {
        /// How many attempts failed.
        attempt: u32,
        /// When to try again, in monotonic time.
        at: TimeDelta,
    },
    /// The server to confirm the acknowledgement.
    Acking,
    /// The time to reply and acknowledge again.
    AckRetry {
        /// When to try again, in monotonic time.
        at: TimeDelta,
    },
}

/// A worker without its I/O. The crate's documentation describes the order of its actions.
#[derive(Debug, Clone)]
pub struct WorkerLogic {
    config: WorkerConfig,
    boot_id: BootId,
    /// The contents of the file, once the save under way is done.
    file: StateFile,
    activity: Activity,
    /// A command that was delivered while another is under way. One place suffices: the consumer delivers one command
    /// at a time, and a second one only when the first is deleted from the stream or the consumer is created again. So
    /// the server no longer waits for the acknowledgement of the first.
    held: Option<Received>,
    /// The last command that this process has begun or answered again, and the connection over which it came.
    last: Option<(Position, u64)>,
    /// How often the acknowledgement of the command under way was sent.
    acks: u32,
    /// In monotonic time.
    in_progress_at: TimeDelta,
    versions: VersionsLogic,
}

impl WorkerLogic {
    /// A worker that waits for [`Event::Started`].
    pub fn new(config: WorkerConfig) -> Self {
        Self {
            boot_id: BootId(String::new()),
            file: StateFile::new(config.host.clone()),
            config,
            activity: Activity::NotStarted,
            held: None,
            last: None,
            acks: 0,
            in_progress_at: TimeDelta::zero(),
            versions: VersionsLogic::new(),
        }
    }

    /// What the logic waits for.
    pub const fn activity(&self) -> &Activity {
        &self.activity
    }

    /// What the worker remembers.
    pub const fn state(&self) -> &StateFile {
        &self.file
    }

    /// Handles one event and returns the actions to carry out now.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        if self.activity == Activity::NotStarted && !matches!(event, Event::Started { .. }) {
            ignore(Ignored::NotStarted, &mut out);
            return out;
        }
        let out_ref = &mut out;
        match event {
            Event::Started { loaded, boot_id } => self.started(now, loaded, boot_id, out_ref),
            Event::CommandReceived(received) => self.command_received(now, received, out_ref),
            Event::HandlerFinished { sequence, result } => {
                self.handler_finished(sequence, result, out_ref);
            }
            Event::RebootReturned { sequence, result } => self.reboot_returned(sequence, result, out_ref),
            Event::BootIdRead(boot_id) => self.boot_id_read(boot_id, out_ref),
            Event::StateSaved => self.state_saved(now, out_ref),
            Event::StateSaveFailed { error } => self.state_save_failed(now, &error, out_ref),
            Event::ReplyStored { sequence } => self.reply_stored(sequence, out_ref),
            Event::ReplyFailed { sequence, error } => self.reply_failed(now, sequence, error, out_ref),
            Event::Acked { sequence } => self.acked(sequence, out_ref),
            Event::AckFailed { sequence, error } => self.ack_failed(now, sequence, error, out_ref),
            Event::VersionsRead { running, published } => {
                let host = &self.config.host;
                self.versions.versions_read(now, host, running, published, out_ref);
            }
            Event::VersionsPublished => self.versions.published(out_ref),
            Event::VersionsPublishFailed { error } => self.versions.publish_failed(now, error, out_ref),
            Event::VersionsChanged => self.versions.check(out_ref),
            Event::Reconnected => self.reconnected(out_ref),
            Event::Tick => self.tick(now, out_ref),
        }
        out
    }

    /// Begins the saved phase.
    fn proceed(&mut self, now: Now, out: &mut Vec<Action>) {
        let Some(current) = &self.file.current else {
            return self.idle(now, out);
        };
        match current.phase {
            Phase::Preparing => self.run(now, Call::Prepare, out),
            Phase::Upgrading { .. } => self.run(now, Call::Upgrade, out),
            Phase::Checking => self.run(now, Call::Health, out),
            Phase::Rebooting { .. } => self.reboot(now, out),
            Phase::Answered { .. } => self.reply(1, out),
        }
    }

    fn idle(&mut self, now: Now, out: &mut Vec<Action>) {
        self.activity = Activity::Idle;
        if let Some(received) = self.held.take() {
            self.command_received(now, received, out);
        }
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Action>) {
        self.report_progress(now, out);
        self.versions.tick(now, out);
        match self.activity {
            Activity::SaveRetry { attempt, at } if at <= now.monotonic => self.save_attempt(attempt + 1, out),
            Activity::ReplyRetry { attempt, at } if at <= now.monotonic => self.reply(attempt + 1, out),
            Activity::AckRetry { at } if at <= now.monotonic => self.reply(1, out),
            Activity::Rebooting { since } if now.monotonic - since >= self.config.reboot_wait => {
                self.not_rebooted(out);
            }
            Activity::SaveRetry { .. }
            | Activity::ReplyRetry { .. }
            | Activity::AckRetry { .. }
            | Activity::NotStarted
            | Activity::Idle
            | Activity::Saving { .. }
            | Activity::Handling(_)
            | Activity::Rebooting { .. }
            | Activity::Replying { .. }
            | Activity::Acking => {}
        }
    }

    fn reconnected(&mut self, out: &mut Vec<Action>) {
        // The versions stream may have been created again and be empty.
        self.versions.check(out);
        // What the server wants acknowledged it delivers again. Between connections the stream may have been rolled back, and an
        // old subject could count for another command that has come to the same sequence.
        let current = self.file.current.as_mut().map(|current| &mut current.ack_subject);
        let held = self.held.as_mut().map(|held| &mut held.ack_subject);
        current.into_iter().chain(held).for_each(String::clear);
        match self.activity {
            Activity::ReplyRetry { attempt, .. } => self.reply(attempt + 1, out),
            Activity::AckRetry { .. } => self.reply(1, out),
            Activity::NotStarted
            | Activity::Idle
            | Activity::Saving { .. }
            | Activity::SaveRetry { .. }
            | Activity::Handling(_)
            | Activity::Rebooting { .. }
            | Activity::Replying { .. }
            | Activity::Acking => {}
        }
    }

    /// Keeps the server from redelivering the command under way and the one that waits.
    fn report_progress(&mut self, now: Now, out: &mut Vec<Action>) {
        if now.monotonic - self.in_progress_at < IN_PROGRESS_EVERY {
            return;
        }
        self.in_progress_at = now.monotonic;
        let current = self.file.current.as_ref().map(|current| &current.ack_subject);
        let held = self.held.as_ref().map(|held| &held.ack_subject);
        for subject in current.into_iter().chain(held).filter(|subject| !subject.is_empty()) {
            out.push(Action::InProgress { subject: subject.clone() });
        }
    }

    /// Whether `sequence` is the command under way.
    fn is_current(&self, sequence: u64) -> bool {
        let current = self.file.current.as_ref();
        current.is_some_and(|current| current.position.sequence == sequence)
    }
}

fn ignore(reason: Ignored, out: &mut Vec<Action>) {
    out.push(Action::Log(LogMessage::Ignored(reason)));
}

/// Whether `not_after` has passed.
fn has_passed(now: Now, not_after: Option<DateTime<Utc>>) -> bool {
    not_after.is_some_and(|not_after| now.wall > not_after)
}
