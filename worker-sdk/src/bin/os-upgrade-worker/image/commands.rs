//! The command lines of bootc and rpm-ostree.

use std::time::Duration;

use os_upgrade_systems::image::{Status, bootc, progress, rpm_ostree, trouble};
use os_upgrade_worker_sdk::{Context, HandlerError, HandlerResult};
use tracing::{info, warn};

use super::options::Kind;
use crate::system::Patience;
use crate::system::tools::Tools;
use crate::system::transaction::Transactions;

/// How often rpm-ostree is tried that does something else.
const TRY_EVERY: Duration = Duration::from_secs(2);

/// How much was downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Downloaded {
    /// Everything.
    All,
    /// Only what says whether there is something newer: this bootc cannot download without staging.
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
        let said = tools.run(self.program(), &words).await?;
        if !said.status.success() {
            return Err(trouble(&format!("{} status", self.program()), &said.all()).into());
        }
        let read = match self {
            Self::Bootc => bootc::status(&said.stdout),
            Self::RpmOstree => rpm_ostree::status(&said.stdout),
        };
        Ok(read?)
    }

    /// Downloads what is newer, so that a reboot would not take it yet.
    pub(super) async fn download(
        self,
        tools: &Tools,
        context: &Context,
        wait: Duration,
    ) -> HandlerResult<Downloaded> {
        let words = words(&["upgrade", "--download-only"]);
        let patience = Patience::new(wait, TRY_EVERY);
        context.step(&format!("downloading with {}", self.program()));
        loop {
            let said = tools.run_noted(self.program(), &words, |line| tell(context, line)).await?;
            if said.status.success() {
                return Ok(Downloaded::All);
            }
            let output = said.all();
            if self == Self::Bootc && output.contains("unexpected argument '--download-only'") {
                warn!("this bootc downloads only when it upgrades; whether it can, is not known before");
                return self.check(tools, context).await;
            }
            self.unless_busy(&output, &patience).await?;
        }
    }

    async fn check(self, tools: &Tools, context: &Context) -> HandlerResult<Downloaded> {
        let words = words(&["upgrade", "--check"]);
        let said = tools.run_noted(self.program(), &words, |line| tell(context, line)).await?;
        if said.status.success() {
            return Ok(Downloaded::Description);
        }
        Err(trouble(&format!("{} upgrade --check", self.program()), &said.all()).into())
    }

    /// Has the next reboot take what was downloaded.
    pub(super) async fn apply(
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
        let patience = Patience::new(wait, TRY_EVERY);
        context.step(&format!("laying out what was downloaded with {}", self.program()));
        loop {
            let step = |line: &str| tell(context, line);
            let ended = transactions.run(tools, context, self.program(), &words, step).await?;
            if ended.exit.success() || ended.exit.code() == Some(rpm_ostree::UNCHANGED) {
                return Ok(());
            }
            self.unless_busy(&ended.output, &patience).await?;
        }
    }

    /// Pauses if it failed because it does something else.
    async fn unless_busy(self, output: &str, patience: &Patience) -> HandlerResult {
        let error = HandlerError::from(trouble(&format!("{} upgrade", self.program()), output));
        if self == Self::RpmOstree && rpm_ostree::is_busy(output) {
            info!("waits for another transaction: {}", error.message());
            return patience.again(error).await;
        }
        Err(error)
    }
}

/// Shows operators what a tool says.
fn tell(context: &Context, line: &str) {
    match progress::step(line) {
        Some((Some(percent), text)) => context.progress(percent, &text),
        Some((None, text)) => context.step(&text),
        None => {}
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
