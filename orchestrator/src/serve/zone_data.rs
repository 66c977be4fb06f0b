//! The system's time zone data: read at the start, and again when they were replaced.

use chrono::Utc;
use os_upgrade_calendar::Zones;
use os_upgrade_platform::file_watch;
use os_upgrade_zones::{CHECK_EVERY, Watch, ZoneData, ZoneDataProblem};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The rules of time zones, which follow the system's until `shutdown`.
pub(super) fn follow(shutdown: CancellationToken) -> watch::Receiver<Zones> {
    let (data, mut files) = Watch::begin();
    log(&data);
    let (sender, zones) = watch::channel(data.zones);
    tokio::spawn(async move {
        let mut old = None;
        let check = move || {
            if let Some(data) = files.check() {
                log(&data);
                sender.send_replace(data.zones);
            }
            // They also become old while nothing changes.
            let is = sender.borrow().old(Utc::now());
            if is != old {
                if let Some(is) = &is {
                    tracing::warn!("{is}; {}", is.advice());
                }
                old = is;
            }
        };
        file_watch::watch("time zone data", CHECK_EVERY, shutdown, check).await;
    });
    zones
}

fn log(data: &ZoneData) {
    tracing::info!("time zone data: {data}");
    if let Some(problem) = &data.problem {
        tracing::warn!("time zone data: {problem}; {}", ZoneDataProblem::ADVICE);
    }
}
