//! How far the command under way is: the last thing said, sent at most once a second, and again from time to time for
//! orchestrators that have just started.

use std::time::Duration;

use os_upgrade_protocol::{HostName, Progress, subject};
use tokio::sync::watch;

use crate::bus::Bus;

/// The shortest time between two messages.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// How often the same is sent again.
const REPEAT_EVERY: Duration = Duration::from_secs(10);

/// What there is to tell; nothing while no command is under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressReporter {
    command: u64,
    told: watch::Sender<Option<Progress>>,
}

impl ProgressReporter {
    /// For the command with this stream sequence, of which nothing has been told yet.
    pub(crate) fn of(&self, command: u64) -> Self {
        self.clear();
        Self { command, told: self.told.clone() }
    }

    /// Nothing is to be told any more.
    pub(crate) fn clear(&self) {
        self.told.send_if_modified(|told| told.take().is_some());
    }

    pub(crate) fn say(&self, percent: Option<u8>, text: &str) {
        // Outside of a command, as in `versions`, there is nobody to whom it would mean anything.
        if self.command > 0 {
            self.told.send_replace(Some(Progress::new(self.command, percent, text)));
        }
    }
}

/// Sends what is told; never returns.
pub(crate) async fn run(bus: Bus, host: HostName, reporter: ProgressReporter) {
    let subject = subject::progress(&host);
    let mut told = reporter.told.subscribe();
    loop {
        let progress = told.borrow_and_update().clone();
        let Some(progress) = progress else {
            // The sender lives in `reporter`, so this cannot fail.
            let _ = told.changed().await;
            continue;
        };
        bus.send(subject.clone(), progress.to_payload().into()).await;
        tokio::time::sleep(SEND_EVERY).await;
        // Either way it is time for the next one.
        let _ = tokio::time::timeout(REPEAT_EVERY, told.changed()).await;
    }
}
