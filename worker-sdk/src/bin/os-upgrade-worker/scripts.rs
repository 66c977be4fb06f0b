//! The worker whose handlers are scripts in a directory.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use chrono::SecondsFormat;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_systems::script::Misbegun;
use os_upgrade_worker_sdk::{
    CancellationToken, CommandOutput, Configuration, Context, HandlerResult, Upgraded, Versions, Worker,
};
use tokio::sync::Mutex;
use tracing::info;

use crate::content_file::ContentFile;
use crate::leftover::Leftover;
use crate::process::{Finished, Script};
use crate::progress_file::ProgressFile;
use crate::script_file;

/// The exit status of `upgrade` when a reboot is required: no common tool has it, so no script ends with it by accident.
const REBOOT_REQUIRED: i32 = 194;
/// The exit status of `systemctl is-active`, and of init scripts, for a service that does not run. Earlier versions took it for
/// [`REBOOT_REQUIRED`].
const NOT_RUNNING: i32 = 3;
/// The script that may run concurrently with another.
const VERSIONS: &str = "versions";
/// The script with which a worker takes configurations.
const CONFIGURE: &str = "configure";

/// When a script may be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// On a hint, and at shutdown of this process.
    OnHint,
    /// Only at shutdown of this process: an operator's hint must not leave a host half upgraded.
    OnShutdown,
    /// Never: the reboot that it starts ends this process.
    Never,
}

/// The scripts of a directory.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) directory: PathBuf,
    pub(crate) host: String,
    /// Of `prepare` and `upgrade`.
    pub(crate) leftover: Leftover,
    pub(crate) progress: ProgressFile,
    /// Of `configure` and `revoke`, which may run concurrently with the others.
    pub(crate) configuring: Leftover,
    pub(crate) content: ContentFile,
    pub(crate) shutdown: CancellationToken,
    /// Whether processes left by an earlier worker have been stopped.
    pub(crate) cleared: Mutex<bool>,
}

impl Scripts {
    /// Whether there is a script for configurations.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(crate) fn can_configure(&self) -> io::Result<bool> {
        script_file::exists(&self.directory.join(CONFIGURE))
    }

    /// Runs the script `name` to its end; `None` when there is none.
    async fn run(&self, name: &str, context: &Context, stop: Stop) -> HandlerResult<Option<Finished>> {
        self.end_leftover().await;
        let path = self.directory.join(name);
        if !script_file::exists(&path)? {
            return Ok(None);
        }
        let mut environment = environment(context);
        // The progress file belongs to the command; `versions` may run concurrently with it.
        if name != VERSIONS {
            environment.push(("OS_UPGRADE_PROGRESS", self.progress.begin()));
        }
        let recorded = name == "prepare" || name == "upgrade";
        let output = context.output();
        let started = if recorded {
            Script::start_recorded(&path, name, &environment, output, |group| self.leftover.record(group))
                .await
        } else {
            Script::start(&path, name, &environment, output)
        };
        let mut script = started.map_err(|error| format!("cannot run {}: {error}", path.display()))?;
        if stop == Stop::Never {
            script.leave_on_drop();
        }
        let finished = tokio::select! {
            finished = script.wait() => Some(finished?),
            () = asked_to_stop(context, stop) => None,
            never = self.progress.follow(context) => match never {},
        };
        let result = if let Some(finished) = finished {
            Ok(Some(finished))
        } else {
            script.stop().await;
            Err(format!("{name} was stopped").into())
        };
        if recorded {
            self.leftover.clear();
        }
        result
    }

    /// Runs `configure` or `revoke` for the configuration `of` to its end.
    async fn run_for(&self, name: &str, of: &str, more: Vec<(&'static str, String)>) -> HandlerResult {
        self.end_leftover().await;
        let path = self.directory.join(name);
        if !script_file::exists(&path)? {
            return Err(self.missing(name).into());
        }
        let mut environment =
            vec![("OS_UPGRADE_HOST", self.host.clone()), ("OS_UPGRADE_CONFIG_NAME", of.to_owned())];
        environment.extend(more);
        // They belong to no command, so operators are not shown what they print.
        let output = CommandOutput::default();
        let record = |group| self.configuring.record(group);
        let started = Script::start_recorded(&path, name, &environment, &output, record).await;
        let mut script = started.map_err(|error| format!("cannot run {}: {error}", path.display()))?;
        let finished = tokio::select! {
            finished = script.wait() => Some(finished?),
            () = self.shutdown.cancelled() => None,
        };
        let result = if let Some(finished) = finished {
            success(name, &finished)
        } else {
            script.stop().await;
            Err(format!("{name} was stopped").into())
        };
        self.configuring.clear();
        result
    }

    /// Runs once, before the first script; by then this process has locked the state directory.
    async fn end_leftover(&self) {
        let mut cleared = self.cleared.lock().await;
        if !*cleared {
            self.leftover.end().await;
            self.configuring.end().await;
            self.content.clear();
            *cleared = true;
        }
    }
}

impl Worker for Scripts {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        match self.run("prepare", context, Stop::OnHint).await? {
            Some(finished) => success("prepare", &finished),
            None => Ok(()),
        }
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        match self.run("upgrade", context, Stop::OnShutdown).await? {
            Some(finished) if finished.status.code() == Some(REBOOT_REQUIRED) => Ok(Upgraded::RebootRequired),
            Some(finished) if finished.status.code() == Some(NOT_RUNNING) => {
                let error = failure("upgrade", &finished);
                Err(format!("{error}; exit status 3 is an error, and {REBOOT_REQUIRED} requires a reboot")
                    .into())
            }
            Some(finished) => success("upgrade", &finished).map(|()| Upgraded::Done),
            None => Err(self.missing("upgrade").into()),
        }
    }

    async fn reboot(&self, context: &Context) -> HandlerResult {
        match self.run("reboot", context, Stop::Never).await? {
            Some(finished) => {
                success("reboot", &finished)?;
                info!("the reboot is under way");
                Ok(())
            }
            None => Err(self.missing("reboot").into()),
        }
    }

    fn can_reboot(&self) -> bool {
        script_file::exists(&self.directory.join("reboot")).unwrap_or(false)
    }

    async fn health(&self, context: &Context) -> HandlerResult {
        match self.run("health", context, Stop::OnShutdown).await? {
            Some(finished) => success("health", &finished),
            None => Ok(()),
        }
    }

    async fn versions(&self, context: &Context) -> HandlerResult<Versions> {
        match self.run(VERSIONS, context, Stop::OnShutdown).await? {
            Some(finished) => {
                success(VERSIONS, &finished)?;
                let parsed = Versions::parse(&finished.stdout).map_err(|error| with_causes(&error));
                Ok(parsed.map_err(|error| format!("versions did not print a flat JSON object: {error}"))?)
            }
            None => Ok(Versions::default()),
        }
    }

    async fn configure(&self, configuration: &Configuration) -> HandlerResult {
        if configuration.has_files() && !self.can_configure()? {
            return Ok(());
        }
        self.end_leftover().await;
        let written = self.content.write(configuration.content());
        let written =
            written.map_err(|error| format!("cannot write the content for {CONFIGURE}: {error}"))?;
        let more = vec![
            ("OS_UPGRADE_CONFIG_FILE", written.path().display().to_string()),
            ("OS_UPGRADE_CONFIG_ID", configuration.id().to_string()),
        ];
        self.run_for(CONFIGURE, configuration.name(), more).await
    }

    async fn revoke(&self, name: &str) -> HandlerResult {
        if !self.can_configure()? {
            return Ok(());
        }
        self.run_for("revoke", name, Vec::new()).await
    }
}

impl Scripts {
    /// That there is no script `name`.
    fn missing(&self, name: &str) -> String {
        format!("there is no script {}", self.directory.join(name).display())
    }
}

async fn asked_to_stop(context: &Context, stop: Stop) {
    match stop {
        Stop::OnHint => drop(context.cancelled().await),
        Stop::OnShutdown => context.shutting_down().await,
        Stop::Never => std::future::pending().await,
    }
}

pub(crate) fn environment(context: &Context) -> Vec<(&'static str, String)> {
    let mut environment = vec![("OS_UPGRADE_HOST", context.host().to_string())];
    if let Some(run) = context.run() {
        environment.push(("OS_UPGRADE_RUN", run.to_string()));
    }
    if let Some(not_after) = context.not_after() {
        let not_after = not_after.to_rfc3339_opts(SecondsFormat::Secs, true);
        environment.push(("OS_UPGRADE_NOT_AFTER", not_after));
    }
    if context.is_resumed() {
        environment.push(("OS_UPGRADE_RESUME", "1".to_owned()));
    }
    if context.has_rebooted() {
        environment.push(("OS_UPGRADE_REBOOTED", "1".to_owned()));
    }
    environment
}

/// `Ok` for exit status 0, otherwise the script's error message.
pub(crate) fn success(name: &str, finished: &Finished) -> HandlerResult {
    if finished.status.success() { Ok(()) } else { Err(failure(name, finished).into()) }
}

/// The error message of a script that has failed.
fn failure(name: &str, finished: &Finished) -> String {
    let message = finished.last_line.clone().unwrap_or_else(|| describe(name, finished.status));
    if finished.has_carriage_returns {
        format!("{message}; {name} may fail because {}", Misbegun::CarriageReturn)
    } else {
        message
    }
}

fn describe(name: &str, status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("{name} exited with status {code}"),
        (None, Some(signal)) => format!("{name} was killed by signal {signal}"),
        (None, None) => format!("{name} ended with {status}"),
    }
}
