//! The command lines of bootc and rpm-ostree.

use std::time::Duration;

use os_upgrade_systems::image::{Status, bootc, describe_failure, progress, rpm_ostree};
use os_upgrade_worker_sdk::{Context, HandlerError, HandlerResult};
use tracing::{info, warn};

use super::options::Kind;
use crate::system::Retry;
use crate::system::tools::Tools;
use crate::system::transaction::Transactions;

/// How often a busy rpm-ostree is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(2);

/// How much was downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Downloaded {
    /// The whole image.
    All,
    /// Only metadata that shows whether something newer exists: this bootc cannot download without staging.
    Description,
}

impl Kind {
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Bootc => "bootc",
            Self::RpmOstree => "rpm-ostree",
        }
    }

    pub(super) async fn status(self, tools: &Tools) -> HandlerResult<Status> {
        let words = match self {
            Self::Bootc => words(&["status", "--format", "json"]),
            Self::RpmOstree => words(&["status", "--json"]),
        };
        let finished = tools.run(self.program(), &words).await?;
        if !finished.status.success() {
            return Err(describe_failure(&format!("{} status", self.program()), &finished.all()).into());
        }
        let read = match self {
            Self::Bootc => bootc::status(&finished.stdout),
            Self::RpmOstree => rpm_ostree::status(&finished.stdout),
        };
        Ok(read?)
    }

    /// Downloads a newer image without staging it: a reboot would not boot it yet.
    pub(super) async fn download(
        self,
        tools: &Tools,
        context: &Context,
        wait: Duration,
    ) -> HandlerResult<Downloaded> {
        let words = words(&["upgrade", "--download-only"]);
        let retry = Retry::new(wait, RETRY_EVERY);
        context.step(&format!("downloading with {}", self.program()));
        loop {
            let finished = tools
                .run_recorded(self.program(), &words, context.output(), |line| report(context, line))
                .await?;
            if finished.status.success() {
                return Ok(Downloaded::All);
            }
            let output = finished.all();
            if self == Self::Bootc && output.contains("unexpected argument '--download-only'") {
                warn!("this bootc cannot download in advance, so a download can fail during the upgrade");
                return self.check(tools, context).await;
            }
            self.wait_if_busy(&output, &retry).await?;
        }
    }

    async fn check(self, tools: &Tools, context: &Context) -> HandlerResult<Downloaded> {
        let words = words(&["upgrade", "--check"]);
        let finished = tools
            .run_recorded(self.program(), &words, context.output(), |line| report(context, line))
            .await?;
        if finished.status.success() {
            return Ok(Downloaded::Description);
        }
        Err(describe_failure(&format!("{} upgrade --check", self.program()), &finished.all()).into())
    }

    /// Stages the downloaded image for the next boot.
    pub(super) async fn stage(
        self,
        tools: &Tools,
        transactions: &Transactions,
        context: &Context,
        downloaded: Downloaded,
        wait: Duration,
    ) -> HandlerResult {
        let words = match (self, downloaded) {
            (Self::Bootc, Downloaded::All) => words(&["upgrade", "--from-downloaded"]),
            (Self::Bootc, Downloaded::Description) => words(&["upgrade"]),
            (Self::RpmOstree, Downloaded::All | Downloaded::Description) => {
                words(&["upgrade", "--cache-only", "--unchanged-exit-77"])
            }
        };
        let retry = Retry::new(wait, RETRY_EVERY);
        context.step(&format!("staging the downloaded image with {}", self.program()));
        loop {
            let step = |line: &str| report(context, line);
            let ended = transactions.run(tools, context, self.program(), &words, step).await?;
            if ended.exit.success() || ended.exit.code() == Some(rpm_ostree::UNCHANGED) {
                return Ok(());
            }
            self.wait_if_busy(&ended.output, &retry).await?;
        }
    }

    /// Pauses if rpm-ostree failed because another transaction is under way; otherwise returns the error.
    async fn wait_if_busy(self, output: &str, retry: &Retry) -> HandlerResult {
        let error = HandlerError::from(describe_failure(&format!("{} upgrade", self.program()), output));
        if self == Self::RpmOstree && rpm_ostree::is_busy(output) {
            info!("waiting for another transaction: {}", error.message());
            return retry.pause_or_fail(error).await;
        }
        Err(error)
    }
}

/// Reports a tool's output to operators.
fn report(context: &Context, line: &str) {
    match progress::step(line) {
        Some((Some(percent), text)) => context.progress(percent, &text),
        Some((None, text)) => context.step(&text),
        None => {}
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
