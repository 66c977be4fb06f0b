//! Rebooting this machine: systemd is asked for it, which asks logind whether a program holds it up.

use std::time::Duration;

use os_upgrade_systems::text::one_line;
use os_upgrade_worker_sdk::{HandlerError, HandlerResult};
use tracing::{info, warn};

use super::tools::Tools;
use super::{Patience, SystemOptions};

const SYSTEMCTL: &str = "systemctl";
/// How often a reboot that is held up is asked for.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// Starts the reboot.
///
/// # Errors
/// systemd refuses it, or a program holds it up for longer than the operator allows; the message names it.
pub(crate) async fn start(tools: &Tools, options: &SystemOptions) -> HandlerResult {
    if !tools.is_this_machine() {
        let root = tools.root().display();
        return Err(format!("{root} is not the root of this machine, so there is nothing to reboot").into());
    }
    // Asked for by root without a terminal, systemctl looks at no inhibitor by itself.
    let check = if options.ignore_inhibitors { "no" } else { "yes" };
    let words = ["reboot".to_owned(), format!("--check-inhibitors={check}")];
    let patience = Patience::new(options.inhibitor_wait, ASK_EVERY);
    loop {
        let said = tools.run(SYSTEMCTL, &words).await?;
        if said.status.success() {
            info!("the reboot is under way");
            return Ok(());
        }
        let output = said.all();
        if output.contains("unrecognized option") {
            warn!("this systemctl knows no inhibitors (systemd 248 does); none is looked at");
            tools.query(SYSTEMCTL, &words[..1]).await?;
            return Ok(());
        }
        let error = HandlerError::from(format!("systemctl reboot failed: {}", one_line(&output)));
        if !output.contains("inhibited") {
            return Err(error);
        }
        warn!("the reboot is held up: {}", one_line(&output));
        patience.again(error).await?;
    }
}
