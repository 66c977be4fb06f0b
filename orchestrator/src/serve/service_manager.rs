//! What the service manager is told, when this runs as a systemd service of `Type=notify`: that it is ready, how it
//! stands, that it is alive, that it ends. Without `NOTIFY_SOCKET` in the environment nobody is told anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::snapshot::Readiness;

/// How long it may take to be ready before it is told that it is up all the same. Whoever starts the service, or waits
/// for it at boot, must not wait for a bus that is away.
const UP_WITHIN: Duration = Duration::from_secs(10);

/// Time between two looks at whether there is something to tell.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Tells the service manager how the instance stands, until `shutdown`. `turns` counts those of the driver's loop; when
/// it stands still, the watchdog is not kept from ending this process.
pub(super) async fn tell(site: SiteHandle, turns: Arc<AtomicU64>, shutdown: CancellationToken) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return shutdown.cancelled().await;
    }
    let mut news = News::new(sd_notify::watchdog_enabled(), Instant::now());
    while !shutdown.is_cancelled() {
        let lines = news.look(&site.snapshot().readiness, turns.load(Ordering::Relaxed), Instant::now());
        say(lines).await;
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    say(vec![Line::Stopping, Line::Status("stopping".to_owned())]).await;
}

/// A service manager that takes nothing in must not hold up the runs: this waits on a thread of its own.
async fn say(lines: Vec<Line>) {
    if lines.is_empty() {
        return;
    }
    let said = tokio::task::spawn_blocking(move || {
        let states: Vec<NotifyState<'_>> = lines.iter().map(Line::state).collect();
        sd_notify::notify(&states)
    });
    match said.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot tell the service manager"),
        Err(error) => tracing::error!(%error, "cannot tell the service manager"),
    }
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Ready,
    Stopping,
    Alive,
    Status(String),
}

impl Line {
    fn state(&self) -> NotifyState<'_> {
        match self {
            Self::Ready => NotifyState::Ready,
            Self::Stopping => NotifyState::Stopping,
            Self::Alive => NotifyState::Watchdog,
            Self::Status(text) => NotifyState::Status(text),
        }
    }
}

/// What has been told, and what there is to tell.
#[derive(Debug)]
struct News {
    ready: bool,
    /// When it is up at the latest.
    up_at: Instant,
    status: String,
    /// How often to say that it is alive: half of what the service manager waits.
    alive_every: Option<Duration>,
    alive_at: Instant,
    /// The driver's turns when it was said last that it is alive.
    turns: Option<u64>,
}

impl News {
    fn new(watchdog: Option<Duration>, now: Instant) -> Self {
        let alive_every = watchdog.map(|within| within / 2);
        Self {
            ready: false,
            up_at: now + UP_WITHIN,
            status: String::new(),
            alive_every,
            alive_at: now,
            turns: None,
        }
    }

    fn look(&mut self, readiness: &Readiness, turns: u64, now: Instant) -> Vec<Line> {
        let mut lines = Vec::new();
        let (up, status) = match readiness {
            Readiness::Ready => (true, "ready"),
            Readiness::NotReady(why) => (false, why.as_str()),
            // It is up, for an operator to see why.
            Readiness::Halted(why) => (true, why.as_str()),
        };
        if (up || self.up_at <= now) && !self.ready {
            self.ready = true;
            lines.push(Line::Ready);
        }
        // One line each: what follows a line break would be taken for something else.
        let status = status.split_whitespace().collect::<Vec<_>>().join(" ");
        if status != self.status {
            self.status.clone_from(&status);
            lines.push(Line::Status(status));
        }
        if let Some(every) = self.alive_every
            && self.alive_at <= now
            && self.turns != Some(turns)
        {
            self.alive_at = now + every;
            self.turns = Some(turns);
            lines.push(Line::Alive);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Line {
        Line::Status(text.to_owned())
    }

    #[test]
    fn readiness_is_told_once_and_every_change_of_status() {
        let now = Instant::now();
        let mut news = News::new(None, now);
        let away = Readiness::NotReady("the bus\n is away".to_owned());
        assert_eq!(news.look(&away, 1, now), [status("the bus is away")]);
        assert_eq!(news.look(&away, 2, now), []);
        assert_eq!(news.look(&Readiness::Ready, 3, now), [Line::Ready, status("ready")]);
        assert_eq!(news.look(&away, 4, now), [status("the bus is away")]);
        assert_eq!(news.look(&Readiness::Ready, 5, now), [status("ready")]);
    }

    #[test]
    fn one_that_waits_for_long_is_up() {
        let start = Instant::now();
        let mut news = News::new(None, start);
        let waiting = Readiness::NotReady("waiting for NATS".to_owned());
        assert_eq!(news.look(&waiting, 1, start), [status("waiting for NATS")]);
        assert_eq!(news.look(&waiting, 2, start + UP_WITHIN - Duration::from_millis(1)), []);
        assert_eq!(news.look(&waiting, 3, start + UP_WITHIN), [Line::Ready]);
        assert_eq!(news.look(&Readiness::Ready, 4, start + UP_WITHIN), [status("ready")]);
    }

    #[test]
    fn one_that_waits_for_an_operator_is_up() {
        let now = Instant::now();
        let halted = Readiness::Halted("the journal was made anew".to_owned());
        let lines = News::new(None, now).look(&halted, 1, now);
        assert_eq!(lines, [Line::Ready, status("the journal was made anew")]);
    }

    #[test]
    fn a_driver_that_stands_still_is_not_alive() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut news = News::new(Some(Duration::from_secs(4)), start);
        let mut looks = |turns, millis| {
            news.look(&Readiness::Ready, turns, at(millis))
                .into_iter()
                .filter(|line| *line == Line::Alive)
                .count()
        };
        assert_eq!(looks(1, 0), 1);
        assert_eq!(looks(9, 1_900), 0);
        assert_eq!(looks(10, 2_000), 1);
        // It is stuck, for however long.
        assert_eq!([looks(10, 4_000), looks(10, 6_000), looks(10, 60_000)], [0; 3]);
        assert_eq!(looks(11, 60_200), 1);
    }
}
