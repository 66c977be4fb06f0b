//! The trait that a user of the library implements, and the context that its methods receive.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, RunId, Versions};
use os_upgrade_worker_rules::Upgraded;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::configuration::Configuration;
use crate::output::CommandOutput;
use crate::progress::ProgressReporter;

/// How often the clock is read while waiting for a time, in case it is set.
const CLOCK_CHECK_EVERY: Duration = Duration::from_secs(10);

/// The result of a handler; `?` converts any displayable error.
pub type HandlerResult<T = ()> = Result<T, HandlerError>;

/// Why a handler failed: a message for the operator. The reply contains its first 4 KiB.
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
        // The alternate form of some error types includes their sources.
        Self(format!("{error:#}"))
    }
}

/// The work on one host. Write the methods as `async fn`.
///
/// At most one of `prepare`, `upgrade`, `reboot` and `health` runs at a time; `versions`, `reboot_required` and
/// `reboot_ineffective` may run concurrently. So may `configure` and `revoke`, of which at most one runs at a time.
/// A panic in a handler counts as a failure.
pub trait Worker: Send + Sync + 'static {
    /// Gets ready without changing the running system: downloads, simulates, checks. Does nothing by default.
    ///
    /// It may be called again after it was cut off; see [`Context::is_resumed`].
    fn prepare(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send {
        let _ = context;
        std::future::ready(Ok(()))
    }

    /// Changes the system. It may reboot the host itself: it is then called again after the boot.
    ///
    /// When [`Context::is_resumed`], an earlier call may have been cut off at any point, even before its first step
    /// or after its last: check how far it got, and finish the upgrade.
    fn upgrade(&self, context: &Context) -> impl Future<Output = HandlerResult<Upgraded>> + Send;

    /// Starts the reboot of the host, and returns or waits until the reboot ends the process. Called when `upgrade`
    /// returned [`Upgraded::RebootRequired`], or an operator wants the host to reboot. Fails by default.
    ///
    /// If this process still runs and the boot id is unchanged after the reboot wait, it is called again, up to three
    /// times in total.
    fn reboot(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send {
        let _ = context;
        std::future::ready(Err("this worker cannot reboot its host".into()))
    }

    /// Whether [`Self::reboot`] can reboot the host, so that operators may request it; `false` by default.
    fn can_reboot(&self) -> bool {
        false
    }

    /// Says why the host needs a reboot, in one line; `None`, the default, if it needs none. Called at start, after a
    /// reboot, after `prepare`, `upgrade` and `health`, and every five minutes, also while another handler runs. Operators see it; nothing reboots for it by itself.
    fn reboot_required(&self) -> impl Future<Output = HandlerResult<Option<String>>> + Send {
        std::future::ready(Ok(None))
    }

    /// Says what a reboot should have brought and did not, such as a kernel, in one line; `None`, the default, if it brought
    /// everything. Called when [`Self::reboot_required`] is. Operators see it; such a host needs them and not another reboot.
    fn reboot_ineffective(&self) -> impl Future<Output = HandlerResult<Option<String>>> + Send {
        std::future::ready(Ok(None))
    }

    /// Checks whether the host is healthy after a reboot. Always succeeds by default.
    fn health(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send {
        let _ = context;
        std::future::ready(Ok(()))
    }

    /// Returns the versions of the host's packages. Called at start, after each upgrade and reboot, after a reconnect, and
    /// when a [`VersionsNotifier`] is notified. The versions are published when they differ from the last published ones.
    /// Empty by default.
    fn versions(&self, context: &Context) -> impl Future<Output = HandlerResult<Versions>> + Send {
        let _ = context;
        std::future::ready(Ok(Versions::default()))
    }

    /// Puts a configuration in force in place of an earlier one of its name, if there is one. Called for a worker with
    /// [`WorkerBuilder::configures`](crate::WorkerBuilder::configures) when the host is to have it. By default one of files is
    /// in force once the library has put them in place, and any other is an error.
    ///
    /// It must be idempotent: it is called again after an error and after it was cut off, and may be called for what is in force already.
    /// After an error it is called again later, up to five minutes, as long as the host is to have it. A command may be under way
    /// meanwhile, such as `upgrade`.
    fn configure(&self, configuration: &Configuration) -> impl Future<Output = HandlerResult> + Send {
        std::future::ready(if configuration.has_files() {
            Ok(())
        } else {
            let error = "this worker takes configurations of files only: give its provider a path";
            Err(error.into())
        })
    }

    /// Takes the configuration of this name out of force. Called when the host is no longer to have it, also if `configure` has only been
    /// begun for it; the library has removed its files. As idempotent as [`Self::configure`]. Does nothing by default.
    fn revoke(&self, name: &str) -> impl Future<Output = HandlerResult> + Send {
        let _ = name;
        std::future::ready(Ok(()))
    }
}

/// The context of a handler's call.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) host: HostName,
    pub(crate) run: Option<RunId>,
    pub(crate) not_after: Option<DateTime<Utc>>,
    pub(crate) resumed: bool,
    pub(crate) rebooted: bool,
    /// `not_after` had passed when the handler was started to finish earlier work.
    pub(crate) late: bool,
    pub(crate) hinted: watch::Receiver<Option<Cause>>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) versions: VersionsNotifier,
    pub(crate) progress: ProgressReporter,
    pub(crate) output: CommandOutput,
}

/// Why a handler should stop, if it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An operator has cancelled the run. An error that the handler returns becomes the answer to the command, even for
    /// the next two causes.
    Cancelled,
    /// Other hosts of the run have failed, so no further host is started. The run waits for hosts that are being upgraded.
    RunFailed,
    /// The run is stopping for a reason that the orchestrator did not send.
    Hint,
    /// The end of the run has passed. An answer still counts for the host, but not for the run.
    NotAfter,
    /// This process is shutting down. An error that the handler returns is not sent; the next start resumes the work.
    Shutdown,
}

impl Context {
    /// The host.
    pub const fn host(&self) -> &HostName {
        &self.host
    }

    /// The run that the command belongs to; `None` if it names none.
    pub const fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// The end of the run, if it has one. No work is started after it; work that was started is finished.
    pub const fn not_after(&self) -> Option<DateTime<Utc>> {
        self.not_after
    }

    /// Whether the same work may have been begun before and cut off by a crash, a restart or a reboot.
    pub const fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Whether the host has rebooted since the upgrade was begun.
    pub const fn has_rebooted(&self) -> bool {
        self.rebooted
    }

    /// Resolves with the cause when the handler should stop if it can. A handler may ignore it: one that is changing the
    /// system should finish.
    ///
    /// For a handler that is resumed after the end of the run, that end is not a cause again: it should finish.
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
    ///             Cause::Shutdown => "the worker is shutting down",
    ///         }.into()),
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) -> Cause {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => Cause::Shutdown,
            cause = self.hinted() => cause,
            () = self.run_ended() => Cause::NotAfter,
        }
    }

    /// Resolves when a hint arrives that the run is stopping.
    async fn hinted(&self) -> Cause {
        let mut hinted = self.hinted.clone();
        let cause = hinted.wait_for(Option::is_some).await.ok().and_then(|cause| *cause);
        match cause {
            Some(cause) => cause,
            // The sender is dropped because another command is under way.
            None => std::future::pending().await,
        }
    }

    /// Resolves at the end of the run.
    async fn run_ended(&self) {
        let Some(not_after) = self.not_after.filter(|_| !self.late) else {
            return std::future::pending().await;
        };
        // In short steps, because the clock may be set in the meantime.
        while let Ok(left) = (not_after - Utc::now()).to_std() {
            tokio::time::sleep(left.min(CLOCK_CHECK_EVERY)).await;
        }
    }

    /// Reports progress to operators: `percent` from 0 to 100, and what is being done, at most 256 bytes. It may be called
    /// any number of times: at most one report per second is sent, always the latest.
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
        self.progress.report(Some(percent), text);
    }

    /// Reports what is being done when the percentage is unknown; otherwise as [`Self::progress`].
    pub fn step(&self, text: &str) {
        self.progress.report(None, text);
    }

    /// What is printed during the command, for operators. Outside of a command, as in `versions`, it goes nowhere.
    pub const fn output(&self) -> &CommandOutput {
        &self.output
    }

    /// Resolves when this process is shutting down. A handler has about ten seconds; then its future is dropped.
    pub async fn shutting_down(&self) {
        self.shutdown.cancelled().await;
    }

    /// A notifier for changed versions, which may be used at any time.
    pub fn versions_notifier(&self) -> VersionsNotifier {
        self.versions.clone()
    }
}

/// Notifies the worker that the versions of the host may have changed, so that it reads them again.
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
    /// Requests that the versions are read soon.
    pub fn notify(&self) {
        self.0.notify_one();
    }

    pub(crate) async fn notified(&self) {
        self.0.notified().await;
    }
}
