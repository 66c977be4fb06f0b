//! What a user of the library implements, and what it is told.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, RunId, Versions};
use os_upgrade_worker_rules::Upgraded;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::progress::ProgressReporter;

/// How long the clock is trusted to go on as it does.
const CLOCK_LOOK_EVERY: Duration = Duration::from_secs(10);

/// What a handler returns; any error that can be displayed is turned into one with `?`.
pub type HandlerResult<T = ()> = Result<T, HandlerError>;

/// Why a handler failed: the message that the operator will read, of which the reply keeps the first 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerError(String);

impl HandlerError {
    /// The message.
    pub fn message(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_message(self) -> String {
        self.0
    }
}

impl<E: Display> From<E> for HandlerError {
    fn from(error: E) -> Self {
        // The alternate form of error types that have one tells their sources, too.
        Self(format!("{error:#}"))
    }
}

/// The work on one host. Write the methods as `async fn`.
///
/// At most one of `prepare`, `upgrade`, `reboot` and `health` runs at a time; `versions` may run beside them.
/// A handler that panics has failed.
pub trait Worker: Send + Sync + 'static {
    /// Gets ready without changing what runs: downloads, simulates, checks. Does nothing by default.
    ///
    /// It may be begun again after a cut; see [`Context::is_resumed`].
    fn prepare(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send {
        let _ = context;
        std::future::ready(Ok(()))
    }

    /// Changes the system. It may reboot the host itself: it is then called again after the boot.
    ///
    /// When [`Context::is_resumed`], an earlier call may have been cut off at any point, also before its first step
    /// or after its last: look how far it came, and finish it.
    fn upgrade(&self, context: &Context) -> impl Future<Output = HandlerResult<Upgraded>> + Send;

    /// Starts the reboot of the host and returns, or waits to be ended by it. Called only when `upgrade` answered
    /// [`Upgraded::RebootRequired`]. Fails by default.
    ///
    /// If this process is still there and the boot id the same after the reboot wait, it is called again, three
    /// times in all.
    fn reboot(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send {
        let _ = context;
        std::future::ready(Err("this worker cannot reboot its host".into()))
    }

    /// Looks whether the host is well after a reboot. Always well by default.
    fn health(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send {
        let _ = context;
        std::future::ready(Ok(()))
    }

    /// What the host runs, package by package. Asked at the start, after each upgrade and reboot, when a connection that
    /// was lost is back, and when a [`VersionsNotifier`] says so; published when it differs from what was last published.
    /// Empty by default.
    fn versions(&self, context: &Context) -> impl Future<Output = HandlerResult<Versions>> + Send {
        let _ = context;
        std::future::ready(Ok(Versions::default()))
    }
}

/// What a handler is told.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) host: HostName,
    pub(crate) run: Option<RunId>,
    pub(crate) not_after: Option<DateTime<Utc>>,
    pub(crate) resumed: bool,
    pub(crate) rebooted: bool,
    /// `not_after` was over when the handler was started, to see to its end what was begun.
    pub(crate) late: bool,
    pub(crate) hinted: watch::Receiver<Option<Cause>>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) versions: VersionsNotifier,
    pub(crate) progress: ProgressReporter,
}

/// Why a handler should stop, if it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An operator has cancelled the run. An error that is returned now is the answer to the command, as with the two
    /// below.
    Cancelled,
    /// Other hosts of the run have failed, and so no further one is started. Hosts that are being upgraded are waited for.
    RunFailed,
    /// The run is stopping, and the orchestrator does not say why.
    Hint,
    /// The end of the run has come. An answer still counts for the host, and no longer for the run.
    NotAfter,
    /// This process is to end. What is returned now as an error is no answer; the work is taken up at the next start.
    Shutdown,
}

impl Context {
    /// The host.
    pub const fn host(&self) -> &HostName {
        &self.host
    }

    /// The run that the command belongs to, if it named one.
    pub const fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// The end of the run, if it has one. Nothing is started after it; what was started is seen to its end.
    pub const fn not_after(&self) -> Option<DateTime<Utc>> {
        self.not_after
    }

    /// The same work may have been begun before and been cut off, by a crash, a restart or a reboot.
    pub const fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// The host has booted since the upgrade was begun.
    pub const fn has_rebooted(&self) -> bool {
        self.rebooted
    }

    /// Resolves when the handler should stop if it can, and says why. A handler may leave it alone: whoever is in the
    /// middle of changing the system should come to its end.
    ///
    /// A handler that is resumed after the end of the run is not told of that end again: it is called to finish.
    ///
    /// ```
    /// use os_upgrade_worker_sdk::{Cause, Context, HandlerResult};
    ///
    /// async fn download(context: &Context, all: impl Future<Output = HandlerResult>) -> HandlerResult {
    ///     tokio::select! {
    ///         done = all => done,
    ///         cause = context.cancelled() => Err(match cause {
    ///             Cause::Cancelled | Cause::RunFailed | Cause::Hint => "the run was stopped",
    ///             Cause::NotAfter => "not downloaded before the end of the run",
    ///             Cause::Shutdown => "the worker ends",
    ///         }.into()),
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) -> Cause {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => Cause::Shutdown,
            cause = self.hinted() => cause,
            () = self.ended() => Cause::NotAfter,
        }
    }

    /// Resolves when there is a hint that the run is stopping.
    async fn hinted(&self) -> Cause {
        let mut hinted = self.hinted.clone();
        let cause = hinted.wait_for(Option::is_some).await.ok().and_then(|cause| *cause);
        match cause {
            Some(cause) => cause,
            // Nobody can ask any more: another command is under way.
            None => std::future::pending().await,
        }
    }

    /// Resolves when the end of the run comes.
    async fn ended(&self) {
        let Some(not_after) = self.not_after.filter(|_| !self.late) else {
            return std::future::pending().await;
        };
        // In short steps, as the clock may be set meanwhile.
        while let Ok(left) = (not_after - Utc::now()).to_std() {
            tokio::time::sleep(left.min(CLOCK_LOOK_EVERY)).await;
        }
    }

    /// Says how far the work is: `percent` from 0 to 100, and what is being done, at most 256 bytes. It is shown to
    /// operators while the command is under way. It may be called as often as is convenient: what is said within a
    /// second is sent once, and only the last of it.
    ///
    /// ```
    /// use os_upgrade_worker_sdk::{Context, HandlerResult};
    ///
    /// fn unpack(context: &Context, packages: &[String]) -> HandlerResult {
    ///     for (done, package) in packages.iter().enumerate() {
    ///         let percent = done * 100 / packages.len();
    ///         context.progress(u8::try_from(percent)?, &format!("unpacking {package}"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn progress(&self, percent: u8, text: &str) {
        self.progress.say(Some(percent), text);
    }

    /// Says what is being done, where nobody knows how much of it is left; otherwise as [`Self::progress`].
    pub fn step(&self, text: &str) {
        self.progress.say(None, text);
    }

    /// Resolves when this process is to end. A handler has about ten seconds; then its future is dropped.
    pub async fn shutting_down(&self) {
        self.shutdown.cancelled().await;
    }

    /// For saying that versions have changed, now or later.
    pub fn versions_notifier(&self) -> VersionsNotifier {
        self.versions.clone()
    }
}

/// Says that the versions of the host may have changed, so that they are looked at.
///
/// ```
/// use os_upgrade_worker_sdk::WorkerBuilder;
///
/// # fn main() -> Result<(), os_upgrade_worker_sdk::Error> {
/// let builder = WorkerBuilder::new("h01", "my-worker")?;
/// let versions = builder.versions_notifier();
/// // Whenever something outside of a handler has changed them, also before the worker runs:
/// versions.notify();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct VersionsNotifier(Arc<Notify>);

impl VersionsNotifier {
    /// Has the versions looked at soon.
    pub fn notify(&self) {
        self.0.notify_one();
    }

    pub(crate) async fn notified(&self) {
        self.0.notified().await;
    }
}
