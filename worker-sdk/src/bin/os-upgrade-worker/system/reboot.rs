//! Reboots this machine through systemd, which checks logind's inhibitors.

use std::time::Duration;

use os_upgrade_systems::text::one_line;
use os_upgrade_worker_sdk::{HandlerError, HandlerResult};
use tracing::{info, warn};

use super::tools::Tools;
use super::{Retry, SystemOptions};

const SYSTEMCTL: &str = "systemctl";
/// How often an inhibited reboot is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// Starts the reboot.
///
/// # Errors
/// systemd refuses the reboot, or a program inhibits it for longer than the operator allows; the message names it.
pub(crate) async fn start(tools: &Tools, options: &SystemOptions) -> HandlerResult {
    if !tools.is_this_machine() {
        let root = tools.root().display();
        return Err(format!("{root} is not the root of this machine, so there is nothing to reboot").into());
    }
    // When run by root without a terminal, systemctl ignores inhibitors by default.
    let check = if options.ignore_inhibitors { "no" } else { "yes" };
    let words = ["reboot".to_owned(), format!("--check-inhibitors={check}")];
    let retry = Retry::new(options.inhibitor_wait, RETRY_EVERY);
    loop {
        let finished = tools.run(SYSTEMCTL, &words).await?;
        if finished.status.success() {
            info!("the reboot is under way");
            return Ok(());
        }
        let output = finished.all();
        if output.contains("unrecognized option") {
            warn!("this systemctl does not check inhibitors (systemd 248 does), so they are ignored");
            tools.query(SYSTEMCTL, &words[..1]).await?;
            return Ok(());
        }
        let error = HandlerError::from(format!("systemctl reboot failed: {}", one_line(&output)));
        if !output.contains("inhibited") {
            return Err(error);
        }
        warn!("the reboot is inhibited: {}", one_line(&output));
        retry.pause_or_fail(error).await?;
    }
}
