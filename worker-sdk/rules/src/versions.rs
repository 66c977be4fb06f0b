//! When versions are read and published, independently of commands.

use chrono::TimeDelta;
use os_upgrade_protocol::{HostName, Versions, subject};

use crate::limits::backoff;
use crate::log_message::{Ignored, LogMessage};
use crate::{Action, Now};

/// The current step.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Idle,
    Reading,
    Publishing,
    Waiting(TimeDelta),
}

/// Compares the running versions with the published ones, one comparison at a time.
#[derive(Debug, Clone)]
pub(crate) struct VersionsLogic {
    step: Step,
    /// Versions may have changed since the current comparison began, so another one follows.
    recheck: bool,
    attempt: u32,
}

impl VersionsLogic {
    pub(crate) const fn new() -> Self {
        Self { step: Step::Idle, recheck: false, attempt: 0 }
    }

    /// Compares versions, which may have changed.
    pub(crate) fn check(&mut self, out: &mut Vec<Action>) {
        match self.step {
            Step::Idle | Step::Waiting(_) => self.read(out),
            Step::Reading | Step::Publishing => self.recheck = true,
        }
    }

    pub(crate) fn tick(&mut self, now: Now, out: &mut Vec<Action>) {
        match self.step {
            Step::Waiting(at) if at <= now.monotonic => self.read(out),
            Step::Waiting(_) | Step::Idle | Step::Reading | Step::Publishing => {}
        }
    }

    pub(crate) fn versions_read(
        &mut self,
        now: Now,
        host: &HostName,
        running: Result<Versions, String>,
        published: Result<Option<Versions>, String>,
        out: &mut Vec<Action>,
    ) {
        if self.step != Step::Reading {
            return unexpected("VersionsRead", out);
        }
        let (running, published) = match (running, published) {
            (Ok(running), Ok(published)) => (running, published),
            (Err(error), _) | (_, Err(error)) => return self.failed(now, error, out),
        };
        // A worker that knows no versions publishes none, unless some were published before.
        if published.unwrap_or_default() == running {
            out.push(Action::Log(LogMessage::VersionsUnchanged));
            return self.finished(out);
        }
        self.step = Step::Publishing;
        out.push(Action::PublishVersions { subject: subject::versions(host), payload: running.to_payload() });
    }

    pub(crate) fn published(&mut self, out: &mut Vec<Action>) {
        if self.step == Step::Publishing {
            self.finished(out);
        } else {
            unexpected("VersionsPublished", out);
        }
    }

    pub(crate) fn publish_failed(&mut self, now: Now, error: String, out: &mut Vec<Action>) {
        if self.step == Step::Publishing {
            self.failed(now, error, out);
        } else {
            unexpected("VersionsPublishFailed", out);
        }
    }

    fn read(&mut self, out: &mut Vec<Action>) {
        self.step = Step::Reading;
        self.recheck = false;
        out.push(Action::ReadVersions);
    }

    fn finished(&mut self, out: &mut Vec<Action>) {
        self.attempt = 0;
        if self.recheck {
            self.read(out);
        } else {
            self.step = Step::Idle;
        }
    }

    fn failed(&mut self, now: Now, error: String, out: &mut Vec<Action>) {
        self.attempt = self.attempt.saturating_add(1);
        self.step = Step::Waiting(now.monotonic + backoff(self.attempt));
        let attempt = self.attempt;
        out.push(Action::Log(LogMessage::VersionsFailed { error, attempt }));
    }
}

fn unexpected(event: &'static str, out: &mut Vec<Action>) {
    out.push(Action::Log(LogMessage::Ignored(Ignored::Unexpected(event))));
}
