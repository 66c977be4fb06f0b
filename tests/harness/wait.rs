//! Waiting for conditions, never for a fixed time.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use os_upgrade_platform::child::Child;

/// Timeout of every wait, far longer than any should take.
pub const PATIENCE: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The most polls of one wait, to limit the load on the polled process.
const POLLS_MAX: u32 = 3000;

/// Polls until `poll` returns something; panics with `what` when that takes longer than [`PATIENCE`].
pub async fn eventually<T>(what: &str, poll: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, poll).await
}

/// The same with another timeout; a longer one polls less often.
pub async fn within<T>(patience: Duration, what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let pause = POLL_INTERVAL.max(patience / POLLS_MAX);
    let start = Instant::now();
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(start.elapsed() < patience, "timed out waiting for: {what}");
        tokio::time::sleep(pause).await;
    }
}

/// Measures time, less the delays of a busy machine: those of a thread that sleeps and wakes all the time.
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
                let late = slept.elapsed().saturating_sub(POLL_INTERVAL).as_micros();
                late_micros.fetch_add(late.try_into().unwrap(), Ordering::Relaxed);
                drop(late_micros);
                slept = Instant::now();
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        Self { started: Instant::now(), late_micros }
    }

    /// Panics unless less than this has passed.
    pub fn assert_below(&self, limit: Duration) {
        let (took, late) = (self.started.elapsed(), self.late());
        assert!(took < limit + late, "it took {took:?}, of which the machine stalled for {late:?}");
    }

    fn late(&self) -> Duration {
        Duration::from_micros(self.late_micros.load(Ordering::Relaxed))
    }
}

/// Sends a process a signal. After SIGSTOP it waits until all threads are stopped: the signal takes a moment, in which the
/// process could still answer.
pub fn signal(child: &Child, signal: Signal) {
    child.signal(signal);
    if signal == Signal::SIGSTOP {
        let start = Instant::now();
        while !is_stopped(child.pid()) {
            assert!(start.elapsed() < PATIENCE, "process {} does not stop", child.pid());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn is_stopped(pid: u32) -> bool {
    let Ok(mut threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.all(|thread| {
        let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
        // The state follows the name, which may contain anything. An ended thread has no state.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}
