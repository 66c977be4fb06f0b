//! Waiting until something is so, never for a fixed time.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use os_upgrade_platform::child::Child;

/// How long anything may take before the test has failed; far more than it should.
pub const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often it is looked, at most: those who are asked have other things to do.
const LOOKS: u32 = 3000;

/// Looks until `look` returns something; panics with `what` when that takes longer than [`PATIENCE`].
pub async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, look).await
}

/// The same for what may take longer, and is looked at less often.
pub async fn within<T>(patience: Duration, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let pause = LOOK_EVERY.max(patience / LOOKS);
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < patience, "in vain waited for: {what}");
        tokio::time::sleep(pause).await;
    }
}

/// How long something takes, apart from what a busy machine adds: by how much a thread that sleeps and wakes all the time
/// is late meanwhile.
#[derive(Debug)]
pub struct Stopwatch {
    started: Instant,
    late_micros: Arc<AtomicU64>,
}

impl Stopwatch {
    /// Starts it.
    pub fn start() -> Self {
        let late_micros = Arc::new(AtomicU64::new(0));
        let shared = Arc::downgrade(&late_micros);
        std::thread::spawn(move || {
            let mut slept = Instant::now();
            while let Some(late_micros) = shared.upgrade() {
                let late = slept.elapsed().saturating_sub(LOOK_EVERY).as_micros();
                late_micros.fetch_add(late.try_into().unwrap(), Ordering::Relaxed);
                drop(late_micros);
                slept = Instant::now();
                std::thread::sleep(LOOK_EVERY);
            }
        });
        Self { started: Instant::now(), late_micros }
    }

    /// Panics unless it took less than this.
    pub fn assert_below(&self, limit: Duration) {
        let (took, late) = (self.started.elapsed(), self.late());
        assert!(took < limit + late, "it took {took:?}, of which the machine stood still for {late:?}");
    }

    fn late(&self) -> Duration {
        Duration::from_micros(self.late_micros.load(Ordering::Relaxed))
    }
}

/// Sends a process a signal. When that is SIGSTOP, all of its threads stand still once this returns: the signal alone is on
/// its way for a moment, in which a question may still be answered.
pub fn signal(child: &Child, signal: Signal) {
    child.signal(signal);
    if signal == Signal::SIGSTOP {
        let start = Instant::now();
        while !stands_still(child.pid()) {
            assert!(start.elapsed() < PATIENCE, "process {} does not stand still", child.pid());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn stands_still(pid: u32) -> bool {
    let Ok(mut threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.all(|thread| {
        let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
        // The state stands behind the name, in which anything may stand. A thread that has ended has none.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}
