//! Asks the Kubernetes cluster for its nodes, again and again: on every instance, since each shows what it sees.

use std::time::Duration;

use imbl::OrdMap;
use os_upgrade_kernel::SeenNode;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_shell::instance::Event;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// The time between two questions: several within the time for which an answer counts.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Asks for the nodes with `ask`, at once and then every 10 s, until `stop`, and sends what is seen, as `map` wraps it. The
/// monotonic clock began at `started`.
pub(super) async fn watch<F, E, T>(
    ask: impl Fn() -> F,
    started: Instant,
    sender: mpsc::Sender<T>,
    map: impl Fn(Event) -> T,
    stop: CancellationToken,
) where
    F: Future<Output = Result<OrdMap<HostName, SeenNode>, E>>,
    E: std::error::Error,
{
    let mut ticks = tokio::time::interval(ASK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    let watching = async {
        loop {
            ticks.tick().await;
            let at = started.elapsed();
            let why = match tokio::time::timeout(ANSWER_WITHIN, ask()).await {
                Ok(Ok(nodes)) => {
                    if is_failing {
                        tracing::info!("the Kubernetes cluster shows its nodes again");
                    }
                    is_failing = false;
                    // This only fails after the driver has stopped.
                    drop(sender.send(map(Event::ClusterSeen { nodes, at })).await);
                    continue;
                }
                Ok(Err(error)) => with_causes(&error),
                Err(_) => format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
            };
            if !is_failing {
                tracing::warn!(
                    why,
                    "the Kubernetes cluster does not show its nodes; nothing is drained until it does"
                );
            }
            is_failing = true;
        }
    };
    let _: Option<()> = stop.run_until_cancelled(watching).await;
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    use tracing::Level;
    use tracing::instrument::WithSubscriber as _;
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    type Nodes = OrdMap<HostName, SeenNode>;

    /// Takes the next event, and returns when the cluster was asked for its nodes.
    async fn asked(events: &mut mpsc::Receiver<Event>) -> u64 {
        match events.recv().await {
            Some(Event::ClusterSeen { at, .. }) => at.as_secs(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cluster_is_asked_at_once_and_then_regularly() {
        let (sender, mut events) = mpsc::channel(8);
        let stop = CancellationToken::new();
        let ask = || ready(Ok::<_, io::Error>(Nodes::new()));
        let watch = tokio::spawn(watch(ask, Instant::now(), sender, |event| event, stop.clone()));
        let times = [asked(&mut events).await, asked(&mut events).await, asked(&mut events).await];
        assert_eq!(times, [0, 10, 20]);
        stop.cancel();
        watch.await.unwrap();
        assert!(events.recv().await.is_none());
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_logged_when_they_begin_and_end() {
        let count = AtomicU64::new(0);
        // The second to the fifth answer fail, and the fifth is none.
        let ask = || {
            let number = count.fetch_add(1, Ordering::Relaxed);
            async move {
                match number {
                    1..4 => Err(io::Error::other("503")),
                    4 => std::future::pending().await,
                    _ => Ok(Nodes::new()),
                }
            }
        };
        let written = Written::default();
        let writer = written.clone();
        let lines = fmt::layer().with_ansi(false).without_time().with_writer(move || writer.clone());
        let (sender, mut events) = mpsc::channel(8);
        let watching = watch(ask, Instant::now(), sender, |event| event, CancellationToken::new());
        let watching = watching.with_subscriber(tracing_subscriber::registry().with(lines));
        let times = async { [asked(&mut events).await, asked(&mut events).await] };
        let times = tokio::select! {
            () = watching => panic!("it ends only when it is stopped"),
            times = times => times,
        };
        assert_eq!(times, [0, 70]);
        let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let levels: Vec<_> =
            log.lines().map(|line| line.split_whitespace().next().unwrap_or_default()).collect();
        assert_eq!(levels, [Level::WARN.as_str(), Level::INFO.as_str()], "{log}");
        assert!(log.contains("503"), "{log}");
    }
}
