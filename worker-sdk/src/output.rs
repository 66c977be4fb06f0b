//! What the handlers of a command print: its last lines are sent to operators before the command's reply. Nothing depends on
//! it: when it cannot be sent, it is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::HeaderMap;
use os_upgrade_protocol::{CommandId, Output, OutputTail, subject};
use tracing::{debug, warn};

use crate::bus::Bus;

/// The longest that the reply waits until the output is stored.
const STORED_WITHIN: Duration = Duration::from_secs(2);

/// What the handlers of one command print: operators are shown the last 200 lines, 64 KiB at most. Clones share it.
///
/// Do not write secrets: it is sent over NATS and kept there for 30 days.
///
/// ```
/// use os_upgrade_worker_sdk::{Context, HandlerResult};
///
/// fn update(context: &Context) -> HandlerResult {
///     let finished = std::process::Command::new("my-updater").output()?;
///     context.output().write(&String::from_utf8_lossy(&finished.stdout));
///     if finished.status.success() { Ok(()) } else { Err("the updater failed".into()) }
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CommandOutput(Arc<Mutex<OutputTail>>);

impl CommandOutput {
    /// Adds whole lines. Escape sequences are left out, and other control characters replaced.
    pub fn write(&self, lines: &str) {
        self.lock().push(lines);
    }

    /// The text to send; `None` if there is nothing to show.
    fn text(&self) -> Option<String> {
        let tail = self.lock();
        (!tail.is_blank()).then(|| tail.to_string())
    }

    fn clear(&self) {
        *self.lock() = OutputTail::default();
    }

    fn lock(&self) -> MutexGuard<'_, OutputTail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the output of the command under way. A clone stays with the command.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputSender {
    /// The stream sequence of the command; 0 before the first one.
    command: u64,
    output: CommandOutput,
    has_warned: Arc<AtomicBool>,
}

impl OutputSender {
    /// The output of the command with this stream sequence; an earlier command's is dropped.
    pub(crate) fn of_command(&mut self, sequence: u64) -> CommandOutput {
        if self.command != sequence {
            self.command = sequence;
            self.output = CommandOutput::default();
        }
        self.output.clone()
    }

    /// Sends the output of the command with this stream sequence and id, if there is any, and returns when it is stored,
    /// or after [`STORED_WITHIN`]. What was not stored is sent with the next attempt to reply.
    pub(crate) async fn send(self, bus: &Bus, sequence: u64, command: Option<CommandId>) {
        let (Some(command), true) = (command, self.command == sequence) else { return };
        let Some(text) = self.output.text() else { return };
        let mut headers = HeaderMap::new();
        for (name, value) in Output::headers(&command) {
            headers.insert(name, value);
        }
        let stored = bus.publish_stored(subject::output(&command.host), headers, text.into());
        let stored = tokio::time::timeout(STORED_WITHIN, stored).await;
        match stored.unwrap_or_else(|_| Err("no answer from NATS in time".to_owned())) {
            Ok(()) => self.output.clear(),
            Err(error) if bus.is_connected() && !self.has_warned.swap(true, Ordering::Relaxed) => warn!(
                "the output of commands cannot be stored, and operators will not see it: {error}; an older orchestrator \
                 has no stream for it, and credentials made for one lack the right to publish it"
            ),
            Err(error) => debug!(%command, "the output cannot be stored: {error}"),
        }
    }
}
