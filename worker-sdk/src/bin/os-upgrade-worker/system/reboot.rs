//! Reboots this machine through systemd, once nothing holds the reboot up that the operator wants to wait for.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use chrono::Utc;
use os_upgrade_systems::logind::{self, Inhibitor};
use os_upgrade_systems::text::{names, one_line};
use os_upgrade_worker_sdk::{Context, HandlerResult};
use tracing::{info, warn};

use super::tools::Tools;
use super::{Retry, SystemOptions};

/// How often it is checked whether the reboot is still held up.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// Where logind is on the system bus: its name, its object and its interface.
const LOGIND: [&str; 3] =
    ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"];
/// Exists while systemd is the init system.
const SYSTEMD: &str = "/run/systemd/system";
/// Exists while there is a system bus, without which there is no logind.
const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";

/// What holds up a reboot.
#[derive(Debug, PartialEq, Eq)]
enum Holdup {
    Inhibitors(Vec<Inhibitor>),
    /// Users who are logged in.
    Users(Vec<String>),
    /// Whether anything does cannot be found out.
    Unknown(String),
}

impl fmt::Display for Holdup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inhibitors(inhibitors) => write!(f, "the reboot is inhibited by {}", names(inhibitors)),
            Self::Users(users) => write!(f, "users are logged in: {}", names(users)),
            Self::Unknown(error) => write!(f, "logind does not say what holds up the reboot: {error}"),
        }
    }
}

impl Holdup {
    /// How to reboot despite it.
    const fn option(&self) -> &'static str {
        match self {
            Self::Inhibitors(_) => "reboot despite it with --ignore-inhibitors",
            Self::Users(_) => "reboot despite it without --wait-for-sessions",
            Self::Unknown(_) => "reboot despite it with --ignore-inhibitors and without --wait-for-sessions",
        }
    }
}

/// Whether systemd is the init system of this machine.
pub(crate) fn runs_systemd() -> bool {
    Path::new(SYSTEMD).is_dir()
}

/// Waits until nothing holds the reboot up.
///
/// # Errors
/// Something holds it up for longer than the operator allows, or until the end of the run.
pub(crate) async fn await_release(
    tools: &Tools,
    options: &SystemOptions,
    context: &Context,
) -> HandlerResult {
    let limit = humantime::format_duration(options.inhibitor_wait);
    let retry = Retry::new(options.inhibitor_wait, RETRY_EVERY);
    let mut said = String::new();
    while let Some(holdup) = holdup(tools, options).await {
        let text = holdup.to_string();
        if context.not_after().is_some_and(|not_after| not_after <= Utc::now()) {
            return Err(format!("{text}, and the run has ended; the host was not rebooted").into());
        }
        context.step(&format!("{text}; waiting for at most {limit}"));
        if text != said {
            warn!("{text}; waiting for at most {limit}");
            context.output().write(&text);
            said.clone_from(&text);
        }
        let error = format!(
            "{text}, for longer than {limit}; end that, wait longer with --inhibitor-wait, or {}",
            holdup.option()
        );
        retry.pause_or_fail(error.into()).await?;
    }
    Ok(())
}

/// Starts the reboot.
///
/// # Errors
/// systemd refuses it.
pub(crate) async fn start(tools: &Tools) -> HandlerResult {
    // It would refuse because of users who are logged in; what else it checks was checked. Every version knows this option.
    let finished = tools.run("systemctl", &["reboot", "-i"].map(str::to_owned)).await?;
    if !finished.status.success() {
        return Err(format!("systemctl reboot failed: {}", one_line(&finished.all())).into());
    }
    info!("the reboot is under way");
    Ok(())
}

/// What holds up a reboot that the operator wants to wait for.
async fn holdup(tools: &Tools, options: &SystemOptions) -> Option<Holdup> {
    let held_up = async {
        if !options.ignore_inhibitors {
            let inhibitors =
                ask_manager(tools, "ListInhibitors", logind::inhibitors).await?.unwrap_or_default();
            if !inhibitors.is_empty() {
                return Ok(Some(Holdup::Inhibitors(inhibitors)));
            }
        }
        if options.wait_for_sessions {
            let users = users(tools).await?;
            if !users.is_empty() {
                return Ok(Some(Holdup::Users(users)));
            }
        }
        Ok(None)
    };
    held_up.await.unwrap_or_else(|error| Some(Holdup::Unknown(error)))
}

/// The users who are logged in.
async fn users(tools: &Tools) -> Result<Vec<String>, String> {
    let mut users = Vec::new();
    for session in ask_manager(tools, "ListSessions", logind::sessions).await?.unwrap_or_default() {
        let object = ["get-property", LOGIND[0], &session.object, "org.freedesktop.login1.Session"];
        let properties = busctl(tools, &[&object[..], &logind::PROPERTIES].concat()).await;
        // Without an answer the session has ended since, or counts until the next time.
        if properties.ok().and_then(|properties| logind::is_login(&properties)).unwrap_or(true) {
            users.push(session.user);
        }
    }
    users.sort();
    users.dedup();
    Ok(users)
}

/// Calls a method of logind, and reads the answer; `None` if there is no logind.
async fn ask_manager<T>(
    tools: &Tools,
    method: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, String> {
    let [name, object, interface] = LOGIND;
    match busctl(tools, &["call", name, object, interface, method]).await {
        Ok(output) => match read(&output) {
            Some(read) => Ok(Some(read)),
            None => Err(format!("{method} answers {}", one_line(&output))),
        },
        Err(error) => {
            if is_running(tools).await {
                Err(error)
            } else {
                Ok(None)
            }
        }
    }
}

/// Whether logind, which did not answer, runs or may run. A service that could not be started holds nothing up.
async fn is_running(tools: &Tools) -> bool {
    const BUS: [&str; 3] = ["org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus"];
    let [bus, object, interface] = BUS;
    let owned = busctl(tools, &["call", bus, object, interface, "NameHasOwner", "s", LOGIND[0]]).await;
    match owned.as_deref().map(str::trim) {
        Ok("b false") => false,
        Ok(_) => true,
        Err(_) => runs_systemd() && Path::new(SYSTEM_BUS).exists(),
    }
}

async fn busctl(tools: &Tools, words: &[&str]) -> Result<String, String> {
    let words: Vec<String> = ["--system"].iter().chain(words).map(|&word| word.to_owned()).collect();
    tools.query("busctl", &words).await.map_err(|error| error.message().to_owned())
}
