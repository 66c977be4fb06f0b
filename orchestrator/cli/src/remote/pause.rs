//! `os-upgrade pause` and `resume`: nothing further begins on a site, or again.

use clap::Args;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::pause::{self, PAUSE, RESUME};
use os_upgrade_api_types::routes::state::{self, State};

use super::options::Remote;
use crate::Failure;
use crate::moment::future;

#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// When it ends by itself: 2h or 3d from now, HH:MM, tomorrow, Friday, YYYY-MM-DD, or a time in RFC 3339
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Pauses the site.
pub(super) async fn pause(Pause { reason, until, remote }: Pause) -> Result<(), Failure> {
    let zone = remote.output.canvas().zone;
    let until = until.map(|text| future(zone, &text)).transpose().map_err(Failure::Usage)?;
    let body = pause::Pause { reason, until: until.map(Stamp) };
    remote.client()?.call_with_body(&PAUSE, &body).await?;
    let end = zone.stamp_or(until.map(Stamp), "`os-upgrade resume`");
    remote.output.note(&format!("paused until {end}: nothing further begins; what is under way is finished"));
    Ok(())
}

/// Ends the pause of the site.
pub(super) async fn resume(Resume { reason, remote }: Resume) -> Result<(), Failure> {
    let client = remote.client()?;
    // It only says how to word the answer.
    let before = client.read::<State<'_>>(state::READ.call().with("fields", "paused")).await.ok();
    client.call_with_body(&RESUME, &pause::Resume { reason }).await?;
    let was_paused = before.is_none_or(|state| state.paused.is_some());
    remote.output.note(if was_paused { "resumed" } else { "the site was not paused" });
    Ok(())
}
