//! `os-upgrade run`: starts, lists, shows, watches and cancels runs, and lets one go on without a host.

mod host_report;
mod ids;
mod logs;
mod start;
mod view;
mod watch;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use os_upgrade_api_types::body::{HostWithReason, Page};
use os_upgrade_api_types::routes::run_hosts::{self, HostReport};
use os_upgrade_api_types::routes::runs::{self as routes, Cancel, MissedRun, RunInFull};
use os_upgrade_api_types::routes::state::{self, State};
use os_upgrade_console::Zone;
use os_upgrade_console::rows::runs::{self, Listed};
use os_upgrade_kernel::RunResult;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;
use serde::Deserialize as _;

use self::ids::find;
use super::completion;
use super::histories::note_older;
use super::hosts::selection::note_unknown;
use super::options::Remote;
use super::release;
use crate::Failure;
use crate::moment::moment;
use crate::outln;
use crate::output::View as _;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a run now, whatever the maintenance windows: of the whole site, or of chosen hosts
    ///
    /// On a terminal it shows who would go, in which order, and what stands against it, and asks. In a HOST, * and ? stand for characters
    /// of the names of hosts, unless a host has exactly that name. A host that is named and cannot take part is an error; one that only
    /// matches is left out. A run of chosen hosts ends when the next one starts automatically, unless --timeout says otherwise.
    ///
    /// With --watch it shows what happens until the run ends, and exits with 0 if every host was upgraded, 7 if it completed
    /// otherwise, 1 if it failed, 3 if it timed out, and 4 if it was cancelled. With -o json or yaml it prints nothing but the run when it has ended, as run show does.
    #[command(after_help = examples![
        "run start", "run start --timeout 2h --reason 'a security update' --watch", "run start h01 --watch",
        "run start --failed --reason 'the mirror is back'", "run start 'web-*' --failed --yes"
    ])]
    Start(start::Start),
    /// List the runs, newest first, with those that were missed
    ///
    /// A run is missed if it was due in a maintenance window and did not start. -o json, -o yaml and -o name list those that started,
    /// and so do --host and --result.
    #[command(after_help = examples![
        "run list", "run list --host h01 --limit 5", "run list --from yesterday",
        "run list --result failed --from 2026-11-01 -o json", "run list --missed -o wide"
    ])]
    List(List),
    /// Show a run, with every host in it; or what happened to one of them
    #[command(after_help = examples!["run show", "run show 019aa3f0-0000 -o wide", "run show last h01"])]
    Show(Show),
    /// Show what happens in a run until it ends
    ///
    /// It exits with 0 if every host was upgraded, 7 if the run completed otherwise, 1 if it failed, 3 if it timed out, and 4 if it was
    /// cancelled. To stop watching does not stop the run. With -o json or yaml it prints nothing but the run when it has ended, as run show does.
    #[command(after_help = examples!["run watch", "run watch 019aa3f0-0000", "run watch -o json"])]
    Watch(Watch),
    /// Show what the commands of a run printed on a host
    ///
    /// Of each command the last 200 lines are kept, of the last three commands of a host, for 30 days.
    #[command(after_help = examples!["run logs", "run logs last h01", "run logs last h01 -o json"])]
    Logs(logs::Logs),
    /// Start no further host in the active run; hosts that hold a slot finish
    #[command(after_help = examples!["run cancel", "run cancel --reason 'the power is about to fail'"])]
    Cancel(CancelOptions),
    /// Let the active run go on without a host, such as one that is down and will not answer
    ///
    /// If it has not begun, it is not started. If it is upgrading or rebooting, it may still be at work: its slot stays
    /// held until it reports that it is done, or until `os-upgrade lock release`. The next run includes it again, unless
    /// it is also withdrawn.
    #[command(after_help = examples!["run give-up h01 --reason 'power supply failed'"])]
    GiveUp(GiveUp),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// How many to show, newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Only runs with this host in them
    #[arg(long, value_name = "NAME", add = completion::hosts())]
    host: Option<HostName>,
    /// Only runs that ended with this result: completed, failed, timed-out or cancelled
    #[arg(long, value_name = "RESULT", value_parser = RunResult::ALL.map(RunResult::as_str))]
    result: Option<String>,
    /// Only runs that started then or later: today, yesterday, 2h or 3d ago, HH:MM of today, YYYY-MM-DD, or a time in RFC 3339
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only runs that started before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// List only the runs that were due in a maintenance window and did not start, and why
    #[arg(long, conflicts_with_all = ["host", "result", "from", "to"])]
    missed: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The id of the run, or at least 8 characters of its beginning, or `last`
    #[arg(value_name = "ID", default_value = "last", add = completion::runs())]
    id: String,
    /// The host; by default every host
    #[arg(value_name = "HOST", add = completion::hosts())]
    host: Option<HostName>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The id of the run, or at least 8 characters of its beginning, or `last`
    #[arg(value_name = "ID", default_value = "last", add = completion::runs())]
    id: String,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct CancelOptions {
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct GiveUp {
    /// The host
    #[arg(value_name = "NAME", add = completion::hosts())]
    host: HostName,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    remote: Remote,
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Start(options) => start::start(options).await,
        Command::List(options) => list(options).await,
        Command::Show(options) => show(options).await,
        Command::Watch(Watch { id, remote }) => {
            let client = remote.client()?;
            let id = find(&client, &id).await?;
            watch::watch(&client, &id, remote.output).await
        }
        Command::Logs(logs::Logs { id, host, remote }) => {
            let client = remote.client()?;
            let id = find(&client, &id).await?;
            logs::show(&client, &id, host, remote.output).await
        }
        Command::Cancel(options) => cancel(options).await,
        Command::GiveUp(options) => give_up(options).await,
    }
}

async fn show(Show { id, host, remote }: Show) -> Result<(), Failure> {
    let client = remote.client()?;
    let id = find(&client, &id).await?;
    let call = match &host {
        Some(host) => run_hosts::READ.named([id.as_str(), host.as_str()]),
        None => routes::READ.named([id.as_str()]),
    };
    let answer = client.call(call).await?;
    match host {
        Some(_) => remote.output.show::<HostReport<'_>>(&answer),
        None => remote.output.show::<RunInFull<'_>>(&answer),
    }
}

async fn list(List { limit, host, result, from, to, missed, remote }: List) -> Result<(), Failure> {
    if missed {
        let page = remote.client()?.call(routes::MISSED.call().with("limit", limit.to_string())).await?;
        return remote.output.show::<Page<MissedRun>>(&page);
    }
    let zone = remote.output.canvas().zone;
    let moment = |text: String| moment(zone, &text).map_err(Failure::Usage);
    // No host is in them, and they have no result.
    let missed_do_not_count = host.is_some() || result.is_some();
    let (from, to) = (from.map(moment).transpose()?, to.map(moment).transpose()?);
    let parameters = [
        ("host", host.as_ref().map(|host| host.as_str().to_owned())),
        ("result", result),
        ("from", from.map(|time| Zone::Utc.show(time))),
        ("to", to.map(|time| Zone::Utc.show(time))),
    ];
    let call = routes::LIST.call().with("limit", limit.to_string());
    let call = parameters.into_iter().fold(call, |call, (name, value)| match value {
        Some(value) => call.with(name, value),
        None => call,
    });
    let client = remote.client()?;
    let output = remote.output;
    if !output.is_for_people() {
        return output.show::<Page<Listed>>(&client.call(call).await?);
    }
    let answer = client.call(call).await?;
    let runs: Page<Listed> = Page::deserialize(&answer).context("unexpected response")?;
    let missed = if missed_do_not_count {
        Vec::new()
    } else {
        client.read::<Page<MissedRun>>(routes::MISSED.call().with("limit", limit.to_string())).await?.items
    };
    let all = runs::with_missed(runs.items, missed, limit as usize, from, to);
    if let Some(none) = all.none() {
        output.aside(&none);
        if let Some(host) = &host {
            note_unknown(&client, host, output).await;
        }
    } else {
        outln!("{}", all.text(&output.canvas()));
    }
    note_older(&answer, output);
    Ok(())
}

async fn cancel(CancelOptions { reason, remote }: CancelOptions) -> Result<(), Failure> {
    let client = remote.client()?;
    let call = state::READ.call().with("fields", "current-upgrade-info/stopping");
    // It only says how to word the answer: whether there is something to cancel is decided by the leader.
    let before = client.read::<State<'_>>(call).await.ok().and_then(|before| before.current_upgrade_info);
    client.call_with_body(&routes::CANCEL, &Cancel { reason }).await?;
    let stopping = before.as_ref().and_then(|current| current.stopping.as_ref()?.read());
    let what = if runs::is_cancel(stopping) {
        format!("already {};", sanitized(&runs::stopping(stopping)))
    } else {
        "cancelled:".to_owned()
    };
    remote.output.note(&format!("{what} no further host is started, and hosts that hold a slot finish"));
    Ok(())
}

async fn give_up(GiveUp { host, reason, remote }: GiveUp) -> Result<(), Failure> {
    let client = remote.client()?;
    let body = HostWithReason { host: host.clone(), reason };
    client.call_with_body(&routes::GIVE_UP, &body).await?;
    remote.output.done("given up", &[host.as_str()])?;
    release::note_kept(&client, host.as_str(), remote.output).await;
    Ok(())
}
