//! The stream of the output of hosts' commands. Nothing depends on that stream: it is created again when it is
//! missing, and without it, or if it has other settings, operators see no output.

use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::stream::Config;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::error::with_causes;
use tokio_util::sync::CancellationToken;

use super::Bus;

/// How often the stream is looked up.
const CHECK_EVERY: Duration = Duration::from_secs(10);

impl Bus {
    /// Creates the stream with `replicas` copies whenever it is missing, until `stop`. An existing one is left as it is:
    /// with other settings it is not read, and the log says so.
    pub async fn keep_output_stream(&self, replicas: usize, stop: CancellationToken) {
        let config = Config { num_replicas: replicas, ..os_upgrade_jetstream::output_stream() };
        let mut throttle = LogThrottle::default();
        let mut check = tokio::time::interval(CHECK_EVERY);
        check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(check.tick()).await.is_some() {
            if self.client.connection_state() != State::Connected {
                continue;
            }
            match self.ensure_stream(&config).await {
                Ok(()) => throttle.reset(),
                Err(error) => {
                    let error = with_causes(&error);
                    if throttle.is_due(&error, Instant::now()) {
                        tracing::warn!(stream = config.name, "the output of commands is not shown: {error}");
                    }
                }
            }
        }
    }
}
