//! Progress of the command under way: the latest report is sent at most once a second, and repeated for orchestrators
//! that have just started.

use std::time::Duration;

use os_upgrade_protocol::{HostName, Progress, subject};
use tokio::sync::watch;

use crate::bus::Bus;

/// The shortest time between two messages.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// How often an unchanged report is sent again.
const REPEAT_EVERY: Duration = Duration::from_secs(10);

/// The latest progress report. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressReporter {
    /// The stream sequence of the command; 0 outside of a command.
    command: u64,
    latest: watch::Sender<Option<Progress>>,
}

impl ProgressReporter {
    /// A reporter for the command with this stream sequence; an earlier command's report is cleared.
    pub(crate) fn for_command(&self, command: u64) -> Self {
        self.clear();
        Self { command, latest: self.latest.clone() }
    }

    /// Clears the report when no command is under way any more.
    pub(crate) fn clear(&self) {
        self.latest.send_if_modified(|latest| latest.take().is_some());
    }

    pub(crate) fn report(&self, percent: Option<u8>, text: &str) {
        // Outside of a command, as in `versions`, there is no progress to report.
        if self.command > 0 {
            self.latest.send_replace(Some(Progress::new(self.command, percent, text)));
        }
    }
}

/// Sends the reports; never returns.
pub(crate) async fn run(bus: Bus, host: HostName, reporter: ProgressReporter) {
    let subject = subject::progress(&host);
    let mut latest = reporter.latest.subscribe();
    loop {
        let progress = latest.borrow_and_update().clone();
        let Some(progress) = progress else {
            // The sender lives in `reporter`, so this cannot fail.
            let _ = latest.changed().await;
            continue;
        };
        bus.send(subject.clone(), progress.to_payload().into()).await;
        tokio::time::sleep(SEND_EVERY).await;
        // A new report and the timeout both mean that it is time to send.
        let _ = tokio::time::timeout(REPEAT_EVERY, latest.changed()).await;
    }
}
