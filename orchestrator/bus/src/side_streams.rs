//! Streams beside those that decide: what commands printed, what hosts are to have, and what they have applied. An instance does its work
//! without them: each is created again when it is missing, and not used if it has other settings.

use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::stream::Config;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::error::with_causes;
use tokio_util::sync::CancellationToken;

use super::Bus;
use super::streams::Layout;

/// How often the streams are looked up.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The streams, each with what is missing without it.
fn wanted(layout: &Layout<'_>) -> [(Config, &'static str); 3] {
    let num_replicas = layout.replicas;
    let replicated = |config| Config { num_replicas, ..config };
    let desired = Config { metadata: layout.metadata(), ..os_upgrade_jetstream::desired_stream() };
    [
        (replicated(os_upgrade_jetstream::output_stream()), "the output of commands is not shown"),
        (replicated(desired), "hosts get no configuration"),
        (replicated(os_upgrade_jetstream::applied_stream()), "it is not seen which configuration hosts have"),
    ]
}

impl Bus {
    /// Creates each of these streams whenever it is missing, until `stop`. An existing one is left as it is: with other settings it is not
    /// used, and the log says so.
    pub async fn keep_side_streams(&self, layout: &Layout<'_>, stop: CancellationToken) {
        let mut kept = wanted(layout).map(|(config, without)| (config, without, LogThrottle::default()));
        let mut check = tokio::time::interval(CHECK_EVERY);
        check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(check.tick()).await.is_some() {
            if self.client.connection_state() != State::Connected {
                continue;
            }
            for (config, without, throttle) in &mut kept {
                match self.ensure_stream(config).await {
                    Ok(()) => throttle.reset(),
                    Err(error) => {
                        let error = with_causes(&error);
                        if throttle.is_due(&error, Instant::now()) {
                            tracing::warn!(stream = config.name, "{without}: {error}");
                        }
                    }
                }
            }
        }
    }
}
