//! `reboot`: systemd is asked for it.

use os_upgrade_worker_sdk::HandlerResult;
use tracing::info;

use super::Debian;

impl Debian {
    pub(super) async fn start_reboot(&self) -> HandlerResult {
        if !self.tools.is_this_machine() {
            let root = self.tools.root().display();
            return Err(
                format!("{root} is not the root of this machine, so there is nothing to reboot").into()
            );
        }
        self.tools.query("systemctl", &["reboot".to_owned()]).await?;
        info!("the reboot is under way");
        Ok(())
    }
}
